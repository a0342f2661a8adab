"""One source tile and one scalar, converted to the tile's dtype first (ops 1.6, 4)."""

from __future__ import annotations

from .table import Instruction, destination, scalar, tiles


def _scalar(mnemonic: str, variant: str, summary: str) -> Instruction:
    operands = (destination(), *tiles("a"), scalar("s", like="a"))
    return Instruction(mnemonic, operands, (), "elementwise.binary_scalar", variant, "V", "vector1s", 0, summary)


def _ternary(mnemonic: str, variant: str, summary: str) -> Instruction:
    operands = (destination(), *tiles("a"), scalar("s", like="a"), *tiles("c"))
    return Instruction(mnemonic, operands, (), "elementwise.ternary_scalar", variant, "V", "vector2s", 0, summary)


_LRELU = Instruction(
    "tlrelu",
    (destination(), *tiles("a"), scalar("slope", like="float")),
    (),
    "elementwise.leaky_scalar",
    "lrelu",
    "V",
    "vector1s",
    0,
    "dst = a if a > 0 else a * slope",
)

ROWS = (
    _scalar("tadds", "add", "dst = a + s"),
    _scalar("tsubs", "sub", "dst = a - s"),
    _scalar("tmuls", "mul", "dst = a * s"),
    _scalar("tdivs", "div", "dst = a / s; integers truncate, a zero divisor stops the program"),
    _scalar("tmaxs", "max", "dst = s if a < s else a"),
    _scalar("tmins", "min", "dst = s if s < a else a"),
    _scalar("trems", "rem", "remainder with the sign of s"),
    _scalar("tfmods", "fmod", "remainder with the sign of a"),
    _ternary("taddsc", "add", "dst = a + s + c, left to right"),
    _ternary("tsubsc", "sub", "dst = a - s - c, left to right"),
    _LRELU,
)

"""Two and three source tiles, same shape and dtype (ops 4)."""

from __future__ import annotations

from .table import Instruction, destination, tiles


def _binary(mnemonic: str, variant: str, summary: str) -> Instruction:
    operands = (destination(), *tiles("a", "b"))
    return Instruction(mnemonic, operands, (), "elementwise.binary", variant, "V", "vector2", 0, summary)


def _ternary(mnemonic: str, variant: str, summary: str) -> Instruction:
    operands = (destination(), *tiles("a", "b", "c"))
    return Instruction(mnemonic, operands, (), "elementwise.ternary", variant, "V", "vector3", 0, summary)


ROWS = (
    _binary("tadd", "add", "dst = a + b"),
    _binary("tsub", "sub", "dst = a - b"),
    _binary("tmul", "mul", "dst = a * b"),
    _binary("tdiv", "div", "dst = a / b; integers truncate, a zero divisor stops the program"),
    _binary("tmax", "max", "dst = b if a < b else a"),
    _binary("tmin", "min", "dst = b if b < a else a"),
    _binary("trem", "rem", "remainder with the sign of b"),
    _binary("tfmod", "fmod", "remainder with the sign of a"),
    _binary("tprelu", "lrelu", "dst = a if a > 0 else a * b"),
    _ternary("taddc", "add", "dst = a + b + c, left to right"),
    _ternary("tsubc", "sub", "dst = a - b - c, left to right"),
)

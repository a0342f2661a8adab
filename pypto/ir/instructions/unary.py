"""One source tile (ops 5)."""

from __future__ import annotations

from .table import Instruction, destination, tiles


def _unary(mnemonic: str, variant: str, summary: str, cost: str = "vector1") -> Instruction:
    return Instruction(mnemonic, (destination(), *tiles("a")), (), "unary.unary", variant, "V", cost, 0, summary)


ROWS = (
    _unary("tneg", "neg", "dst = -a"),
    _unary("tabs", "abs", "dst = |a|; the smallest integer stays"),
    _unary("texp", "exp", "dst = e ** a"),
    _unary("tlog", "log", "dst = ln a"),
    _unary("tsqrt", "sqrt", "dst = square root of a"),
    _unary("trsqrt", "rsqrt", "dst = 1 / square root of a"),
    _unary("trecip", "recip", "dst = 1 / a"),
    _unary("trelu", "relu", "dst = 0 if a < 0 else a"),
    _unary("tnot", "invert", "dst = bitwise complement of a"),
    _unary("tsin", "sin", "dst = sin a by the reduction and polynomial of ops 5.1", cost="composite"),
    _unary("tcos", "cos", "dst = cos a by the reduction and polynomial of ops 5.1", cost="composite"),
)

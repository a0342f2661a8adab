"""Operations on two differently valid operands (ops 8)."""

from __future__ import annotations

from .table import Instruction, destination, tiles


def _part(name: str, symbol: str) -> Instruction:
    operands = (destination(), *tiles("a", "b"))
    return Instruction(
        f"tpart{name}",
        operands,
        (),
        "partial.partial",
        name,
        "V",
        "vector2",
        0,
        f"dst = {symbol} where both are valid, the valid one elsewhere, 0 where neither is",
    )


ROWS = (_part("add", "a + b"), _part("mul", "a * b"), _part("max", "max(a, b)"), _part("min", "min(a, b)"))

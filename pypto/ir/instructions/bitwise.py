"""Bitwise operations and shifts of integers (ops 7)."""

from __future__ import annotations

from .table import Instruction, destination, scalar, tiles


def _both(name: str, variant: str, summary: str) -> tuple[Instruction, Instruction]:
    pair = (destination(), *tiles("a", "b"))
    single = (destination(), *tiles("a"), scalar("s", like="a"))
    return (
        Instruction(f"t{name}", pair, (), "elementwise.bitwise", variant, "V", "vector2", 0, f"dst = {summary}"),
        Instruction(
            f"t{name}s",
            single,
            (),
            "elementwise.bitwise_scalar",
            variant,
            "V",
            "vector1s",
            0,
            f"dst = {summary} with the scalar s as b",
        ),
    )


ROWS = (
    *_both("and", "and", "a & b"),
    *_both("or", "or", "a | b"),
    *_both("xor", "xor", "a ^ b"),
    *_both("shl", "shl", "a << b; 0 for counts outside the width"),
    *_both("shr", "shr", "a >> b, arithmetic for signed dtypes; sign or 0 for counts outside the width"),
)

"""Tiles computed from scalars (ops 2)."""

from __future__ import annotations

from .table import Attribute, Instruction, destination, scalar

ROWS = (
    Instruction(
        "tci",
        (destination(), scalar("start")),
        (Attribute("descending", "int", default=0),),
        "creation.arange",
        "",
        "V",
        "fill",
        0,
        "dst[i,j] = start + j, or start - j when descending",
    ),
    Instruction(
        "ttri",
        (destination(), scalar("diagonal")),
        (Attribute("upper", "int", default=0),),
        "creation.triangle",
        "",
        "V",
        "fill",
        0,
        "1 where j <= i + diagonal (upper: j >= i + diagonal), else 0",
    ),
    Instruction(
        "trandom",
        (destination(), *(scalar(n) for n in ("key0", "key1", "counter0", "counter1", "counter2", "counter3"))),
        (Attribute("rounds", "int", default=10),),
        "creation.random",
        "",
        "V",
        "random",
        0,
        "counter-based random words of ops 2.1",
    ),
)

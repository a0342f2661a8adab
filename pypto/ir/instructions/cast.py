"""Conversion between element types (ops 11)."""

from __future__ import annotations

from .table import Attribute, Instruction, destination, tiles

ROUNDING = {"none": 0, "rint": 1, "round": 2, "floor": 3, "ceil": 4, "trunc": 5, "odd": 6}

ROWS = (
    Instruction(
        "tcvt",
        (destination(), *tiles("a")),
        (Attribute("mode", ROUNDING, default=2),),
        "cast.convert",
        "",
        "V",
        "convert",
        0,
        "dst = a converted to the dtype of dst; mode rounds floats to integers",
    ),
)

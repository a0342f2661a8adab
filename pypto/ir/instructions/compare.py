"""Comparison into packed predicates, selection by them (ops 6)."""

from __future__ import annotations

from .table import Attribute, Instruction, destination, scalar, tiles

COMPARISONS = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
_MODE = (Attribute("mode", COMPARISONS),)

ROWS = (
    Instruction(
        "tcmp",
        (destination(), *tiles("a", "b")),
        _MODE,
        "compare.compare",
        "",
        "V",
        "compare",
        1,
        "bit j of row i of dst = a[i,j] mode b[i,j], least significant bit first",
    ),
    Instruction(
        "tcmps",
        (destination(), *tiles("a"), scalar("s", like="a")),
        _MODE,
        "compare.compare_scalar",
        "",
        "V",
        "compare",
        1,
        "bit j of row i of dst = a[i,j] mode s, least significant bit first",
    ),
    Instruction(
        "tsel",
        (destination(), *tiles("mask", "a", "b")),
        (),
        "compare.select",
        "",
        "V",
        "select",
        0,
        "dst = a where the predicate bit is set, else b",
    ),
    Instruction(
        "tsels",
        (destination(), *tiles("mask", "a"), scalar("s", like="a")),
        (),
        "compare.select_scalar",
        "",
        "V",
        "select",
        0,
        "dst = a where the predicate bit is set, else s",
    ),
)

"""Sorting of (value, index) records (ops 15)."""

from __future__ import annotations

from .table import Attribute, Instruction, destination, scalar, tiles


def _merge(count: int) -> Instruction:
    names = [f"src{i}" for i in range(count)]
    return Instruction(
        f"tmrgsort{count}",
        (destination(), *tiles(*names)),
        (Attribute("exhausted", "int", default=0),),
        "sort.merge_lists",
        str(count),
        "V",
        "sort",
        0,
        f"merge {count} descending record lists; ties keep the list order",
    )


ROWS = (
    Instruction(
        "tsort32",
        (destination(), *tiles("src", "index")),
        (),
        "sort.sort_runs",
        "",
        "V",
        "sort",
        1,
        "records of each run of 32 columns, descending; equal values by ascending index",
    ),
    Instruction(
        "tmrgsort",
        (destination(), *tiles("src"), scalar("block_len")),
        (),
        "sort.merge_runs",
        "",
        "V",
        "sort",
        1,
        "merge each group of four sorted runs of block_len columns",
    ),
    *(_merge(count) for count in (2, 3, 4)),
)

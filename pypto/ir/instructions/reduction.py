"""Reductions along rows and columns (ops 10)."""

from __future__ import annotations

from .table import Instruction, destination, tiles


def _reduce(axis: str, name: str, summary: str) -> Instruction:
    return Instruction(
        f"t{axis}{name}",
        (destination(), *tiles("a")),
        (),
        f"reduction.{axis}_reduce",
        name,
        "V",
        f"reduce_{axis}",
        1,
        summary,
    )


def _argument(axis: str, name: str) -> Instruction:
    return Instruction(
        f"t{axis}arg{name}",
        (destination(), *tiles("a")),
        (),
        f"reduction.{axis}_argument",
        name,
        "V",
        f"reduce_{axis}",
        1,
        f"position of the first {name}imum of each {axis}, INT32",
    )


def _axis(axis: str) -> tuple[Instruction, ...]:
    return (
        _reduce(axis, "sum", f"sum of each {axis}; fp16 and bf16 accumulate in fp32"),
        _reduce(axis, "prod", f"product of each {axis}; fp16 and bf16 accumulate in fp32"),
        _reduce(axis, "max", f"maximum of each {axis}; a NaN counts in position 0 only"),
        _reduce(axis, "min", f"minimum of each {axis}; a NaN counts in position 0 only"),
        _argument(axis, "max"),
        _argument(axis, "min"),
    )


ROWS = (*_axis("row"), *_axis("col"))

"""Vector families of a5: V4 (bank clashes), V6 (GELU), V7 (softmax)."""

# Annotations in here are tensor types of the language, not of Python.
# mypy: ignore-errors

from __future__ import annotations

from functools import cache
from typing import Any

import pypto.language as pl

from .programs import Launched, launched, recorded, tensor
from .rows import Pair, Row
from .tables import table

_PART = "950PR"
_REGISTERS = "loops over registers written by hand; the language names whole tiles, and the counter's unit is in doubt"
_FUSED = "several operations in one vector function: the language names whole tiles"
_BY_HAND = "reductions rewritten inside a vector function: the language names whole tiles"


@cache
def _gelu() -> Launched:
    """x / (1 + exp(...)) in eight operations over [8192, 8192] fp32, tiles of 8192 elements, all cores."""
    edge, tile, cores = 8192, 8192, 64

    @pl.jit
    def gelu(x: pl.Tensor[[edge, edge], pl.FP32], y: pl.Out[pl.Tensor[[edge, edge], pl.FP32]]):
        for core in pl.spmd(cores, name_hint="gelu"):
            for row in pl.pipeline(core, edge, cores, stage=2):
                v = pl.load(x, [row, 0], [1, tile])
                cubic = pl.mul(pl.mul(pl.mul(v, v), v), 0.044715)
                inner = pl.mul(pl.add(cubic, v), -1.59576912)
                y = pl.store(pl.div(v, pl.add(pl.exp(inner), 1.0)), [row, 0], y)
        return y

    vectors = (tensor(edge, edge, dtype="float32") for _ in range(2))
    return launched(recorded(gelu, *vectors, platform="a5"), _PART, warm=True)


def _softmax(rows: int, cols: int, cores: int, block: int, stages: int) -> Any:
    """``block`` rows at a time, ``stages`` of them in flight."""
    share = rows // cores

    @pl.jit
    def softmax(x: pl.Tensor[[rows, cols], pl.FP32], y: pl.Out[pl.Tensor[[rows, cols], pl.FP32]]):
        for core in pl.spmd(cores, name_hint="softmax"):
            scratch = pl.create_tile([block, cols], dtype=pl.FP32)
            for row in pl.pipeline(core * share, core * share + share, block, stage=stages):
                v = pl.load(x, [row, 0], [block, cols])
                e = pl.exp(pl.row_expand_sub(v, pl.row_max(v, scratch)))
                y = pl.store(pl.row_expand_div(e, pl.row_sum(e, scratch)), [row, 0], y)
        return y

    matrices = (tensor(rows, cols, dtype="float32") for _ in range(2))
    return recorded(softmax, *matrices, platform="a5")


@cache
def _softmax_us(variant: str) -> float | None:
    """Task duration of [256, 2048] on 32 cores, a row at a time; variant 4 overlaps copies and work."""
    stages = {"0": 1, "2": 1, "4": 2}.get(variant)
    return None if stages is None else launched(_softmax(256, 2048, 32, 1, stages), _PART).task_us


@cache
def _softmax_cycles() -> float:
    """Vector cycles of one tile of 128 x 128."""
    run = launched(_softmax(128, 128, 1, 128, 1), _PART)
    return run.pipe_busy_us["V"] * 1650


def rows() -> list[Row]:
    """V4, V6, V7."""
    found = []
    for line in table("V4"):
        ticks = float(line["ticks_per_1000"])
        found.append(Row("V4", f"{line['case']} {line['pattern']}", "ticks", ticks, reason=_REGISTERS))
    for line in table("V6"):
        us = _gelu().task_us if (line["workload"], line["variant"][0]) == ("gelu", "0") else None
        case = f"{line['workload']}, {line['variant']}"
        found.append(Row("V6", case, "us", float(line["task_us"]), us, reason="" if us else _FUSED))
    for line in table("V7"):
        case = f"{line['workload']} {line['shape']}, {line['variant']}"
        variant, us = line["variant"][0], None
        if line["unit"] == "us" and variant in "04":
            us = _softmax_us(variant)
        elif line["unit"] == "cycles" and variant == "2":
            us = _softmax_cycles()
        found.append(Row("V7", case, line["unit"], float(line["value"]), us, reason="" if us else _BY_HAND))
    return found


def pairs() -> list[Pair]:
    """All but one of the changes are inside a vector function."""
    found = []
    for family, metric, reason in (("V6", "task_us", _FUSED), ("V7", "value", _BY_HAND)):
        lines = table(family)
        for a, b in zip(lines, lines[1:]):
            if a["workload"] != b["workload"]:
                continue
            sides: tuple[float | None, float | None] = (None, None)
            if b["variant"] == "4 pipeline":  # the same loop with and without overlap
                sides, reason = (_softmax_us("2"), _softmax_us("4")), ""
            case = f"{a['workload']}: {a['variant']} -> {b['variant']}"
            found.append(Pair(family, case, float(a[metric]), float(b[metric]), *sides, reason))
            reason = _FUSED if family == "V6" else _BY_HAND
    return found

"""V10: the largest values of every row, by sorting the whole row on one vector core."""

# Annotations in here are tensor types of the language, not of Python.
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import pypto.language as pl

from .programs import launched, recorded, tensor
from .rows import Row
from .tables import table

_PART, _CORES = "910B1", 48
_WIDTH = 1280  # columns that are sorted: what a row lacks is padded with the least value


def top_k(rows: int, valid: int, k: int, cores: int = _CORES) -> Any:
    """Values and places of the ``k`` largest of ``valid`` columns per row; rows are dealt out one by one.

    Runs of 32 are sorted, merged by fours to 128 and 512, and the rest (512, 512, 128, 128) in one merge.
    """
    width, record = _WIDTH, 2 * _WIDTH

    @pl.jit
    def select(
        x: pl.Tensor[[rows, width], pl.FP32],
        largest: pl.Out[pl.Tensor[[rows, k], pl.FP32]],
        found: pl.Out[pl.Tensor[[rows, k], pl.INT32]],
    ):
        for core in pl.spmd(cores, name_hint="select"):
            columns = pl.tile.arange(0, [1, width], dtype=pl.UINT32)
            for row in pl.pipeline(core, rows, cores, stage=2):
                v = pl.tile.fillpad(pl.load(x, [row, 0], [1, width], [1, valid]), pl.PadValue.min)
                by_128 = pl.mrgsort(pl.sort32(v, columns), block_len=64)
                by_512 = pl.mrgsort(pl.slice(by_128, [1, 2048], [0, 0]), block_len=256)
                scratch = pl.create_tile([1, record], dtype=pl.FP32)
                ranked = pl.tile.mrgsort(
                    pl.slice(by_512, [1, 1024], [0, 0]),
                    pl.slice(by_512, [1, 1024], [0, 1024]),
                    pl.slice(by_128, [1, 256], [0, 2048]),
                    pl.slice(by_128, [1, 256], [0, 2304]),
                    scratch,
                )
                values = pl.tile.gather_mask(ranked, 1)
                order = pl.tile.gather_mask(ranked, 2, output_dtype=pl.INT32)
                largest = pl.store(pl.set_validshape(values, 1, k), [row, 0], largest)
                found = pl.store(pl.set_validshape(order, 1, k), [row, 0], found)
        return largest, found

    return select


def _task_us(rows: int, valid: int, k: int) -> float:
    arguments = (
        tensor(rows, _WIDTH, dtype="float32"),
        tensor(rows, k, dtype="float32"),
        tensor(rows, k, dtype="int32"),
    )
    return launched(recorded(top_k(rows, valid, k), *arguments), _PART).task_us


def rows() -> list[Row]:
    """V10: task duration."""
    found = []
    for line in table("V10"):
        height, valid, k = int(line["rows"]), int(line["valid_cols"]), int(line["topk"])
        case = f"{line['dtype']}, {height} rows, {k} of {valid}"
        found.append(Row("V10", case, "us", float(line["task_us"]), _task_us(height, valid, k)))
    return found

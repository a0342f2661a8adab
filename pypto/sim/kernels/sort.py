"""Sorting of (value, index) records of 8 bytes (ops 15).

An fp32 record is two columns (value, index bits); an fp16 record is four (value, 0, low and high half of the index).
Order is descending; NaN compares as nothing, so it stays where the comparisons leave it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from pypto.ir.dtype import FP16, FP32, INT32, UINT32, UINT64, DataType
from pypto.ir.instructions import Instruction
from pypto.sim.kernels.compilation import Kernel, kernel_code
from pypto.sim.kernels.element import fetch, load, store
from pypto.sim.kernels.operands import (
    FIRST,
    SECOND,
    THIRD,
    address,
    covers,
    stride,
    valid_cols,
    valid_rows,
)
from pypto.sim.kernels.support import Dtypes, reject, same
from pypto.sim.layout import OK, OUTSIDE_TILE

RECORD_BYTES: Final = 8
RUN: Final = 32


@kernel_code
def write_record(to, k, value, index, dtype, fields):
    """Record ``k``: the value in its dtype, the index in the upper four bytes."""
    store(to, k, UINT64, np.uint64(index) << np.uint64(32))
    store(to, k * fields, dtype, value)


def sort_runs(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tsort32``: records of each run of 32 columns, descending, equal values by ascending index."""
    dtype = same(instruction, dtypes, (0, 1), (FP32, FP16))
    if dtypes[2] not in (UINT32, INT32):
        raise reject(instruction, dtypes, "index uint32")
    size = dtype.get_byte()
    fields = RECORD_BYTES // size

    def body(args):
        dst, src, index = args[FIRST], args[SECOND], args[THIRD]
        rows, cols = valid_rows(src), valid_cols(src)
        if not (covers(src, rows, cols) and covers(index, rows, cols) and covers(dst, rows, cols * fields)):
            return OUTSIDE_TILE
        values, indices = np.empty(RUN, np.float32), np.empty(RUN, np.uint32)
        for i in range(rows):
            to, of = address(dst) + i * stride(dst) * size, address(src) + i * stride(src) * size
            at = address(index) + i * stride(index) * 4
            for first in range(0, cols, RUN):
                length = min(RUN, cols - first)
                for j in range(length):
                    x, n = fetch(of, first + j, dtype), fetch(at, first + j, UINT32)
                    k = j
                    while k > 0 and (x > values[k - 1] or x == values[k - 1] and n < indices[k - 1]):
                        values[k], indices[k] = values[k - 1], indices[k - 1]
                        k -= 1
                    values[k], indices[k] = x, n
                for j in range(length):
                    write_record(to, first + j, values[j], indices[j], dtype, fields)
        return OK

    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)


@kernel_code
def merge(to, of, ends, heads, lists, dtype, fields, stop_early):
    """Merge ``lists`` descending record lists at addresses ``of`` into ``to``; ties keep the order of the lists.

    ``heads`` and ``ends`` are record numbers. With ``stop_early`` the merge ends when a list runs out.
    """
    written = 0
    while True:
        best = -1
        value = np.float32(0)
        for k in range(lists):
            if heads[k] < ends[k]:
                x = fetch(of[k], heads[k] * fields, dtype)
                if best < 0 or x > value:
                    best, value = k, x
        if best < 0:
            return
        store(to, written, UINT64, load(of[best], heads[best], UINT64))
        written += 1
        heads[best] += 1
        if stop_early and heads[best] == ends[best]:
            return


def _merged(instruction: Instruction, dtypes: Dtypes) -> DataType:
    return same(instruction, dtypes, [i for i, d in enumerate(dtypes) if d is not None], (FP32, FP16))


MERGED_RUNS: Final = 4
"""Runs that ``tmrgsort`` makes one of."""


def merge_runs(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tmrgsort``: each group of four sorted runs of ``block_len`` columns becomes one; a last, smaller group too."""
    dtype = _merged(instruction, dtypes)
    size = dtype.get_byte()
    fields = RECORD_BYTES // size

    def body(args):
        dst, src, run = args[FIRST], args[SECOND], args[THIRD] // fields
        rows, cols = valid_rows(src), valid_cols(src)
        if run < 1 or not (covers(src, rows, cols) and covers(dst, rows, cols)):
            return OUTSIDE_TILE
        records = cols // fields
        of, heads, ends = (
            np.empty(MERGED_RUNS, np.int64),
            np.empty(MERGED_RUNS, np.int64),
            np.empty(MERGED_RUNS, np.int64),
        )
        for i in range(rows):
            to, row = address(dst) + i * stride(dst) * size, address(src) + i * stride(src) * size
            for first in range(0, records, MERGED_RUNS * run):
                for k in range(MERGED_RUNS):
                    of[k] = row
                    heads[k], ends[k] = min(first + k * run, records), min(first + (k + 1) * run, records)
                merge(to + first * RECORD_BYTES, of, ends, heads, MERGED_RUNS, dtype, fields, False)
        return OK

    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)


def merge_lists(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tmrgsort2`` to ``tmrgsort4``: the record lists in row 0 of the sources, merged into row 0 of ``dst``."""
    dtype = _merged(instruction, dtypes)
    body = _merge_body(dtype, int(instruction.variant))
    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)


def _merge_body(dtype: DataType, lists: int) -> Callable[[Any], int]:
    fields = RECORD_BYTES // dtype.get_byte()

    def body(args):
        dst, stop_early = args[FIRST], args[SECOND + lists] != 0
        of, heads, ends = np.empty(lists, np.int64), np.empty(lists, np.int64), np.empty(lists, np.int64)
        total = 0
        for k in range(lists):
            src = args[SECOND + k]
            of[k], heads[k], ends[k] = address(src), 0, valid_cols(src) // fields
            total += ends[k]
            if not covers(src, 1, valid_cols(src)):
                return OUTSIDE_TILE
        if not covers(dst, 1, total * fields):
            return OUTSIDE_TILE
        merge(address(dst), of, ends, heads, lists, dtype, fields, stop_early)
        return OK

    return body

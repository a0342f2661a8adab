"""Reductions along rows and columns (ops 10).

Sums and products of 16-bit floats are kept in fp32 and rounded once; integers wrap. Float sums along a row are grouped
by vector lane: the order depends on the processor the kernel was compiled for, never on the data or the thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pypto.ir.dtype import FP32, INT32, DataType
from pypto.ir.instructions import Instruction
from pypto.sim.kernels.compilation import Kernel, kernel_code
from pypto.sim.kernels.element import bits, fetch, load, store
from pypto.sim.kernels.intrinsics import add_regrouped, mul_regrouped
from pypto.sim.kernels.operands import FIRST, SECOND, address, covers, stride, valid_cols, valid_rows
from pypto.sim.kernels.support import NUMBERS, Dtypes, reject, same
from pypto.sim.layout import OK, OUTSIDE_TILE

_LOWEST = np.int32(-(2**31))
_FOLD = np.int32(0x7FFFFFFF)


@kernel_code
def add(a, b):
    """Sum of two partial results."""
    return a + b


@kernel_code
def mul(a, b):
    """Product of two partial results."""
    return a * b


@kernel_code
def greater(a, b):
    """Whether ``a`` takes the place of ``b`` in an arg-max."""
    return a > b


@kernel_code
def less(a, b):
    """Whether ``a`` takes the place of ``b`` in an arg-min."""
    return a < b


@kernel_code
def ordered(x):
    """A float's bits as an integer that orders like the float; NaN is below everything."""
    word = bits(x, _LOWEST)
    return np.int32(word ^ (_FOLD if word < 0 else np.int32(0))) if x == x else _LOWEST


@kernel_code
def float_of(key):
    """The FP32 number behind an integer key that sorts as the numbers do."""
    return bits(np.int32(key ^ (_FOLD if key < 0 else np.int32(0))), np.float32(0))


@kernel_code
def row_maximum(source, cols, dtype):
    """Greatest FP32 element of a row; NaN if the first is NaN."""
    first = fetch(source, 0, dtype)
    best = ordered(first)
    for j in range(cols):
        best = max(best, ordered(fetch(source, j, dtype)))
    return float_of(best) if first == first else first


@kernel_code
def row_minimum(source, cols, dtype):
    """Least FP32 element of a row; NaN if the first is NaN."""
    first = fetch(source, 0, dtype)
    best = ordered(-first)
    for j in range(cols):
        best = max(best, ordered(-fetch(source, j, dtype)))
    return -float_of(best) if first == first else first


@kernel_code
def row_maximum_integer(source, cols, dtype):
    """Greatest integer of a row."""
    best = fetch(source, 0, dtype)
    for j in range(cols):
        best = max(best, fetch(source, j, dtype))
    return best


@kernel_code
def row_minimum_integer(source, cols, dtype):
    """Least integer of a row."""
    best = fetch(source, 0, dtype)
    for j in range(cols):
        best = min(best, fetch(source, j, dtype))
    return best


def _folding(combine: Callable[..., Any], start: Any) -> Callable[..., Any]:
    @kernel_code
    def fold(source, cols, dtype):
        total = start
        for j in range(cols):
            total = combine(total, fetch(source, j, dtype))
        return total

    return fold


def _row_fold(variant: str, dtype: DataType) -> Callable[..., Any]:
    if variant in ("max", "min"):
        names = {
            ("max", True): row_maximum,
            ("min", True): row_minimum,
            ("max", False): row_maximum_integer,
            ("min", False): row_minimum_integer,
        }
        return names[variant, dtype.is_float()]
    start = 0 if variant == "sum" else 1
    if dtype.is_float():
        return _folding(add_regrouped if variant == "sum" else mul_regrouped, np.float32(start))
    wide = np.uint64 if dtype.is_unsigned_int() else np.int64
    return _folding(add if variant == "sum" else mul, wide(start))


def row_reduce(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst[i,0]`` = reduction of the valid columns of row i; nothing is written when there are none."""
    dtype = same(instruction, dtypes, (0, 1), NUMBERS)
    fold = _row_fold(instruction.variant, dtype)
    size = dtype.get_byte()

    def body(args):
        dst, a = args[FIRST], args[SECOND]
        rows, cols = valid_rows(a), valid_cols(a)
        if not (covers(a, rows, cols) and covers(dst, rows, 1)):
            return OUTSIDE_TILE
        to, of, pitch, source_pitch = address(dst), address(a), stride(dst), stride(a) * size
        if cols > 0:
            for i in range(rows):
                store(to, i * pitch, dtype, fold(of + i * source_pitch, cols, dtype))
        return OK

    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)


@kernel_code
def keep_greater(best, x):
    """The running maximum; a NaN does not replace it."""
    return x if x > best else best


@kernel_code
def keep_less(best, x):
    """The running minimum; a NaN does not replace it."""
    return x if x < best else best


_COL_STEPS = {"sum": add, "prod": mul, "max": keep_greater, "min": keep_less}


def col_reduce(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst[0,j]`` = reduction of the valid rows of column j, row by row; nothing is written when there are none."""
    dtype = same(instruction, dtypes, (0, 1), NUMBERS)
    narrow = dtype.is_float() and dtype != FP32 and instruction.variant in ("sum", "prod")
    body = (
        _col_reduce_wide(dtype, _COL_STEPS[instruction.variant])
        if narrow
        else _col_reduce(dtype, _COL_STEPS[instruction.variant])
    )
    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)


def _col_reduce(dtype: DataType, combine: Callable[..., Any]) -> Callable[[Any], int]:
    def body(args):
        dst, a = args[FIRST], args[SECOND]
        rows, cols = valid_rows(a), valid_cols(a)
        if not (covers(a, rows, cols) and covers(dst, 1, cols)):
            return OUTSIDE_TILE
        to, of, pitch = address(dst), address(a), stride(a)
        if rows > 0:
            for j in range(cols):
                store(to, j, dtype, fetch(of, j, dtype))
        for i in range(1, rows):
            for j in range(cols):
                store(to, j, dtype, combine(load(to, j, dtype), fetch(of, i * pitch + j, dtype)))
        return OK

    return body


_LANES = 64


def _col_reduce_wide(dtype: DataType, combine: Callable[..., Any]) -> Callable[[Any], int]:
    """As :func:`_col_reduce` with fp32 partial results, ``_LANES`` columns at a time."""

    def body(args):
        dst, a = args[FIRST], args[SECOND]
        rows, cols = valid_rows(a), valid_cols(a)
        if not (covers(a, rows, cols) and covers(dst, 1, cols)):
            return OUTSIDE_TILE
        to, of, pitch = address(dst), address(a), stride(a)
        total = np.empty(_LANES, np.float32)
        partial = total.ctypes.data
        if rows > 0:
            for first in range(0, cols, _LANES):
                lanes = min(_LANES, cols - first)
                for j in range(lanes):
                    store(partial, j, FP32, fetch(of, first + j, dtype))
                for i in range(1, rows):
                    for j in range(lanes):
                        x = fetch(of, i * pitch + first + j, dtype)
                        store(partial, j, FP32, combine(load(partial, j, FP32), x))
                for j in range(lanes):
                    store(to, first + j, dtype, load(partial, j, FP32))
        return OK

    return body


def _argument(instruction: Instruction, dtypes: Dtypes) -> DataType:
    to, of = dtypes
    if to != INT32 or of not in NUMBERS:
        raise reject(instruction, dtypes, "dst int32, a " + ", ".join(d.to_string() for d in NUMBERS))
    return of


def row_argument(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst[i,0]`` = column of the first extremum of row i, INT32."""
    dtype = _argument(instruction, dtypes)
    better = greater if instruction.variant == "max" else less

    def body(args):
        dst, a = args[FIRST], args[SECOND]
        rows, cols = valid_rows(a), valid_cols(a)
        if not (covers(a, rows, cols) and covers(dst, rows, 1)):
            return OUTSIDE_TILE
        to, of, pitch, source_pitch = address(dst), address(a), stride(dst), stride(a)
        if cols > 0:
            for i in range(rows):
                best, position = fetch(of, i * source_pitch, dtype), 0
                for j in range(1, cols):
                    x = fetch(of, i * source_pitch + j, dtype)
                    if better(x, best):
                        best, position = x, j
                store(to, i * pitch, INT32, position)
        return OK

    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)


def col_argument(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst[0,j]`` = row of the first extremum of column j, INT32."""
    dtype = _argument(instruction, dtypes)
    better = greater if instruction.variant == "max" else less

    def body(args):
        dst, a = args[FIRST], args[SECOND]
        rows, cols = valid_rows(a), valid_cols(a)
        if not (covers(a, rows, cols) and covers(dst, 1, cols)):
            return OUTSIDE_TILE
        to, of, pitch = address(dst), address(a), stride(a)
        if rows > 0:
            for j in range(cols):
                store(to, j, INT32, 0)
        for i in range(1, rows):
            for j in range(cols):
                best = load(to, j, INT32)
                found = better(fetch(of, i * pitch + j, dtype), fetch(of, best * pitch + j, dtype))
                store(to, j, INT32, i if found else best)
        return OK

    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)

"""Broadcast of a column, a row or a scalar (ops 9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.instructions import Instruction
from pypto.sim.kernels import functions
from pypto.sim.kernels.arithmetic import operation
from pypto.sim.kernels.compilation import Kernel, kernel_code
from pypto.sim.kernels.element import fetch, scalar, store
from pypto.sim.kernels.elementwise import contains_zero
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
from pypto.sim.kernels.support import FLOATS, NUMBERS, Dtypes, raw, reject, same
from pypto.sim.layout import DIVISION_BY_ZERO, OK, OUTSIDE_TILE


@kernel_code
def exponential_difference(x, v):
    """``exp`` of the difference of an element and its row or column value."""
    return functions.exp(x - v)


def _combination(instruction: Instruction, dtypes: Dtypes) -> tuple[DataType, Callable[..., Any], bool, str]:
    variant = instruction.variant
    legal = FLOATS if variant == "expdif" else NUMBERS
    dtype = same(instruction, dtypes, (0, 1, 2), legal)
    apply = exponential_difference if variant == "expdif" else operation(variant, dtype)
    checked = variant == "div" and not dtype.is_float()
    return dtype, apply, checked, f"{instruction.mnemonic}.{dtype.to_string()}"


def row_combine(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst[i,j] = x[i,j] op v[i,0]``; a ``v`` of one 32-byte line per row is used periodically along the columns."""
    dtype, apply, checked, name = _combination(instruction, dtypes)
    line = 32 // dtype.get_byte()

    def body(args):
        dst, x, v = args[FIRST], args[SECOND], args[THIRD]
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (covers(dst, rows, cols) and covers(x, rows, cols) and covers(v, rows, 1)):
            return OUTSIDE_TILE
        to, of, vector = address(dst), address(x), address(v)
        pitch, source_pitch, vector_pitch = stride(dst), stride(x), stride(v)
        period = line if valid_cols(v) == line else 1
        if checked and contains_zero(vector, vector_pitch, rows, period, dtype):
            return DIVISION_BY_ZERO
        for i in range(rows):
            if period == 1:
                y = fetch(vector, i * vector_pitch, dtype)
                for j in range(cols):
                    store(to, i * pitch + j, dtype, apply(fetch(of, i * source_pitch + j, dtype), y))
            else:
                for j in range(cols):
                    y = fetch(vector, i * vector_pitch + j % line, dtype)
                    store(to, i * pitch + j, dtype, apply(fetch(of, i * source_pitch + j, dtype), y))
        return OK

    return Kernel(name, body)


def col_combine(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst[i,j] = x[i,j] op v[0,j]``."""
    dtype, apply, checked, name = _combination(instruction, dtypes)

    def body(args):
        dst, x, v = args[FIRST], args[SECOND], args[THIRD]
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (covers(dst, rows, cols) and covers(x, rows, cols) and covers(v, 1, cols)):
            return OUTSIDE_TILE
        to, of, vector, pitch, source_pitch = address(dst), address(x), address(v), stride(dst), stride(x)
        if checked and contains_zero(vector, 0, 1, cols, dtype):
            return DIVISION_BY_ZERO
        for i in range(rows):
            for j in range(cols):
                y = fetch(vector, j, dtype)
                store(to, i * pitch + j, dtype, apply(fetch(of, i * source_pitch + j, dtype), y))
        return OK

    return Kernel(name, body)


def _copied(instruction: Instruction, dtypes: Dtypes) -> tuple[DataType, str]:
    to, of = dtypes
    if to is None or to != of:
        raise reject(instruction, dtypes, "equal dtypes")
    word = raw(to)
    return word, f"{instruction.mnemonic}.b{word.get_bit()}"


def row_expand(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst[i,j] = v[i,0]``."""
    dtype, name = _copied(instruction, dtypes)

    def body(args):
        dst, v = args[FIRST], args[SECOND]
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (covers(dst, rows, cols) and covers(v, rows, 1)):
            return OUTSIDE_TILE
        to, vector, pitch, vector_pitch = address(dst), address(v), stride(dst), stride(v)
        for i in range(rows):
            y = fetch(vector, i * vector_pitch, dtype)
            for j in range(cols):
                store(to, i * pitch + j, dtype, y)
        return OK

    return Kernel(name, body)


def col_expand(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst[i,j] = v[0,j]``."""
    dtype, name = _copied(instruction, dtypes)

    def body(args):
        dst, v = args[FIRST], args[SECOND]
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (covers(dst, rows, cols) and covers(v, 1, cols)):
            return OUTSIDE_TILE
        to, vector, pitch = address(dst), address(v), stride(dst)
        for i in range(rows):
            for j in range(cols):
                store(to, i * pitch + j, dtype, fetch(vector, j, dtype))
        return OK

    return Kernel(name, body)


def fill(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``dst[i,j] = s`` over the valid region of the destination."""
    dtype = dtypes[0]
    if dtype not in NUMBERS:
        raise reject(instruction, dtypes, ", ".join(d.to_string() for d in NUMBERS))

    def body(args):
        dst, value = args[FIRST], scalar(args[SECOND], dtype)
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not covers(dst, rows, cols):
            return OUTSIDE_TILE
        to, pitch = address(dst), stride(dst)
        for i in range(rows):
            for j in range(cols):
                store(to, i * pitch + j, dtype, value)
        return OK

    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)

"""Padding, transposition and other transforms that move data (ops 13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pypto.ir.dtype import UINT8, DataType
from pypto.ir.instructions import Instruction
from pypto.sim.kernels.compilation import Kernel
from pypto.sim.kernels.copying import block_copy
from pypto.sim.kernels.element import fetch, store, value_type
from pypto.sim.kernels.operands import (
    FIRST,
    SECOND,
    THIRD,
    address,
    covers,
    physical_cols,
    physical_rows,
    stride,
    valid_cols,
    valid_rows,
)
from pypto.sim.kernels.support import NUMBERS, Dtypes, raw, reject, same
from pypto.sim.layout import OK, OUTSIDE_TILE


def _limits(dtype: DataType) -> tuple[Any, Any]:
    if dtype.is_float():
        return np.float32(np.inf), np.float32(-np.inf)
    info = np.iinfo(dtype.storage)
    kind = np.dtype(dtype.storage).type
    return kind(info.max), kind(info.min)


def fill_pad(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tfillpad``: the valid region of the source, the pad value (0, largest, smallest) in the rest of the tile."""
    dtype = same(instruction, dtypes, (0, 1), NUMBERS)
    copy = block_copy(dtype, dtype)
    highest, lowest = _limits(dtype)
    size = dtype.get_byte()
    zero = value_type(dtype).cast_python_value(0)

    def body(args):
        dst, src, pad = args[FIRST], args[SECOND], args[THIRD]
        rows, cols = valid_rows(src), valid_cols(src)
        if not (covers(src, rows, cols) and covers(dst, rows, cols)):
            return OUTSIDE_TILE
        to, of, pitch = address(dst), address(src), stride(dst)
        if to != of:
            copy(to, pitch, 1, of, stride(src), 1, rows, cols)
        value = highest if pad == 2 else (lowest if pad == 3 else zero)
        for i in range(physical_rows(dst)):
            for j in range(cols if i < rows else 0, physical_cols(dst)):
                store(to + i * pitch * size, j, dtype, value)
        return OK

    return Kernel(f"tfillpad.{dtype.to_string()}", body)


def _copied(instruction: Instruction, dtypes: Dtypes) -> DataType:
    if None in dtypes or len(set(dtypes)) != 1:
        raise reject(instruction, dtypes, "equal dtypes")
    dtype = dtypes[0]
    if dtype is None:
        raise reject(instruction, dtypes, "equal dtypes")
    return raw(dtype)


_TILE = 16


def transpose(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``ttrans``: ``batch`` matrices stacked along the rows, each transposed; blocked for the cache."""
    dtype = _copied(instruction, dtypes)
    size = dtype.get_byte()

    def body(args):
        dst, src, batch = args[FIRST], args[SECOND], max(args[THIRD], 1)
        rows, cols = valid_rows(src), valid_cols(src)
        if batch > 1:
            rows = physical_rows(src) // batch
        if not (covers(src, batch * rows, cols) and covers(dst, batch * cols, rows)):
            return OUTSIDE_TILE
        pitch, source_pitch = stride(dst), stride(src)
        for matrix in range(batch):
            to = address(dst) + matrix * cols * pitch * size
            of = address(src) + matrix * rows * source_pitch * size
            for top in range(0, rows, _TILE):
                for j in range(cols):
                    for i in range(top, min(top + _TILE, rows)):
                        store(to, j * pitch + i, dtype, fetch(of, i * source_pitch + j, dtype))
        return OK

    return Kernel(f"{instruction.mnemonic}.b{8 * size}", body)


def reshape(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``treshape``: the physical bytes of the source in row-major order, in the shape and dtype of the destination."""
    to_dtype, of_dtype = dtypes
    if to_dtype is None or of_dtype is None:
        raise reject(instruction, dtypes, "two tiles")
    to_size, of_size = to_dtype.get_byte(), of_dtype.get_byte()

    def body(args):
        dst, src = args[FIRST], args[SECOND]
        width, source_width = physical_cols(dst) * to_size, physical_cols(src) * of_size
        total = physical_rows(dst) * width
        if total != physical_rows(src) * source_width:
            return OUTSIDE_TILE
        to, of, pitch, source_pitch = address(dst), address(src), stride(dst) * to_size, stride(src) * of_size
        done = 0
        while done < total:
            row, col = done // width, done % width
            source_row, source_col = done // source_width, done % source_width
            run = min(width - col, source_width - source_col)
            start, source_start = to + row * pitch + col, of + source_row * source_pitch + source_col
            for j in range(run):
                store(start, j, UINT8, fetch(source_start, j, UINT8))
            done += run
        return OK

    return Kernel(f"{instruction.mnemonic}.b{8 * to_size}.b{8 * of_size}", body)


def concat(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tconcat``: the valid columns of ``a``, then those of ``b``."""
    dtype = _copied(instruction, dtypes)
    copy: Callable[..., None] = block_copy(dtype, dtype)
    size = dtype.get_byte()

    def body(args):
        dst, a, b = args[FIRST], args[SECOND], args[THIRD]
        rows, left, right = max(valid_rows(a), valid_rows(b)), valid_cols(a), valid_cols(b)
        if not (covers(dst, rows, left + right) and covers(a, valid_rows(a), left) and covers(b, valid_rows(b), right)):
            return OUTSIDE_TILE
        to, pitch = address(dst), stride(dst)
        copy(to, pitch, 1, address(a), stride(a), 1, valid_rows(a), left)
        copy(to + left * size, pitch, 1, address(b), stride(b), 1, valid_rows(b), right)
        return OK

    return Kernel(f"{instruction.mnemonic}.b{8 * size}", body)

"""Copies of rectangular blocks between tiles and tensors, with conversion where the dtypes differ.

Four-bit elements take one byte on chip and two share a byte in global memory (the even element in the low half).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto.ir.dtype import INT4, UINT8, DataType
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.kernels.element import fetch, load, store
from pypto.sim.kernels.saturation import saturating
from pypto.sim.kernels.support import raw


def is_packed(dtype: DataType) -> bool:
    """Whether two elements share a byte in global memory."""
    return dtype.get_bit() == 4


@kernel_code
def same_value(x):
    """The element itself."""
    return x


def conversion(target: DataType, source: DataType) -> Callable[..., Any]:
    """Scalar conversion of a store: to floats by rounding to nearest even, float to integer by truncation and
    saturation, integers keep their low bits."""
    if not source.is_float() or target.is_float():
        return same_value
    return saturating(target)


def block_copy(target: DataType, source: DataType) -> Callable[..., None]:
    """Copy ``rows`` x ``cols`` elements; steps are strides in elements of each side."""
    to, of = (raw(target), raw(source)) if target == source else (target, source)
    convert = conversion(to, of)

    @kernel_code
    def copy(dst, dst_row, dst_col, src, src_row, src_col, rows, cols):
        if dst_col == 1 and src_col == 1:
            if dst_row == cols and src_row == cols:
                rows, cols = 1, rows * cols
            for i in range(rows):
                for j in range(cols):
                    store(dst, i * dst_row + j, to, convert(fetch(src, i * src_row + j, of)))
        else:
            for i in range(rows):
                for j in range(cols):
                    store(dst, i * dst_row + j * dst_col, to, convert(fetch(src, i * src_row + j * src_col, of)))

    return copy


def block_add(target: DataType, source: DataType) -> Callable[..., None]:
    """Add ``rows`` x ``cols`` elements to global memory, rounded to the dtype of the target."""
    convert = conversion(target, source)

    @kernel_code
    def accumulate(dst, dst_row, dst_col, src, src_row, src_col, rows, cols):
        for i in range(rows):
            for j in range(cols):
                at = i * dst_row + j * dst_col
                store(dst, at, target, fetch(dst, at, target) + convert(fetch(src, i * src_row + j * src_col, source)))

    return accumulate


@kernel_code
def nibble(packed, index):
    """Element ``index`` of a packed array, as an unsigned number."""
    return (fetch(packed, index >> 1, UINT8) >> ((index & 1) * 4)) & 15


def unpack(dtype: DataType) -> Callable[..., None]:
    """:func:`block_copy` from packed global memory; ``src`` is an element offset from ``base``."""
    signed = dtype == INT4

    @kernel_code
    def copy(dst, dst_row, base, src, src_row, src_col, rows, cols):
        for i in range(rows):
            for j in range(cols):
                x = nibble(base, src + i * src_row + j * src_col)
                store(dst, i * dst_row + j, UINT8, x - 16 if signed and x > 7 else x)

    return copy


@kernel_code
def pack(base, dst, dst_row, dst_col, src, src_row, rows, cols):
    """:func:`block_copy` into packed global memory; ``dst`` is an element offset from ``base``."""
    for i in range(rows):
        for j in range(cols):
            at = dst + i * dst_row + j * dst_col
            shift = (at & 1) * 4
            kept = load(base, at >> 1, UINT8) & (0xF0 >> shift)
            store(base, at >> 1, UINT8, kept | ((fetch(src, i * src_row + j, UINT8) & 15) << shift))


@kernel_code
def clear(dst, pitch, rows, cols, dtype):
    """Zero a block."""
    for i in range(rows):
        for j in range(cols):
            store(dst, i * pitch + j, dtype, 0)

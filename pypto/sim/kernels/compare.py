"""Comparison into packed predicates and selection by them (ops 6).

A predicate tile holds bytes; bit ``j mod 8`` (least significant first) of byte ``j div 8`` of row ``i`` is the truth of
element ``(i, j)``. Unused bits of the last byte are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto.ir.dtype import UINT8, DataType
from pypto.ir.instructions import Instruction
from pypto.sim.kernels.compilation import Kernel, kernel_code
from pypto.sim.kernels.element import fetch, scalar, store
from pypto.sim.kernels.operands import (
    FIRST,
    FOURTH,
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
from pypto.sim.kernels.support import INTEGERS, NUMBERS, Dtypes, raw, reject, same
from pypto.sim.layout import OK, OUTSIDE_TILE, UNSUPPORTED_DTYPE


@kernel_code
def equal(a, b):
    return a == b


@kernel_code
def unequal(a, b):
    return a != b


@kernel_code
def less(a, b):
    return a < b


@kernel_code
def at_most(a, b):
    return a <= b


@kernel_code
def greater(a, b):
    return a > b


@kernel_code
def at_least(a, b):
    return a >= b


def _tiles_loop(dtype: DataType, holds: Callable[..., Any]) -> Callable[..., None]:
    @kernel_code
    def loop(to, pitch, a, a_pitch, b, b_pitch, rows, cols):
        for i in range(rows):
            for byte in range((cols + 7) // 8):
                packed = 0
                for k in range(min(8, cols - 8 * byte)):
                    j = 8 * byte + k
                    packed |= holds(fetch(a, i * a_pitch + j, dtype), fetch(b, i * b_pitch + j, dtype)) << k
                store(to, i * pitch + byte, UINT8, packed)

    return loop


def _scalar_loop(dtype: DataType, holds: Callable[..., Any]) -> Callable[..., None]:
    @kernel_code
    def loop(to, pitch, a, a_pitch, s, unused, rows, cols):
        for i in range(rows):
            for byte in range((cols + 7) // 8):
                packed = 0
                for k in range(min(8, cols - 8 * byte)):
                    packed |= holds(fetch(a, i * a_pitch + 8 * byte + k, dtype), s) << k
                store(to, i * pitch + byte, UINT8, packed)

    return loop


def _by_mode(loops: list[Callable[..., None]]) -> Callable[..., int]:
    eq, ne, lt, le, gt, ge = loops

    @kernel_code
    def run(mode, to, pitch, a, a_pitch, b, b_pitch, rows, cols):
        if mode == 0:
            eq(to, pitch, a, a_pitch, b, b_pitch, rows, cols)
        elif mode == 1:
            ne(to, pitch, a, a_pitch, b, b_pitch, rows, cols)
        elif mode == 2:
            lt(to, pitch, a, a_pitch, b, b_pitch, rows, cols)
        elif mode == 3:
            le(to, pitch, a, a_pitch, b, b_pitch, rows, cols)
        elif mode == 4:
            gt(to, pitch, a, a_pitch, b, b_pitch, rows, cols)
        elif mode == 5:
            ge(to, pitch, a, a_pitch, b, b_pitch, rows, cols)
        else:
            return UNSUPPORTED_DTYPE
        return OK

    return run


_MODES = (equal, unequal, less, at_most, greater, at_least)


def _predicate(instruction: Instruction, dtypes: Dtypes, sources: tuple[int, ...]) -> DataType:
    if dtypes[0] is None or dtypes[0].get_byte() != 1:
        raise reject(instruction, dtypes, "a predicate tile of uint8 as dst")
    return same(instruction, dtypes, sources, NUMBERS)


def compare(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tcmp``: predicates over the valid region of ``a``."""
    dtype = _predicate(instruction, dtypes, (1, 2))
    run = _by_mode([_tiles_loop(dtype, holds) for holds in _MODES])

    def body(args):
        dst, a, b, mode = args[FIRST], args[SECOND], args[THIRD], args[FOURTH]
        rows, cols = valid_rows(a), valid_cols(a)
        if not (covers(dst, rows, (cols + 7) // 8) and covers(a, rows, cols) and covers(b, rows, cols)):
            return OUTSIDE_TILE
        return run(mode, address(dst), stride(dst), address(a), stride(a), address(b), stride(b), rows, cols)

    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)


def compare_scalar(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tcmps``: predicates over the valid region of ``a``; ``s`` is converted to its dtype first."""
    dtype = _predicate(instruction, dtypes, (1,))
    run = _by_mode([_scalar_loop(dtype, holds) for holds in _MODES])

    def body(args):
        dst, a, s, mode = args[FIRST], args[SECOND], scalar(args[THIRD], dtype), args[FOURTH]
        rows, cols = valid_rows(a), valid_cols(a)
        if not (covers(dst, rows, (cols + 7) // 8) and covers(a, rows, cols)):
            return OUTSIDE_TILE
        return run(mode, address(dst), stride(dst), address(a), stride(a), s, 0, rows, cols)

    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)


@kernel_code
def bit(mask, byte_pitch, i, j):
    return (fetch(mask, i * byte_pitch + (j >> 3), UINT8) >> (j & 7)) & 1


def _mask(instruction: Instruction, dtypes: Dtypes) -> int:
    """Bytes per element of the predicate tile, which may be held in wider integers."""
    mask = dtypes[1]
    if mask not in INTEGERS:
        raise reject(instruction, dtypes, "a predicate tile of integers as mask")
    return mask.get_byte()


def select(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tsel``: ``a`` where the predicate bit is set, else ``b``."""
    mask_bytes = _mask(instruction, dtypes)
    found = dtypes[0]
    if found is None or not found == dtypes[2] == dtypes[3]:
        raise reject(instruction, dtypes, "equal dtypes of dst, a and b")
    dtype = raw(found)

    def body(args):
        dst, mask, a, b = args[FIRST], args[SECOND], args[THIRD], args[FOURTH]
        rows, cols = valid_rows(dst), valid_cols(dst)
        if physical_rows(mask) < rows or physical_cols(mask) * mask_bytes * 8 < cols:
            return OUTSIDE_TILE
        if not (covers(dst, rows, cols) and covers(a, rows, cols) and covers(b, rows, cols)):
            return OUTSIDE_TILE
        to, bits, byte_pitch = address(dst), address(mask), stride(mask) * mask_bytes
        left, right, pitch, left_pitch, right_pitch = address(a), address(b), stride(dst), stride(a), stride(b)
        for i in range(rows):
            for j in range(cols):
                x, y = fetch(left, i * left_pitch + j, dtype), fetch(right, i * right_pitch + j, dtype)
                store(to, i * pitch + j, dtype, x if bit(bits, byte_pitch, i, j) else y)
        return OK

    return Kernel(f"{instruction.mnemonic}.b{dtype.get_bit()}.{mask_bytes}", body)


def select_scalar(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tsels``: ``a`` where the predicate bit is set, else ``s`` converted to the dtype of ``a``."""
    mask_bytes = _mask(instruction, dtypes)
    dtype = same(instruction, dtypes, (0, 2), NUMBERS)

    def body(args):
        dst, mask, a, s = args[FIRST], args[SECOND], args[THIRD], scalar(args[FOURTH], dtype)
        rows, cols = valid_rows(dst), valid_cols(dst)
        if physical_rows(mask) < rows or physical_cols(mask) * mask_bytes * 8 < cols:
            return OUTSIDE_TILE
        if not (covers(dst, rows, cols) and covers(a, rows, cols)):
            return OUTSIDE_TILE
        to, of, bits, byte_pitch = address(dst), address(a), address(mask), stride(mask) * mask_bytes
        pitch, source_pitch = stride(dst), stride(a)
        for i in range(rows):
            for j in range(cols):
                x = fetch(of, i * source_pitch + j, dtype)
                store(to, i * pitch + j, dtype, x if bit(bits, byte_pitch, i, j) else s)
        return OK

    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}.{mask_bytes}", body)

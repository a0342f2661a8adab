"""Comparison into packed predicates and selection by them (ops 6).

A predicate tile holds bytes; bit ``j mod 8`` (least significant first) of byte ``j div 8`` of row ``i`` is the truth of
element ``(i, j)``. Unused bits of the last byte are 0.
"""

from __future__ import annotations

from typing import Final

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

# How two elements relate, and the relations for which a mode holds (eq, ne, lt, le, gt, ge)
BELOW, SAME, ABOVE, UNORDERED = 1, 2, 4, 8
ACCEPTED: Final = (SAME, BELOW | ABOVE | UNORDERED, BELOW, BELOW | SAME, ABOVE, ABOVE | SAME)


@kernel_code
def relation(a, b):
    """Which of below, same, above or unordered holds between two elements."""
    return BELOW if a < b else (SAME if a == b else (ABOVE if a > b else UNORDERED))


@kernel_code
def accepted(mode):
    """Relations for which comparison ``mode`` holds; 0 for an unknown mode."""
    return ACCEPTED[mode] if 0 <= mode < len(ACCEPTED) else 0


@kernel_code
def holds(a, b, relations):
    """1 when the relation of a and b is one of ``relations``, else 0."""
    return 1 if relation(a, b) & relations else 0


def _predicate(instruction: Instruction, dtypes: Dtypes, sources: tuple[int, ...]) -> DataType:
    if dtypes[0] is None or dtypes[0].get_byte() != 1:
        raise reject(instruction, dtypes, "a predicate tile of uint8 as dst")
    return same(instruction, dtypes, sources, NUMBERS)


def compare(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tcmp``: predicates over the valid region of ``a``."""
    dtype = _predicate(instruction, dtypes, (1, 2))

    @kernel_code
    def byte(left, right, first, count, relations):
        packed = 0
        for k in range(count):
            packed |= holds(fetch(left, first + k, dtype), fetch(right, first + k, dtype), relations) << k
        return packed

    def body(args):
        dst, a, b, relations = args[FIRST], args[SECOND], args[THIRD], accepted(args[FOURTH])
        rows, cols = valid_rows(a), valid_cols(a)
        if not (covers(dst, rows, (cols + 7) // 8) and covers(a, rows, cols) and covers(b, rows, cols)):
            return OUTSIDE_TILE
        if relations == 0:
            return UNSUPPORTED_DTYPE
        for i in range(rows):
            to = address(dst) + i * stride(dst)
            left, right = address(a) + i * stride(a) * size, address(b) + i * stride(b) * size
            for k in range(cols // 8):
                store(to, k, UINT8, byte(left, right, 8 * k, 8, relations))
            if cols % 8:
                store(to, cols // 8, UINT8, byte(left, right, cols - cols % 8, cols % 8, relations))
        return OK

    size = dtype.get_byte()
    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)


def compare_scalar(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tcmps``: predicates over the valid region of ``a``; ``s`` is converted to its dtype first."""
    dtype = _predicate(instruction, dtypes, (1,))

    @kernel_code
    def byte(left, s, first, count, relations):
        packed = 0
        for k in range(count):
            packed |= holds(fetch(left, first + k, dtype), s, relations) << k
        return packed

    def body(args):
        dst, a, s, relations = args[FIRST], args[SECOND], scalar(args[THIRD], dtype), accepted(args[FOURTH])
        rows, cols = valid_rows(a), valid_cols(a)
        if not (covers(dst, rows, (cols + 7) // 8) and covers(a, rows, cols)):
            return OUTSIDE_TILE
        if relations == 0:
            return UNSUPPORTED_DTYPE
        for i in range(rows):
            to, left = address(dst) + i * stride(dst), address(a) + i * stride(a) * size
            for k in range(cols // 8):
                store(to, k, UINT8, byte(left, s, 8 * k, 8, relations))
            if cols % 8:
                store(to, cols // 8, UINT8, byte(left, s, cols - cols % 8, cols % 8, relations))
        return OK

    size = dtype.get_byte()
    return Kernel(f"{instruction.mnemonic}.{dtype.to_string()}", body)


@kernel_code
def bit(mask, byte_pitch, i, j):
    """Element (i, j) of a packed mask, lowest bit first."""
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

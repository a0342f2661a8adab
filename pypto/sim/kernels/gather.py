"""Gathers on chip (ops 14.1). Flat indices count in row-major order of the physical shape."""

from __future__ import annotations

from typing import Final

from pypto.ir.dtype import INT16, INT32, UINT8, UINT16, UINT32, DataType
from pypto.ir.instructions import Instruction
from pypto.sim.kernels.compare import accepted, holds
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
from pypto.sim.kernels.support import NUMBERS, Dtypes, raw, reject
from pypto.sim.layout import OK, OUTSIDE_TILE, TOOK_ZERO, UNSUPPORTED_DTYPE

INDICES: Final = (INT32, INT16, UINT32, UINT16)


@kernel_code
def place(flat, cols, pitch):
    """Element offset of flat index ``flat`` in a tile."""
    return flat if cols == pitch else flat // cols * pitch + flat % cols


@kernel_code
def refuse(args, position, index, limit):
    """Leave in the report words which index is wrong: its row-major position, its value, the first illegal value."""
    args[0], args[1], args[2] = position, index, limit


@kernel_code
def all_below(args, index, pitch, rows, cols, dtype, limit):
    """Whether every index is in ``[0, limit)``; the report words name the first that is not."""
    for i in range(rows):
        for j in range(cols):
            k = int(fetch(index, i * pitch + j, dtype))
            if k < 0 or k >= limit:
                refuse(args, i * cols + j, k, limit)
                return False
    return True


def indexed(instruction: Instruction, dtypes: Dtypes) -> tuple[DataType, DataType, str]:
    """Storage word, index dtype and kernel name of an instruction with operands (dst, src, index)."""
    dst, src, index = dtypes
    if dst is None or dst != src or index is None or index not in INDICES:
        raise reject(instruction, dtypes, "dst as src; index int32, int16, uint32 or uint16")
    word = raw(dst)
    return word, index, f"{instruction.mnemonic}.b{word.get_bit()}.{index.to_string()}"


def flat(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tgather``: ``dst[i,j] = src.flat[index[i,j]]``; an index outside the source gives 0, and ``TOOK_ZERO``."""
    dtype, index_dtype, name = indexed(instruction, dtypes)

    def body(args):
        dst, src, index = args[FIRST], args[SECOND], args[THIRD]
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (covers(dst, rows, cols) and covers(index, rows, cols)):
            return OUTSIDE_TILE
        to, of, at = address(dst), address(src), address(index)
        pitch, source_pitch, index_pitch = stride(dst), stride(src), stride(index)
        width, size = physical_cols(src), physical_rows(src) * physical_cols(src)
        outside = 0
        for i in range(rows):
            for j in range(cols):
                k = fetch(at, i * index_pitch + j, index_dtype)
                inside = (k >= 0) & (k < size)
                outside += 0 if inside else 1
                x = fetch(of, place(int(k) if inside else 0, width, source_pitch), dtype)
                store(to, i * pitch + j, dtype, x if inside else 0)
        if outside == 0 or all_below(args, at, index_pitch, rows, cols, index_dtype, size):
            return OK
        return TOOK_ZERO

    return Kernel(name, body)


def along_axis(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tgather_axis``: ``dst[i,j] = src[i, index[i,j]]`` (axis 1) or ``src[index[i,j], j]`` (axis 0)."""
    dtype, index_dtype, name = indexed(instruction, dtypes)

    def body(args):
        dst, src, index, axis = args[FIRST], args[SECOND], args[THIRD], args[FOURTH]
        rows, cols = valid_rows(dst), valid_cols(dst)
        limit = physical_cols(src) if axis == 1 else physical_rows(src)
        if not (covers(dst, rows, cols) and covers(index, rows, cols)):
            return OUTSIDE_TILE
        if not covers(src, rows if axis == 1 else 0, 0 if axis == 1 else cols):
            return OUTSIDE_TILE
        to, of, at = address(dst), address(src), address(index)
        pitch, source_pitch, index_pitch = stride(dst), stride(src), stride(index)
        if not all_below(args, at, index_pitch, rows, cols, index_dtype, limit):
            return OUTSIDE_TILE
        for i in range(rows):
            for j in range(cols):
                k = int(fetch(at, i * index_pitch + j, index_dtype))
                source = i * source_pitch + k if axis == 1 else k * source_pitch + j
                store(to, i * pitch + j, dtype, fetch(of, source, dtype))
        return OK

    return Kernel(name, body)


@kernel_code
def pattern_start(pattern):
    """First selected column of mask pattern 1..7."""
    return pattern - 1 if pattern <= 2 else (pattern - 3 if pattern <= 6 else 0)


@kernel_code
def pattern_step(pattern):
    """Distance between the selected columns of mask pattern 1..7."""
    return 2 if pattern <= 2 else (4 if pattern <= 6 else 1)


def masked(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tgather_mask``: the columns of ``src`` that the pattern selects; bits are kept when the dtypes differ."""
    to_dtype, of_dtype = dtypes
    if to_dtype is None or of_dtype is None or to_dtype.get_byte() != of_dtype.get_byte():
        raise reject(instruction, dtypes, "dtypes of one width")
    dtype = raw(to_dtype)

    def body(args):
        dst, src, pattern = args[FIRST], args[SECOND], args[THIRD]
        if pattern < 1 or pattern > 7:
            return UNSUPPORTED_DTYPE
        first, distance = pattern_start(pattern), pattern_step(pattern)
        rows, cols = valid_rows(src), (valid_cols(src) - first + distance - 1) // distance
        if not (covers(src, rows, valid_cols(src)) and covers(dst, rows, cols)):
            return OUTSIDE_TILE
        to, of, pitch, source_pitch = address(dst), address(src), stride(dst), stride(src)
        for i in range(rows):
            for j in range(cols):
                store(to, i * pitch + j, dtype, fetch(of, i * source_pitch + first + distance * j, dtype))
        return OK

    return Kernel(f"{instruction.mnemonic}.b{dtype.get_bit()}", body)


def compared(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tgather_compare``: ``offset + j`` of the matching columns in order (0 in the slots left), and their number.

    Matches beyond the columns of ``dst`` are dropped but counted.
    """
    dst, count, src, _ = dtypes
    if dst not in (INT32, UINT32) or count not in (INT32, UINT32) or src is None or src not in NUMBERS:
        raise reject(instruction, dtypes, "dst and count int32 or uint32, src a number dtype")
    dtype = src

    def body(args):
        dst, count, src, kvalue = args[FIRST], args[SECOND], args[THIRD], scalar(args[FOURTH], dtype)
        relations, offset = accepted(args[FOURTH + 1]), args[FOURTH + 2]
        rows, cols, room = valid_rows(src), valid_cols(src), valid_cols(dst)
        if not (covers(dst, rows, room) and covers(src, rows, cols) and covers(count, 1, rows)):
            return OUTSIDE_TILE
        if relations == 0:
            return UNSUPPORTED_DTYPE
        to, counts, of, pitch, source_pitch = address(dst), address(count), address(src), stride(dst), stride(src)
        for i in range(rows):
            found = 0
            for j in range(cols):
                if holds(fetch(of, i * source_pitch + j, dtype), kvalue, relations):
                    if found < room:
                        store(to, i * pitch + found, INT32, offset + j)
                    found += 1
            for j in range(found, room):
                store(to, i * pitch + j, INT32, 0)
            store(counts, i, INT32, found)
        return OK

    return Kernel(f"{instruction.mnemonic}.{src.to_string()}", body)


BLOCK_BYTES: Final = 32


def blocks(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tgatherb``: result row i, block b = the 32 bytes at byte ``offset[i,b]`` of the flat source."""
    dst_dtype, src_dtype, offset_dtype = dtypes
    if dst_dtype is None or src_dtype is None or offset_dtype not in (UINT32, INT32):
        raise reject(instruction, dtypes, "offset uint32")
    to_size, of_size = dst_dtype.get_byte(), src_dtype.get_byte()

    def body(args):
        dst, src, offset = args[FIRST], args[SECOND], args[THIRD]
        rows, count = valid_rows(offset), valid_cols(offset)
        width, pitch = physical_cols(src) * of_size, stride(src) * of_size
        if not (covers(offset, rows, count) and covers(dst, rows, count * BLOCK_BYTES // to_size)):
            return OUTSIDE_TILE
        limit = physical_rows(src) * width - BLOCK_BYTES + 1
        if not all_below(args, address(offset), stride(offset), rows, count, UINT32, limit):
            return OUTSIDE_TILE
        for i in range(rows):
            for b in range(count):
                start = int(fetch(address(offset), i * stride(offset) + b, UINT32))
                to = address(dst) + i * stride(dst) * to_size + b * BLOCK_BYTES
                for k in range(BLOCK_BYTES):
                    store(to, k, UINT8, fetch(address(src), place(start + k, width, pitch), UINT8))
        return OK

    return Kernel(f"{instruction.mnemonic}.{to_size}.{of_size}", body)

"""Scatters on chip (ops 14.2). Indices are checked before anything is written."""

from __future__ import annotations

from pypto.ir.instructions import Instruction
from pypto.sim.kernels.compilation import Kernel
from pypto.sim.kernels.copying import clear
from pypto.sim.kernels.element import fetch, store
from pypto.sim.kernels.gather import all_below, indexed, pattern_start, pattern_step, place
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
from pypto.sim.kernels.support import Dtypes, raw, reject
from pypto.sim.layout import OK, OUTSIDE_TILE, UNSUPPORTED_DTYPE


def flat(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tscatter``: ``dst.flat[index[i,j]] = src[i,j]`` in row-major order; what is not addressed stays."""
    dtype, index_dtype, name = indexed(instruction, dtypes)

    def body(args):
        dst, src, index = args[FIRST], args[SECOND], args[THIRD]
        rows, cols = valid_rows(src), valid_cols(src)
        if not (covers(src, rows, cols) and covers(index, rows, cols)):
            return OUTSIDE_TILE
        to, of, at = address(dst), address(src), address(index)
        pitch, source_pitch, index_pitch, width = stride(dst), stride(src), stride(index), physical_cols(dst)
        if not all_below(args, at, index_pitch, rows, cols, index_dtype, physical_rows(dst) * width):
            return OUTSIDE_TILE
        for i in range(rows):
            for j in range(cols):
                k = int(fetch(at, i * index_pitch + j, index_dtype))
                store(to, place(k, width, pitch), dtype, fetch(of, i * source_pitch + j, dtype))
        return OK

    return Kernel(name, body)


def along_axis(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tscatter_axis``: ``dst[i, index[i,j]] = src[i,j]`` (axis 1) or ``dst[index[i,j], j]`` (axis 0)."""
    dtype, index_dtype, name = indexed(instruction, dtypes)

    def body(args):
        dst, src, index, axis = args[FIRST], args[SECOND], args[THIRD], args[FOURTH]
        rows, cols = valid_rows(src), valid_cols(src)
        if not (covers(src, rows, cols) and covers(index, rows, cols)):
            return OUTSIDE_TILE
        if not covers(dst, rows if axis == 1 else 0, 0 if axis == 1 else cols):
            return OUTSIDE_TILE
        to, of, at = address(dst), address(src), address(index)
        pitch, source_pitch, index_pitch = stride(dst), stride(src), stride(index)
        limit = physical_cols(dst) if axis == 1 else physical_rows(dst)
        if not all_below(args, at, index_pitch, rows, cols, index_dtype, limit):
            return OUTSIDE_TILE
        for i in range(rows):
            for j in range(cols):
                k = int(fetch(at, i * index_pitch + j, index_dtype))
                target = i * pitch + k if axis == 1 else k * pitch + j
                store(to, target, dtype, fetch(of, i * source_pitch + j, dtype))
        return OK

    return Kernel(name, body)


def rows(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tscatter_rows``: ``dst[index.flat[k], :] = src[k, :]`` in order of k."""
    dtype, index_dtype, name = indexed(instruction, dtypes)

    def body(args):
        dst, src, index = args[FIRST], args[SECOND], args[THIRD]
        high, wide = valid_rows(index), valid_cols(index)
        count, cols = min(high * wide, valid_rows(src)), valid_cols(src)
        if not (covers(src, count, cols) and covers(index, high, wide) and covers(dst, 0, cols)):
            return OUTSIDE_TILE
        to, of, at = address(dst), address(src), address(index)
        pitch, source_pitch, index_pitch = stride(dst), stride(src), stride(index)
        if not all_below(args, at, index_pitch, high, wide, index_dtype, physical_rows(dst)):
            return OUTSIDE_TILE
        for k in range(count):
            row = int(fetch(at, k // wide * index_pitch + k % wide, index_dtype))
            for j in range(cols):
                store(to, row * pitch + j, dtype, fetch(of, k * source_pitch + j, dtype))
        return OK

    return Kernel(name, body)


def masked(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tscatter_mask``: the columns of ``src`` into the columns of ``dst`` that the pattern selects.

    ``others = zero`` clears the other columns (the tile instruction), ``keep`` leaves them (the tensor operation).
    """
    if dtypes[0] is None or dtypes[0] != dtypes[1]:
        raise reject(instruction, dtypes, "equal dtypes")
    dtype = raw(dtypes[0])

    def body(args):
        dst, src, pattern, keep = args[FIRST], args[SECOND], args[THIRD], args[FOURTH] != 0
        if pattern < 1 or pattern > 7:
            return UNSUPPORTED_DTYPE
        first, distance = pattern_start(pattern), pattern_step(pattern)
        rows, cols = valid_rows(src), valid_cols(src)
        if not (covers(src, rows, cols) and covers(dst, rows, first + distance * (cols - 1) + 1)):
            return OUTSIDE_TILE
        to, of, pitch, source_pitch = address(dst), address(src), stride(dst), stride(src)
        if not keep:
            clear(to, pitch, rows, physical_cols(dst), dtype)
        for i in range(rows):
            for j in range(cols):
                store(to, i * pitch + first + distance * j, dtype, fetch(of, i * source_pitch + j, dtype))
        return OK

    return Kernel(f"{instruction.mnemonic}.b{dtype.get_bit()}", body)

"""Gathers from and scatters to global memory (ops 14). Indices compare as unsigned 32-bit numbers."""

from __future__ import annotations

from typing import Final

from pypto.ir.dtype import INT32, INT64, UINT32, DataType
from pypto.ir.instructions import Instruction
from pypto.sim.kernels.compilation import Kernel, kernel_code
from pypto.sim.kernels.copying import is_packed
from pypto.sim.kernels.element import fetch, store
from pypto.sim.kernels.gather import refuse
from pypto.sim.kernels.operands import FIRST, FOURTH, SECOND, THIRD, address, covers, stride, valid_cols, valid_rows
from pypto.sim.kernels.support import Dtypes, raw, reject
from pypto.sim.kernels.window import extent, step
from pypto.sim.layout import OK, OUTSIDE_TENSOR, OUTSIDE_TILE, TENSOR_ADDRESS, TENSOR_RANK

UNDEFINED: Final = 0
CLAMP: Final = 1
WRAP: Final = 2


@kernel_code
def count(tensor, axes):
    """Product of the first ``axes`` extents."""
    total = 1
    for axis in range(axes):
        total *= extent(tensor, axis)
    return total


@kernel_code
def offset(tensor, flat, axes):
    """Element offset of index ``flat`` over the first ``axes`` axes."""
    total = 0
    axis = axes - 1
    while axis >= 0:
        size = extent(tensor, axis)
        total += flat % size * step(tensor, axis)
        flat //= size
        axis -= 1
    return total


@kernel_code
def bounded(index, capacity, mode):
    """``index`` brought into ``[0, capacity)`` as ``mode`` says; -1: read as zero."""
    if index < capacity:
        return index
    if mode == CLAMP:
        return capacity - 1
    if mode == WRAP:
        return index % capacity
    return -1


@kernel_code
def gather_indices(index, k, cols, in_tile):
    """Index ``k`` (row-major) of an index tile or tensor, as an unsigned number."""
    if in_tile:
        return int(fetch(address(index), k // cols * stride(index) + k % cols, UINT32))
    at = offset(index, k, fetch(index, TENSOR_RANK, INT64))
    return int(fetch(fetch(index, TENSOR_ADDRESS, INT64), at, UINT32))


def _memory(instruction: Instruction, dtypes: Dtypes) -> DataType:
    dst, tensor, index = dtypes
    if dst is None or dst != tensor or index not in (INT32, UINT32) or is_packed(dst):
        raise reject(instruction, dtypes, "equal dtypes of tile and tensor (8 bits or more), index int32")
    return raw(dst)


def fetch_indexed(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``mgather``: rows (``coalesce = row``) or elements of a tensor, over the valid region of the destination.

    ``oob`` says what an index beyond the capacity (rows, or elements) reads; ``undefined`` is an error.
    """
    dtype = _memory(instruction, dtypes)
    in_tile = instruction.variant == "tile"
    size = dtype.get_byte()

    def body(args):
        dst, tensor, index, by_element, mode = args[FIRST], args[SECOND], args[THIRD], args[FOURTH] == 1, args[8]
        rows, cols = valid_rows(dst), valid_cols(dst)
        wide = valid_cols(index) if in_tile else cols
        rank = fetch(tensor, TENSOR_RANK, INT64)
        axes = rank if by_element else rank - 1
        capacity = count(tensor, axes)
        last = 0 if by_element else step(tensor, rank - 1)
        if not covers(dst, rows, cols) or in_tile and not covers(index, valid_rows(index), wide):
            return OUTSIDE_TILE
        available = valid_rows(index) * wide if in_tile else count(index, fetch(index, TENSOR_RANK, INT64))
        if available < (rows * cols if by_element else rows) or not by_element and cols > extent(tensor, rank - 1):
            return OUTSIDE_TILE
        work = rows * cols if by_element else rows
        for k in range(work if mode == UNDEFINED else 0):
            if gather_indices(index, k, wide, in_tile) >= capacity:
                refuse(args, k, gather_indices(index, k, wide, in_tile), capacity)
                return OUTSIDE_TENSOR
        to, of, pitch = address(dst), fetch(tensor, TENSOR_ADDRESS, INT64), stride(dst)
        run = 1 if by_element else cols
        for k in range(work):
            at = bounded(gather_indices(index, k, wide, in_tile), capacity, mode)
            target = k // cols * pitch + k % cols if by_element else k * pitch
            source = offset(tensor, at, axes) if at >= 0 else 0
            for j in range(run):
                store(to, target + j, dtype, fetch(of, source + j * last, dtype) if at >= 0 else 0)
        args[0], args[1], args[2], args[3] = of, rows * cols // max(run, 1), run * size, 0
        return OK

    return Kernel(f"{instruction.mnemonic}.b{8 * size}", body)


def scatter(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``mscatter``: ``tensor.flat[index[i,j]] = src[i,j]`` in row-major order; no index may leave the tensor."""
    tensor_dtype, src_dtype, index_dtype = dtypes
    dtype = _memory(instruction, (src_dtype, tensor_dtype, index_dtype))

    def body(args):
        tensor, src, index = args[FIRST], args[SECOND], args[THIRD]
        rows, cols = valid_rows(src), valid_cols(src)
        if not (covers(src, rows, cols) and covers(index, rows, cols)):
            return OUTSIDE_TILE
        rank = fetch(tensor, TENSOR_RANK, INT64)
        to, of = fetch(tensor, TENSOR_ADDRESS, INT64), address(src)
        capacity = count(tensor, rank)
        for k in range(rows * cols):
            if gather_indices(index, k, cols, True) >= capacity:
                refuse(args, k, gather_indices(index, k, cols, True), capacity)
                return OUTSIDE_TENSOR
        for k in range(rows * cols):
            at = offset(tensor, gather_indices(index, k, cols, True), rank)
            store(to, at, dtype, fetch(of, k // cols * stride(src) + k % cols, dtype))
        args[0], args[1], args[2], args[3] = to, rows * cols, dtype_bytes, 0
        return OK

    dtype_bytes = dtype.get_byte()
    return Kernel(f"{instruction.mnemonic}.b{8 * dtype_bytes}", body)

"""Windows of global tensors: bounds, addresses and bursts (docs/architecture.md 2).

The three lists of a window (offsets, window extents, valid extents) have one length n and address the trailing n axes
of the tensor. In the argument block they are three counted lists, one after the other; ``lists`` below is the position
of the first count.
"""

from __future__ import annotations

from pypto.ir.dtype import INT64
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.kernels.element import fetch
from pypto.sim.layout import (
    OK,
    OUTSIDE_TENSOR,
    OUTSIDE_TILE,
    TENSOR_EXTENTS,
    TENSOR_RANK,
    TENSOR_STRIDES,
)


@kernel_code
def extent(tensor, axis):
    """Extent of one axis of a tensor record."""
    return fetch(tensor, TENSOR_EXTENTS + axis, INT64)


@kernel_code
def step(tensor, axis):
    """Elements between neighbours along ``axis``."""
    return fetch(tensor, TENSOR_STRIDES + axis, INT64)


@kernel_code
def check_window(args, lists, tensor):
    """Status of a window: ``OUTSIDE_TENSOR`` when its valid part leaves the tensor. An empty window is always legal."""
    n = args[lists]
    first = fetch(tensor, TENSOR_RANK, INT64) - n
    if n < 1 or first < 0:
        return OUTSIDE_TENSOR
    offsets, windows, valid = lists + 1, lists + n + 2, lists + 2 * n + 3
    empty = False
    status = OK
    for k in range(n):
        length = args[valid + k]
        empty |= length <= 0
        if args[offsets + k] < 0 or args[offsets + k] > extent(tensor, first + k) - length:  # a sum may overflow
            status = OUTSIDE_TENSOR
        if length > args[windows + k]:
            status = OUTSIDE_TENSOR
    return OK if empty else status


@kernel_code
def window_size(args, lists, axis):
    """Window extent along ``axis`` counted from the end (1: last)."""
    n = args[lists]
    return args[lists + 2 * n + 2 - axis] if axis <= n else 1


@kernel_code
def valid_size(args, lists, axis):
    """Valid extent along ``axis`` counted from the end (1: last)."""
    n = args[lists]
    return args[lists + 3 * n + 3 - axis] if axis <= n else 1


@kernel_code
def window_step(args, lists, tensor, axis):
    """Tensor stride along ``axis`` counted from the end (1: last); 0 for an axis the window does not have."""
    rank = fetch(tensor, TENSOR_RANK, INT64)
    return step(tensor, rank - axis) if axis <= args[lists] else 0


@kernel_code
def window_origin(args, lists, tensor):
    """Element offset of the window's first element."""
    n = args[lists]
    first = fetch(tensor, TENSOR_RANK, INT64) - n
    origin = 0
    for k in range(n):
        origin += args[lists + 1 + k] * step(tensor, first + k)
    return origin


@kernel_code
def outer_count(args, lists):
    """Number of matrices (trailing two axes) in a window."""
    n = args[lists]
    count = 1
    for k in range(n - 2):
        count *= args[lists + n + 2 + k]
    return count


@kernel_code
def outer_offset(args, lists, tensor, outer):
    """Element offset of matrix ``outer`` of a window from its first one; -1 when it is outside the valid part."""
    n = args[lists]
    first = fetch(tensor, TENSOR_RANK, INT64) - n
    offset = 0
    k = n - 3
    while k >= 0:
        size = args[lists + n + 2 + k]
        index = outer % size
        outer //= size
        if index >= args[lists + 2 * n + 3 + k]:
            return -1
        offset += index * step(tensor, first + k)
        k -= 1
    return offset


@kernel_code
def check_shape(args, lists, tile_rows, tile_cols):
    """``OUTSIDE_TILE`` unless the tile has room for the window's rows and columns."""
    rows = 1
    for k in range(args[lists] - 1):
        size = args[lists + args[lists] + 2 + k]
        rows *= min(size, tile_rows + 1)  # one row too many is enough, and no product overflows
        if rows > tile_rows:
            return OUTSIDE_TILE
    return OK if valid_size(args, lists, 1) <= tile_cols else OUTSIDE_TILE


@kernel_code
def report(args, address, rows, cols, row_step, col_step, element_bits):
    """Fill the report words with the bursts of ``rows`` x ``cols`` elements: runs along the axis of stride 1."""
    args[0] = address
    if rows <= 0 or cols <= 0:
        return
    if col_step == 1 or cols == 1:
        count, length, pitch = rows, cols, row_step
    elif row_step == 1:
        count, length, pitch = cols, rows, col_step
    else:
        count, length, pitch = rows * cols, 1, col_step
    args[1] = count
    args[2] = (length * element_bits + 7) // 8
    args[3] = pitch * element_bits // 8

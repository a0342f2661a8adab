"""Addresses and views: what tensor and tile descriptors mean, for the interpreter.

Functions take the frame and the offsets of descriptors in it (opcodes.py). A fault leaves index, extent and axis in the
frame's DETAIL words.
"""

# ruff: noqa: SIM109 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

import numpy as np

from pypto.sim import layout, opcodes
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.scalars import element_bytes, is_nibble

_EXTENTS = layout.TENSOR_EXTENTS
_STRIDES = layout.TENSOR_STRIDES


@kernel_code
def outside(frame, axis, index, extent):
    """Record index, extent and axis of an access that leaves its view; returns -1."""
    frame[opcodes.DETAIL], frame[opcodes.DETAIL + 1], frame[opcodes.DETAIL + 2] = index, extent, axis
    return -1


@kernel_code
def element_address(frame, code, at, tensor):
    """Address of the tensor element whose indices follow at ``code[at]`` (count first), or -1 when outside."""
    count = code[at]
    offset = 0
    for axis in range(count):
        index = frame[code[at + 1 + axis]]
        extent = frame[tensor + _EXTENTS + axis]
        if index < 0 or index >= extent:
            return outside(frame, axis, index, extent), 0
        offset += index * frame[tensor + _STRIDES + axis]
    dtype = frame[tensor + layout.TENSOR_DTYPE]
    address = frame[tensor]
    if is_nibble(dtype):
        return address + (offset >> 1), offset
    return address + offset * element_bytes(dtype), -1


@kernel_code
def tile_address(frame, tile, row, col):
    """Address of element (row, col) of a tile, or -1 with the detail recorded."""
    rows, cols = frame[tile + layout.TILE_ROWS], frame[tile + layout.TILE_COLS]
    if row < 0 or row >= rows:
        return outside(frame, 0, row, rows)
    if col < 0 or col >= cols:
        return outside(frame, 1, col, cols)
    offset = row * frame[tile + layout.TILE_STRIDE] + col
    return frame[tile] + offset * element_bytes(frame[tile + layout.TILE_DTYPE])


@kernel_code
def view(frame, code, at, target, source):
    """Window of a tensor; returns a fault code."""
    rank = code[at]
    for word in range(layout.TENSOR_WORDS):
        frame[target + word] = frame[source + word]
    offset = 0
    dropped = at + 1 + 2 * rank
    kept = 0
    for axis in range(rank):
        start, size = frame[code[at + 1 + axis]], frame[code[at + 1 + rank + axis]]
        extent, stride = frame[source + _EXTENTS + axis], frame[source + _STRIDES + axis]
        if size < 0 or start < 0 or start > extent - size:  # a sum may overflow
            frame[opcodes.DETAIL + 2] = axis
            frame[opcodes.DETAIL], frame[opcodes.DETAIL + 1] = start, size
            return layout.OUTSIDE_TENSOR
        offset += start * stride
        keep = True
        for index in range(code[dropped]):
            keep = keep and code[dropped + 1 + index] != axis
        if keep:
            frame[target + _EXTENTS + kept], frame[target + _STRIDES + kept] = size, stride
            kept += 1
    frame[target + layout.TENSOR_RANK] = kept
    dtype = frame[source + layout.TENSOR_DTYPE]
    if is_nibble(dtype):
        if offset & 1:
            return opcodes.ODD_NIBBLE
        frame[target] = frame[source] + (offset >> 1)
    else:
        frame[target] = frame[source] + offset * element_bytes(dtype)
    return 0


@kernel_code
def _bits(dtype):
    return 4 if is_nibble(dtype) else 8 * element_bytes(dtype)


@kernel_code
def contiguous(frame, tensor):
    """Whether the elements of a tensor follow each other in row-major order."""
    expected = 1
    for axis in range(frame[tensor + layout.TENSOR_RANK] - 1, -1, -1):
        extent = frame[tensor + _EXTENTS + axis]
        if extent != 1 and frame[tensor + _STRIDES + axis] != expected:
            return False
        expected *= extent
    return True


@kernel_code
def _split_strides(frame, target, source, rank):
    """Strides of a strided tensor under a new shape (already in ``target``), by matching runs of axes.

    Axes of the source that follow each other without a gap are one run; a new shape that cuts no run needs no copy.
    """
    count = frame[source + layout.TENSOR_RANK]
    old = np.empty(8, np.int64)
    stride = np.empty(8, np.int64)
    used = 0
    for axis in range(count):
        if frame[source + _EXTENTS + axis] != 1:
            old[used], stride[used] = frame[source + _EXTENTS + axis], frame[source + _STRIDES + axis]
            used += 1
    low, new = 0, 0
    while new < rank:
        if low >= used:
            frame[target + _STRIDES + new] = 1
            if frame[target + _EXTENTS + new] != 1:
                return False
            new += 1
            continue
        high, last = low + 1, new + 1
        old_size, new_size = old[low], frame[target + _EXTENTS + new]
        while old_size != new_size:
            if new_size < old_size:
                if last >= rank:
                    return False
                new_size *= frame[target + _EXTENTS + last]
                last += 1
            else:
                if high >= used or stride[high - 1] != old[high] * stride[high]:
                    return False
                old_size *= old[high]
                high += 1
        step = stride[high - 1]
        for axis in range(last - 1, new - 1, -1):
            frame[target + _STRIDES + axis] = step
            step *= frame[target + _EXTENTS + axis]
        low, new = high, last
    return low == used


@kernel_code
def _fill(total, unit, shape, rank):
    """Whether elements of ``unit`` bits in ``shape`` are ``total`` bits; no product on the way overflows."""
    for axis in range(rank):
        if shape[axis] == 0:
            return total == 0
    for axis in range(rank):
        if shape[axis] > total // unit:
            return False
        unit *= shape[axis]
    return unit == total


@kernel_code
def reshape(frame, code, at, target, source):
    """New shape (and element type) over the same bytes; returns a fault code."""
    rank = code[at]
    dtype = code[at + 1 + rank]
    shape = np.empty(8, np.int64)
    bits_before, bits_after = _bits(frame[source + layout.TENSOR_DTYPE]), _bits(frame[source + layout.TENSOR_DTYPE])
    if dtype >= 0:
        bits_after = _bits(dtype)
    for axis in range(frame[source + layout.TENSOR_RANK]):
        bits_before *= frame[source + _EXTENTS + axis]
    for axis in range(rank):
        shape[axis] = frame[code[at + 1 + axis]]
        if shape[axis] < 0:
            return opcodes.NEGATIVE_EXTENT
    if not _fill(bits_before, bits_after, shape, rank):
        return opcodes.BAD_VIEW
    whole = contiguous(frame, source)
    for word in range(layout.TENSOR_WORDS):
        frame[opcodes.SCRATCH + word] = frame[source + word]
    for word in range(layout.TENSOR_WORDS):
        frame[target + word] = frame[opcodes.SCRATCH + word]
    step = 1
    for axis in range(rank - 1, -1, -1):
        frame[target + _EXTENTS + axis], frame[target + _STRIDES + axis] = shape[axis], step
        step *= shape[axis]
    frame[target + layout.TENSOR_RANK] = rank
    if dtype >= 0:
        frame[target + layout.TENSOR_DTYPE] = dtype
    if whole or bits_before == 0:
        return 0
    if dtype >= 0 or not _split_strides(frame, target, opcodes.SCRATCH, rank):
        return opcodes.BAD_VIEW
    return 0


@kernel_code
def permute(frame, target, source, first, second):
    """``source`` with two axes exchanged."""
    for word in range(layout.TENSOR_WORDS):
        frame[target + word] = frame[source + word]
    for base in (target + _EXTENTS, target + _STRIDES):
        frame[base + first], frame[base + second] = frame[base + second], frame[base + first]

"""The GM windows a task touches, listed before it runs: do its blocks depend on their order?

A program whose scalars come from parameters alone (no element of a tensor or tile is read into a register) accesses the
same windows whatever the data. The interpreter lists them without calling a kernel (mode ``LIST``), one row per access:
block, 1 for a write, first byte, end, descriptor of the window.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pypto.sim import layout
from pypto.sim import opcodes as op
from pypto.sim.dependencies import compare_regions, region_bytes
from pypto.sim.entry import compiled_entry
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer
from pypto.sim.recording import Words
from pypto.sim.scalars import element_bytes, is_nibble

_BLOCK, _WRITES, _LOW, _HIGH = 0, 1, 2, 3
_DESCRIPTOR: Final = 4
ENTRY_WORDS: Final = _DESCRIPTOR + layout.TENSOR_WORDS
_MOST_COMPARISONS: Final = 4_000_000
"""Rather run the blocks one after the other than compare more pairs of windows than this."""


@kernel_code
def list_window(frame, code, pc, address):
    """Write the row of a GM call at ``address``; not 0 when the window is outside its tensor or is no window."""
    tensor, tail = code[pc + 5], pc + 7 + code[pc + 6]
    axes = code[tail]
    if axes < 0:
        return 1
    row, window = as_pointer(address), as_pointer(address + 8 * _DESCRIPTOR)
    for word in range(layout.TENSOR_WORDS):
        window[word] = frame[tensor + word]
    first = frame[tensor + layout.TENSOR_RANK] - axes
    if first < 0:
        return 1
    offset = 0
    for axis in range(frame[tensor + layout.TENSOR_RANK]):
        start, size = 0, 1
        if axis >= first:
            start = frame[code[pc + 7 + code[tail + 1] + axis - first]]
            size = frame[code[pc + 7 + code[tail + 2] + axis - first]]
        if start < 0 or size < 0 or start > frame[tensor + layout.TENSOR_EXTENTS + axis] - size:
            return 1
        offset += start * frame[tensor + layout.TENSOR_STRIDES + axis]
        window[layout.TENSOR_EXTENTS + axis] = size
    dtype = frame[tensor + layout.TENSOR_DTYPE]
    window[0] += (offset >> 1) if is_nibble(dtype) else offset * element_bytes(dtype)
    row[_BLOCK], row[_WRITES] = frame[op.BLOCK], code[tail + 3]
    row[_LOW], row[_HIGH] = region_bytes(window)
    if is_nibble(dtype):
        row[_HIGH] += 1  # a window that starts in the middle of a byte
    return 0


@kernel_code
def list_element(frame, tensor, element, address):
    """Write the row of one element at ``element`` of ``tensor``, taken as written."""
    row, window = as_pointer(address), as_pointer(address + 8 * _DESCRIPTOR)
    for word in range(layout.TENSOR_WORDS):
        window[word] = frame[tensor + word]
    for axis in range(frame[tensor + layout.TENSOR_RANK]):
        window[layout.TENSOR_EXTENTS + axis] = 1
    window[0] = element
    row[_BLOCK], row[_WRITES] = frame[op.BLOCK], 1
    row[_LOW], row[_HIGH] = region_bytes(window)


def _conflict(words):
    """1 when two blocks touch the same bytes and one writes, -1 when there are too many pairs to tell, else 0.

    ``words``: addresses of the rows, of their order by first byte, of the allocations' first addresses; row count.
    """
    rows, order, bases, count = words[0], as_pointer(words[1]), as_pointer(words[2]), words[3]
    compared = 0
    for at in range(count):
        first = rows + 8 * ENTRY_WORDS * order[at]
        a = as_pointer(first)
        for other in range(at + 1, count):
            second = rows + 8 * ENTRY_WORDS * order[other]
            b = as_pointer(second)
            if b[_LOW] >= a[_HIGH]:
                break
            compared += 1
            if compared > _MOST_COMPARISONS:
                return -1
            if a[_BLOCK] == b[_BLOCK] or (a[_WRITES] == 0 and b[_WRITES] == 0) or b[_LOW] == b[_HIGH]:
                continue
            base = bases[a[_DESCRIPTOR + layout.TENSOR_ALLOCATION]]
            if compare_regions(as_pointer(first + 8 * _DESCRIPTOR), as_pointer(second + 8 * _DESCRIPTOR), base) != 0:
                return 1
    return 0


@cache
def _compiled() -> Any:
    return compiled_entry("footprint", _conflict, ("footprint", "dependencies", "layout", "native", "scalars"))


def order_matters(rows: NDArray[np.int64], bases: Words) -> bool:
    """Whether the values could depend on the order of the blocks whose accesses are ``rows`` (int64[n, ENTRY_WORDS]).

    ``bases``: first address of every allocation. True when in doubt.
    """
    order = np.argsort(rows[:, _LOW], kind="stable")
    request = np.array([rows.ctypes.data, order.ctypes.data, bases.ctypes.data, len(rows)], np.int64)
    return bool(_compiled()(request.ctypes.data) != 0)

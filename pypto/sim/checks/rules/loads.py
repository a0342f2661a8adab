"""The rule of windows that are loaded: tload, tgather_row."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from typing import Final

from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.accesses import allocation_address
from pypto.sim.checks.rules.memory import follow_run, is_followed, memory_map
from pypto.sim.checks.rules.tile import (
    address_of,
    all_cols,
    all_rows,
    dtype_of,
    element_size,
    map_of,
    ranges_matter,
    row_pitch,
)
from pypto.sim.checks.shadow import is_defined, is_finite_run, set_codes
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.kernels.window import (
    outer_count,
    outer_offset,
    valid_size,
    window_origin,
    window_size,
    window_step,
)
from pypto.sim.native import fill_bytes, load_word
from pypto.sim.scalars import is_nibble

_SPARSE: Final = 16  # a window with this many bytes between its own is looked at row by row


@kernel_code
def _rest(state, target, args, lists, tensor, rows, cols, window, outers):
    """Everything of the tile that the window does not fill is padding."""
    size, map_ = element_size(target), map_of(state, target)
    for row in range(all_rows(target)):
        outer, i = row // max(window, 1), row % max(window, 1)
        first = 0
        if outer < outers and i < rows and outer_offset(args, lists, tensor, outer) >= 0:
            first = cols
        if first < all_cols(target):
            at, length = address_of(target, row, first), (all_cols(target) - first) * size
            set_codes(map_, at, length, w.PADDING)
            fill_bytes(at, length, state[w.POISON])


@kernel_code
def _box_is_defined(allocation, source, rows, row_step, cols, col_step, size):
    """Whether a box of memory surely is defined: it lies in bytes that all are."""
    span = (rows - 1) * row_step + (cols - 1) * col_step + size
    if rows <= 0 or cols <= 0 or row_step < 0 or col_step < 0 or span > _SPARSE * rows * cols * size:
        return False
    return is_defined(memory_map(allocation), source, span)


@kernel_code
def follow_load(state, args, fact):
    """A tile takes the codes of the window it is loaded from; outside the valid region it is padding."""
    target, tensor, lists = args[fact[w.FACT_TARGET]], args[fact[w.FACT_TENSOR]], fact[w.FACT_LISTS]
    rows, cols = valid_size(args, lists, 2), max(valid_size(args, lists, 1), 0)
    window, outers = window_size(args, lists, 2), outer_count(args, lists)
    size, allocation = element_size(target), allocation_address(state, tensor)
    packed = is_nibble(load_word(tensor + 8 * layout.TENSOR_DTYPE))
    turned = fact[w.FACT_RULE] == w.LOAD_ROWS and args[lists + 3 * args[lists] + 3] != 0
    row_step, col_step = window_step(args, lists, tensor, 2) * size, window_step(args, lists, tensor, 1) * size
    of = load_word(tensor) + window_origin(args, lists, tensor) * size
    first_row = first_col = 0
    if fact[w.FACT_RULE] == w.LOAD_ROWS:
        axes = args[fact[w.FACT_TENSOR] + 1]
        first_row = args[fact[w.FACT_TENSOR] + 2] if axes == 2 else 0
        first_col = args[fact[w.FACT_TENSOR] + 1 + axes]
        window, outers = rows, 1
    else:
        filled = window * outers >= all_rows(target) and rows >= window
        if outers > 1 or not filled or cols < all_cols(target):
            _rest(state, target, args, lists, tensor, rows, cols, window, outers)
    if turned:
        rows, cols, row_step, col_step = cols, rows, col_step, row_step
    for outer in range(outers):
        offset_of = outer_offset(args, lists, tensor, outer)
        if offset_of >= 0:
            row = first_row + outer * window
            source = of + offset_of * size
            defined = packed or not is_followed(allocation)
            defined = defined or _box_is_defined(allocation, source, rows, row_step, cols, col_step, size)
            if packed or defined and _follow_at_once(state, fact, target, row, first_col, rows, cols):
                if packed:
                    for i in range(rows):
                        set_codes(map_of(state, target), address_of(target, row + i, 0), cols * size, 0)
                continue
            for i in range(rows):
                at = source + i * row_step
                follow_run(state, fact, target, row + i, first_col, at, col_step, cols, defined, allocation, tensor)


@kernel_code
def _follow_at_once(state, fact, target, row, col, rows, cols):
    """A box of defined memory that fills whole rows of the tile; False when it does not, or holds infinities."""
    dtype, width = dtype_of(target), cols * element_size(target)
    if col != 0 or row_pitch(target) != width:
        return False
    at = address_of(target, row, 0)
    if ranges_matter(state, fact, dtype) and not is_finite_run(at, rows * cols, dtype):
        return False
    set_codes(map_of(state, target), at, rows * width, 0)
    return True

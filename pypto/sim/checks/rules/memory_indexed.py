"""Rules of gathers from and scatters to global memory: codes of the elements, and their accesses."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from typing import Final

from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.accesses import allocation_address, begin_access, end_access
from pypto.sim.checks.boxes import box_repeat
from pypto.sim.checks.cell_log import end_cells, log_cell
from pypto.sim.checks.rules.memory import follow_run, is_followed, is_window, memory_map, taken_code
from pypto.sim.checks.rules.origins import used_code
from pypto.sim.checks.rules.tile import (
    address_of,
    code_at,
    element_size,
    map_of,
    part_is_defined,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import code_of, is_undefined, new_event, set_codes
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.kernels.gather_memory import bounded, count, gather_indices, offset
from pypto.sim.kernels.window import step
from pypto.sim.native import as_pointer, load_word

_INDEX_BYTES: Final = 4


@kernel_code
def _has_room(state):
    launch = as_pointer(state[w.LAUNCH])
    return launch[w.LOG_USED] < launch[w.LOG_CAPACITY]


@kernel_code
def _touched(state, tensor, allocation, at, size, count, pitch, fact, kind):
    """Log one access: ``count`` elements of ``size`` bytes, ``pitch`` bytes apart."""
    number, base = load_word(tensor + 8 * layout.TENSOR_ALLOCATION), load_word(allocation + 8 * w.GM_BASE)
    row = begin_access(state, kind, number, at - base, size, state[w.INSTRUCTION], fact[w.FACT_ROOT])
    box_repeat(as_pointer(row + 8 * w.ACCESS_BOX), count, pitch)
    end_access(state, row)


@kernel_code
def _first_row(state):
    """Number of the row of the log that the accesses of this instruction begin with."""
    return as_pointer(state[w.LAUNCH])[w.LOG_USED]


@kernel_code
def _touched_element(state, begun, tensor, allocation, at, size, fact, kind):
    """Log one element, as a cell of its block of memory."""
    number, base = load_word(tensor + 8 * layout.TENSOR_ALLOCATION), load_word(allocation + 8 * w.GM_BASE)
    log_cell(state, begun, kind, number, at - base, size, state[w.INSTRUCTION], fact[w.FACT_ROOT])


@kernel_code
def _index_code(state, fact, index, k, wide, in_tile):
    """Code of index ``k`` (row-major) of an index tile or tensor when it is undefined, else 0."""
    code = 0
    if in_tile:
        row, col, position = k // wide, k % wide, fact[w.FACT_SOURCE + fact[w.FACT_SOURCES] - 1]
        code = used_code(state, position, code_at(state, index, row, col), row, col, index)
    else:
        allocation = allocation_address(state, index)
        if is_followed(allocation) and not is_window(allocation):
            at = load_word(index) + offset(index, k, load_word(index + 8 * layout.TENSOR_RANK)) * _INDEX_BYTES
            code, position = code_of(memory_map(allocation), at, _INDEX_BYTES), fact[w.FACT_TENSOR] + 1
            code = taken_code(state, position, code, allocation, at, _INDEX_BYTES, index)
    return code if code != 0 and is_undefined(as_pointer(state[w.LAUNCH]), code) else 0


@kernel_code
def _index_is_defined(state, index, count, wide, in_tile):
    """Whether the first indices surely are defined."""
    if in_tile:
        return part_is_defined(state, index, (count + wide - 1) // max(wide, 1), wide)
    return not is_followed(allocation_address(state, index))


@kernel_code
def _addressed(state, fact, index, code, row, col):
    """A scatter goes where an undefined index says."""
    position = fact[w.FACT_SOURCE + fact[w.FACT_SOURCES] - 1]
    address = new_event(
        as_pointer(state[w.LAUNCH]), w.ADDRESSED, state[w.PROGRAM], state[w.INSTRUCTION], position, state[w.NODE],
        state[w.SEAT],
    )  # fmt: skip
    if address != 0:
        event = as_pointer(address)
        event[w.OR_ROW], event[w.OR_COL], event[w.OR_VALUE] = row, col, code


@kernel_code
def follow_fetch(state, args, fact):
    """mgather: one row or element of a tensor per index, from number RESUME on and as far as the log has room."""
    target, tensor, index = args[fact[w.FACT_TARGET]], args[fact[w.FACT_TENSOR]], args[fact[w.FACT_TENSOR] + 1]
    in_tile = fact[w.FACT_SOURCES] > 0
    rows, cols = valid_rows(target), valid_cols(target)
    by_element, mode = args[fact[w.FACT_EXTRA]] == 1, args[fact[w.FACT_EXTRA] + 1]
    wide = valid_cols(index) if in_tile else cols
    rank = load_word(tensor + 8 * layout.TENSOR_RANK)
    axes = rank if by_element else rank - 1
    capacity, size, run = count(tensor, axes), element_size(target), 1 if by_element else cols
    pitch = size if by_element else size * step(tensor, rank - 1)
    allocation = allocation_address(state, tensor)
    follows = state[w.ASKED] & w.UNDEFINED != 0
    tracked = load_word(allocation + 8 * w.GM_TRACKED) != 0 and state[w.ASKED] & w.ORDER != 0
    cells = by_element and tracked
    first, begun, work = state[w.RESUME], _first_row(state), rows * cols if by_element else rows
    state[w.RESUME] = 0
    sure = not follows or _index_is_defined(state, index, work, wide, in_tile)
    for k in range(first, work):
        if tracked and not _has_room(state):
            state[w.RESUME] = k
            break
        at = bounded(gather_indices(index, k, wide, in_tile), capacity, mode)
        row, col = (k // cols, k % cols) if by_element else (k, 0)
        unknown = 0 if sure else _index_code(state, fact, index, k, wide, in_tile)
        if at < 0 or unknown != 0:
            if follows:
                set_codes(map_of(state, target), address_of(target, row, col), run * size, unknown)
            continue
        source = load_word(tensor) + offset(tensor, at, axes) * size
        if follows:
            defined = not is_followed(allocation)
            follow_run(state, fact, target, row, col, source, pitch, run, defined, allocation, tensor)
        if cells:
            _touched_element(state, begun, tensor, allocation, source, size, fact, 0)
        elif tracked:
            _touched(state, tensor, allocation, source, size, run, pitch, fact, 0)
    if cells:
        end_cells(state, begun)


@kernel_code
def follow_spread(state, args, fact):
    """mscatter: one element of a tensor per index, from number RESUME on and as far as the log has room."""
    tensor, source, index = args[fact[w.FACT_TENSOR]], args[fact[w.FACT_SOURCE]], args[fact[w.FACT_SOURCE + 1]]
    rows, cols = valid_rows(source), valid_cols(source)
    rank, size = load_word(tensor + 8 * layout.TENSOR_RANK), element_size(source)
    allocation = allocation_address(state, tensor)
    follows = state[w.ASKED] & w.UNDEFINED != 0 and is_followed(allocation)
    tracked = load_word(allocation + 8 * w.GM_TRACKED) != 0 and state[w.ASKED] & w.ORDER != 0
    cells = tracked
    first, begun = state[w.RESUME], _first_row(state)
    state[w.RESUME] = 0
    sure = state[w.ASKED] & w.UNDEFINED == 0 or _index_is_defined(state, index, rows * cols, cols, True)
    for k in range(first, rows * cols):
        if tracked and not _has_room(state):
            state[w.RESUME] = k
            break
        unknown = 0 if sure else _index_code(state, fact, index, k, cols, True)
        if unknown != 0:
            _addressed(state, fact, index, unknown, k // cols, k % cols)
        at = load_word(tensor) + offset(tensor, gather_indices(index, k, cols, True), rank) * size
        if follows:
            code = code_at(state, source, k // cols, k % cols)
            code = used_code(state, fact[w.FACT_SOURCE], code, k // cols, k % cols, source)
            code = 0 if is_window(allocation) else code
            set_codes(memory_map(allocation), at, size, code)
        if cells:
            _touched_element(state, begun, tensor, allocation, at, size, fact, w.WRITES)
        elif tracked:
            _touched(state, tensor, allocation, at, size, 1, size, fact, w.WRITES)
    if cells:
        end_cells(state, begun)

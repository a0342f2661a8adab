"""The rule of windows that are stored: tstore, and what an atomic addition meets."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.accesses import allocation_address
from pypto.sim.checks.rules.memory import is_followed, is_window, memory_map, note_bytes
from pypto.sim.checks.rules.origins import settle_run, used_code
from pypto.sim.checks.rules.tile import (
    address_of,
    dtype_of,
    element_size,
    map_of,
    part_is_defined,
    ranges_matter,
    row_pitch,
)
from pypto.sim.checks.shadow import code_of, is_defined, is_finite_run, new_event, same_run, set_codes, stronger
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.kernels.window import (
    outer_count,
    outer_offset,
    valid_size,
    window_origin,
    window_size,
    window_step,
)
from pypto.sim.native import as_pointer, load_int8, load_word
from pypto.sim.scalars import element_bytes, is_nibble


@kernel_code
def _store_run(state, fact, source, row, to, step, length, tensor):
    """Codes of one row of a store to ``length`` elements, ``step`` bytes apart from address ``to``."""
    adds, allocation = fact[w.FACT_FLAGS] & w.ADDS != 0, allocation_address(state, tensor)
    dtype, map_, of_map = load_word(tensor + 8 * layout.TENSOR_DTYPE), memory_map(allocation), map_of(state, source)
    size, of_size, of = element_bytes(dtype), element_size(source), address_of(source, row, 0)
    converts = dtype != dtype_of(source) and ranges_matter(state, fact, dtype)
    if is_defined(of_map, of, length * of_size) and step == size:
        if (not adds or is_defined(map_, to, length * size)) and (not converts or is_finite_run(to, length, dtype)):
            if not adds:
                set_codes(map_, to, length * size, 0)
            return
    if is_window(allocation):
        for j in range(length):
            set_codes(map_, to + j * step, size, 0)  # zero until it is written, so an addition has something to meet
        return
    j = 0
    while j < length:
        code, at, count = code_of(of_map, of + j * of_size, of_size), to + j * step, 1
        if step == size and not adds:
            count = max(same_run(of_map, of + j * of_size, (length - j) * of_size) // of_size, 1)
        if code != 0:
            code = used_code(state, fact[w.FACT_SOURCE], code, row, j, source)
        if adds:
            old = code_of(map_, at, size)
            if old == w.UNWRITTEN:
                _added(state, fact, at - load_word(allocation + 8 * w.GM_BASE), size, tensor)
                old = 0
            code = stronger(as_pointer(state[w.LAUNCH]), code, old)
        if converts:
            settle_run(state, fact, map_, code, at, size, dtype, row, j, count)
        else:
            set_codes(map_, at, count * size, code)
        j += count


@kernel_code
def _added(state, fact, low, size, tensor):
    """An atomic addition has met memory that was never written."""
    launch = as_pointer(state[w.LAUNCH])
    address = new_event(
        launch, w.ADDED, state[w.PROGRAM], state[w.INSTRUCTION], fact[w.FACT_TENSOR], state[w.NODE], state[w.SEAT]
    )
    if address != 0:
        note_bytes(as_pointer(address), allocation_address(state, tensor), tensor, low, size)
        return
    for k in range(launch[w.EVENT_COUNT]):
        event = as_pointer(launch[w.EVENTS] + 8 * w.ORIGIN_WORDS * k)
        if (
            event[w.OR_KIND] == w.ADDED
            and event[w.OR_INSTRUCTION] == state[w.INSTRUCTION]
            and event[w.OR_PROGRAM] == state[w.PROGRAM]
        ):
            if event[w.OR_NODE] == state[w.NODE]:
                note_bytes(event, allocation_address(state, tensor), tensor, low, size)


@kernel_code
def follow_store(state, args, fact):
    """A window of a tensor takes the codes of the tile that is stored there."""
    source, tensor, lists = args[fact[w.FACT_SOURCE]], args[fact[w.FACT_TENSOR]], fact[w.FACT_LISTS]
    dtype, allocation = load_word(tensor + 8 * layout.TENSOR_DTYPE), allocation_address(state, tensor)
    if not is_followed(allocation) or is_nibble(dtype):
        return
    size = element_bytes(dtype)
    rows, cols = valid_size(args, lists, 2), valid_size(args, lists, 1)
    window, outers = window_size(args, lists, 2), outer_count(args, lists)
    row_step, col_step = window_step(args, lists, tensor, 2) * size, window_step(args, lists, tensor, 1) * size
    to = load_word(tensor) + window_origin(args, lists, tensor) * size
    if outers == 1 and row_step == cols * size and col_step == size and dtype == dtype_of(source):
        if fact[w.FACT_FLAGS] & w.ADDS == 0 and part_is_defined(state, source, rows, cols):
            set_codes(memory_map(allocation), to, rows * row_step, 0)
            return
    for outer in range(outers):
        offset_of = outer_offset(args, lists, tensor, outer)
        if offset_of >= 0:
            for i in range(rows):
                at = to + offset_of * size + i * row_step
                _store_run(state, fact, source, outer * window + i, at, col_step, cols, tensor)


@kernel_code
def tile_checksum(source, rows, cols):
    """A number that equal tiles share."""
    total, size = 1, element_size(source)
    for i in range(rows):
        at = load_word(source) + i * row_pitch(source)
        words = cols * size >> 3
        for k in range(words):
            total = total * 31 + load_word(at + 8 * k)
        for k in range(8 * words, cols * size):
            total = total * 31 + load_int8(at + k)
    return total | 1

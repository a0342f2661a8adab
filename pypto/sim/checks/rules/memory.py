"""Global memory as the rules see it: the codes of its bytes, and the codes of elements that are loaded."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.rules.origins import name_origin, settle_run
from pypto.sim.checks.rules.tile import address_of, dtype_of, element_size, map_of, ranges_matter
from pypto.sim.checks.shadow import code_of, is_defined, is_finite_run, same_run, set_codes
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_word


@kernel_code
def memory_map(allocation_address):
    """The map (shadow.py) of an allocation."""
    return allocation_address + 8 * w.GM_MAP


@kernel_code
def is_followed(allocation_address):
    """Whether the bytes of an allocation have codes; all others are defined."""
    return load_word(allocation_address + 8 * w.GM_FOLLOWED) != 0


@kernel_code
def is_window(allocation_address):
    """Whether an allocation is seen by other ranks, for whom codes of this one mean nothing."""
    return load_word(allocation_address + 8 * w.GM_STRIDE) != 0


@kernel_code
def taken_code(state, operand, code, allocation, address, size, tensor):
    """Code that an element loaded through ``operand`` keeps; what nobody has written is named here, where its tensor
    is known."""
    if code != w.UNWRITTEN:
        return code
    result = name_origin(state, w.FROM_UNWRITTEN, operand, 0, 0, 0)
    origin = as_pointer(as_pointer(state[w.LAUNCH])[w.ORIGINS] + 8 * w.ORIGIN_WORDS * (result - w.FIRST_ORIGIN))
    at = address - load_word(allocation + 8 * w.GM_BASE)
    if is_window(allocation):
        at = at % load_word(allocation + 8 * w.GM_STRIDE)  # the same place in the window of another rank
    note_bytes(origin, allocation, tensor, at, size)
    return result


@kernel_code
def note_bytes(origin, allocation, tensor, at, size):
    """Widen what ``origin`` (or an event) says about memory by ``size`` bytes from ``at`` on of the allocation."""
    number, first = load_word(tensor + 8 * layout.TENSOR_ALLOCATION), origin[w.OR_HIGH] == 0
    if first:
        origin[w.OR_ALLOCATION], origin[w.OR_LOW] = number, at
    if origin[w.OR_ALLOCATION] != number:
        return  # another tensor in the same parameter: the first one is shown
    rest = at
    for axis in range(w.GM_AXES):
        pitch, box = load_word(allocation + 8 * (w.GM_PITCHES + axis)), w.OR_BOX + 2 * axis
        if pitch != 0:
            index = rest // pitch
            rest -= index * pitch
            origin[box] = index if first else min(origin[box], index)
            origin[box + 1] = max(origin[box + 1], index + 1)
    origin[w.OR_LOW], origin[w.OR_HIGH] = min(origin[w.OR_LOW], at), max(origin[w.OR_HIGH], at + size)
    origin[w.OR_COL] = rest if first else min(origin[w.OR_COL], rest)
    origin[w.OR_COLS] = max(origin[w.OR_COLS], rest + size)


@kernel_code
def follow_run(state, fact, target, row, col, source, step, length, defined, allocation, tensor):
    """Codes of ``length`` elements from (row, col) on, loaded ``step`` bytes apart from address ``source`` on.

    ``defined``: whether all of them are known to be defined.
    """
    size, dtype, at = element_size(target), dtype_of(target), address_of(target, row, col)
    if not defined and step == size:
        defined = is_defined(memory_map(allocation), source, length * size)
    if defined and (not ranges_matter(state, fact, dtype) or is_finite_run(at, length, dtype)):
        set_codes(map_of(state, target), at, length * size, 0)
        return
    map_, of_map = map_of(state, target), memory_map(allocation)
    j = 0
    while j < length:
        first, count, code = source + j * step, 1, 0
        if defined:
            count = length
        else:
            if step == size:
                count = max(same_run(of_map, first, (length - j) * size) // size, 1)
            code = taken_code(state, fact[w.FACT_TENSOR], code_of(of_map, first, size), allocation, first, size, tensor)
            if code != 0 and count > 1:
                last = first + (count - 1) * step
                taken_code(state, fact[w.FACT_TENSOR], code_of(of_map, last, size), allocation, last, size, tensor)
        if code == 0:
            settle_run(state, fact, map_, 0, at + j * size, size, dtype, row, col + j, count)
        else:
            set_codes(map_, at + j * size, count * size, code)
        j += count

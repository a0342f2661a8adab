"""Rules of gathers between tiles. The bounds of flat ones are checked here."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.ir import dtype as dtypes
from pypto.sim.checks import words as w
from pypto.sim.checks.rules.origins import used_code
from pypto.sim.checks.rules.tile import (
    address_of,
    all_cols,
    all_rows,
    code_at,
    data_of,
    dtype_of,
    element_size,
    map_of,
    part_is_defined,
    row_pitch,
    set_code,
    set_part,
    set_rest,
    set_untouched,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import BLOCK, is_undefined, new_event, set_codes, stronger
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_int16, load_int32

_INT16, _UINT16 = dtypes.INT16.code(), dtypes.UINT16.code()


@kernel_code
def _is_short(tile):
    dtype = dtype_of(tile)
    return dtype == _INT16 or dtype == _UINT16


@kernel_code
def index_at(tile, i, j):
    """Element of an index tile."""
    at = address_of(tile, i, j)
    return load_int16(at) & 0xFFFF if _is_short(tile) else load_int32(at)


@kernel_code
def _all_inside(tile, rows, cols, limit):
    """Whether all indices of a tile are in 0..limit-1: neither they nor what is left to the last one is negative."""
    found = 0
    for i in range(rows):
        at = address_of(tile, i, 0)
        if _is_short(tile):
            for j in range(cols):
                found |= limit - 1 - (load_int16(at + 2 * j) & 0xFFFF)
        else:
            for j in range(cols):
                index = load_int32(at + 4 * j)
                found |= index | limit - 1 - index
    return found >= 0


@kernel_code
def _outside(state, operand, value, limit, row, col):
    address = new_event(
        as_pointer(state[w.LAUNCH]), w.INDEX_OUTSIDE, state[w.PROGRAM], state[w.INSTRUCTION], operand, state[w.NODE],
        state[w.SEAT],
    )  # fmt: skip
    if address != 0:
        event = as_pointer(address)
        event[w.OR_VALUE], event[w.OR_LIMIT], event[w.OR_ROW], event[w.OR_COL] = value, limit, row, col


@kernel_code
def _read_code(state, fact, source, row, col):
    """Code of the element of the source that is taken."""
    return used_code(state, fact[w.FACT_SOURCE], code_at(state, source, row, col), row, col, source)


@kernel_code
def _picked(state, fact, code_of_index, i, j, index, code):
    """Code of an element that is gathered: its own, or that of its index."""
    launch, position = as_pointer(state[w.LAUNCH]), fact[w.FACT_SOURCE + 1]
    return stronger(launch, used_code(state, position, code_of_index, i, j, index), code)


@kernel_code
def follow_gather(state, args, fact):
    """tgather: dst[i, j] = src.flat[index[i, j]]; the bounds are checked here because the kernel reads zero."""
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]]
    index, position = args[fact[w.FACT_SOURCE + 1]], fact[w.FACT_SOURCE + 1]
    cols = all_cols(source)
    limit = all_rows(source) * cols
    rows, width = valid_rows(target), valid_cols(target)
    follows = state[w.ASKED] & w.UNDEFINED != 0
    defined = not follows or (
        part_is_defined(state, source, all_rows(source), cols) and part_is_defined(state, index, rows, width)
    )
    if follows and defined:
        set_part(state, target, rows, width, 0)
    if defined and _all_inside(index, rows, width, limit):
        return
    for i in range(rows):
        for j in range(width):
            at = index_at(index, i, j)
            of_index = 0 if defined else code_at(state, index, i, j)
            inside = at >= 0 and at < limit
            if not inside and (of_index == 0 or not is_undefined(as_pointer(state[w.LAUNCH]), of_index)):
                _outside(state, position, at, limit, i, j)
            if not defined:
                of_source = _read_code(state, fact, source, at // cols, at % cols) if inside else 0
                set_code(state, target, i, j, _picked(state, fact, of_index, i, j, index, of_source))


@kernel_code
def follow_gather_axis(state, args, fact):
    """tgather_axis: dst[i, j] = src[i, index[i, j]] (axis 1) or src[index[i, j], j] (axis 0)."""
    target, source, index = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]], args[fact[w.FACT_SOURCE + 1]]
    rows, cols, by_row = valid_rows(target), valid_cols(target), args[fact[w.FACT_EXTRA]] == 1
    defined = part_is_defined(state, source, all_rows(source), all_cols(source))
    if defined and part_is_defined(state, index, min(rows, all_rows(index)), min(cols, all_cols(index))):
        set_part(state, target, rows, cols, 0)
    else:
        for i in range(rows):
            for j in range(cols):
                at = index_at(index, i, j)
                code = _read_code(state, fact, source, i if by_row else at, at if by_row else j)
                code = _picked(state, fact, code_at(state, index, i, j), i, j, index, code)
                set_code(state, target, i, j, code)
    set_rest(state, target, rows, cols)


@kernel_code
def _block_code(state, fact, source, start):
    """Strongest code of the 32 bytes from byte ``start`` of the flat source on."""
    launch, result = as_pointer(state[w.LAUNCH]), 0
    size, cols = element_size(source), all_cols(source)
    for k in range(start // size, (start + BLOCK - 1) // size + 1):
        result = stronger(launch, result, _read_code(state, fact, source, k // cols, k % cols))
    return result


@kernel_code
def follow_gather_blocks(state, args, fact):
    """tgatherb: block b of row i is the 32 bytes at byte offset[i, b] of the flat source."""
    target, source, index = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]], args[fact[w.FACT_SOURCE + 1]]
    rows, count, map_, pitch = valid_rows(index), valid_cols(index), map_of(state, target), row_pitch(target)
    defined = part_is_defined(state, source, all_rows(source), all_cols(source))
    if defined and part_is_defined(state, index, rows, count):
        set_part(state, target, rows, count * BLOCK // element_size(target), 0)
    else:
        for i in range(rows):
            for b in range(count):
                code = _block_code(state, fact, source, index_at(index, i, b))
                code = _picked(state, fact, code_at(state, index, i, b), i, b, index, code)
                set_codes(map_, data_of(target) + i * pitch + b * BLOCK, BLOCK, code)
    set_untouched(state, target, rows, count * BLOCK // element_size(target), w.PADDING)

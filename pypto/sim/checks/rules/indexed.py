"""Rules of gathers and scatters between tiles, whose indices are checked here."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.ir import dtype as dtypes
from pypto.sim.checks import words as w
from pypto.sim.checks.rules.elements import code_of_sources
from pypto.sim.checks.rules.origins import used_code
from pypto.sim.checks.rules.tile import (
    address_of,
    all_cols,
    all_rows,
    code_at,
    dtype_of,
    part_is_defined,
    set_code,
    set_part,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import is_undefined, new_event, stronger
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_int16, load_int32

_INT16, _UINT16 = dtypes.INT16.code(), dtypes.UINT16.code()


@kernel_code
def _is_short(tile):
    dtype = dtype_of(tile)
    return dtype == _INT16 or dtype == _UINT16


@kernel_code
def _index(tile, i, j):
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
            at, code = _index(index, i, j), 0
            if at < 0 or at >= limit:
                if defined:
                    _outside(state, position, at, limit, i, j)
            elif not defined:
                code = stronger(
                    as_pointer(state[w.LAUNCH]),
                    code_at(state, index, i, j),
                    code_at(state, source, at // cols, at % cols),
                )
                code = used_code(state, position, code, i, j, index)
            if not defined:
                set_code(state, target, i, j, code)


@kernel_code
def follow_scatter(state, args, fact):
    """Scatters keep what they do not hit; an undefined source or index is used."""
    target = args[fact[w.FACT_TARGET]]
    found = code_of_sources(state, args, fact, target)
    if found != 0 and is_undefined(as_pointer(state[w.LAUNCH]), found):
        set_part(state, target, all_rows(target), all_cols(target), found)

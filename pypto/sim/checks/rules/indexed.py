"""Rules of gathers and scatters between tiles, whose indices are checked here."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.ir import dtype as dtypes
from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.rules.origins import used_code
from pypto.sim.checks.rules.tile import (
    code_at,
    element_size,
    is_clean_part,
    row_code,
    row_pitch,
    set_code,
    shadow_of,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import fill_region, is_undefined, new_event, stronger
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_int8, load_int32, load_word

_INT16, _UINT16 = dtypes.INT16.code(), dtypes.UINT16.code()


@kernel_code
def _index(tile, i, j):
    """Element of an index tile."""
    dtype, at = load_word(tile + 8 * layout.TILE_DTYPE), load_word(tile) + i * row_pitch(tile)
    if dtype == _INT16 or dtype == _UINT16:
        low = load_int8(at + 2 * j) & 0xFF
        return low | load_int8(at + 2 * j + 1) << 8
    return load_int32(at + 4 * j)


@kernel_code
def _outside(state, instruction, operand, value, limit, row, col):
    address = new_event(
        as_pointer(state[w.LAUNCH]), w.INDEX_OUTSIDE, state[w.PROGRAM], instruction, operand, state[w.NODE],
        state[w.SEAT],
    )  # fmt: skip
    if address != 0:
        event = as_pointer(address)
        event[w.OR_VALUE], event[w.OR_LIMIT], event[w.OR_ROW], event[w.OR_COL] = value, limit, row, col


@kernel_code
def follow_gather(state, args, fact, instruction):
    """tgather: dst[i, j] = src.flat[index[i, j]]; the bounds are checked here because the kernel reads zero."""
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]]
    index, position = args[fact[w.FACT_SOURCE + 1]], fact[w.FACT_SOURCE + 1]
    cols = load_word(source + 8 * layout.TILE_COLS)
    limit = load_word(source + 8 * layout.TILE_ROWS) * cols
    rows, width = valid_rows(target), valid_cols(target)
    follows = state[w.ASKED] & w.UNDEFINED != 0
    clean = not follows or (
        is_clean_part(state, source, load_word(source + 8 * layout.TILE_ROWS), cols)
        and is_clean_part(state, index, rows, width)
    )
    for i in range(rows):
        for j in range(width):
            at, code = _index(index, i, j), 0
            if at < 0 or at >= limit:
                if clean:
                    _outside(state, instruction, position, at, limit, i, j)
            elif not clean:
                code = stronger(
                    as_pointer(state[w.LAUNCH]),
                    code_at(state, index, i, j),
                    code_at(state, source, at // cols, at % cols),
                )
                code = used_code(state, instruction, position, code, i, j, index)
            if follows:
                set_code(state, target, i, j, code)


@kernel_code
def follow_scatter(state, args, fact, instruction):
    """Scatters keep what they do not hit: an undefined source or index is used; indices of the flat "
    "form are checked."""
    target, launch, found = args[fact[w.FACT_TARGET]], as_pointer(state[w.LAUNCH]), 0
    for k in range(fact[w.FACT_SOURCES]):
        tile = args[fact[w.FACT_SOURCE + k]]
        if tile != target:
            for i in range(valid_rows(tile)):
                code, col = row_code(state, tile, i, valid_cols(tile))
                if code != 0 and is_undefined(launch, code):
                    found = stronger(
                        launch, found, used_code(state, instruction, fact[w.FACT_SOURCE + k], code, i, col, tile)
                    )
    if found != 0:
        width = load_word(target + 8 * layout.TILE_COLS) * element_size(target)
        fill_region(shadow_of(state, target), row_pitch(target), load_word(target + 8 * layout.TILE_ROWS), width, found)

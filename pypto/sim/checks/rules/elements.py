"""Rules of instructions that compute every element of the destination from elements of the sources."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.rules.origins import settle, used_code
from pypto.sim.checks.rules.tile import (
    code_at,
    col_code,
    element_size,
    is_clean_part,
    row_code,
    row_pitch,
    set_rest,
    shadow_of,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import fill, fill_region, is_finite_run, is_float, is_undefined, stronger
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_int8, load_word

_BIT_OF_BYTE = 8


@kernel_code
def _element(state, args, fact, instruction, i, j):
    """Code that an element of the result takes from the sources of the instruction."""
    launch, rule, result = as_pointer(state[w.LAUNCH]), fact[w.FACT_RULE], 0
    for k in range(fact[w.FACT_SOURCES]):
        position = fact[w.FACT_SOURCE + k]
        tile = args[position]
        row, col, code = i, j, 0
        vector = k == fact[w.FACT_SOURCES] - 1
        if rule == w.ROW_EXPAND or rule == w.ROW_COMBINE and vector:
            col = 0
        elif rule == w.COL_EXPAND or rule == w.COL_COMBINE and vector:
            row = 0
        if rule == w.ROW_REDUCE:
            code, col = row_code(state, tile, i, valid_cols(tile))
        elif rule == w.COL_REDUCE:
            code, row = col_code(state, tile, j, valid_rows(tile))
        elif rule == w.PART and (i >= valid_rows(tile) or j >= valid_cols(tile)):
            code = 0
        elif rule == w.SELECT and not _selects(args[fact[w.FACT_EXTRA]], i, j, k == 0):
            code = 0
        else:
            code = code_at(state, tile, row, col)
        if code != 0:
            code = used_code(state, instruction, position, code, row, col, tile)
            result = stronger(launch, result, code)
    return result


@kernel_code
def _selects(mask, i, j, first):
    """Whether the packed predicate picks the first source at (i, j)."""
    byte = load_int8(load_word(mask) + i * row_pitch(mask) + j // _BIT_OF_BYTE)
    return (byte >> (j % _BIT_OF_BYTE) & 1 != 0) == first


@kernel_code
def _sources_are_clean(state, args, fact, rows, cols):
    rule = fact[w.FACT_RULE]
    for k in range(fact[w.FACT_SOURCES]):
        tile = args[fact[w.FACT_SOURCE + k]]
        vector = k == fact[w.FACT_SOURCES] - 1
        r, c = rows, cols
        if rule == w.ROW_EXPAND or rule == w.ROW_COMBINE and vector:
            c = 1
        elif rule == w.COL_EXPAND or rule == w.COL_COMBINE and vector:
            r = 1
        elif rule == w.ROW_REDUCE or rule == w.COL_REDUCE or rule == w.PART:
            r, c = valid_rows(tile), valid_cols(tile)
        r = min(r, load_word(tile + 8 * layout.TILE_ROWS))
        c = min(c, load_word(tile + 8 * layout.TILE_COLS))
        if not is_clean_part(state, tile, r, c):
            return False
    return True


@kernel_code
def follow_elements(state, args, fact, instruction):
    """Rules that work on the valid region of the destination, element by element."""
    target = args[fact[w.FACT_TARGET]]
    rows, cols = valid_rows(target), valid_cols(target)
    if rows <= 0 or cols <= 0:
        return
    shadow, pitch, size = shadow_of(state, target), row_pitch(target), element_size(target)
    dtype, data = load_word(target + 8 * layout.TILE_DTYPE), load_word(target)
    looks = is_float(dtype) and state[w.ASKED] & w.PRECISION != 0
    clean = _sources_are_clean(state, args, fact, rows, cols)
    if clean and pitch == cols * size and (not looks or is_finite_run(data, rows * cols, dtype)):
        fill(shadow, rows * pitch, 0)
        set_rest(state, target, rows, cols)
        return
    for i in range(rows):
        finite = not looks or is_finite_run(data + i * pitch, cols, dtype)
        if clean and finite:
            fill(shadow + i * pitch, cols * size, 0)
            continue
        for j in range(cols):
            code = 0 if clean else _element(state, args, fact, instruction, i, j)
            at = i * pitch + j * size
            fill(shadow + at, size, settle(state, fact, instruction, code, data + at, dtype, i, j))
    set_rest(state, target, rows, cols)


@kernel_code
def follow_whole(state, args, fact, instruction):
    """Every element may depend on every valid element of every source."""
    launch, found = as_pointer(state[w.LAUNCH]), 0
    for k in range(fact[w.FACT_SOURCES]):
        tile = args[fact[w.FACT_SOURCE + k]]
        if not is_clean_part(state, tile, valid_rows(tile), valid_cols(tile)):
            for i in range(valid_rows(tile)):
                code, col = row_code(state, tile, i, valid_cols(tile))
                if code != 0 and is_undefined(launch, code):
                    found = stronger(
                        launch, found, used_code(state, instruction, fact[w.FACT_SOURCE + k], code, i, col, tile)
                    )
    for position in (fact[w.FACT_TARGET], fact[w.FACT_SECOND]):
        if position != 0:
            target = args[position]
            width = load_word(target + 8 * layout.TILE_COLS) * element_size(target)
            fill_region(
                shadow_of(state, target), row_pitch(target), load_word(target + 8 * layout.TILE_ROWS), width, found
            )

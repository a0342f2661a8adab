"""Rules of instructions that compute every element of the destination from elements of the sources.

When all they read is defined the result is, apart from infinities. Otherwise a row is worked through in runs in which
every source has one code.
"""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from typing import Final

from pypto.sim.checks import words as w
from pypto.sim.checks.rules.origins import settle, settle_run, used_code
from pypto.sim.checks.rules.tile import (
    address_of,
    all_cols,
    all_rows,
    code_at,
    col_code,
    data_of,
    dtype_of,
    element_size,
    map_of,
    part_is_defined,
    ranges_matter,
    row_code,
    row_pitch,
    set_part,
    set_rest,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import (
    code_of,
    code_of_bit,
    finiteness,
    is_finite_run,
    is_float,
    is_undefined,
    region_is_defined,
    same_run,
    set_codes,
    stronger,
)
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_int8, load_word

_BIT_OF_BYTE: Final = 8


@kernel_code
def _selects(mask, i, j, first):
    """Whether the packed predicate picks the first source at (i, j)."""
    byte = load_int8(load_word(mask) + i * row_pitch(mask) + j // _BIT_OF_BYTE)
    return (byte >> (j % _BIT_OF_BYTE) & 1 != 0) == first


@kernel_code
def _mask_code(state, args, fact, i, j):
    """Code that the predicate gives to what it selects."""
    position = fact[w.FACT_EXTRA]
    mask, byte = args[position], j // _BIT_OF_BYTE
    code = code_of(map_of(state, mask), data_of(mask) + i * row_pitch(mask) + byte, 1)
    if code == 0:
        return code
    code = code_of_bit(as_pointer(state[w.LAUNCH]), code, j % _BIT_OF_BYTE)
    return code if code == 0 else used_code(state, position, code, i, byte // element_size(mask), mask)


@kernel_code
def _mask_is_defined(state, mask, rows, cols):
    width = min((cols + _BIT_OF_BYTE - 1) // _BIT_OF_BYTE, row_pitch(mask))
    return region_is_defined(map_of(state, mask), data_of(mask), row_pitch(mask), min(rows, all_rows(mask)), width)


@kernel_code
def _one_column(fact, k):
    """Whether source ``k`` gives every column the element of its column 0."""
    rule, last = fact[w.FACT_RULE], k == fact[w.FACT_SOURCES] - 1
    return rule == w.ROW_EXPAND or rule == w.ROW_COMBINE and last


@kernel_code
def _one_row(fact, k):
    """Whether source ``k`` gives every row the element of its row 0."""
    rule, last = fact[w.FACT_RULE], k == fact[w.FACT_SOURCES] - 1
    return rule == w.COL_EXPAND or rule == w.COL_COMBINE and last


@kernel_code
def _element(state, args, fact, i, j):
    """Code that an element of the result takes from the sources of the instruction."""
    launch, rule, result = as_pointer(state[w.LAUNCH]), fact[w.FACT_RULE], 0
    if rule == w.SELECT:
        result = _mask_code(state, args, fact, i, j)
    for k in range(fact[w.FACT_SOURCES]):
        position = fact[w.FACT_SOURCE + k]
        tile = args[position]
        row, col, code = 0 if _one_row(fact, k) else i, 0 if _one_column(fact, k) else j, 0
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
            code = used_code(state, position, code, row, col, tile)
            result = stronger(launch, result, code)
    return result


@kernel_code
def _run_length(state, args, fact, i, j, most):
    """Elements of the result from (i, j) on, at most ``most``, for which every source has one code; 0: not known."""
    rule = fact[w.FACT_RULE]
    if rule == w.ROW_REDUCE or rule == w.COL_REDUCE or rule == w.PART or rule == w.SELECT:
        return 0
    for k in range(fact[w.FACT_SOURCES]):
        tile, row = args[fact[w.FACT_SOURCE + k]], 0 if _one_row(fact, k) else i
        if not _one_column(fact, k):
            if row >= all_rows(tile) or j >= all_cols(tile):
                return 0
            size, count = element_size(tile), min(most, all_cols(tile) - j)
            most = same_run(map_of(state, tile), address_of(tile, row, j), count * size) // size
    return most


@kernel_code
def _follow_run(state, args, fact, target, i, j, most):
    """Codes of elements from (i, j) on; returns how many of the next ``most``."""
    dtype, size = dtype_of(target), element_size(target)
    map_, data = map_of(state, target), address_of(target, i, j)
    count, code = max(_run_length(state, args, fact, i, j, most), 1), _element(state, args, fact, i, j)
    settle_run(state, fact, map_, code, data, size, dtype, i, j, count)
    return count


@kernel_code
def _sources_are_defined(state, args, fact, rows, cols):
    rule = fact[w.FACT_RULE]
    if rule == w.SELECT and not _mask_is_defined(state, args[fact[w.FACT_EXTRA]], rows, cols):
        return False
    for k in range(fact[w.FACT_SOURCES]):
        tile = args[fact[w.FACT_SOURCE + k]]
        r, c = 1 if _one_row(fact, k) else rows, 1 if _one_column(fact, k) else cols
        if rule == w.ROW_REDUCE or rule == w.COL_REDUCE or rule == w.PART:
            r, c = valid_rows(tile), valid_cols(tile)
        if not part_is_defined(state, tile, min(r, all_rows(tile)), min(c, all_cols(tile))):
            return False
    return True


@kernel_code
def follow_elements(state, args, fact):
    """Rules that work on the valid region of the destination."""
    target = args[fact[w.FACT_TARGET]]
    rows, cols = valid_rows(target), valid_cols(target)
    if rows <= 0 or cols <= 0:
        return
    pitch, size, dtype, data = row_pitch(target), element_size(target), dtype_of(target), data_of(target)
    looks = ranges_matter(state, fact, dtype)
    defined = _sources_are_defined(state, args, fact, rows, cols)
    whole = pitch == cols * size
    if defined and (not looks or whole and is_finite_run(data, rows * cols, dtype)):
        set_part(state, target, rows, cols, 0)
    else:
        for i in range(rows):
            if defined and is_finite_run(data + i * pitch, cols, dtype):
                set_codes(map_of(state, target), data + i * pitch, cols * size, 0)
                continue
            j = 0
            while j < cols:
                j += _follow_run(state, args, fact, target, i, j, cols - j)
    set_rest(state, target, rows, cols)


@kernel_code
def follow_whole(state, args, fact):
    """Every element may depend on every valid element of every source."""
    found = code_of_sources(state, args, fact, 0)
    undefined = found != 0 and is_undefined(as_pointer(state[w.LAUNCH]), found)
    for position in (fact[w.FACT_TARGET], fact[w.FACT_SECOND]):
        if position != 0:
            target = args[position]
            set_part(state, target, all_rows(target), all_cols(target), found if undefined else 0)
            if found != 0 and not undefined and is_float(dtype_of(target)):
                for i in range(valid_rows(target)):
                    mark_infinities(state, fact, target, i, 0, valid_cols(target), found)


@kernel_code
def mark_infinities(state, fact, target, row, first, last, code):
    """The sources hold infinities or NaN: where they have gone to in columns [first, last), they keep their code."""
    dtype, size = dtype_of(target), element_size(target)
    if is_finite_run(address_of(target, row, first), last - first, dtype):
        return
    for j in range(first, last):
        at = address_of(target, row, j)
        if finiteness(at, dtype) != 0:
            set_codes(map_of(state, target), at, size, settle(state, fact, code, at, dtype, row, j))


@kernel_code
def code_of_sources(state, args, fact, except_for):
    """Strongest code in the valid part of all sources but the tile ``except_for``."""
    launch, found = as_pointer(state[w.LAUNCH]), 0
    for k in range(fact[w.FACT_SOURCES]):
        position = fact[w.FACT_SOURCE + k]
        tile = args[position]
        if tile != except_for and not part_is_defined(state, tile, valid_rows(tile), valid_cols(tile)):
            for i in range(valid_rows(tile)):
                code, col = row_code(state, tile, i, valid_cols(tile))
                if code != 0:
                    found = stronger(launch, found, used_code(state, position, code, i, col, tile))
    return found

"""The rule of matrix products."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim.checks import words as w
from pypto.sim.checks.rules.origins import settle_run, used_code
from pypto.sim.checks.rules.tile import (
    address_of,
    all_cols,
    all_rows,
    code_at,
    col_code,
    dtype_of,
    element_size,
    map_of,
    part_is_defined,
    ranges_matter,
    row_code,
    same_elements,
    set_part,
    set_rest,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import is_finite_run, set_codes, stronger
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, fill_bytes, load_uint8, store_int8


@kernel_code
def _length(args, fact, accumulates):
    """Elements of the sum: the valid columns of the left operand."""
    tile = args[fact[w.FACT_SOURCE + (1 if accumulates else 0)]]
    return valid_rows(tile) if args[fact[w.FACT_EXTRA]] != 0 else valid_cols(tile)


@kernel_code
def _right_rows(tile, turned, length):
    return valid_rows(tile) if turned else min(length, all_rows(tile))


@kernel_code
def _right_cols(tile, turned, length):
    return min(length, all_cols(tile)) if turned else valid_cols(tile)


@kernel_code
def _sources_are_defined(state, args, fact, accumulates):
    turned, length = args[fact[w.FACT_EXTRA] + 1] != 0, _length(args, fact, accumulates)
    for k in range(fact[w.FACT_SOURCES]):
        tile = args[fact[w.FACT_SOURCE + k]]
        rows, cols = valid_rows(tile), valid_cols(tile)
        if k == (2 if accumulates else 1):
            rows, cols = _right_rows(tile, turned, length), _right_cols(tile, turned, length)
        if not part_is_defined(state, tile, rows, cols):
            return False
    return True


@kernel_code
def follow_product(state, args, fact):
    """dst[i, j] depends on row i of a and column j of b, and on itself when it accumulates."""
    target = args[fact[w.FACT_TARGET]]
    rows, cols, dtype, size = valid_rows(target), valid_cols(target), dtype_of(target), element_size(target)
    accumulates = fact[w.FACT_SOURCE] == fact[w.FACT_TARGET]
    defined, looks = _sources_are_defined(state, args, fact, accumulates), ranges_matter(state, fact, dtype)
    if defined and not looks:
        set_part(state, target, rows, cols, 0)
        set_rest(state, target, rows, cols)
        return
    if not defined:
        _columns(state, args, fact, accumulates, cols)
    launch, map_ = as_pointer(state[w.LAUNCH]), map_of(state, target)
    for i in range(rows):
        at = address_of(target, i, 0)
        if defined and is_finite_run(at, cols, dtype):
            set_codes(map_, at, cols * size, 0)
            continue
        of_row = 0 if defined else _row(state, args, fact, accumulates, i)
        j = 0
        while j < cols:
            code, count = of_row, cols
            if not defined:
                count = same_elements(state, target, i, j, cols - j) if accumulates else cols - j
                count = _same_columns(state, j, count)
                code = stronger(launch, code, load_uint8(state[w.SCRATCH] + j))
                own = code_at(state, target, i, j) if accumulates else 0
                if own != 0:
                    code = stronger(launch, code, used_code(state, fact[w.FACT_TARGET], own, i, j, target))
            settle_run(state, fact, map_, code, at + j * size, size, dtype, i, j, count)
            j += count
    set_rest(state, target, rows, cols)


@kernel_code
def _same_columns(state, first, most):
    """Columns from ``first`` on to which the right operand gives one code."""
    count = 1
    while count < most and load_uint8(state[w.SCRATCH] + first + count) == load_uint8(state[w.SCRATCH] + first):
        count += 1
    return count


@kernel_code
def _row(state, args, fact, accumulates, i):
    """Code that row ``i`` of the left operand gives to the product."""
    position = fact[w.FACT_SOURCE + (1 if accumulates else 0)]
    tile, turned = args[position], args[fact[w.FACT_EXTRA]] != 0
    code, place = col_code(state, tile, i, valid_rows(tile)) if turned else row_code(state, tile, i, valid_cols(tile))
    return 0 if code == 0 else used_code(state, position, code, place if turned else i, i if turned else place, tile)


@kernel_code
def _columns(state, args, fact, accumulates, cols):
    """Codes that every column of the right operand, and of a bias, gives to the product; they go to the scratch."""
    launch = as_pointer(state[w.LAUNCH])
    position = fact[w.FACT_SOURCE + (2 if accumulates else 1)]
    tile, turned = args[position], args[fact[w.FACT_EXTRA] + 1] != 0
    last = fact[w.FACT_SOURCE + fact[w.FACT_SOURCES] - 1]
    length = _length(args, fact, accumulates)
    rows, columns = _right_rows(tile, turned, length), _right_cols(tile, turned, length)
    fill_bytes(state[w.SCRATCH], cols, 0)
    if not part_is_defined(state, tile, rows, columns):
        if turned:
            for j in range(cols):
                code, place = row_code(state, tile, j, columns)
                if code != 0:
                    store_int8(state[w.SCRATCH] + j, used_code(state, position, code, j, place, tile))
        else:
            for i in range(rows):
                _add_row(state, launch, position, tile, i, cols)
    if last != position:
        _add_row(state, launch, last, args[last], 0, cols)


@kernel_code
def _add_row(state, launch, position, tile, row, cols):
    """Let row ``row`` of an operand have its part in the codes of the columns."""
    j = 0
    while j < cols:
        count = same_elements(state, tile, row, j, cols - j)
        code = code_at(state, tile, row, j)
        if code != 0:
            code = used_code(state, position, code, row, j, tile)
            for k in range(j, j + count):
                known = load_uint8(state[w.SCRATCH] + k)
                if known != code:
                    store_int8(state[w.SCRATCH] + k, stronger(launch, known, code))
        j += count

"""Rules of instructions that pick or reorder elements within rows: mask and compare gathers, sorts and merges.

They work on the valid region of their source. What their result promises beyond it was never computed.
"""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from typing import Final

from pypto.sim.checks import words as w
from pypto.sim.checks.rules.elements import mark_infinities
from pypto.sim.checks.rules.origins import name_origin, used_code
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
    set_code,
    set_part,
    set_untouched,
    span_code,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import is_float, is_undefined, set_codes, stronger
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.kernels.gather import pattern_start, pattern_step
from pypto.sim.kernels.sort import MERGED_RUNS, RECORD_BYTES, RUN
from pypto.sim.native import as_pointer, load_int32

_UNBOUNDED: Final = 1 << 30


@kernel_code
def _missing(state, fact, source):
    """Code of results that have no source: it was narrower than the result is, or there is nothing to take."""
    rows, cols = valid_rows(source), valid_cols(source)
    if rows >= all_rows(source) and cols >= all_cols(source):
        return w.UNWRITTEN
    row, col = (0, cols) if cols < all_cols(source) else (rows, 0)
    return name_origin(state, w.FROM_PADDING, fact[w.FACT_SOURCE], row, col, source)


@kernel_code
def follow_columns(state, args, fact):
    """tgather_mask: the columns of the source that the pattern selects."""
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]]
    position, pattern = fact[w.FACT_SOURCE], args[fact[w.FACT_EXTRA]]
    first, distance = pattern_start(pattern), pattern_step(pattern)
    rows, cols = valid_rows(source), (valid_cols(source) - first + distance - 1) // distance
    if part_is_defined(state, source, rows, valid_cols(source)):
        set_part(state, target, rows, cols, 0)
    else:
        for i in range(rows):
            for j in range(cols):
                col = first + distance * j
                set_code(
                    state, target, i, j, used_code(state, position, code_at(state, source, i, col), i, col, source)
                )
    set_untouched(state, target, rows, cols, _missing(state, fact, source))


@kernel_code
def _result_cols(args, fact, target):
    """Columns of the result that are computed."""
    rule, source = fact[w.FACT_RULE], args[fact[w.FACT_SOURCE]]
    if rule == w.GATHER_MATCHES:
        return valid_cols(target)
    if rule == w.SORT:
        return valid_cols(source) * RECORD_BYTES // element_size(source)
    if rule == w.MERGE:
        group = MERGED_RUNS * max(args[fact[w.FACT_EXTRA]], 1)
        return valid_cols(source) // group * group
    stops_early = args[fact[w.FACT_EXTRA]] != 0 and element_size(target) == 4
    first, total = _ends_first(args, fact) if stops_early else -1, 0
    for k in range(fact[w.FACT_SOURCES]):
        tile = args[fact[w.FACT_SOURCE + k]]
        total += valid_cols(tile) if first < 0 or k == first else 2 * _ahead(args, fact, k, first)
    return total


@kernel_code
def _key(tile, record):
    """A number in the order of the FP32 value of a record of a list."""
    bits = load_int32(data_of(tile) + RECORD_BYTES * record)
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF)


@kernel_code
def _ends_first(args, fact):
    """The list that runs out first when all are merged: its last record is the first of the last ones; -1: none."""
    first, highest = -1, 0
    for k in range(fact[w.FACT_SOURCES]):
        tile = args[fact[w.FACT_SOURCE + k]]
        records = valid_cols(tile) // 2
        if records > 0 and (first < 0 or _key(tile, records - 1) > highest):
            first, highest = k, _key(tile, records - 1)
    return first


@kernel_code
def _ahead(args, fact, k, first):
    """Records of list ``k`` that come before the last record of list ``first``; equal ones do from an earlier list."""
    tile, end = args[fact[w.FACT_SOURCE + k]], args[fact[w.FACT_SOURCE + first]]
    last, count = _key(end, valid_cols(end) // 2 - 1), 0
    for record in range(valid_cols(tile) // 2):
        key = _key(tile, record)
        if key > last or key == last and k < first:
            count += 1
    return count


@kernel_code
def _run_code(state, args, fact, row, first, last):
    """Strongest code of columns [first, last) of a row of all sources, as far as they are valid."""
    launch, result = as_pointer(state[w.LAUNCH]), 0
    for k in range(fact[w.FACT_SOURCES]):
        position = fact[w.FACT_SOURCE + k]
        tile = args[position]
        stop = valid_cols(args[fact[w.FACT_SOURCE]]) if fact[w.FACT_RULE] == w.SORT else valid_cols(tile)
        code, col = span_code(state, tile, row, first, min(last, stop))
        if code != 0:
            result = stronger(launch, result, used_code(state, position, code, row, col, tile))
    return result


@kernel_code
def follow_rows(state, args, fact):
    """Sorts: a run of records depends on its run of elements; merges and compare gathers: a row on a row."""
    target, source, rule = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]], fact[w.FACT_RULE]
    rows, cols = 1 if rule == w.MERGE_LISTS else valid_rows(source), _result_cols(args, fact, target)
    step = RUN if rule == w.SORT else _UNBOUNDED
    wide = RUN * RECORD_BYTES // element_size(source) if rule == w.SORT else cols
    for i in range(rows):
        for k in range((cols + wide - 1) // max(wide, 1)):
            code = _run_code(state, args, fact, i, k * step, (k + 1) * step)
            _set_run(state, args, fact, target, i, k * wide, min((k + 1) * wide, cols), code)
    missing = _missing(state, fact, source)
    set_untouched(state, target, rows, cols, missing)
    if fact[w.FACT_SECOND] != 0:
        set_untouched(state, args[fact[w.FACT_SECOND]], 1, rows, missing)


@kernel_code
def _set_run(state, args, fact, target, row, first, last, code):
    """Columns [first, last) of a row of the result are made of elements with ``code``; so is the count of a row."""
    size, at = element_size(target), address_of(target, row, first)
    undefined = code != 0 and is_undefined(as_pointer(state[w.LAUNCH]), code)
    set_codes(map_of(state, target), at, (last - first) * size, code if undefined else 0)
    if code != 0 and not undefined and is_float(dtype_of(target)):
        mark_infinities(state, fact, target, row, first, last, code)
    if fact[w.FACT_SECOND] != 0:
        set_code(state, args[fact[w.FACT_SECOND]], 0, row, code if undefined else 0)

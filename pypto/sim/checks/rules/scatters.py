"""Rules of scatters within on-chip memory: what they do not hit stays as it was."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.sim.checks import words as w
from pypto.sim.checks.rules.indexed import index_at
from pypto.sim.checks.rules.origins import used_code
from pypto.sim.checks.rules.tile import (
    all_cols,
    all_rows,
    code_at,
    part_is_defined,
    set_code,
    set_part,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import stronger
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.kernels.gather import pattern_start, pattern_step
from pypto.sim.native import as_pointer


@kernel_code
def _place(args, fact, target, i, j):
    """Row and column of the destination that element (i, j) of the source goes to."""
    rule, last = fact[w.FACT_RULE], args[fact[w.FACT_SOURCE + fact[w.FACT_SOURCES] - 1]]
    if rule == w.SCATTER_COLUMNS:
        pattern = args[fact[w.FACT_EXTRA]]
        return i, pattern_start(pattern) + pattern_step(pattern) * j
    if rule == w.SCATTER_ROWS:
        return index_at(last, i // valid_cols(last), i % valid_cols(last)), j
    at = index_at(last, i, j)
    if rule == w.SCATTER_AXIS:
        return (i, at) if args[fact[w.FACT_EXTRA]] == 1 else (at, j)
    return at // all_cols(target), at % all_cols(target)


@kernel_code
def _code(state, args, fact, i, j):
    """Code of an element that is scattered: its own, or that of its index."""
    launch, result = as_pointer(state[w.LAUNCH]), 0
    for k in range(1, fact[w.FACT_SOURCES]):
        position = fact[w.FACT_SOURCE + k]
        tile, row, col = args[position], i, j
        if fact[w.FACT_RULE] == w.SCATTER_ROWS and k == fact[w.FACT_SOURCES] - 1:
            row, col = i // valid_cols(tile), i % valid_cols(tile)
        code = code_at(state, tile, row, col)
        if code != 0:
            result = stronger(launch, result, used_code(state, position, code, row, col, tile))
    return result


@kernel_code
def _all_defined(state, args, fact, target, rows, cols):
    for k in range(1, fact[w.FACT_SOURCES]):
        tile = args[fact[w.FACT_SOURCE + k]]
        if not part_is_defined(state, tile, min(rows, all_rows(tile)), min(cols, all_cols(tile))):
            return False
    return part_is_defined(state, target, all_rows(target), all_cols(target))


@kernel_code
def follow_scatter(state, args, fact):
    """tscatter and its kin; the sources are the destination, the data and, except with a pattern, the indices."""
    target, source = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE + 1]]
    last = args[fact[w.FACT_SOURCE + fact[w.FACT_SOURCES] - 1]]
    rows, cols = valid_rows(source), valid_cols(source)
    if fact[w.FACT_RULE] == w.SCATTER_ROWS:
        rows = min(valid_rows(last) * valid_cols(last), rows)
    if _all_defined(state, args, fact, target, rows, cols):
        return
    if fact[w.FACT_RULE] == w.SCATTER_COLUMNS and args[fact[w.FACT_EXTRA] + 1] == 0:
        set_part(state, target, rows, all_cols(target), 0)  # the other columns become zero
    for i in range(rows):
        for j in range(cols):
            row, col = _place(args, fact, target, i, j)
            if row >= 0 and row < all_rows(target) and col >= 0 and col < all_cols(target):
                set_code(state, target, row, col, _code(state, args, fact, i, j))

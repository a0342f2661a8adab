"""The rule of comparisons: the code of a byte of a packed predicate says which of its eight elements it is about."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from typing import Final

from pypto.sim.checks import words as w
from pypto.sim.checks.rules.origins import used_code
from pypto.sim.checks.rules.tile import (
    all_cols,
    all_rows,
    code_at,
    part_is_defined,
    set_code,
    set_part,
    set_untouched,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import is_undefined, origin_of_bits, stronger
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer

BITS: Final = 8  # of a predicate's byte


@kernel_code
def _byte(state, args, fact, row, first, last):
    """Code that columns [first, last) of all sources give to a byte; a comparison makes a number of an infinity."""
    launch, result, bits = as_pointer(state[w.LAUNCH]), 0, 0
    for k in range(fact[w.FACT_SOURCES]):
        position = fact[w.FACT_SOURCE + k]
        tile = args[position]
        for col in range(first, last):
            code = code_at(state, tile, row, col)
            if code != 0 and is_undefined(launch, code):
                bits |= 1 << (col - first)
                result = stronger(launch, result, used_code(state, position, code, row, col, tile))
    return result if bits == 0 or bits == (1 << (last - first)) - 1 else origin_of_bits(launch, result, bits)


@kernel_code
def follow_compare(state, args, fact):
    """tcmp, tcmps: predicates over the valid region of the first operand."""
    target, first = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]]
    rows, cols = valid_rows(first), valid_cols(first)
    width = (cols + BITS - 1) // BITS
    defined = True
    for k in range(fact[w.FACT_SOURCES]):
        tile = args[fact[w.FACT_SOURCE + k]]
        defined = defined and part_is_defined(state, tile, min(rows, all_rows(tile)), min(cols, all_cols(tile)))
    if defined:
        set_part(state, target, rows, width, 0)
    else:
        for i in range(rows):
            for k in range(width):
                code = _byte(state, args, fact, i, BITS * k, min(BITS * (k + 1), cols))
                set_code(state, target, i, k, code)
    set_untouched(state, target, rows, width, w.PADDING)

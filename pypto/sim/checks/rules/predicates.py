"""Rules of packed predicates: the code of a byte can have a code for each of its eight elements."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from typing import Final

from pypto.sim.checks import words as w
from pypto.sim.checks.rules.elements import follow_elements
from pypto.sim.checks.rules.origins import used_code
from pypto.sim.checks.rules.tile import (
    address_of,
    all_cols,
    all_rows,
    code_at,
    data_of,
    element_size,
    part_is_defined,
    set_code,
    set_part,
    set_rest,
    set_untouched,
    valid_cols,
    valid_rows,
)
from pypto.sim.checks.shadow import byte_of_codes, code_of_bit, is_undefined, stronger
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_int8

BITS: Final = 8  # of a predicate's byte


@kernel_code
def _byte(state, args, fact, row, first, last):
    """Code that columns [first, last) of all sources give to a byte; a comparison makes a number of an infinity."""
    launch, codes, lowest = as_pointer(state[w.LAUNCH]), 0, 0
    for col in range(first, last):
        result = 0
        for k in range(fact[w.FACT_SOURCES]):
            position = fact[w.FACT_SOURCE + k]
            code = code_at(state, args[position], row, col)
            if code != 0 and is_undefined(launch, code):
                result = stronger(launch, result, used_code(state, position, code, row, col, args[position]))
        codes |= result << 8 * (col - first)
        lowest = result if col == first else lowest
    for bit in range(last - first, BITS):
        codes |= lowest << 8 * bit  # of no element: like the first
    return byte_of_codes(launch, codes)


@kernel_code
def _are_defined(state, args, fact, rows, cols):
    """Whether so much of every source is defined."""
    for k in range(fact[w.FACT_SOURCES]):
        tile = args[fact[w.FACT_SOURCE + k]]
        if not part_is_defined(state, tile, min(rows, all_rows(tile)), min(cols, all_cols(tile))):
            return False
    return True


@kernel_code
def follow_compare(state, args, fact):
    """tcmp, tcmps: predicates over the valid region of the first operand."""
    target, first = args[fact[w.FACT_TARGET]], args[fact[w.FACT_SOURCE]]
    rows, cols = valid_rows(first), valid_cols(first)
    width = (cols + BITS - 1) // BITS
    if _are_defined(state, args, fact, rows, cols):
        set_part(state, target, rows, width, 0)
    else:
        for i in range(rows):
            for k in range(width):
                code = _byte(state, args, fact, i, BITS * k, min(BITS * (k + 1), cols))
                set_code(state, target, i, k, code)
    set_untouched(state, target, rows, width, w.PADDING)


@kernel_code
def _bits_of(state, fact, tile, position, row, col):
    """Codes of the eight elements of a byte of a source."""
    launch, code, codes = as_pointer(state[w.LAUNCH]), code_at(state, tile, row, col), 0
    if code != 0:
        code = used_code(state, position, code, row, col, tile)
        for bit in range(BITS):
            codes |= code_of_bit(launch, code, bit) << 8 * bit
    return codes


@kernel_code
def _decides(known, value, decisive, code):
    """Whether a source decides about a bit of the result, whatever the other holds there."""
    return code == 0 and known and value == decisive


@kernel_code
def _combined(state, args, fact, target, row, col):
    """Code of a byte that is computed bit by bit from bytes of one or two tiles, or of a tile and a number."""
    launch, decisive = as_pointer(state[w.LAUNCH]), 0 if fact[w.FACT_FLAGS] & w.TAKES_AND != 0 else 1
    two, one_wins = fact[w.FACT_SOURCES] > 1, fact[w.FACT_FLAGS] & (w.TAKES_AND | w.TAKES_OR) != 0
    first, second = args[fact[w.FACT_SOURCE]], args[fact[w.FACT_SOURCE + 1]] if two else 0
    a, result = _bits_of(state, fact, first, fact[w.FACT_SOURCE], row, col), load_int8(address_of(target, row, col))
    b = _bits_of(state, fact, second, fact[w.FACT_SOURCE + 1], row, col) if two else 0
    other = load_int8(address_of(second, row, col)) if two else args[fact[w.FACT_EXTRA]]
    value, codes = load_int8(address_of(first, row, col)), 0
    a_stays, b_stays = data_of(first) != data_of(target), not two or data_of(second) != data_of(target)
    for bit in range(BITS):
        of_a, of_b = a >> 8 * bit & 0xFF, b >> 8 * bit & 0xFF
        bit_a, bit_b, bit_of = value >> bit & 1, other >> bit & 1, result >> bit & 1
        # what was overwritten is what has come out, where the other source lets it through
        known_a, known_b = a_stays or b_stays and bit_b != decisive, b_stays or a_stays and bit_a != decisive
        bit_a, bit_b = bit_a if a_stays else bit_of, bit_b if b_stays else bit_of
        decided = _decides(known_a, bit_a, decisive, of_a) or _decides(known_b, bit_b, decisive, of_b)
        if not (one_wins and decided):
            codes |= stronger(launch, of_a, of_b) << 8 * bit
    return byte_of_codes(launch, codes)


@kernel_code
def follow_bitwise(state, args, fact):
    """tand, tor, txor: undefined elements of packed predicates stay apart from the others of their byte."""
    target = args[fact[w.FACT_TARGET]]
    rows, cols = valid_rows(target), valid_cols(target)
    if element_size(target) != 1 or _are_defined(state, args, fact, rows, cols):
        follow_elements(state, args, fact)
        return
    for i in range(rows):
        for j in range(cols):
            set_code(state, target, i, j, _combined(state, args, fact, target, i, j))
    set_rest(state, target, rows, cols)

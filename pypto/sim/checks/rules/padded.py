"""Reductions in which padding counts: a maximum of negative numbers over a tile that was filled up with zeros.

What the rest of a tile holds after a fill is a value on purpose, so it has no code. It has to be neutral, though, where
the tile is reduced, after whatever elementwise operations came between: the exponential of a zero is no neutral addend.
"""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from typing import Final

from pypto.ir import dtype as dtypes
from pypto.sim.checks import words as w
from pypto.sim.checks.rules.elements import follow_elements
from pypto.sim.checks.rules.tile import address_of, data_of, dtype_of, element_size, valid_cols, valid_rows
from pypto.sim.checks.shadow import new_event
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_int16, load_int32

_FP32, _FP16, _BF16 = dtypes.FP32.code(), dtypes.FP16.code(), dtypes.BF16.code()
_INT32, _INT16 = dtypes.INT32.code(), dtypes.INT16.code()
_ONES: Final = 0x3F800000, 0x3C00, 0x3F80  # 1.0 in FP32, FP16, BF16
_NOT_A_NUMBER: Final = 1 << 40


@kernel_code
def _rank(tile, row, col):
    """A whole number that orders the elements of a tile as their values are ordered; 0 is zero."""
    at, dtype = address_of(tile, row, col), dtype_of(tile)
    bits = load_int32(at) if element_size(tile) == 4 else load_int16(at)
    if dtype == _INT32 or dtype == _INT16:
        return bits
    sign = 0x80000000 if dtype == _FP32 else 0x8000
    infinity = 0x7F800000 if dtype == _FP32 else 0x7C00 if dtype == _FP16 else 0x7F80
    magnitude = bits & (sign - 1)
    if magnitude > infinity:
        return _NOT_A_NUMBER
    return -magnitude if bits < 0 else magnitude


@kernel_code
def _one(dtype):
    """:func:`_rank` of 1."""
    if dtype == _INT32 or dtype == _INT16:
        return 1
    return _ONES[0] if dtype == _FP32 else _ONES[1] if dtype == _FP16 else _ONES[2]


@kernel_code
def _counts(source, by_row, at, count, whole, how):
    """Whether elements [count, whole) of a line change what elements [0, count) are reduced to."""
    best = 0
    neutral = _one(dtype_of(source)) if how == w.PADDED_IN_PRODUCT else 0
    for k in range(whole):
        value = _rank(source, at if by_row else k, k if by_row else at)
        if value == _NOT_A_NUMBER:
            return False
        if how == w.PADDED_IN_SUM or how == w.PADDED_IN_PRODUCT:
            if k >= count and value != neutral:
                return True
        else:
            value = value if how == w.PADDED_IN_MAXIMUM else -value
            if k >= count and value > best:
                return True
            best = value if k == 0 else max(best, value)
    return False


@kernel_code
def _is_ordered(dtype):
    short = dtype == _FP16 or dtype == _BF16 or dtype == _INT16
    return short or dtype == _FP32 or dtype == _INT32


@kernel_code
def follow_reduction(state, args, fact):
    """The rule of elements, and whether what fills the source up has had a part in the result."""
    follow_elements(state, args, fact)
    if fact[w.FACT_PADDED] == 0:
        return
    source, target = args[fact[w.FACT_SOURCE]], args[fact[w.FACT_TARGET]]
    filled, by_row = state[w.FRAME] + 8 * fact[w.FACT_PADDED], fact[w.FACT_RULE] == w.ROW_REDUCE
    count, whole = valid_cols(filled), valid_cols(source)
    lines = min(valid_rows(filled), valid_rows(source))
    if not by_row:
        lines, count, whole = min(count, whole), valid_rows(filled), valid_rows(source)
    if count <= 0 or count >= whole or not _is_ordered(dtype_of(source)) or data_of(source) == data_of(target):
        return
    for at in range(lines):
        if _counts(source, by_row, at, count, whole, fact[w.FACT_PADDED_IN]):
            address = new_event(
                as_pointer(state[w.LAUNCH]), w.PADDING_COUNTS, state[w.PROGRAM], state[w.INSTRUCTION],
                fact[w.FACT_SOURCE], state[w.NODE], state[w.SEAT],
            )  # fmt: skip
            if address != 0:
                event = as_pointer(address)
                event[w.OR_ROW], event[w.OR_ROWS], event[w.OR_COLS] = at, valid_rows(filled), valid_cols(filled)
                event[w.OR_VALUE] = fact[w.FACT_PADDED_IN]
            return

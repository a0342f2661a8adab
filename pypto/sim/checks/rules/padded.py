"""Reductions in which padding wins: a maximum of negative numbers over a tile that was filled up with zeros."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.ir import dtype as dtypes
from pypto.sim.checks import words as w
from pypto.sim.checks.rules.elements import follow_elements
from pypto.sim.checks.rules.tile import address_of, data_of, dtype_of, valid_cols, valid_rows
from pypto.sim.checks.shadow import new_event
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_int16, load_int32

_FP32, _FP16, _BF16 = dtypes.FP32.code(), dtypes.FP16.code(), dtypes.BF16.code()


@kernel_code
def _sign(tile, i, j):
    """-1, 0 or 1 of a float element (2 for NaN, which is neither)."""
    at = address_of(tile, i, j)
    if dtype_of(tile) == _FP32:
        bits, exponent, sign = load_int32(at) & 0xFFFFFFFF, 0x7F800000, 0x80000000
    else:
        bits, sign = load_int16(at) & 0xFFFF, 0x8000
        exponent = 0x7C00 if dtype_of(tile) == _FP16 else 0x7F80
    magnitude = bits & (sign - 1)
    if magnitude > exponent:
        return 2
    return 0 if magnitude == 0 else -1 if bits & sign != 0 else 1


@kernel_code
def _padding_wins(source, filled, result, fact, at):
    """Whether element ``at`` of the result is the zero of the padding: all data lies beyond it."""
    by_row, loses = fact[w.FACT_RULE] == w.ROW_REDUCE, fact[w.FACT_PADDED_SIGN]
    count = valid_cols(filled) if by_row else valid_rows(filled)
    whole = valid_cols(source) if by_row else valid_rows(source)
    other = valid_rows(filled) if by_row else valid_cols(filled)
    if count <= 0 or count >= whole or at >= other or _sign(result, at if by_row else 0, 0 if by_row else at) != 0:
        return False
    for k in range(count):
        if _sign(source, at if by_row else k, k if by_row else at) != loses:
            return False
    return True


@kernel_code
def follow_reduction(state, args, fact):
    """The rule of elements, and whether zeros that fill the source up have won."""
    follow_elements(state, args, fact)
    if fact[w.FACT_PADDED] == 0:
        return
    source, target = args[fact[w.FACT_SOURCE]], args[fact[w.FACT_TARGET]]
    filled, dtype = state[w.FRAME] + 8 * fact[w.FACT_PADDED], dtype_of(source)
    if dtype != _FP32 and dtype != _FP16 and dtype != _BF16 or data_of(source) == data_of(target):
        return
    for at in range(valid_rows(target) if fact[w.FACT_RULE] == w.ROW_REDUCE else valid_cols(target)):
        if _padding_wins(source, filled, target, fact, at):
            address = new_event(
                as_pointer(state[w.LAUNCH]), w.PADDING_WON, state[w.PROGRAM], state[w.INSTRUCTION],
                fact[w.FACT_SOURCE], state[w.NODE], state[w.SEAT],
            )  # fmt: skip
            if address != 0:
                event = as_pointer(address)
                event[w.OR_ROW], event[w.OR_ROWS], event[w.OR_COLS] = at, valid_rows(filled), valid_cols(filled)
            return

"""Integers that wrapped around: results that are not what the operation gives in wider numbers (kind ``wrap``)."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.ir import dtype as dtypes
from pypto.sim.checks import words as w
from pypto.sim.checks.rules.elements import follow_elements
from pypto.sim.checks.rules.tile import address_of, data_of, dtype_of, valid_cols, valid_rows
from pypto.sim.checks.shadow import new_event
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_int8, load_int16, load_int32, load_uint8

_INT8, _INT16, _INT32 = dtypes.INT8.code(), dtypes.INT16.code(), dtypes.INT32.code()
_UINT8, _UINT16, _UINT32 = dtypes.UINT8.code(), dtypes.UINT16.code(), dtypes.UINT32.code()


@kernel_code
def _is_integer(dtype):
    short = dtype == _INT8 or dtype == _UINT8 or dtype == _INT16 or dtype == _UINT16
    return short or dtype == _INT32 or dtype == _UINT32


@kernel_code
def _wrapped(value, dtype):
    """``value`` as the dtype holds it."""
    if dtype == _INT8:
        return (value + 0x80 & 0xFF) - 0x80
    if dtype == _INT16:
        return (value + 0x8000 & 0xFFFF) - 0x8000
    if dtype == _INT32:
        return (value + 0x80000000 & 0xFFFFFFFF) - 0x80000000
    return value & (0xFF if dtype == _UINT8 else 0xFFFF if dtype == _UINT16 else 0xFFFFFFFF)


@kernel_code
def _element(tile, i, j):
    dtype, at = dtype_of(tile), address_of(tile, i, j)
    if dtype == _INT8 or dtype == _UINT8:
        return _wrapped(load_int8(at) if dtype == _INT8 else load_uint8(at), dtype)
    if dtype == _INT16 or dtype == _UINT16:
        return _wrapped(load_int16(at), dtype)
    return _wrapped(load_int32(at), dtype)


@kernel_code
def _inverse(odd):
    """Number whose product with an odd one is 1 in 64 bits (each step doubles the bits that are right)."""
    result = odd
    for _ in range(5):
        result *= 2 - odd * result
    return result


@kernel_code
def _sum(tile, fact, i, j):
    """Sum of a row, or of a column, in 64 bits."""
    total = 0
    if fact[w.FACT_RULE] == w.ROW_REDUCE:
        for k in range(valid_cols(tile)):
            total += _element(tile, i, k)
    else:
        for k in range(valid_rows(tile)):
            total += _element(tile, k, j)
    return total


@kernel_code
def _wide(args, fact, target, found, i, j):
    """The result in 64 bits; ``found`` when the operands have been overwritten and cannot be told."""
    act, a = fact[w.FACT_WRAPS], args[fact[w.FACT_SOURCE]]
    if act == w.WRAPS_IN_SUM:
        return _sum(a, fact, i, j) if data_of(a) != data_of(target) else found
    if act == w.WRAPS_IN_CAST:
        return _element(a, i, j) if data_of(a) != data_of(target) and _is_integer(dtype_of(a)) else found
    dtype, other = dtype_of(target), args[fact[w.FACT_EXTRA]]
    if fact[w.FACT_SOURCES] > 1:
        other = _element(args[fact[w.FACT_SOURCE + 1]], i, j)
        if data_of(args[fact[w.FACT_SOURCE + 1]]) == data_of(target):
            return found
    if act == w.WRAPS_IN_PRODUCT:
        if data_of(a) != data_of(target):
            return _element(a, i, j) * other
        return _wrapped(found * _inverse(other), dtype) * other if other & 1 != 0 else found
    sign = 1 if act == w.WRAPS_IN_ADDITION else -1
    own = _element(a, i, j) if data_of(a) != data_of(target) else _wrapped(found - sign * other, dtype)
    return own + sign * other


@kernel_code
def follow_integers(state, args, fact):
    """The rule of elements, and the first element of the result that wrapped."""
    follow_elements(state, args, fact)
    target = args[fact[w.FACT_TARGET]]
    if fact[w.FACT_WRAPS] == 0 or not _is_integer(dtype_of(target)):
        return
    for i in range(valid_rows(target)):
        for j in range(valid_cols(target)):
            found = _element(target, i, j)
            wide = _wide(args, fact, target, found, i, j)
            if wide != found:
                address = new_event(
                    as_pointer(state[w.LAUNCH]), w.WRAPPED, state[w.PROGRAM], state[w.INSTRUCTION], 0, state[w.NODE],
                    state[w.SEAT],
                )  # fmt: skip
                if address != 0:
                    event = as_pointer(address)
                    event[w.OR_ROW], event[w.OR_COL], event[w.OR_VALUE], event[w.OR_LIMIT] = i, j, wide, found
                return

"""Integers that wrapped around: results that are not what the operation gives in wider numbers (kind ``wrap``)."""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from pypto.ir import dtype as dtypes
from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.rules.elements import follow_elements
from pypto.sim.checks.rules.tile import address_of, data_of, dtype_of, element_size, valid_cols, valid_rows
from pypto.sim.checks.shadow import new_event
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, copy_bytes, load_int8, load_int16, load_int32, load_uint8, load_word

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
def _element_at(at, dtype):
    if dtype == _INT8 or dtype == _UINT8:
        return _wrapped(load_int8(at) if dtype == _INT8 else load_uint8(at), dtype)
    if dtype == _INT16 or dtype == _UINT16:
        return _wrapped(load_int16(at), dtype)
    return _wrapped(load_int32(at), dtype)


@kernel_code
def _before(state, tile):
    """What to add to an address of a tile to find what was there before the instruction."""
    return load_word(state[w.BEFORE] + 8 * load_word(tile + 8 * layout.TILE_SPACE))


@kernel_code
def _operand(state, tile, target, i, j):
    """An element of an operand, which the result may have been written over."""
    shift = _before(state, tile) if data_of(tile) == data_of(target) else 0
    return _element_at(address_of(tile, i, j) + shift, dtype_of(tile))


@kernel_code
def keep_result(state, tile):
    """Copy the integers of a result aside, for an instruction that writes over its operand."""
    if not _is_integer(dtype_of(tile)):
        return
    shift, size = _before(state, tile), valid_cols(tile) * element_size(tile)
    for i in range(valid_rows(tile)):
        at = address_of(tile, i, 0)
        copy_bytes(at + shift, at, size)


@kernel_code
def _sum(state, tile, target, fact, i, j):
    """Sum of a row, or of a column, in 64 bits."""
    total = 0
    if fact[w.FACT_RULE] == w.ROW_REDUCE:
        for k in range(valid_cols(tile)):
            total += _operand(state, tile, target, i, k)
    else:
        for k in range(valid_rows(tile)):
            total += _operand(state, tile, target, k, j)
    return total


@kernel_code
def _wide(state, args, fact, target, found, i, j):
    """The result in 64 bits."""
    act, a = fact[w.FACT_WRAPS], args[fact[w.FACT_SOURCE]]
    if act == w.WRAPS_IN_SUM:
        return _sum(state, a, target, fact, i, j)
    if act == w.WRAPS_IN_CAST:
        return _operand(state, a, target, i, j) if _is_integer(dtype_of(a)) else found
    own, other = _operand(state, a, target, i, j), args[fact[w.FACT_EXTRA]]
    if fact[w.FACT_SOURCES] > 1:
        other = _operand(state, args[fact[w.FACT_SOURCE + 1]], target, i, j)
    if act == w.WRAPS_IN_PRODUCT:
        return own * other
    return own + other if act == w.WRAPS_IN_ADDITION else own - other


@kernel_code
def follow_integers(state, args, fact):
    """The rule of elements, and the first element of the result that wrapped."""
    follow_elements(state, args, fact)
    target = args[fact[w.FACT_TARGET]]
    if fact[w.FACT_WRAPS] == 0 or not _is_integer(dtype_of(target)):
        return
    for i in range(valid_rows(target)):
        for j in range(valid_cols(target)):
            found = _element_at(address_of(target, i, j), dtype_of(target))
            wide = _wide(state, args, fact, target, found, i, j)
            if wide != found and _wrapped(wide, dtype_of(target)) == found:
                address = new_event(
                    as_pointer(state[w.LAUNCH]), w.WRAPPED, state[w.PROGRAM], state[w.INSTRUCTION], 0, state[w.NODE],
                    state[w.SEAT],
                )  # fmt: skip
                if address != 0:
                    event = as_pointer(address)
                    event[w.OR_ROW], event[w.OR_COL], event[w.OR_VALUE], event[w.OR_LIMIT] = i, j, wide, found
                return

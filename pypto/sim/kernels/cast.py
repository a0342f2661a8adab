"""Conversion between element types (ops 11).

Every pair that some chain of native conversions needs is here, and every other pair of number dtypes as well; which
chain a cast takes is the compiler's choice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from pypto.ir.dtype import FP4, FP8E4M3FN, FP8E5M2, FP16, FP32, HF8, INT4, INT8, INT16, INT32, INT64, UINT8, DataType
from pypto.ir.instructions import Instruction
from pypto.sim.kernels.compilation import Kernel, kernel_code
from pypto.sim.kernels.copying import same_value
from pypto.sim.kernels.element import fetch, store
from pypto.sim.kernels.formats import decoder, encoder
from pypto.sim.kernels.functions import nearest_away
from pypto.sim.kernels.intrinsics import ceil, floor, nearest_even, truncated
from pypto.sim.kernels.operands import FIRST, SECOND, THIRD, address, covers, stride, valid_cols, valid_rows
from pypto.sim.kernels.saturation import limits, saturating
from pypto.sim.kernels.support import FLOATS, INTEGERS, Dtypes, reject
from pypto.sim.layout import OK, OUTSIDE_TILE, UNSUPPORTED_DTYPE

SMALL_FLOATS: Final = (FP8E4M3FN, FP8E5M2, HF8, FP4)
_INTEGERS: Final = (*INTEGERS, INT4)
# Pairs that keep the low bits of a value outside the range of the destination; all others saturate (ops 11).
WRAPPING: Final = frozenset(
    {
        (FP16, UINT8),
        (FP16, INT8),
        (FP32, INT16),
        (FP16, INT16),
        (INT64, INT32),
        (INT32, INT16),
    }
)


@kernel_code
def to_odd(x):
    """The neighbour with an odd last bit when x is not integral."""
    t = truncated(x)
    half = t * np.float32(0.5)
    even = half == truncated(half)
    away = t + (np.float32(1) if x > t else np.float32(-1))
    return away if even and t != x else t


def _clamp(target: DataType, source: DataType) -> Callable[..., Any]:
    """Integer to integer: exact where the destination is wide enough, its limits elsewhere."""
    low, high = limits(target)
    lowest, highest = limits(source)
    kind = np.uint64 if source.is_unsigned_int() else np.int64
    bottom, top = kind(max(low, lowest)), kind(min(high, highest))

    @kernel_code
    def clamp(x):
        return min(max(kind(x), bottom), top)

    return clamp


def _integer_conversion(target: DataType, source: DataType) -> Callable[..., Any]:
    same_width = target.get_bit() == source.get_bit()
    if (source, target) in WRAPPING or same_width:
        return same_value
    return _clamp(target, source)


def convert(instruction: Instruction, dtypes: Dtypes) -> Kernel:
    """``tcvt``: the ``mode`` word is the rounding of float to integer conversions; other pairs do not depend on it."""
    target, source = dtypes
    floats, integers = (*FLOATS, *SMALL_FLOATS), _INTEGERS
    legal = (*floats, *integers)
    if target is None or source is None or target == source or target not in legal or source not in legal:
        raise reject(instruction, dtypes, "two different dtypes out of " + ", ".join(d.to_string() for d in legal))
    return Kernel(f"{instruction.mnemonic}.{target.to_string()}.{source.to_string()}", _body(target, source))


def _body(target: DataType, source: DataType) -> Callable[[Any], int]:
    decode = decoder(source) if source in SMALL_FLOATS else same_value
    if not source.is_float() and not target.is_float():
        return _convert(target, source, same_value, _integer_conversion(target, source))
    if target.is_float():
        return _convert(target, source, decode, encoder(target) if target in SMALL_FLOATS else same_value)
    convert = saturating(INT64 if (source, target) in WRAPPING else target)
    return _round(target, source, decode, convert)


def _convert(
    target: DataType, source: DataType, decode: Callable[..., Any], encode: Callable[..., Any]
) -> Callable[[Any], int]:
    to_float = target.is_float() and not source.is_float()

    @kernel_code
    def value(x):
        return encode(np.float32(x)) if to_float else encode(decode(x))

    def body(args):
        dst, a = args[FIRST], args[SECOND]
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (covers(dst, rows, cols) and covers(a, rows, cols)):
            return OUTSIDE_TILE
        to, of, pitch, source_pitch = address(dst), address(a), stride(dst), stride(a)
        if pitch == cols and source_pitch == cols:
            rows, cols = 1, rows * cols
        for i in range(rows):
            for j in range(cols):
                store(to, i * pitch + j, target, value(fetch(of, i * source_pitch + j, source)))
        return OK

    return body


def _loop(
    target: DataType,
    source: DataType,
    decode: Callable[..., Any],
    rounding: Callable[..., Any],
    convert: Callable[..., Any],
) -> Callable[..., Any]:
    @kernel_code
    def loop(to, pitch, of, source_pitch, rows, cols):
        for i in range(rows):
            for j in range(cols):
                store(to, i * pitch + j, target, convert(rounding(decode(fetch(of, i * source_pitch + j, source)))))

    return loop


def _round(
    target: DataType, source: DataType, decode: Callable[..., Any], convert: Callable[..., Any]
) -> Callable[[Any], int]:
    trunc, rint, away, down, up, odd = (
        _loop(target, source, decode, rounding, convert)
        for rounding in (truncated, nearest_even, nearest_away, floor, ceil, to_odd)
    )

    def body(args):
        dst, a, mode = args[FIRST], args[SECOND], args[THIRD]
        rows, cols = valid_rows(dst), valid_cols(dst)
        if not (covers(dst, rows, cols) and covers(a, rows, cols)):
            return OUTSIDE_TILE
        to, of, pitch, source_pitch = address(dst), address(a), stride(dst), stride(a)
        if pitch == cols and source_pitch == cols:
            rows, cols = 1, rows * cols
        if mode == 0 or mode == 5:
            trunc(to, pitch, of, source_pitch, rows, cols)
        elif mode == 1:
            rint(to, pitch, of, source_pitch, rows, cols)
        elif mode == 2:
            away(to, pitch, of, source_pitch, rows, cols)
        elif mode == 3:
            down(to, pitch, of, source_pitch, rows, cols)
        elif mode == 4:
            up(to, pitch, of, source_pitch, rows, cols)
        elif mode == 6:
            odd(to, pitch, of, source_pitch, rows, cols)
        else:
            return UNSUPPORTED_DTYPE
        return OK

    return body

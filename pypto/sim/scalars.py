"""Scalar arithmetic of the machine: wrap, rounding, conversion, and one element of memory as a register word.

Integers are held sign- or zero-extended to 64 bits, floats as the bits of a float64 that is exactly a value of their
dtype. A result is computed in 64 bits and rounded once; float64 holds more than twice the significand bits of fp32, so
the single rounding of ``+ - * /`` is the correctly rounded one.
"""

# ruff: noqa: SIM109 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

import numpy as np

from pypto.ir import dtype as dt
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import (
    as_float,
    as_word,
    load_int8,
    load_int16,
    load_int32,
    load_word,
    shift_right_unsigned,
    store_int8,
    store_int16,
    store_int32,
    store_word,
)

_BOOL, _INT4, _INT8, _INT16, _INT32 = (d.code() for d in (dt.BOOL, dt.INT4, dt.INT8, dt.INT16, dt.INT32))
_UINT4, _UINT8, _UINT16, _UINT32 = (d.code() for d in (dt.UINT4, dt.UINT8, dt.UINT16, dt.UINT32))
_FP4, _E4M3, _E5M2, _E8M0 = (d.code() for d in (dt.FP4, dt.FP8E4M3FN, dt.FP8E5M2, dt.FP8E8M0))
_FP16, _BF16, _FP32 = (d.code() for d in (dt.FP16, dt.BF16, dt.FP32))
_HF4, _HF8 = dt.HF4.code(), dt.HF8.code()
_UINT64 = dt.UINT64.code()

# significand bits after the point, smallest normal exponent, largest finite value; by dtype code
_FRACTION = np.zeros(32, np.int64)
_LOWEST = np.zeros(32, np.int64)
_LARGEST = np.zeros(32, np.float64)
for _code, _fraction, _lowest, _largest in (
    (_FP4, 1, 0, 6.0),
    (_E4M3, 3, -6, 448.0),
    (_E5M2, 2, -14, 57344.0),
    (_FP16, 10, -14, 65504.0),
    (_BF16, 7, -126, float(np.float32(3.3895313892515355e38))),
):
    _FRACTION[_code], _LOWEST[_code], _LARGEST[_code] = _fraction, _lowest, _largest


@kernel_code
def wrap(value, shift, kind):
    """``value`` cut to ``64 - shift`` bits; ``kind`` 0 signed, 1 unsigned, 2 bool."""
    if kind == 2:
        return 1 if value != 0 else 0
    if kind == 1:
        return shift_right_unsigned(value << shift, shift)
    return (value << shift) >> shift


@kernel_code
def power_of_two(exponent):
    """2.0**exponent for -1022 <= exponent <= 1023."""
    return as_float((exponent + 1023) << 52)


@kernel_code
def _round_narrow(value, code):
    if value == 0.0 or not np.isfinite(value):
        return value
    exponent = ((as_word(value) >> 52) & 0x7FF) - 1023
    ulp = max(exponent, _LOWEST[code]) - _FRACTION[code]
    rounded = np.rint(value * power_of_two(-ulp)) * power_of_two(ulp)
    if abs(rounded) > _LARGEST[code]:
        # the 8- and 4-bit formats saturate, except fp8e5m2, which has infinities like fp16 and bfloat16
        bound = np.inf if code in (_FP16, _BF16, _E5M2) else _LARGEST[code]
        return bound if value > 0 else -bound
    return rounded


@kernel_code
def round_float(value, code):
    """``value`` to nearest even in the float format with dtype ``code``."""
    if code == _FP32:
        return np.float64(np.float32(value))
    if code == _E8M0:
        if not value > 0.0 or not np.isfinite(value):
            return np.nan
        exponent = ((as_word(value) >> 52) & 0x7FF) - 1023
        return power_of_two(min(max(exponent, -127), 127))
    if code == _HF4 or code == _HF8:
        return value
    return _round_narrow(value, code)


@kernel_code
def integer_to_float(value, unsigned, code):
    """``value`` rounded once to the float format; integers beyond 2**53 keep a sticky bit on the way."""
    if unsigned and value < 0:
        half = shift_right_unsigned(value, 12) << 1
        half |= 1 if (value & 0xFFF) != 0 else 0
        return round_float(np.float64(half) * 2048.0, code)
    if abs(value) >= (1 << 53):
        low = value & 0x7FF
        value = ((value >> 11) | (1 if low != 0 else 0)) << 11
    return round_float(np.float64(value), code)


@kernel_code
def float_to_integer(value, shift, kind):
    """C conversion towards zero; NaN gives 0 and what does not fit saturates, as the cores' ``fcvtzs`` does."""
    if value != value:
        return 0
    if kind == 2:
        return 1 if value != 0.0 else 0
    bits = 64 - shift
    if kind == 1:
        if value <= 0.0:
            return 0
        if value >= 2.0**bits:
            return shift_right_unsigned(-1, shift)
        if value >= 9223372036854775808.0:
            return np.int64(value - 9223372036854775808.0) ^ np.int64(-9223372036854775808)
        return np.int64(value)
    limit = 2.0 ** (bits - 1)
    if value >= limit:
        return shift_right_unsigned(-1, shift + 1)
    if value < -limit:
        return np.int64(-1) << (bits - 1)
    return np.int64(value)


@kernel_code
def _decode_narrow(bits, code):
    """The value of an fp4, fp8e4m3fn, fp8e5m2, fp16 or bfloat16 word."""
    width = 4 if code == _FP4 else 8 if code < _FP16 else 16
    fraction_bits = _FRACTION[code]
    sign = -1.0 if (bits >> (width - 1)) & 1 else 1.0
    exponent = (bits & ((1 << (width - 1)) - 1)) >> fraction_bits
    fraction = bits & ((1 << fraction_bits) - 1)
    top = (1 << (width - 1 - fraction_bits)) - 1
    if code == _E4M3:
        if exponent == top and fraction == 7:
            return np.nan
    elif code != _FP4 and exponent == top:
        return sign * np.inf if fraction == 0 else np.nan
    if exponent == 0:
        return sign * fraction * power_of_two(_LOWEST[code] - fraction_bits)
    return sign * (fraction + (1 << fraction_bits)) * power_of_two(exponent - 1 + _LOWEST[code] - fraction_bits)


@kernel_code
def _encode_narrow(value, code):
    """The word of a value that is already one of the format (or NaN or an infinity)."""
    width = 4 if code == _FP4 else 8 if code < _FP16 else 16
    fraction_bits = _FRACTION[code]
    sign = (as_word(value) >> 63) & 1
    top = (1 << (width - 1 - fraction_bits)) - 1
    if value != value:
        if code == _FP4:
            return 0
        word = (1 << (width - 1)) - 1 if code == _E4M3 else (top << fraction_bits) | (1 << (fraction_bits - 1))
    elif np.isinf(value):
        word = top << fraction_bits
    elif value == 0.0:
        word = 0
    else:
        exponent = ((as_word(value) >> 52) & 0x7FF) - 1023
        ulp = max(exponent, _LOWEST[code]) - fraction_bits
        significand = np.int64(abs(value) * power_of_two(-ulp))
        word = significand + ((ulp + fraction_bits - _LOWEST[code]) << fraction_bits)
    return word | (sign << (width - 1))


@kernel_code
def float_word(bits, code):
    """Register word (float64 bits) of the stored float ``bits``."""
    if code == _E8M0:
        return as_word(np.nan if (bits & 0xFF) == 0xFF else power_of_two(max((bits & 0xFF) - 127, -1022)))
    return as_word(_decode_narrow(bits, code))


@kernel_code
def float_bits(word, code):
    """Stored bits of the register word ``word``, rounded to the format with dtype ``code``."""
    value = round_float(as_float(word), code)
    if code == _E8M0:
        return 0xFF if value != value else ((as_word(value) >> 52) & 0x7FF) - 1023 + 127
    return _encode_narrow(value, code)


@kernel_code
def is_nibble(code):
    """True for the 4-bit dtypes, which GM packs two to a byte."""
    return code == _INT4 or code == _UINT4 or code == _FP4 or code == _HF4


@kernel_code
def element_bytes(code):
    """Bytes of one element; 1 for the 4-bit dtypes."""
    if code == _FP32 or code == _INT32 or code == _UINT32:
        return 4
    if code == _FP16 or code == _BF16 or code == _INT16 or code == _UINT16:
        return 2
    if code <= _INT8 or code == _UINT4 or code == _UINT8 or (_FP4 <= code <= _E8M0) or code == _HF4 or code == _HF8:
        return 1
    return 8


@kernel_code
def load_element(address, code, packed_index):
    """The element at ``address`` as a register word; ``packed_index`` >= 0 picks the nibble of a packed 4-bit dtype."""
    if code == _FP32:
        return as_word(np.float64(_single(load_int32(address))))
    size = element_bytes(code)
    if size == 8:
        return load_word(address)
    if size == 4:
        return load_int32(address) if code == _INT32 else load_int32(address) & 0xFFFFFFFF
    if size == 2:
        bits = load_int16(address)
        if code == _INT16:
            return bits
        return float_word(bits & 0xFFFF, code) if code >= _FP16 else bits & 0xFFFF
    bits = load_int8(address)
    if packed_index >= 0:
        bits = (bits >> 4 * (packed_index & 1)) & 0xF
    if code == _INT4:
        return (bits << 60) >> 60
    if code == _INT8:
        return bits
    if code == _BOOL:
        return 1 if bits != 0 else 0
    if _FP4 <= code <= _E8M0:
        return float_word(bits & 0xFF, code)
    return bits & 0xFF


@kernel_code
def store_element(address, code, packed_index, word):
    """Inverse of :func:`load_element`; floats are rounded to the dtype."""
    if code == _FP32:
        store_int32(address, _single_bits(np.float32(as_float(word))))
        return
    size = element_bytes(code)
    if size == 8:
        store_word(address, word)
    elif size == 4:
        store_int32(address, word)
    elif size == 2:
        store_int16(address, float_bits(word, code) if code >= _FP16 else word)
    else:
        bits = float_bits(word, code) if _FP4 <= code <= _E8M0 else word
        if code == _BOOL:
            bits = 1 if word != 0 else 0
        if packed_index >= 0:
            shift = 4 * (packed_index & 1)
            bits = (load_int8(address) & ~(0xF << shift)) | ((bits & 0xF) << shift)
        store_int8(address, bits)


@kernel_code
def _single(bits):
    return np.int32(bits).view(np.float32)


@kernel_code
def _single_bits(value):
    return np.int64(np.float32(value).view(np.int32))

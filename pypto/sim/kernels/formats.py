"""The 8- and 4-bit float formats: tables that decode a byte, branch-free functions that encode an fp32 value.

=========  ==========================================  ==============  =====================
dtype      layout (sign, exponent, significand bits)   largest value   NaN
=========  ==========================================  ==============  =====================
fp8e4m3fn  1, 4 (bias 7), 3; no infinity               448             0x7F, 0xFF
fp8e5m2    1, 5 (bias 15), 2; IEEE                     57344           0x7D..7F, 0xFD..FF
fp4        1, 2 (bias 1), 1                            6               none, becomes 0
hf8        1, then a prefix code for the number of     32768           0x80
           exponent bits (0 to 4), 3 to 1 significand
           bits left; below 2**-15 powers of two only
fp8e8m0    8 (bias 127), no sign                       2**127          0xFF
=========  ==========================================  ==============  =====================

Encoding rounds to the nearest value of the grid, ties to an even code, and saturates to the largest finite value,
infinities included (ops 11). The hf8 code follows the published description of HiFloat8: prefix 11, 10, 01, 001, 0001
for 4, 3, 2, 1, 0 exponent bits and 0000 for the powers of two from 2**-22 to 2**-16; an exponent field is a sign and
a magnitude whose leading one is not stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pypto.ir.dtype import FP4, FP8E4M3FN, FP8E5M2, FP8E8M0, HF8, DataType
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.kernels.element import bits
from pypto.sim.kernels.intrinsics import magnitude

Table = NDArray[np.float32]

_F = np.float32
_I = np.int32


def _ieee_table(exponent_bits: int, bias: int, significand_bits: int) -> Table:
    codes = np.arange(256) & ((2 << (exponent_bits + significand_bits)) - 1)
    exponent = codes >> significand_bits & ((1 << exponent_bits) - 1)
    fraction = (codes & ((1 << significand_bits) - 1)) / 2.0**significand_bits
    size = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    sign = np.where(codes >> (exponent_bits + significand_bits), -1.0, 1.0)
    return (sign * size).astype(np.float32)


def _e4m3_table() -> Table:
    table = _ieee_table(4, 7, 3)
    table[[0x7F, 0xFF]] = np.nan
    return table


def _e5m2_table() -> Table:
    table = _ieee_table(5, 15, 2)
    for sign in (0, 0x80):
        table[sign + 0x7C] = -np.inf if sign else np.inf
        table[sign + 0x7D : sign + 0x80] = np.nan
    return table


def _hf8_split(code: int) -> tuple[int, int]:
    """Number of exponent bits (-1: power of two) and of significand bits."""
    for width, prefix, length in ((4, 0b11, 2), (3, 0b10, 2), (2, 0b01, 2), (1, 0b001, 3), (0, 0b0001, 4)):
        if code >> (7 - length) == prefix:
            return width, 7 - length - width
    return -1, 3


def _hf8_value(code: int) -> float:
    width, significand_bits = _hf8_split(code)
    if width < 0:
        return 2.0 ** ((code & 7) - 23) if code & 7 else 0.0
    field = code >> significand_bits & ((1 << width) - 1)
    half = 1 << (width - 1) if width else 0
    exponent = half + (field & (half - 1)) if width else 0
    if field & half:
        exponent = -exponent
    return (1 + (code & ((1 << significand_bits) - 1)) / 2.0**significand_bits) * 2.0**exponent


def _hf8_table() -> Table:
    positive = np.array([_hf8_value(code) for code in range(128)], np.float32)
    positive[0x6F] = np.inf
    table = np.concatenate([positive, -positive])
    table[0x80] = np.nan
    return table


def _e8m0_table() -> Table:
    return np.array([2.0 ** (code - 127) for code in range(255)] + [np.nan], np.float32)


TABLES: Final[dict[DataType, Table]] = {
    FP8E4M3FN: _e4m3_table(),
    FP8E5M2: _e5m2_table(),
    FP4: _ieee_table(2, 1, 1),
    HF8: _hf8_table(),
    FP8E8M0: _e8m0_table(),
}


def decoder(dtype: DataType) -> Callable[..., Any]:
    """Function from a byte of ``dtype`` to its float32 value."""
    table = TABLES[dtype]

    @kernel_code
    def decode(code):
        return table[code]

    return decode


def _ieee_encoder(exponent_bits: int, bias: int, significand_bits: int, largest: float, nan: int) -> Callable[..., Any]:
    top, smallest_normal = _F(largest), _F(2.0 ** (1 - bias))
    subnormal_scale = _F(2.0 ** (bias - 1 + significand_bits))
    dropped = 23 - significand_bits
    shift, below_half, one = _I(dropped), _I((1 << (dropped - 1)) - 1), _I(1)
    rebias = _I((127 - bias) << significand_bits)
    sign_shift, sign_bit = _I(31 - exponent_bits - significand_bits), _I(1 << (exponent_bits + significand_bits))

    @kernel_code
    def encode(x):
        size = magnitude(x)
        size = top if size > top else size
        word = bits(size, one)
        normal = _I(((word + below_half + ((word >> shift) & one)) >> shift) - rebias)
        inside = size if size < smallest_normal else smallest_normal
        shifted = inside * subnormal_scale + _F(8388608.0)
        code = _I(bits(shifted, one) - _I(0x4B000000)) if size < smallest_normal else normal
        sign = _I((bits(x, one) >> sign_shift) & sign_bit)
        return np.uint8((code | sign) if x == x else _I(nan))

    return encode


_ROUND_UP_ALWAYS = _F(2.0**-23)


@kernel_code
def _encode_hf8(x):
    size = magnitude(x)
    size = _F(32768) if size > _F(32768) else size
    word = bits(size, _I(1))
    e = _I((word >> 23) - 127)
    d = -e if e < 0 else e
    kept = _I(3) if d < 4 else (_I(2) if d < 8 else (_I(1) if e >= -15 else _I(0)))
    kept = _I(0) if e < -15 else kept
    drop = _I(23 - kept)
    rounded = _I(word + _I((_I(1) << (drop - 1)) - 1) + ((word >> drop) & 1))
    e = _I((rounded >> 23) - 127)
    d = -e if e < 0 else e
    # the exponent may have grown by the rounding; its significand is 0 then, so fewer bits lose nothing
    kept = _I(3) if d < 4 else (_I(2) if d < 8 else _I(1))
    fraction = _I((rounded & 0x7FFFFF) >> (23 - kept))
    width = _I(0) if d == 0 else (_I(1) if d < 2 else (_I(2) if d < 4 else (_I(3) if d < 8 else _I(4))))
    half = _I(0) if d == 0 else _I(_I(1) << (width - 1))
    field = _I((half if e < 0 else _I(0)) | (d - half))
    prefix = _I(1) if width < 2 else _I(width - 1)
    code = _I((prefix << (width + kept)) | (field << kept) | fraction)
    power = _I(e + 23)
    power = _I(1) if size > _ROUND_UP_ALWAYS and power < 1 else power
    power = _I(0) if size <= _ROUND_UP_ALWAYS else power
    code = power if e < -15 else code
    negative = _I(bits(x, _I(1)) < 0 and code != 0)
    return np.uint8((code | (negative << 7)) if x == x else _I(0x80))


_ENCODERS: Final = {
    FP8E4M3FN: _ieee_encoder(4, 7, 3, 448.0, 0x7F),
    FP8E5M2: _ieee_encoder(5, 15, 2, 57344.0, 0x7F),
    FP4: _ieee_encoder(2, 1, 1, 6.0, 0),
    HF8: _encode_hf8,
}


def encoder(dtype: DataType) -> Callable[..., Any]:
    """Function from float32 to the nearest byte of ``dtype``."""
    return _ENCODERS[dtype]

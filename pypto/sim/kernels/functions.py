"""Elementary functions of one float32 (ops 5): branch free, so that loops over them vectorise.

Errors against float64 (tests/sim/kernels/test_functions.py): ``exp`` and ``log`` below 1 ulp, ``sqrt``, ``rsqrt`` and
``recip`` correctly rounded; ``sine`` and ``cosine`` are the fp32 steps of ops 5.1, bit for bit.
"""

from __future__ import annotations

import numpy as np

from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.kernels.element import bits
from pypto.sim.kernels.intrinsics import floor, fma, nearest_even, root, truncated, with_sign

_F = np.float32
_I = np.int32

LOG2_E = _F(1.4426950408889634)
# ln 2 in two parts: the first has few enough bits that n * LN2_HIGH is exact for |n| < 2**9
LN2_HIGH = _F(0.693359375)
LN2_LOW = _F(-2.12194440054690583e-4)
# 1.5 * 2**23: adding it leaves the nearest integer in the low bits of the significand
SHIFTER = _F(12582912.0)
SHIFTER_BITS = _I(0x4B400000)
# minimax coefficients of (e**r - 1 - r) / r**2 on |r| <= ln 2 / 2, relative error of e**r 4e-9
E2, E3, E4 = _F(0.4999999403953552), _F(0.1666652113199234), _F(0.04166838899254799)
E5, E6 = _F(0.00836874544620514), _F(0.0013814539415761828)


BELOW_HALF = _F(0.49999997)


@kernel_code
def nearest_away(x):
    """Nearest integral value, ties away from zero. 1/2 itself would round 0.49999997 and odd values from 2**23 up."""
    return truncated(x + with_sign(BELOW_HALF, x))


@kernel_code
def reduced_exp(x, shifted):
    """e**r of x = n ln 2 + r with |r| <= ln 2 / 2; ``shifted`` is n + SHIFTER."""
    n = shifted - SHIFTER
    r = fma(-n, LN2_LOW, fma(-n, LN2_HIGH, x))
    q = fma(fma(fma(fma(E6, r, E5), r, E4), r, E3), r, E2)
    return fma(fma(q, r, _F(1)), r, _F(1))


@kernel_code
def exp_moderate(x):
    """e ** x for |x| <= 87, where the result is a normal number: n is added to the exponent field of e**r."""
    shifted = fma(x, LOG2_E, SHIFTER)
    return bits(_I(bits(reduced_exp(x, shifted), _I(0)) + _I(bits(shifted, _I(0)) << _I(23))), _F(0))


MODERATE_BITS = _I(0x42AE0000)  # 87


@kernel_code
def exp(x):
    """e ** x = 2**n * e**r for every x; the result of :func:`exp_moderate` where that one is defined."""
    below = _F(89) if x > _F(89) else x
    inside = _F(-103.98) if below < _F(-103.98) else below
    shifted = fma(inside, LOG2_E, SHIFTER)
    p = reduced_exp(inside, shifted)
    # The low bits of ``shifted`` are n. The scale is applied in two factors, so that neither leaves the range of normal
    # numbers and a result below it is rounded once.
    negative = inside < _F(0)
    scale = bits(_I(_I(bits(shifted, _I(0)) << _I(23)) + (UP_24 if negative else DOWN_2)), _F(0))
    return p * scale * (_F(2.0**-24) if negative else _F(4))


# exponent field of 2**24 and of 2**-2
UP_24, DOWN_2 = _I((127 + 24) << 23), _I((127 - 2) << 23)
TINY = _F(1.17549435e-38)
TWO_23 = _F(8388608.0)
ROOT_HALF_BITS = _I(0x3F3504F3)
L2, L4, L6, L8 = _F(2 / 3), _F(2 / 5), _F(2 / 7), _F(2 / 9)


@kernel_code
def log(x):
    """ln x: exponent * ln 2 + ln m with m in [sqrt 1/2, sqrt 2), series of artanh for ln m."""
    small = x < TINY
    scaled = x * TWO_23 if small else x
    word = bits(scaled, _I(0))
    shifted = _I(word - ROOT_HALF_BITS)
    exponent = _I(shifted >> _I(23))
    m = bits(_I(word - _I(exponent << _I(23))), _F(0))
    e = _F(exponent) - (_F(23) if small else _F(0))
    f = m - _F(1)
    s = f / (_F(2) + f)
    z = s * s
    r = z * fma(fma(fma(L8, z, L6), z, L4), z, L2)
    h = _F(0.5) * f * f
    y = e * LN2_HIGH - ((h - fma(s, h + r, e * LN2_LOW)) - f)
    y = y if x < _F(np.inf) else x + x
    y = y if x > _F(0) else _F(-np.inf)
    return y if x >= _F(0) else _F(np.nan)


@kernel_code
def sqrt(x):
    """Correctly rounded square root."""
    return root(x)


@kernel_code
def rsqrt(x):
    """``1 / sqrt(x)`` with one compensated Newton step."""
    y = _F(1) / root(x)
    # One Newton step with the error of 1 - x y**2 itself known to twice the precision: the two roundings do not add up.
    t = x * y
    e = fma(-fma(x, y, -t), y, fma(-t, y, _F(1)))
    return fma(_F(0.5) * y, e, y) if (x > _F(0)) & (x < _F(np.inf)) else y


@kernel_code
def recip(x):
    """``1 / x``."""
    return _F(1) / x


@kernel_code
def neg(x):
    """``-x``; the sign of zero and NaN flips."""
    return -x


@kernel_code
def relu(x):
    """``max(x, 0)``; NaN stays."""
    return _F(0) if x < _F(0) else x


@kernel_code
def relu_integer(x):
    """``max(x, 0)`` of an integer."""
    return 0 if x < 0 else x


@kernel_code
def absolute(x):
    """``|x|``; the smallest integer stays as it is."""
    return -x if x < 0 else x


@kernel_code
def invert(x):
    """Bitwise complement."""
    return ~x


ONE_OVER_PI = _F(0.31830988732818603515625)
PI_1, PI_2 = _F(3.140625), _F(0.0009670257568359375)
PI_3, PI_4, PI_5 = _F(6.2771141529083251953125e-7), _F(1.21644916362129151821e-10), _F(-1.0290623200529979163e-13)
HALF_PI_HIGH, HALF_PI_LOW = _F(1.57079637050628662109375), _F(-4.371139000189375e-8)
S3, S5, S7, S9 = _F(-1.666665792e-1), _F(8.333049340e-3), _F(-1.980894471e-4), _F(2.604926501e-6)


@kernel_code
def odd_polynomial(t, k):
    """``(-1)**k * sin(t)`` for ``|t| <= pi / 2`` by an odd polynomial."""
    sign = _F(4) * floor(k * _F(0.5)) - _F(2) * k + _F(1)
    u = t * t
    p = ((S9 * u + S7) * u + S5) * u + S3
    return sign * (t * (p * u + _F(1)))


@kernel_code
def sine(x):
    """Sine with the argument reduced by pi in five parts."""
    k = nearest_away(x * ONE_OVER_PI)
    t = x - k * PI_1 - k * PI_2 - k * PI_3 - k * PI_4 - k * PI_5
    return odd_polynomial(t, k)


@kernel_code
def cosine(x):
    """Cosine with the argument reduced by pi in five parts."""
    k = nearest_even(x * ONE_OVER_PI + _F(0.5))
    t = x - k * PI_1 - k * PI_2 + HALF_PI_HIGH
    t = t - k * PI_3 - k * PI_4 - k * PI_5 + HALF_PI_LOW
    return odd_polynomial(t, k)

"""Scalar operations of the elementwise families, with the numerics of ops 1.12, 4 and 7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pypto.ir.dtype import DataType
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.kernels.intrinsics import truncated


@kernel_code
def add(a, b):
    """Sum; integers wrap."""
    return a + b


@kernel_code
def sub(a, b):
    """Difference; integers wrap."""
    return a - b


@kernel_code
def mul(a, b):
    """Product; integers wrap."""
    return a * b


@kernel_code
def div(a, b):
    """Quotient of floating-point numbers."""
    return a / b


@kernel_code
def maximum(a, b):
    """Greater of two; the first one where neither is below the other."""
    return b if a < b else a


@kernel_code
def minimum(a, b):
    """Lesser of two; the first one where neither is above the other."""
    return b if b < a else a


@kernel_code
def leaky(a, slope):
    """``a`` where it is positive, ``a * slope`` elsewhere."""
    return a if a > 0 else a * slope


@kernel_code
def fmod(a, b):
    """Remainder with the sign of the dividend."""
    return np.fmod(a, b)


@kernel_code
def rem(a, b):
    """Remainder with the sign of the divisor."""
    r = np.fmod(a, b)
    return r + b if r != 0 and (r < 0) != (b < 0) else r


@kernel_code
def div_narrow(a, b):
    """Truncated quotient of integers of at most 32 bits."""
    # The float64 quotient of two integers of at most 32 bits never rounds up to the next integer.
    return int(truncated(float(a) / float(b)))


@kernel_code
def fmod_narrow(a, b):
    """Remainder with the sign of the dividend, integers of at most 32 bits."""
    return a - int(truncated(float(a) / float(b))) * b


@kernel_code
def rem_narrow(a, b):
    """Remainder with the sign of the divisor, integers of at most 32 bits."""
    r = a - int(truncated(float(a) / float(b))) * b
    return r + b if r != 0 and (r < 0) != (b < 0) else r


@kernel_code
def div_wide(a, b):
    """Truncated quotient of 64-bit integers."""
    if b == -1:  # the processor traps on the quotient of the smallest integer by -1
        return -a
    q = a // b
    return q + 1 if q < 0 and q * b != a else q


@kernel_code
def fmod_wide(a, b):
    """Remainder with the sign of the dividend, 64-bit integers."""
    return a - div_wide(a, b) * b


@kernel_code
def rem_wide(a, b):
    """Remainder with the sign of the divisor, 64-bit integers."""
    r = fmod_wide(a, b)
    return r + b if r != 0 and (r < 0) != (b < 0) else r


@kernel_code
def div_unsigned(a, b):
    """Quotient of unsigned integers."""
    return a // b


@kernel_code
def rem_unsigned(a, b):
    """Remainder of unsigned integers."""
    return a % b


@kernel_code
def bit_and(a, b):
    """Bitwise and."""
    return a & b


@kernel_code
def bit_or(a, b):
    """Bitwise or."""
    return a | b


@kernel_code
def bit_xor(a, b):
    """Bitwise exclusive or."""
    return a ^ b


def _shift_left(bits: int) -> Callable[..., Any]:
    @kernel_code
    def shl(a, b):
        return a << b if 0 <= b < bits else a ^ a

    return shl


def _shift_right(bits: int) -> Callable[..., Any]:
    @kernel_code
    def shr(a, b):
        return a >> b if 0 <= b < bits else a >> (bits - 1)

    return shr


def _shift_right_unsigned(bits: int) -> Callable[..., Any]:
    @kernel_code
    def shr(a, b):
        return a >> b if b < bits else a ^ a

    return shr


_FLOAT = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "max": maximum,
    "min": minimum,
    "rem": rem,
    "fmod": fmod,
    "lrelu": leaky,
}
_SHARED = {"add": add, "sub": sub, "mul": mul, "max": maximum, "min": minimum, "lrelu": leaky}
_NARROW = {"div": div_narrow, "rem": rem_narrow, "fmod": fmod_narrow}
_WIDE = {"div": div_wide, "rem": rem_wide, "fmod": fmod_wide}
_UNSIGNED = {"div": div_unsigned, "rem": rem_unsigned, "fmod": rem_unsigned}
DIVIDES = frozenset({"div", "rem", "fmod"})


def operation(variant: str, dtype: DataType) -> Callable[..., Any]:
    """The arithmetic ``variant`` (``"add"``, ``"div"``, ...) on elements of ``dtype``."""
    if dtype.is_float():
        return _FLOAT[variant]
    if variant in _SHARED:
        return _SHARED[variant]
    if dtype.get_bit() < 64:
        return _NARROW[variant]
    return (_UNSIGNED if dtype.is_unsigned_int() else _WIDE)[variant]


def bit_operation(variant: str, dtype: DataType) -> Callable[..., Any]:
    """The bitwise operation or shift ``variant`` on elements of the integer ``dtype``."""
    plain = {"and": bit_and, "or": bit_or, "xor": bit_xor}
    if variant in plain:
        return plain[variant]
    width = 8 * dtype.get_byte()
    if variant == "shl":
        return _shift_left(width)
    return _shift_right_unsigned(width) if dtype.is_unsigned_int() else _shift_right(width)

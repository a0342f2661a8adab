"""Tile operations in float64, for the comparison of precisions: mnemonic to a function of NumPy arrays.

Only operations whose float64 value is defined by their formula are here; the others keep what the program computed.

Beside the value of an operation stands what it makes of doubt: how far its result moves when every input of the
program, and every number in it that a float only comes near to, moves by a unit of itself. An error that is small
beside the doubt times the spacing of floats is none: inputs a rounding apart have results as far apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


class Operand(NamedTuple):
    """Float64 values, the larger of their magnitudes and those the program holds, and their doubt."""

    value: Array
    size: Array
    doubt: Array

    @property
    def T(self) -> Operand:  # noqa: N802 - as of an array
        return Operand(self.value.T, self.size.T, self.doubt.T)

    def part(self, rows: int, cols: int) -> Operand:
        """The first rows and columns."""
        return Operand(self.value[:rows, :cols], self.size[:rows, :cols], self.doubt[:rows, :cols])


def constant(value: float) -> Operand:
    """A number of the program: in doubt unless it is a float with few digits, which is meant as it is."""
    meant = int(np.float32(value).view(np.uint32)) & 0x3F == 0
    return Operand(*(np.full((1, 1), x) for x in (value, abs(value), 0.0 if meant else abs(value))))


BINARY: Final[dict[str, Callable[..., Array]]] = {
    "tadd": np.add,
    "tsub": np.subtract,
    "tmul": np.multiply,
    "tdiv": np.divide,
    "tmax": np.maximum,
    "tmin": np.minimum,
}
SCALAR: Final[dict[str, Callable[..., Array]]] = {f"{name}s": function for name, function in BINARY.items()}
TERNARY: Final[dict[str, Callable[..., Array]]] = {
    "taddc": lambda a, b, c: a + b + c,
    "tsubc": lambda a, b, c: a - b - c,
}
UNARY: Final[dict[str, Callable[..., Array]]] = {
    "tneg": np.negative,
    "tabs": np.abs,
    "texp": np.exp,
    "tlog": np.log,
    "tsqrt": np.sqrt,
    "trsqrt": lambda a: 1.0 / np.sqrt(a),
    "trecip": lambda a: 1.0 / a,
    "trelu": lambda a: np.maximum(a, 0.0),
    "tsin": np.sin,
    "tcos": np.cos,
}
_COMBINE: Final[dict[str, Callable[..., Array]]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "expdif": lambda x, v: np.exp(x - v),
}
ROW_COMBINE: Final = {f"trowexpand{name}": function for name, function in _COMBINE.items()}
COL_COMBINE: Final = {f"tcolexpand{name}": function for name, function in _COMBINE.items()}
_REDUCE: Final[dict[str, Callable[..., Array]]] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
ROW_REDUCE: Final = {f"trow{name}": function for name, function in _REDUCE.items()}
COL_REDUCE: Final = {f"tcol{name}": function for name, function in _REDUCE.items()}
PRODUCTS: Final = ("tmatmul", "tmatmul_acc", "tmatmul_bias", "tgemv", "tgemv_acc", "tgemv_bias")

_Doubt = Callable[..., Array]


def _summed(result: Array, first: Operand, *others: Operand) -> Array:
    """Errors of what is added add up."""
    return sum((other.doubt for other in others), first.doubt)


def _larger(result: Array, a: Operand, b: Operand) -> Array:
    """One of the two is taken over, with its error."""
    found: Array = np.maximum(a.doubt, b.doubt)
    return found


_OF_TWO: Final[dict[str, _Doubt]] = {
    "add": _summed,
    "sub": _summed,
    "mul": lambda result, a, b: a.size * b.doubt + b.size * a.doubt,
    "div": lambda result, a, b: (a.doubt + result * b.doubt) / b.size,
    "max": _larger,
    "min": _larger,
    "expdif": lambda result, a, b: result * (a.doubt + b.doubt),
}
_OF_ONE: Final[dict[str, _Doubt]] = {
    **dict.fromkeys(("neg", "abs", "relu", "sin", "cos", "cvt"), lambda result, a: a.doubt),
    "exp": lambda result, a: result * a.doubt,
    "log": lambda result, a: a.doubt / a.size,
    "sqrt": lambda result, a: a.doubt / (2 * result),
    "rsqrt": lambda result, a: result**3 * a.doubt / 2,
    "recip": lambda result, a: result**2 * a.doubt,
}
_OF_A_LINE: Final[dict[str, _Doubt]] = {
    "sum": lambda result, a, axis: a.doubt.sum(axis=axis, keepdims=True),
    "prod": lambda result, a, axis: result * (a.doubt / a.size).sum(axis=axis, keepdims=True),
    "max": lambda result, a, axis: a.doubt.max(axis=axis, keepdims=True),
    "min": lambda result, a, axis: a.doubt.max(axis=axis, keepdims=True),
}
DOUBT: Final[dict[str, _Doubt]] = {
    **{f"{head}{name}{tail}": rule for name, rule in _OF_TWO.items()
       for head, tail in (("t", ""), ("t", "s"), ("trowexpand", ""), ("tcolexpand", ""))},
    **{f"t{name}": rule for name, rule in _OF_ONE.items()},
    **{f"t{line}{name}": rule for name, rule in _OF_A_LINE.items() for line in ("row", "col")},
    "taddc": _summed,
    "tsubc": _summed,
}  # fmt: skip
"""Mnemonic: doubt of the result, from its magnitude and the operands (and the axis of a reduction)."""


def product_doubt(a: Operand, b: Operand) -> Array:
    """Doubt of a matrix product."""
    return np.asarray(a.size @ b.doubt + a.doubt @ b.size)

"""Tile operations in float64, for the comparison of precisions: mnemonic to a function of NumPy arrays.

Only operations whose float64 value is defined by their formula are here; the others keep what the program computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]

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

"""Float to integer with the limits of the destination, written so that it vectorises (LLVM's own saturating conversion
does not)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pypto.ir.dtype import INT4, DataType
from pypto.sim.kernels.compilation import kernel_code

_ZERO = np.float32(0)


def limits(dtype: DataType) -> tuple[int, int]:
    """Smallest and largest value of an integer dtype."""
    if dtype == INT4:
        return -8, 7
    info = np.iinfo(dtype.storage)
    return int(info.min), int(info.max)


def saturating(dtype: DataType) -> Callable[..., Any]:
    """Function from float32 to the integers of ``dtype``: the fraction is dropped, values outside become the nearest
    limit, NaN becomes 0."""
    low, high = limits(dtype)
    kind: Any = np.int32 if dtype.get_bit() < 32 else np.dtype(dtype.storage).type
    # the lowest value and the first one above the highest are 0 or powers of two, exact in float32
    lowest, above = np.float32(low), np.float32(high + 1)
    bottom, top = kind(low), kind(high)

    @kernel_code
    def saturate(x):
        whole = kind(x if (x >= lowest) & (x < above) else _ZERO)
        return top if x >= above else (bottom if x < lowest else whole)

    return saturate

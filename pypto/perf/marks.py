"""A verdict per string of a growing pool, worked out once per string."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


class PoolMarks:
    """``judge(string)`` (0 to 255) for every code of a pool, as arrays."""

    def __init__(self, pool: Sequence[bytes], judge: Callable[[bytes], int]) -> None:
        self._pool, self._judge = pool, judge
        self._marks = bytearray()

    def all(self) -> np.ndarray:
        """uint8 per code."""
        self._marks += bytes(self._judge(self._pool[code]) for code in range(len(self._marks), len(self._pool)))
        return np.array(self._marks, np.uint8)

    def of(self, codes: np.ndarray) -> np.ndarray:
        """uint8 per element of ``codes``."""
        return self.all()[codes] if len(codes) else np.zeros(0, np.uint8)

"""The shadow of a stretch of memory (shadow.py) as Python sees it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pypto.sim.checks import words as w
from pypto.sim.checks.shadow import BLOCK


class ShadowMemory:
    """Codes of the bytes from ``address`` on; at first all ``code``. Positions are counted from ``address``."""

    def __init__(self, address: int, size: int, code: int) -> None:
        self.address, self.size = address, size
        self._skip = address % BLOCK  # bytes of the first block in front of the memory
        blocks = -(-(self._skip + size) // BLOCK) + 1
        self._flags = np.full(blocks, code, np.uint8)
        self._before: NDArray[np.uint8] | None = None
        self._codes = np.empty(blocks * BLOCK, np.uint8)
        if code != w.DEFINED:
            self._leave_out_what_is_around(size)
        first = address - self._skip
        self.map = self._codes.ctypes.data - first, self._flags.ctypes.data - first // BLOCK

    def before(self) -> int:
        """What to add to an address to find a copy of the byte there, which rules keep (rules/wrap.py)."""
        if self._before is None:
            self._before = np.zeros(self.size, np.uint8)
        return int(self._before.ctypes.data) - self.address

    def _leave_out_what_is_around(self, size: int) -> None:
        """Bytes of the first and the last block that are not of the memory count as defined."""
        last = (self._skip + size) // BLOCK
        edges = {0} if self._skip else set()
        for block in edges | ({last} if (self._skip + size) % BLOCK else set()):
            codes = self._codes[block * BLOCK : (block + 1) * BLOCK]
            codes[:] = w.DEFINED
            start = self._skip if block == 0 else 0
            stop = (self._skip + size) - block * BLOCK if block == last else BLOCK
            codes[start:stop], self._flags[block] = self._flags[block], w.MIXED

    def fill(self, low: int, high: int, code: int) -> None:
        """Give bytes [low, high) a code."""
        low, high = low + self._skip, high + self._skip
        first, last = -(-low // BLOCK), high // BLOCK
        for block in {low // BLOCK, last}:
            start = max(low, block * BLOCK)
            stop = min(high, (block + 1) * BLOCK)
            if start < stop and stop - start < BLOCK:
                if self._flags[block] != w.MIXED:
                    self._codes[block * BLOCK : (block + 1) * BLOCK] = self._flags[block]
                    self._flags[block] = w.MIXED
                self._codes[start:stop] = code
        self._flags[first : max(first, last)] = code

    def read(self, low: int, high: int) -> NDArray[np.uint8]:
        """``uint8[high - low]``: the codes of bytes [low, high)."""
        low, high = low + self._skip, high + self._skip
        first, last = low // BLOCK, -(-high // BLOCK)
        flags = np.repeat(self._flags[first:last], BLOCK)
        found = np.where(flags == w.MIXED, self._codes[first * BLOCK : last * BLOCK], flags)
        return found[low - first * BLOCK : high - first * BLOCK]

    def is_defined(self, low: int, high: int) -> bool:
        """Whether bytes [low, high) are defined and finite."""
        low, high = low + self._skip, high + self._skip
        first, last = low // BLOCK, -(-high // BLOCK)
        doubtful = first + np.flatnonzero(self._flags[first:last])
        if not len(doubtful):
            return True
        flags = self._flags[doubtful][:, None]
        held = np.where(flags == w.MIXED, self._codes.reshape(-1, BLOCK)[doubtful], flags)
        held[0, : max(low - int(doubtful[0]) * BLOCK, 0)] = w.DEFINED
        held[-1, high - int(doubtful[-1]) * BLOCK :] = w.DEFINED
        return not held.any()

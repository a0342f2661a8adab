"""A pool of byte strings in NumPy arrays that a Numba kernel can fill: each distinct string gets one code.

A log of millions of spans holds a few dozen names; a pool keeps one copy of each and no Python object per span.
"""

from __future__ import annotations

import numpy as np

from pypto.perf.kernel import kernel

_FNV_OFFSET = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)

COUNT, USED = 0, 1
"""Positions in ``StringPool.state``: number of strings, number of arena bytes."""


@kernel
def intern_bytes(buf, start, end, arena, ends, hashes, slots, state):
    """Code of ``buf[start:end]``, added when new; the caller has made room for one more string."""
    digest = _FNV_OFFSET
    for i in range(start, end):
        digest = (digest ^ np.uint64(buf[i])) * _FNV_PRIME
    mask = np.uint64(slots.size - 1)
    at = np.int64(digest & mask)
    while slots[at] >= 0:
        code = slots[at]
        if hashes[code] == digest:
            first = ends[code - 1] if code else 0
            if ends[code] - first == end - start:
                same = True
                for i in range(end - start):
                    if arena[first + i] != buf[start + i]:
                        same = False
                        break
                if same:
                    return code
        at = (at + 1) & np.int64(mask)
    code = state[COUNT]
    used = state[USED]
    for i in range(end - start):
        arena[used + i] = buf[start + i]
    state[USED] = used + end - start
    ends[code] = state[USED]
    hashes[code] = digest
    slots[at] = code
    state[COUNT] = code + 1
    return code


@kernel
def _rehash(hashes, count, slots):
    mask = np.uint64(slots.size - 1)
    for code in range(count):
        at = np.int64(hashes[code] & mask)
        while slots[at] >= 0:
            at = (at + 1) & np.int64(mask)
        slots[at] = code


def grown(array: np.ndarray, size: int, used: int) -> np.ndarray:
    """A longer array with the same first ``used`` rows; the rest holds nothing in particular."""
    longer = np.empty((size, *array.shape[1:]), array.dtype)
    longer[:used] = array[:used]
    return longer


class StringPool:
    """Distinct byte strings in order of first appearance; arrays are public because the scan kernel fills them."""

    def __init__(self, strings: int = 256, arena_bytes: int = 8192) -> None:
        self.arena = np.empty(arena_bytes, np.uint8)
        self.ends = np.zeros(strings, np.int64)
        self.hashes = np.zeros(strings, np.uint64)
        self.slots = np.full(2 * strings, -1, np.int64)
        self.state = np.zeros(2, np.int64)

    def __len__(self) -> int:
        return int(self.state[COUNT])

    def __getitem__(self, code: int) -> bytes:
        if not 0 <= code < len(self):
            raise IndexError(f"string code {code} out of range: the pool holds {len(self)}")
        first = int(self.ends[code - 1]) if code else 0
        return self.arena[first : self.ends[code]].tobytes()

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.arena, self.ends, self.hashes, self.slots, self.state

    def add(self, text: bytes) -> int:
        """Code of ``text``, added when new."""
        self.make_room(len(text))
        buffer = np.array(memoryview(text), np.uint8) if text else np.empty(0, np.uint8)
        return int(intern_bytes(buffer, 0, len(text), *self.arrays))

    def make_room(self, arena_bytes: int) -> None:
        """Grow until one more string of ``arena_bytes`` fits."""
        if self.state[USED] + arena_bytes > self.arena.size:
            size = max(2 * self.arena.size, int(self.state[USED]) + arena_bytes)
            self.arena = grown(self.arena, size, int(self.state[USED]))
        if len(self) + 1 > self.ends.size:
            self.ends = grown(self.ends, 2 * self.ends.size, len(self))
            self.hashes = grown(self.hashes, 2 * self.hashes.size, len(self))
            self.slots = np.full(2 * self.ends.size, -1, np.int64)
            _rehash(self.hashes, len(self), self.slots)

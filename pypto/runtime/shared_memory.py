"""Memory that a process and the children it forks share: no name, so nothing can be left behind.

A region is mapped before the ranks are forked and has the same address in all of them. Pages are committed when they
are first touched, so a region may be far larger than what is used of it.
"""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import mmap
import weakref
from typing import Final

import numpy as np
from numpy.typing import NDArray

ALIGNMENT: Final = 512
_PAGE: Final = mmap.PAGESIZE
_NORESERVE: Final = 0x4000  # MAP_NORESERVE of Linux, which the mmap module names from Python 3.13 on
_LEAST: Final = 1 << 28


def _mapped(size: int) -> mmap.mmap:
    """``size`` bytes of address space, or the largest half, quarter, ... of it that the system grants."""
    flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _NORESERVE
    while True:
        try:
            return mmap.mmap(-1, size, flags=flags)
        except OSError:
            if size // 2 < _LEAST:
                raise
            size //= 2


_mapped_regions: weakref.WeakSet[SharedRegion] = weakref.WeakSet()


def mapped_by_this_process(address: int, nbytes: int) -> bool:
    """Whether these bytes lie in one shared region of this process, its own or inherited."""
    ranges = ((r.base, r.base + r.size) for r in _mapped_regions if r.is_open)
    return nbytes >= 0 and any(first <= address and address + nbytes <= last for first, last in ranges)


class SharedRegion:
    """``size`` bytes shared with every process forked later, handed out in aligned pieces."""

    def __init__(self, size: int, purpose: str):
        self.purpose = purpose
        self._map: mmap.mmap | None = _mapped(size)
        self.size = len(self._map)
        self._anchor: ctypes.c_char | None = ctypes.c_char.from_buffer(self._map)
        self.base = ctypes.addressof(self._anchor)
        self._free: list[tuple[int, int]] = [(self.base, self.size)]  # (address, bytes), by address
        _mapped_regions.add(self)

    @property
    def is_open(self) -> bool:
        """False after :meth:`close`."""
        return self._map is not None

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> int:
        """Address of ``nbytes`` bytes; ``MemoryError`` when the region has no such piece."""
        size = -(-max(nbytes, 1) // alignment) * alignment
        for index, (address, room) in enumerate(self._free):
            skip = -address % alignment
            if room >= size + skip:
                rest = [(address, skip)] if skip else []
                if room > size + skip:
                    rest.append((address + skip + size, room - size - skip))
                self._free[index : index + 1] = rest
                return address + skip
        raise MemoryError(f"no {nbytes} bytes are left of the {self.size} bytes of {self.purpose}")

    def release(self, address: int, nbytes: int, alignment: int = ALIGNMENT) -> None:
        """Give a piece back, and its whole pages to the system."""
        size = -(-max(nbytes, 1) // alignment) * alignment
        self._discard(address, size)
        at = bisect.bisect(self._free, (address, 0))
        self._free.insert(at, (address, size))
        for left in (at, at - 1):
            if 0 <= left < len(self._free) - 1 and sum(self._free[left]) == self._free[left + 1][0]:
                self._free[left : left + 2] = [(self._free[left][0], self._free[left][1] + self._free[left + 1][1])]

    def _discard(self, address: int, size: int) -> None:
        first = -(-(address - self.base) // _PAGE) * _PAGE
        last = (address - self.base + size) // _PAGE * _PAGE
        if self._map is not None and last > first and hasattr(mmap, "MADV_REMOVE"):
            self._map.madvise(mmap.MADV_REMOVE, first, last - first)

    def view(self, address: int, nbytes: int) -> NDArray[np.uint8]:
        """``uint8[nbytes]`` over a piece."""
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))

    def words(self, address: int, count: int) -> NDArray[np.int64]:
        """``int64[count]`` over a piece."""
        return np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(address))

    def close(self) -> None:
        """Unmap; nothing may use the memory any more."""
        self._anchor = None
        if self._map is not None:
            mapped, self._map = self._map, None
            with contextlib.suppress(BufferError):  # a view is still alive: the mapping goes when the last one does
                mapped.close()

"""Memory of a launch: global allocations with stable addresses, the heap of the orchestration, on-chip arenas."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pypto.sim.recording import Words

ALIGNMENT = 512
"""Bytes: GM allocations start at multiples of it, in the arenas and in the stable address space."""
FIRST_STABLE = 1 << 20  # address 0 stays illegal
_CHUNK = 1 << 22
RECLAIM_BYTES = 512 << 20
"""The heap gives the memory of closed scopes out again only once a launch has allocated this much."""


def round_up(value: int, unit: int = ALIGNMENT) -> int:
    """The next multiple of ``unit`` bytes at or above ``value``."""
    return -(-value // unit) * unit


def memory_view(address: int, size: int) -> NDArray[np.uint8]:
    """``uint8[size]`` over raw memory."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


class Heap:
    """Zero-filled GM for the tensors an orchestration allocates; its chunks are reused by later launches."""

    def __init__(self) -> None:
        self._chunks: list[tuple[NDArray[np.uint8], int]] = []  # memory and its first aligned address
        self._chunk, self._used = 0, 0
        self.bytes = 0

    def allocate(self, size: int) -> int:
        """Address of ``size`` zero bytes."""
        size = max(round_up(size), ALIGNMENT)
        while self._chunk < len(self._chunks):
            memory, start = self._chunks[self._chunk]
            if self._used + size <= len(memory) - ALIGNMENT:
                at = start - memory.ctypes.data + self._used
                memory[at : at + size] = 0
                return self._take(start, size)
            self._chunk, self._used = self._chunk + 1, 0
        memory = np.zeros(max(size, _CHUNK) + ALIGNMENT, np.uint8)
        start = round_up(memory.ctypes.data)
        self._chunks.append((memory, start))
        return self._take(start, size)

    def _take(self, start: int, size: int) -> int:
        address = start + self._used
        self._used += size
        self.bytes += size
        return address

    def mark(self) -> tuple[int, int]:
        """Where the heap stands, for :meth:`release`."""
        return self._chunk, self._used

    def release(self, mark: tuple[int, int]) -> None:
        """Give back what was allocated since ``mark``, once enough was allocated that it matters."""
        if self.bytes > RECLAIM_BYTES:
            self._chunk, self._used = mark

    def reset(self) -> None:
        self._chunk, self._used, self.bytes = 0, 0, 0


class Allocations:
    """GM allocations of a launch in order of appearance, each with a stable address that is the same in every run."""

    def __init__(self, behind: int = FIRST_STABLE) -> None:
        """``behind``: stable addresses below it belong to buffers that outlive the launch."""
        self.ranges: list[tuple[int, int]] = []  # real address, bytes
        self.stable: list[int] = []
        self.deltas = np.zeros(64, np.int64)
        self.deltas_address = self.deltas.ctypes.data
        self._next = behind

    def copy(self) -> Allocations:
        """Allocations that go on from these."""
        other = Allocations()
        other.ranges, other.stable, other._next = self.ranges.copy(), self.stable.copy(), self._next
        if len(self.deltas) != len(other.deltas):
            other.deltas = np.zeros_like(self.deltas)
            other.deltas_address = other.deltas.ctypes.data
        other.deltas[:] = self.deltas
        return other

    def add_window(self, address: int, size: int, before: int, after: int) -> int:
        """Id of a rank's window; the stable addresses around it are kept free for what its peers have there."""
        self._next += round_up(before)
        number = self.add(address, size)
        self._next += round_up(after)
        return number

    def add(self, address: int, size: int, device: int = 0) -> int:
        """Id of a new allocation; ``device``: its stable address, when it has one from before the launch."""
        number = len(self.ranges)
        if number == len(self.deltas):
            self.deltas = np.concatenate((self.deltas, np.zeros_like(self.deltas)))
            self.deltas_address = self.deltas.ctypes.data
        self.ranges.append((address, size))
        self.stable.append(device or self._next)
        self.deltas[number] = self.stable[number] - address
        if not device:
            self._next += max(round_up(size), ALIGNMENT)
        return number

    def add_arguments(self, ranges: list[tuple[int, int]], devices: Sequence[int] = ()) -> list[int]:
        """Ids of the argument tensors at (address, bytes); tensors that share bytes share an allocation.

        ``devices``: stable address per tensor, 0 for those that have none yet.
        """
        if not ranges:
            return []
        merged: list[list[int]] = []
        for address, size in sorted(ranges):
            if merged and (address < merged[-1][1] or size == 0 and address == merged[-1][1]):
                merged[-1][1] = max(merged[-1][1], address + size)
            else:
                merged.append([address, address + size])
        known = {address: device for (address, _), device in zip(ranges, devices) if device}
        found: dict[tuple[int, int], int] = {}
        ids = []
        for address, size in ranges:
            low, high = next((low, high) for low, high in merged if low <= address and address + size <= high)
            if (low, high) not in found:
                starts = [device - (at - low) for at, device in known.items() if low <= at < high]
                found[low, high] = self.add(low, high - low, starts[0] if starts else 0)
            ids.append(found[low, high])
        return ids

    def table(self) -> Words:
        """Rows (id, stable address, bytes) for the recording."""
        rows = [(number, self.stable[number], size) for number, (_, size) in enumerate(self.ranges)]
        return np.array(rows, np.int64).reshape(-1, 3)


class OnChipMemory:
    """The memory spaces of one core; grows to what its programs use."""

    def __init__(self) -> None:
        self._arenas: dict[int, NDArray[np.uint8]] = {}
        self.bases = np.zeros(16, np.int64)

    def reserve(self, space_bytes: tuple[tuple[int, int], ...]) -> bool:
        """Make room for ``space_bytes``, pairs (space code, bytes); True when base addresses have changed."""
        changed = False
        for space, size in space_bytes:
            if space not in self._arenas or len(self._arenas[space]) < size:
                memory = np.zeros(size + ALIGNMENT, np.uint8)
                start = round_up(memory.ctypes.data) - memory.ctypes.data
                self._arenas[space] = memory[start : start + size]
                self.bases[space] = self._arenas[space].ctypes.data
                changed = True
        return changed

    def clear(self, space_bytes: tuple[tuple[int, int], ...]) -> None:
        """Zero the first bytes of the spaces named."""
        for space, size in space_bytes:
            self._arenas[space][:size] = 0

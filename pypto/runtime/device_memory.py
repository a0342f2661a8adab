"""The memory of one simulated chip: allocations that launches read and write in place."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from numbers import Integral
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pypto.runtime.address_space import AddressSpace

# Strictest alignment a GM access asks for (spec hardware 2.3, 3.2).
ALIGNMENT: Final = 512
# What memory holds before it is written: all bits set reads as NaN in every float type.
UNWRITTEN: Final = 0xFF


@dataclass(eq=False)
class Allocation:
    """``nbytes`` bytes at address ``base``; ``live`` until freed. ``owner`` names the worker that made it.

    ``device`` is where the chip has them (:class:`AddressSpace`), 0 for memory that no launch keeps.
    """

    base: int
    nbytes: int
    _storage: NDArray[np.uint8] | None = field(repr=False)
    owner: str = ""
    device: int = 0

    @property
    def live(self) -> bool:
        return self._storage is not None

    def release(self) -> None:
        """Give the bytes back; the allocation is dead from here on."""
        self._storage = None


def allocate(nbytes: int) -> Allocation:
    """Aligned memory of ``nbytes`` bytes that holds the unwritten pattern."""
    try:
        storage = np.empty(nbytes + ALIGNMENT - 1, np.uint8)
    except (MemoryError, ValueError) as error:
        raise MemoryError(f"this host has no room for a device tensor of {nbytes:,} bytes") from error
    skip = -storage.ctypes.data % ALIGNMENT
    storage[skip : skip + nbytes] = UNWRITTEN
    return Allocation(storage.ctypes.data + skip, nbytes, storage)


class DeviceMemory:
    """Live allocations by base address; every error names the address and what is there."""

    def __init__(self, owner: str = "") -> None:
        self.owner = owner
        self.space = AddressSpace()
        self._live: dict[int, Allocation] = {}

    def malloc(self, nbytes: int) -> Allocation:
        """``nbytes`` new bytes."""
        if not isinstance(nbytes, int) or nbytes <= 0:
            raise ValueError(f"nbytes must be a positive int, got {nbytes!r}")
        allocation = allocate(nbytes)
        allocation.owner = self.owner
        allocation.device = self.space.allocate(nbytes)
        self._live[allocation.base] = allocation
        return allocation

    def free(self, base: int) -> None:
        """Free the allocation that starts at ``base``."""
        self.space.free(self.at(base).device)
        self.at(base).release()
        del self._live[base]

    def free_all(self) -> None:
        """Free everything."""
        for base in list(self._live):
            self.free(base)

    def at(self, base: int) -> Allocation:
        """The live allocation that starts at ``base``."""
        _check_address(base, "a device address")
        found = self._live.get(base)
        if found is None:
            raise ValueError(f"{base:#x} is not the base of a live allocation of this worker{self._near(base)}")
        return found

    def owns(self, allocation: object) -> bool:
        """Whether ``allocation`` is live here."""
        return isinstance(allocation, Allocation) and self._live.get(allocation.base) is allocation

    def _near(self, address: int) -> str:
        for base, allocation in self._live.items():
            if base < address < base + allocation.nbytes:
                return f": an interior pointer, {address - base} bytes into the {allocation.nbytes} bytes at {base:#x}"
        return ": freed, foreign, or an interior pointer of memory freed since"

    def copy_to(self, device: int, host: int, nbytes: int) -> None:
        """Host to device: ``nbytes`` bytes to the start of the allocation at ``device``."""
        self._check_transfer(device, host, nbytes)
        ctypes.memmove(device, host, nbytes)

    def copy_from(self, host: int, device: int, nbytes: int) -> None:
        """Device to host: ``nbytes`` bytes from the start of the allocation at ``device``."""
        self._check_transfer(device, host, nbytes)
        ctypes.memmove(host, device, nbytes)

    def _check_transfer(self, device: int, host: int, nbytes: int) -> None:
        there = self.at(device).nbytes
        _check_address(host, "a host address")
        if host <= 0:
            raise ValueError(f"a host address must be positive, got {host}")
        if not isinstance(nbytes, int) or nbytes <= 0:
            raise ValueError(f"nbytes must be a positive int, got {nbytes!r}")
        if nbytes > there:
            raise ValueError(f"a transfer of {nbytes} bytes exceeds the {there} bytes allocated at {device:#x}")


def _check_address(address: object, what: str) -> None:
    if not isinstance(address, Integral):
        raise TypeError(f"{what} must be an int, got {type(address).__name__}; a tensor has its address in data_ptr")

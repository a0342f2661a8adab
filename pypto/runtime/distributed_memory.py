"""The memory of one card of a worker, reachable from its rank and from the parent at the same addresses."""

from __future__ import annotations

from pypto.runtime.device_memory import UNWRITTEN, Allocation, DeviceMemory
from pypto.runtime.shared_memory import SharedRegion


class CardMemory(DeviceMemory):
    """Allocations in the shared region of a card."""

    def __init__(self, region: SharedRegion):
        super().__init__()
        self._region = region

    @property
    def committed(self) -> int:
        """Bytes allocated."""
        return sum(allocation.nbytes for allocation in self._live.values())

    def device_address(self, address: int) -> int:
        """Where the chip has the byte at ``address`` of a live allocation, 0 for memory that is none."""
        found = self._live.get(address)
        if found is None:
            inside = (a for a in self._live.values() if a.base <= address < a.base + a.nbytes)
            found = next(inside, None)
        return 0 if found is None else found.device + address - found.base

    def malloc(self, nbytes: int) -> Allocation:
        if not isinstance(nbytes, int) or nbytes <= 0:
            raise ValueError(f"nbytes must be a positive int, got {nbytes!r}")
        base = self._region.allocate(nbytes)
        storage = self._region.view(base, nbytes)
        storage[:] = UNWRITTEN
        allocation = self._live[base] = Allocation(base, nbytes, storage, device=self.space.allocate(nbytes))
        return allocation

    def free(self, base: int) -> None:
        nbytes = self.at(base).nbytes
        super().free(base)
        self._region.release(base, nbytes)

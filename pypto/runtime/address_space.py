"""Where allocations lie in the memory of the simulated chip: small addresses that are the same in every run.

Host addresses say nothing about the cache of the chip. Buffers that stay get the first gap that takes them; what a
launch allocates for itself, its heap and the buffers of host tensors, lies behind all of them, at the same place in
every launch.
"""

from __future__ import annotations

from typing import Final

from pypto.sim.memory import FIRST_STABLE, round_up

_REACH: Final = 256 << 20
"""Bytes by which the region of the launches moves when buffers need the place it had."""


class AddressSpace:
    """First-fit allocation of multiples of 512 bytes."""

    def __init__(self) -> None:
        self._taken: list[tuple[int, int]] = []  # (first, behind the last), ordered
        self._fresh: list[tuple[int, int]] = []
        self._reach = FIRST_STABLE

    def allocate(self, nbytes: int) -> int:
        """Address of ``nbytes`` bytes that nobody else has."""
        size, at, place = round_up(nbytes), FIRST_STABLE, 0
        for first, behind in self._taken:
            if at + size <= first:
                break
            at, place = behind, place + 1
        self._taken.insert(place, (at, at + size))
        self._fresh.append((at, size))
        if at + size > self._reach:
            self._reach = round_up(at + size, _REACH)
        return at

    def free(self, address: int) -> None:
        """Give back the allocation that starts at ``address``."""
        self._taken = [taken for taken in self._taken if taken[0] != address]

    @property
    def behind(self) -> int:
        """First address behind all buffers, past and present: where launches put what is theirs."""
        return self._reach

    def take_fresh(self) -> list[tuple[int, int]]:
        """(address, bytes) of what was allocated since the last call: no cache holds anything of it."""
        fresh, self._fresh = self._fresh, []
        return fresh

"""Accesses of different ranks that nothing orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pypto.sim.checks import words as w
from pypto.sim.recording import Words

if TYPE_CHECKING:
    from pypto.sim.checks.rank_order import RunOrder


class Unordered:
    """Which accesses of other ranks conflict by their kind and are not ordered; places are those in ``numbers``.

    What is not ordered with an access lies side by side in every chain: behind what comes before the access, and in
    front of what comes after it.
    """

    def __init__(self, order: RunOrder, numbers: Words) -> None:
        self._rank, self._kind = order.events.ranks()[numbers], order.events.kind[numbers]
        self._chain, self._position = order.chain[numbers], order.position[numbers]
        self._numbers, self._clocks = numbers, order.clocks
        self._of_chain = {}
        for chain in np.unique(self._chain).tolist():
            own = np.flatnonzero(self._chain == chain)
            self._of_chain[chain] = own[np.argsort(self._position[own], kind="stable")]
        self.doubtful = self._with_some()
        """Accesses that others are not ordered with, rising."""

    def _ranges(self, chosen: Words, chain: int, other: int) -> tuple[Words, Words]:
        """Where in chain ``other`` begins and ends what is not ordered with each access ``chosen`` of a chain."""
        theirs = self._of_chain[other]
        first = np.searchsorted(self._position[theirs], self._clocks[self._numbers[chosen], other])
        last = np.searchsorted(self._clocks[self._numbers[theirs], chain], self._position[chosen], side="right")
        return first, last

    def _with_some(self) -> Words:
        found = np.zeros(len(self._numbers), bool)
        for chain, own in self._of_chain.items():
            for other in self._of_chain:
                if other != chain:
                    first, last = self._ranges(own, chain, other)
                    found[own[first < last]] = True
        return np.flatnonzero(found)

    def later(self, at: int) -> Words:
        """Those behind access ``at`` in the list."""
        chain, parts = int(self._chain[at]), [np.zeros(0, np.int64)]
        for other, theirs in self._of_chain.items():
            if other != chain:
                first, last = self._ranges(np.array([at]), chain, other)
                parts.append(theirs[int(first[0]) : int(last[0])])
        rest = np.sort(np.concatenate(parts))
        rest = rest[rest > at]
        kinds = self._kind[rest]
        may = (self._rank[rest] != self._rank[at]) & ((kinds | self._kind[at]) & w.WRITES != 0)
        return rest[may & (kinds & self._kind[at] & w.ATOMIC == 0)]

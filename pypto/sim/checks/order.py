"""The order graph of a launch, and the table of accesses that is checked against it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pypto.sim.checks import conflicts as c
from pypto.sim.checks import words as w
from pypto.sim.recording import Words


class OrderGraph:
    """Nodes are tasks, empty tasks and accesses of the orchestration; a row of bits per node names its ancestors."""

    def __init__(self) -> None:
        self.count = 0
        self.bits = np.zeros((64, 1), np.uint64)

    def add(self, before: Iterable[int]) -> int:
        """A node that starts when the nodes ``before`` have ended."""
        node = self.count
        self.count += 1
        if node == len(self.bits):
            bits = np.zeros((2 * len(self.bits), 2 * self.bits.shape[1]), np.uint64)
            bits[: len(self.bits), : self.bits.shape[1]] = self.bits
            self.bits = bits
        row = self.bits[node]
        for other in before:
            np.bitwise_or(row, self.bits[other], out=row)
            row[other >> 6] |= np.uint64(1 << (other & 63))
        return node

    def reaches(self, first: int, second: int) -> bool:
        """Whether ``second`` cannot start before ``first`` has ended."""
        return bool(int(self.bits[second, first >> 6]) >> (first & 63) & 1)


class AccessTable:
    """Live accesses per allocation (conflicts.py) and the conflicts found so far."""

    def __init__(self, graph: OrderGraph) -> None:
        self.graph = graph
        self._entries = np.zeros((256, c.ENTRY_WORDS), np.int64)
        self._heads = np.full(64, -1, np.int64)
        self._findings = np.zeros((c.FINDING_CAPACITY, c.FINDING_WORDS), np.int64)
        self._clocks = np.full((1, 1), np.iinfo(np.int64).min, np.int64)
        self._request = np.zeros(c.REQUEST_WORDS, np.int64)
        self._request[c.Q_UNUSED] = -1
        self._request[c.Q_FINDINGS] = self._findings.ctypes.data
        self._absorb = c.absorb()

    @property
    def entries(self) -> int:
        """Rows ever needed at once."""
        return int(self._request[c.Q_FREE])

    @property
    def findings(self) -> Words:
        """Rows ``(kind, how often, first access, second access)``, each access an entry of conflicts.py."""
        return self._findings[: int(self._request[c.Q_FOUND])]

    def add_allocation(self, number: int) -> None:
        while number >= len(self._heads):
            self._heads = np.concatenate((self._heads, np.full_like(self._heads, -1)))

    def take(
        self,
        records: Words,
        *,
        node: int,
        seat: int,
        program: int,
        lane: int = 0,
        crew: int = -1,
        crew_index: int = -1,
        clocks: Words | None = None,
    ) -> None:
        """Compare the accesses ``records`` (int64[n, ACCESS_WORDS]) of one block with all that matter, and keep them.

        ``clocks``: the vector clocks that their snapshots name, int64[snapshots, cores of the crew].
        """
        request = self._request
        request[c.Q_RECORDS], request[c.Q_COUNT], request[c.Q_DONE] = records.ctypes.data, len(records), 0
        request[c.Q_NODE], request[c.Q_SEAT], request[c.Q_PROGRAM] = node, seat, program
        request[c.Q_LANE], request[c.Q_CREW], request[c.Q_CREW_INDEX] = lane, crew, crew_index
        request[c.Q_REACH], request[c.Q_REACH_WORDS] = self.graph.bits.ctypes.data, self.graph.bits.shape[1]
        request[c.Q_HEADS] = self._heads.ctypes.data
        used = self._clocks if clocks is None else clocks
        request[c.Q_CLOCKS], request[c.Q_CREW_SIZE] = used.ctypes.data, used.shape[1]
        while True:
            request[c.Q_ENTRIES], request[c.Q_CAPACITY] = self._entries.ctypes.data, len(self._entries)
            if self._absorb(request.ctypes.data) == 0:
                return
            self._entries = np.concatenate((self._entries, np.zeros_like(self._entries)))


__all__ = ["AccessTable", "OrderGraph", "w"]

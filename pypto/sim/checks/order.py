"""The table of accesses of a launch, which is checked against its order graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pypto.sim.checks import conflicts as c
from pypto.sim.checks import words as w
from pypto.sim.checks.buckets import (
    ROW_WORDS,
    add_lines,
    allocation_row,
    are_known,
    count_buckets,
    count_lines,
    forget_accesses,
)
from pypto.sim.checks.order_graph import OrderGraph, with_room
from pypto.sim.recording import Words


class Write(NamedTuple):
    """A write to an allocation: bytes ``low`` to ``high`` - 1, with gaps where its box has them."""

    program: int
    instruction: int
    low: int
    high: int


class AccessTable:
    """Live accesses per allocation (conflicts.py) and the conflicts found so far."""

    def __init__(self, graph: OrderGraph) -> None:
        self.graph = graph
        self._entries = np.zeros((256, c.ENTRY_WORDS), np.int64)
        self._allocations = np.zeros((64, ROW_WORDS), np.int64)
        self._heads = np.full((256, 2), -1, np.int64)
        self._writers = np.zeros((64, c.WRITER_WORDS), np.int64)
        self._findings = np.zeros((c.FINDING_CAPACITY, c.FINDING_WORDS), np.int64)
        self._request = np.zeros(c.REQUEST_WORDS, np.int64)
        self._address: int = self._request.ctypes.data
        self._request[c.Q_FINDINGS], self._request[c.Q_SEARCH] = self._findings.ctypes.data, graph.search_address
        self._absorb = c.absorb()
        self._buckets = 0
        self._point()
        self.reset()

    def reset(self) -> None:
        """Forget all allocations and accesses."""
        self._heads[: self._buckets] = -1
        self._buckets = 0
        self._spare: dict[int, list[int]] = {}
        """First buckets of allocations that were forgotten, by their number of buckets."""
        request = self._request
        request[c.Q_UNUSED], request[c.Q_FREE], request[c.Q_FOUND], request[c.Q_WRITERS_USED] = -1, 0, 0, 0
        request[c.Q_CROWDED] = -1

    def _point(self) -> None:
        request = self._request
        request[c.Q_HEADS], request[c.Q_ALLOCATIONS] = self._heads.ctypes.data, self._allocations.ctypes.data
        request[c.Q_ENTRIES], request[c.Q_CAPACITY] = self._entries.ctypes.data, len(self._entries)
        request[c.Q_WRITERS], request[c.Q_WRITERS_CAPACITY] = self._writers.ctypes.data, len(self._writers)

    @property
    def nbytes(self) -> int:
        """Bytes of everything that grows."""
        return sum(array.nbytes for array in (self._entries, self._allocations, self._heads, self._writers))

    @property
    def writers(self) -> dict[int, dict[int, Write]]:
        """Allocation: node that wrote it: its first write. The first nodes are enough."""
        found: dict[int, dict[int, Write]] = {}
        for allocation, node, *write in self._writers[: int(self._request[c.Q_WRITERS_USED])].tolist():
            found.setdefault(allocation, {}).setdefault(node, Write(*write))
        return found

    @property
    def writing_nodes(self) -> set[int]:
        """Nodes among the writers."""
        return set(self._writers[: int(self._request[c.Q_WRITERS_USED]), 1].tolist())

    @property
    def entries(self) -> int:
        """Rows ever needed at once."""
        return int(self._request[c.Q_FREE])

    @property
    def buckets(self) -> int:
        """Buckets ever needed at once."""
        return self._buckets

    @property
    def findings(self) -> Words:
        """Rows ``(kind, how often, first access, second access)``, each access an entry of conflicts.py."""
        return self._findings[: int(self._request[c.Q_FOUND])]

    def add_allocation(self, number: int, size: int) -> None:
        """Accesses of allocation ``number`` of ``size`` bytes are going to be compared."""
        row = allocation_row(size, self._place(count_buckets(size)))
        if number >= len(self._allocations):
            self._allocations = with_room(self._allocations, number + 1)
            self._point()
        self._allocations[number] = row

    def _place(self, count: int) -> int:
        """Number of the first of ``count`` buckets that nobody uses."""
        if self._spare.get(count):
            return self._spare[count].pop()
        first = self._buckets
        self._buckets += count
        if self._buckets > len(self._heads):
            grown = np.full((max(self._buckets, 2 * len(self._heads)), 2), -1, np.int64)
            grown[: len(self._heads)] = self._heads
            self._heads = grown
            self._point()
        return first

    def _grow(self) -> None:
        """Room for what the compiled part has asked for."""
        request = self._request
        crowded = int(request[c.Q_CROWDED])
        if crowded >= 0:
            request[c.Q_CROWDED] = -1
            row = self._allocations[crowded]
            add_lines(row, self._place(count_lines(row)))
        elif int(request[c.Q_FREE]) >= len(self._entries):
            self._entries = with_room(self._entries, len(self._entries) + 1)
        else:
            self._writers = with_room(self._writers, len(self._writers) + 1)
        self._point()

    def forget(self, numbers: Iterable[int]) -> None:
        """The accesses of these allocations are compared with no others any more."""
        request, entries = self._request, self._entries
        for number in numbers:
            for buckets in forget_accesses(self._allocations[number]):
                heads = self._heads[buckets.start : buckets.stop]
                for entry in heads[heads >= 0].tolist():
                    while entry >= 0:
                        following = int(entries[entry, c.E_NEXT])
                        entries[entry, [c.E_NEXT, c.E_CREW, c.E_NODE]] = request[c.Q_UNUSED], -1, -1
                        request[c.Q_UNUSED], entry = entry, following
                heads[:] = -1
                self._spare.setdefault(len(buckets), []).append(buckets.start)

    def take(self, records: Words, seats: Words) -> None:
        """Compare the accesses ``records`` (int64[n, ACCESS_WORDS]) with all that matter, and keep them.

        ``seats`` (int64[m, SEAT_WORDS]) are the blocks that their word ACCESS_SEAT names.
        """
        request = self._request
        request[c.Q_RECORDS], request[c.Q_COUNT], request[c.Q_DONE] = records.ctypes.data, len(records), 0
        seats[:, c.S_INDEX] = self.graph.indices(seats[:, c.S_NODE])
        request[c.Q_SEATS] = seats.ctypes.data
        while self._absorb(self._address) != 0:
            self._grow()

    def nodes(self) -> Words:
        """Nodes whose accesses are kept, rising."""
        nodes = np.unique(self._entries[: self.entries, c.E_NODE])
        return nodes[nodes >= 0]

    def reindex(self) -> None:
        """The nodes of the order graph have other places."""
        used = self._entries[: self.entries]
        used[:, c.E_INDEX] = self.graph.indices(used[:, c.E_NODE])

    def live(self, count: int) -> NDArray[np.bool_]:
        """Which of the first ``count`` allocations are not forgotten."""
        return are_known(self._allocations[:count])

    def snapshots(self, crew: int) -> Words:
        """Snapshots of a crew that accesses name, rising."""
        return np.unique(self._entries[self._of(crew), w.ACCESS_SNAPSHOT])

    def rename_snapshots(self, crew: int, old: Words, new: Words) -> None:
        """Let the accesses of a crew name snapshots ``new`` instead of ``old`` (rising)."""
        chosen = self._of(crew)
        self._entries[chosen, w.ACCESS_SNAPSHOT] = new[np.searchsorted(old, self._entries[chosen, w.ACCESS_SNAPSHOT])]

    def _of(self, crew: int) -> Words:
        used = self._entries[: self.entries]
        return np.flatnonzero((used[:, c.E_CREW] == crew) & (used[:, w.ACCESS_SNAPSHOT] >= 0))


def seat_of(node: int, seat: int, program: int) -> Words:
    """Seats of one block that waits for no other: ``int64[1, SEAT_WORDS]``."""
    row = np.zeros((1, c.SEAT_WORDS), np.int64)
    row[0, [c.S_NODE, c.S_SEAT, c.S_PROGRAM]] = node, seat, program
    row[0, c.S_CREW] = row[0, c.S_CREW_INDEX] = -1
    return row


__all__ = ["AccessTable", "OrderGraph", "seat_of", "w"]

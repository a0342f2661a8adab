"""The order graph of a launch, and the table of accesses that is checked against it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from pypto.sim.checks import conflicts as c
from pypto.sim.checks import search as g
from pypto.sim.checks import words as w
from pypto.sim.checks.buckets import ROW_WORDS, add_lines, allocation_row, count_buckets, count_lines, forget_accesses
from pypto.sim.recording import Words


def _with_room(array: Words, count: int) -> Words:
    """``array`` with at least ``count`` rows; at least twice as many as before when it has to grow."""
    if count <= len(array):
        return array
    grown = np.zeros((max(count, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


class Write(NamedTuple):
    """A write to an allocation: bytes ``low`` to ``high`` - 1, with gaps where its box has them."""

    program: int
    instruction: int
    low: int
    high: int


class OrderGraph:
    """Nodes are tasks, empty tasks and accesses of the orchestration, in the order in which they were submitted."""

    def __init__(self) -> None:
        self.search = np.zeros(g.SEARCH_WORDS, np.int64)
        self.search_address: int = self.search.ctypes.data
        self._starts, self._edges = np.zeros(64, np.int64), np.zeros(64, np.int64)
        self._marks, self._pending = np.zeros(64, np.int64), np.zeros(64, np.int64)
        self._point()
        self.reset()

    def reset(self) -> None:
        """Forget all nodes."""
        self.count = self._used = 0
        self.search[g.G_NODE] = -1

    def add(self, before: Iterable[int]) -> int:
        """A node that starts when the nodes ``before`` have ended."""
        node, edges = self.count, set(before)
        self.count += 1
        start = self._used
        if node + 2 > len(self._starts) or start + len(edges) > len(self._edges):
            self._starts, self._edges = _with_room(self._starts, node + 2), _with_room(self._edges, start + len(edges))
            self._marks, self._pending = _with_room(self._marks, node + 2), _with_room(self._pending, node + 2)
            self._point()
        if edges:
            self._edges[start : start + len(edges)] = tuple(edges)
        self._used = self._starts[node + 1] = start + len(edges)
        return node

    def _point(self) -> None:
        search = self.search
        search[g.G_STARTS], search[g.G_EDGES] = self._starts.ctypes.data, self._edges.ctypes.data
        search[g.G_MARKS], search[g.G_PENDING] = self._marks.ctypes.data, self._pending.ctypes.data

    @property
    def nbytes(self) -> int:
        """Bytes of everything that grows."""
        return sum(array.nbytes for array in (self._starts, self._edges, self._marks, self._pending))

    def ancestors(self, node: int) -> set[int]:
        """All nodes that have ended when ``node`` starts."""
        found: set[int] = set()
        pending = [node]
        while pending:
            at = pending.pop()
            before = set(self._edges[self._starts[at] : self._starts[at + 1]].tolist()) - found
            found |= before
            pending += before
        return found

    def reaches(self, first: int, second: int) -> bool:
        """Whether ``second`` cannot start before ``first`` has ended."""
        return first in self.ancestors(second)


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
            self._allocations = _with_room(self._allocations, number + 1)
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
            self._entries = _with_room(self._entries, len(self._entries) + 1)
        else:
            self._writers = _with_room(self._writers, len(self._writers) + 1)
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
                        entries[entry, c.E_NEXT], entries[entry, c.E_CREW] = request[c.Q_UNUSED], -1
                        request[c.Q_UNUSED], entry = entry, following
                heads[:] = -1
                self._spare.setdefault(len(buckets), []).append(buckets.start)

    def take(self, records: Words, seats: Words) -> None:
        """Compare the accesses ``records`` (int64[n, ACCESS_WORDS]) with all that matter, and keep them.

        ``seats`` (int64[m, SEAT_WORDS]) are the blocks that their word ACCESS_SEAT names.
        """
        request = self._request
        request[c.Q_RECORDS], request[c.Q_COUNT], request[c.Q_DONE] = records.ctypes.data, len(records), 0
        request[c.Q_SEATS] = seats.ctypes.data
        while self._absorb(self._address) != 0:
            self._grow()

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

"""The order graph of a launch: which task cannot start before which other one has ended."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise

import numpy as np

from pypto.sim.checks import search as g
from pypto.sim.checks.reduction import NOTHING, reduced
from pypto.sim.recording import Words


def with_room(array: Words, count: int) -> Words:
    """``array`` with at least ``count`` rows; at least twice as many as before when it has to grow."""
    if count <= len(array):
        return array
    grown = np.zeros((max(count, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


class OrderGraph:
    """Nodes are tasks, empty tasks and accesses of the orchestration, numbered in the order of their submission.

    Nodes that nobody asks about any more can be left out (reduction.py). The others keep their numbers; their places
    in the arrays of a search, which rise with the numbers, are their indices.
    """

    def __init__(self) -> None:
        self.search = np.zeros(g.SEARCH_WORDS, np.int64)
        self.search_address: int = self.search.ctypes.data
        self._hold(64, 64)
        self.reset()

    def _hold(self, nodes: int, edges: int) -> None:
        """Empty arrays for so many of each."""
        self._starts, self._edges = np.zeros(nodes, np.int64), np.zeros(edges, np.int64)
        self._marks, self._pending = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        self._point()

    def reset(self) -> None:
        """Forget all nodes."""
        self.count = self.size = self._used = 0
        """Nodes that there were, nodes that are kept, edges."""
        self._kept = np.zeros(0, np.int64)  # numbers of nodes older than the last reduction
        self._first = 0  # number of the first node younger than it
        self.search[g.G_NODE] = -1

    def add(self, before: Iterable[int]) -> int:
        """A node that starts when the nodes ``before`` have ended."""
        node, edges = self.count, set(before)
        if self._first:
            edges = {self.index(other) for other in edges}
        self._append(edges)
        self.count += 1
        return node

    def _append(self, edges: Collection[int]) -> None:
        index, start = self.size, self._used
        self.size += 1
        if index + 2 > len(self._starts) or start + len(edges) > len(self._edges):
            self._starts, self._edges = with_room(self._starts, index + 2), with_room(self._edges, start + len(edges))
            self._marks, self._pending = with_room(self._marks, index + 2), with_room(self._pending, index + 2)
            self._point()
        if edges:
            self._edges[start : start + len(edges)] = tuple(edges)
        self._used = self._starts[index + 1] = start + len(edges)

    def _point(self) -> None:
        search = self.search
        search[g.G_STARTS], search[g.G_EDGES] = self._starts.ctypes.data, self._edges.ctypes.data
        search[g.G_MARKS], search[g.G_PENDING] = self._marks.ctypes.data, self._pending.ctypes.data

    @property
    def nbytes(self) -> int:
        """Bytes of everything that grows."""
        return sum(array.nbytes for array in (self._starts, self._edges, self._marks, self._pending))

    def index(self, node: int) -> int:
        """Place of a node that is kept."""
        if node >= self._first:
            return node - self._first + len(self._kept)
        return int(self.indices(np.array([node], np.int64))[0])

    def indices(self, nodes: Words) -> Words:
        """Places of nodes that are kept; ``LookupError`` for one that is not. Negative numbers stay."""
        if not self._first:
            return nodes
        places = nodes - self._first + len(self._kept)
        old = np.flatnonzero((nodes >= 0) & (nodes < self._first))
        if len(old):
            places[old] = found = np.searchsorted(self._kept, nodes[old])
            known = self._kept[np.minimum(found, len(self._kept) - 1)] if len(self._kept) else np.full(len(old), -1)
            if (known != nodes[old]).any():
                raise LookupError(
                    f"node {int(nodes[old][known != nodes[old]][0])} has been left out of the order graph"
                )
        return np.where(nodes < 0, nodes, places)

    def number(self, index: int) -> int:
        """The node at a place."""
        return int(self._kept[index]) if index < len(self._kept) else index - len(self._kept) + self._first

    def _before(self) -> list[list[int]]:
        """Indices of the nodes directly before each."""
        edges, starts = self._edges[: self._used].tolist(), self._starts[: self.size + 1].tolist()
        return [edges[first:last] for first, last in pairwise(starts)]

    def pairs(self, asked: Iterable[int]) -> list[tuple[int, int]]:
        """Pairs of the nodes ``asked``, the first before the second, from which all others follow."""
        nodes = {self.index(node) for node in asked}
        above = reduced(self._before(), nodes, ()).before
        nearest: dict[int, set[int]] = {}
        found = []
        for node, direct in above.items():
            near = nearest[node] = set().union(*({one} if one in nodes else nearest[one] for one in direct))
            if node in nodes:
                found += [(self.number(one), self.number(node)) for one in sorted(near)]
        return found

    def keep(self, asked: Iterable[int], named: Iterable[int]) -> dict[int, int]:
        """Leave out what does not matter to the order of the nodes ``asked`` and of nodes to come.

        Returns, for the nodes ``named`` that those may be put behind, the node that does as well; none where nothing
        that is kept is before them.
        """
        left = reduced(self._before(), {self.index(node) for node in asked}, {self.index(node) for node in named})
        stands_for = {self.number(a): self.number(b) for a, b in left.stands_for.items() if b != NOTHING}
        nodes = [self.number(index) for index in left.before]
        places = {index: place for place, index in enumerate(left.before)}
        self._hold(max(64, 2 * len(nodes)), max(64, 2 * sum(map(len, left.before.values()))))
        self.size = self._used = 0
        for direct in left.before.values():
            self._append([places[other] for other in direct])
        self._kept, self._first = np.array(nodes, np.int64), self.count
        self.search[g.G_NODE], self.search[g.G_NUMBER] = -1, 0
        return stands_for

    def ancestors(self, node: int) -> set[int]:
        """All nodes that are kept and have ended when ``node`` starts."""
        found: set[int] = set()
        pending = [self.index(node)]
        while pending:
            at = pending.pop()
            before = set(self._edges[self._starts[at] : self._starts[at + 1]].tolist()) - found
            found |= before
            pending += before
        return {self.number(index) for index in found}

    def reaches(self, first: int, second: int) -> bool:
        """Whether ``second`` cannot start before ``first`` has ended."""
        return first in self.ancestors(second)


__all__ = ["OrderGraph", "with_room"]

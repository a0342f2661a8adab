"""The accesses of a launch, given to the race analysis again in other legal orders.

A legal order starts a task when the tasks it waits for have ended; blocks of one task, and tasks that do not wait for
each other, are mixed access by access.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from pypto.sim.checks import conflicts as c
from pypto.sim.checks import run as checked_run
from pypto.sim.checks import words as w
from pypto.sim.checks.order import AccessTable
from pypto.sim.checks.races import race_findings

Verdict = frozenset[tuple[str, str]]


class Replay:
    """While it is patched in, every launch is judged ``count`` times; ``verdicts`` are (kind, tensor) of each."""

    def __init__(self, monkeypatch: Any, count: int, seed: int = 0):
        self.count, self.random = count, random.Random(seed)
        self.verdicts: list[Verdict] = []
        self.orders: set[tuple[int, ...]] = set()
        """Orders that were tried, as the blocks of the accesses."""
        self.accesses = 0
        self._taken: list[tuple[np.ndarray, np.ndarray]] = []
        self._sizes: dict[int, int] = {}
        self._take, self._add = AccessTable.take, AccessTable.add_allocation
        monkeypatch.setattr(AccessTable, "take", lambda table, rows, seats: self._note(table, rows, seats))
        monkeypatch.setattr(AccessTable, "add_allocation", lambda table, n, size: self._note_size(table, n, size))
        monkeypatch.setattr(checked_run, "race_findings", self._judge)

    def _note(self, table: AccessTable, rows: np.ndarray, seats: np.ndarray) -> None:
        self._taken += [(row[None].copy(), seats[row[w.ACCESS_SEAT]][None].copy()) for row in rows]
        self._take(table, rows, seats)

    def _note_size(self, table: AccessTable, number: int, size: int) -> None:
        self._sizes[number] = size
        self._add(table, number, size)

    def _judge(self, watch: Any) -> Iterator[Any]:
        found = list(race_findings(watch))
        self.accesses = len(self._taken)
        kept = watch.table
        for _ in range(self.count):
            watch.table = AccessTable(watch.graph)
            for number, size in self._sizes.items():
                self._add(watch.table, number, size)
            order = list(self._order(watch.graph))
            self.orders.add(tuple(int(seat[0, c.S_SEAT]) for _, seat in order))
            for row, seat in order:
                row[0, w.ACCESS_SEAT] = 0
                self._take(watch.table, row, seat)
            self.verdicts.append(verdict_of(race_findings(watch)))
        watch.table = kept
        self._taken, self._sizes = [], {}
        return iter(found)

    def _order(self, graph: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The accesses in a legal order, drawn at random."""
        blocks: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray]]] = {}
        for row, seat in self._taken:
            blocks.setdefault((int(seat[0, c.S_NODE]), int(seat[0, c.S_SEAT])), []).append((row, seat))
        left: dict[int, int] = {}
        for node, _ in blocks:
            left[node] = left.get(node, 0) + 1
        waits = {node: graph.ancestors(node) & left.keys() for node in left}
        places = dict.fromkeys(blocks, 0)
        while places:
            ready = [block for block in places if all(left[other] == 0 for other in waits[block[0]])]
            block = self.random.choice(ready)
            yield blocks[block][places[block]]
            places[block] += 1
            if places[block] == len(blocks[block]):
                del places[block]
                left[block[0]] -= 1


def verdict_of(findings: Any) -> Verdict:
    return frozenset((finding.kind, finding.tensor) for finding in findings)

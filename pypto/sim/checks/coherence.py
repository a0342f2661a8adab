"""Stores of one block that reach one cache line through the scalar path and in bulk, with no fence between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from pypto.sim.checks import conflicts as c
from pypto.sim.checks import words as w
from pypto.sim.checks.boxes import overlaps
from pypto.sim.recording import Words

_SEAT = w.ACCESS_WORDS  # word of a kept row: number of the block, then its program and node


class MixedStores:
    """Follows blocks that have made scalar stores; keeps the stores since their last fence."""

    def __init__(self) -> None:
        self.found: list[tuple[int, int, Words, Words]] = []
        """(program, node, bulk store, scalar store), once per pair of instructions."""
        self._seen: set[tuple[int, int, int]] = set()
        self._kept = np.zeros((0, w.ACCESS_WORDS + 3), np.int64)

    def take(self, records: Words, seats: Words, running: Iterable[int]) -> None:
        """Rows of the log with their seats; the blocks numbered ``running`` have not ended."""
        kinds = records[:, w.ACCESS_KIND]
        scalar = (kinds & (w.BY_SCALAR | w.WRITES)) == (w.BY_SCALAR | w.WRITES)
        if not scalar.any() and not len(self._kept):
            return
        stores = records[(kinds & w.WRITES != 0) & (kinds < w.NOTIFIES)]
        of = seats[stores[:, w.ACCESS_SEAT]]
        named = np.concatenate((stores, of[:, [c.S_SEAT, c.S_PROGRAM, c.S_NODE]]), 1)
        named[:, w.ACCESS_SEAT] = 0
        rows = np.concatenate((self._kept, named))
        for one, other in _pairs(rows):
            key = int(one[_SEAT + 1]), int(other[w.ACCESS_INSTRUCTION]), int(one[w.ACCESS_INSTRUCTION])
            if key not in self._seen:
                self._seen.add(key)
                self.found.append((key[0], int(one[_SEAT + 2]), other[: w.ACCESS_WORDS], one[: w.ACCESS_WORDS]))
        self._kept = _open(rows, running)


def _pairs(rows: Words) -> Iterator[tuple[Words, Words]]:
    """(scalar store, bulk store) of one block to one line, no fence between."""
    by_scalar = rows[:, w.ACCESS_KIND] & w.BY_SCALAR != 0
    bulk = rows[~by_scalar]
    if not len(bulk):
        return
    for one in _one_per_line(rows[by_scalar]):
        near = bulk
        for word in (_SEAT, w.ACCESS_ALLOCATION, w.ACCESS_FENCES):
            near = near[near[:, word] == one[word]]
        if not len(near):
            continue
        line = one[w.ACCESS_BOX : w.ACCESS_WORDS].copy()
        line[0], line[1] = line[0] // c.LINE_BYTES * c.LINE_BYTES, c.LINE_BYTES
        hits = overlaps(near[:, w.ACCESS_BOX : w.ACCESS_WORDS], np.repeat(line[None], len(near), 0))
        for other in near[np.flatnonzero(hits)]:
            yield one, other


def _one_per_line(stores: Words) -> Words:
    """The first of those scalar stores of an instruction that are alike: in one line, with no fence between."""
    alike = stores[:, [_SEAT, w.ACCESS_ALLOCATION, w.ACCESS_FENCES, w.ACCESS_INSTRUCTION, w.ACCESS_BOX]]
    alike[:, -1] //= c.LINE_BYTES
    return stores[np.sort(np.unique(alike, axis=0, return_index=True)[1])]


def _open(rows: Words, running: Iterable[int]) -> Words:
    """Different stores of the blocks ``running`` since the last fence of each."""
    chosen = [rows[:0]]
    for seat in running:
        own = rows[rows[:, _SEAT] == seat]
        if len(own):
            own = own[own[:, w.ACCESS_FENCES] == own[:, w.ACCESS_FENCES].max()]
            own[:, w.ACCESS_EPOCH] = own[:, w.ACCESS_SNAPSHOT] = own[:, w.ACCESS_SUM] = 0
            chosen.append(np.unique(own, axis=0))
    return np.concatenate(chosen)

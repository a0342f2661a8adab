"""Signal cells over time: when a wait is over, from what arrives and what the own rank does (spec distributed 2.9)."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import NamedTuple

from pypto.sim.distributed import EQUAL


class Arrival(NamedTuple):
    """A peer's notify reaches a cell: ``order`` tells arrivals of one moment apart."""

    at: int
    order: int
    value: int
    sets: int


class Cell:
    """One signal cell: arrivals from other ranks in order of time, and its own rank's changes in program order."""

    def __init__(self, arrivals: Sequence[tuple[int, int, int, int]]):
        self._arrivals = arrivals
        self._base, self._from = 0, 0  # value before the arrivals not yet overwritten, and the first of them
        self._seen = 0  # arrivals that a wait has already needed
        self._values: _Values | None = None

    def change(self, value: int, sets: int) -> None:
        """The rank itself adds to the cell or sets it; a set drops what had arrived by then."""
        if sets:
            self._base, self._from, self._values = value, self._seen, None
        else:
            self._base += value

    def reached(self, expected: int, comparison: int) -> int:
        """When the cell is first what a wait expects (ps); the last arrival when it never is."""
        if self._values is None:
            self._values = _Values(self._arrivals[self._from :])
        count = self._values.first(expected, self._base, comparison)
        self._seen = max(self._seen, self._from + count)
        return self._arrivals[self._from + count - 1][0] if count else 0


class _Values:
    """The value of a cell after each arrival, looked up by what a wait expects.

    Up to the first arrival that sets the cell its values stand on what the own rank has added, from there on they
    stand alone; each part is kept as the highest value so far and the first place of every value.
    """

    def __init__(self, arrivals: Sequence[tuple[int, int, int, int]]):
        self._count = len(arrivals)
        first_set = next((k for k, arrival in enumerate(arrivals) if arrival[3]), self._count)
        total, before = 0, [0]
        after: list[int] = []
        for k, (_, _, value, sets) in enumerate(arrivals):
            total = value if sets else total + value
            (before if k < first_set else after).append(total)
        self._parts = [_Part(before, 0), _Part(after, len(before))]

    def first(self, expected: int, base: int, comparison: int) -> int:
        """How many arrivals it takes."""
        for part, goal in zip(self._parts, (expected - base, expected)):
            place = part.equal(goal) if comparison == EQUAL else part.at_least(goal)
            if place is not None:
                return place
        return self._count


class _Part:
    def __init__(self, values: list[int], first: int):
        self._first, self._places, self._highest = first, dict[int, int](), list[int]()
        for k, value in enumerate(values):
            self._places.setdefault(value, first + k)
            self._highest.append(max(value, self._highest[-1]) if k else value)

    def equal(self, goal: int) -> int | None:
        return self._places.get(goal)

    def at_least(self, goal: int) -> int | None:
        place = bisect.bisect_left(self._highest, goal)
        return self._first + place if place < len(self._highest) else None


__all__ = ["Arrival", "Cell"]

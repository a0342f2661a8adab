"""The signals of all ranks played together, in one order of events (spec hardware 13b).

A long chain of signals would need a timing of its launches for every link: each timing only moves what follows the
last wait that was right. Here the notifies and waits of all cores move at once, with the time between them as the last
timing of their launches had it. The result is a guess of when waits end, checked by the next timing: it decides how
often launches are timed, never what their times are.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pypto.sim.distributed import EQUAL

_GO_ON, _ARRIVE = 0, 1

CellOf = tuple[int, int]
"""Rank and address."""


class Step(NamedTuple):
    """A notify or a wait of a core. ``pause``: ps from the end of the step before until this one ends or waits."""

    pause: int
    cell: CellOf
    value: int  # notify: what it adds or sets; wait: what it expects
    mode: int  # notify: 1 when it sets; wait: the comparison
    waits: bool
    takes: int = 0  # wait: ps from the moment it is over to its end


@dataclass(frozen=True)
class SignalChain:
    """What one core's task notifies and waits for, one after the other.

    ``start``: ps, in the last timing; ``end``: of its last step there.
    """

    rank: int
    start: int
    end: int
    steps: tuple[Step, ...]


@dataclass
class _PlayedCell:
    """Value now, and those it has had since its own rank changed it: a wait is over when one of them suits."""

    base: int = 0
    total: int = 0
    highest: int = 0
    totals: set[int] = field(default_factory=lambda: {0})
    sleepers: list[int] = field(default_factory=list)

    def own(self, value: int, sets: int) -> None:
        """The own rank changes it."""
        if sets:
            self._restart(value)
        else:
            self.base += value

    def arrive(self, value: int, sets: int) -> None:
        """A peer's notify arrives."""
        if sets:
            self._restart(value)
            return
        self.total += value
        self.highest = max(self.highest, self.total)
        self.totals.add(self.total)

    def _restart(self, value: int) -> None:
        self.base, self.total, self.highest, self.totals = value, 0, 0, {0}

    def suits(self, expected: int, comparison: int) -> bool:
        goal = expected - self.base
        return goal in self.totals if comparison == EQUAL else self.highest >= goal


class SignalPlay:
    """Plays chains once; ``delay_ps`` after its end a notify arrives at another rank.

    A chain begins when the chain of its rank has ended that was the last to end before it in the last timing.
    """

    def __init__(self, chains: Sequence[SignalChain], delay_ps: int):
        self._chains, self._delay = chains, delay_ps
        self._cells: dict[CellOf, _PlayedCell] = {}
        self._events: list[tuple[int, int, int, int, CellOf, int, int]] = []
        self.events = 0
        self._followers: dict[int, list[int]] = {}
        self.starts = [chain.start for chain in chains]
        self.ends: list[list[int]] = [[] for _ in chains]
        """Per chain the ends of its steps, those that were reached."""

    def play(self) -> SignalPlay:
        """Every event once."""
        for number, before in enumerate(_predecessors(self._chains)):
            if before < 0:
                self._begin(self._chains[number].start, number)
            else:
                self._followers.setdefault(before, []).append(number)
        while self._events:
            now, _, kind, number, cell, value, mode = heapq.heappop(self._events)
            if kind == _GO_ON:
                self._step(now, number)
            else:
                self._changed(now, self._cell(cell).arrive, cell, value, mode)
        return self

    def _cell(self, cell: CellOf) -> _PlayedCell:
        return self._cells.setdefault(cell, _PlayedCell())

    def _push(self, at: int, kind: int, number: int, cell: CellOf = (0, 0), value: int = 0, mode: int = 0) -> None:
        self.events += 1
        heapq.heappush(self._events, (at, self.events, kind, number, cell, value, mode))

    def _begin(self, start: int, number: int) -> None:
        self.starts[number] = start
        self._push(start + self._chains[number].steps[0].pause, _GO_ON, number)

    def _step(self, now: int, number: int) -> None:
        """A chain has come to its next step: a notify has ended, a wait begins."""
        chain = self._chains[number]
        step = chain.steps[len(self.ends[number])]
        cell = self._cell(step.cell)
        if step.waits:
            if cell.suits(step.value, step.mode):
                self._ended(now + step.takes, number)
            else:
                cell.sleepers.append(number)
            return
        if step.cell[0] == chain.rank:
            self._changed(now, cell.own, step.cell, step.value, step.mode)
        else:
            self._push(now + self._delay, _ARRIVE, number, step.cell, step.value, step.mode)
        self._ended(now, number)

    def _ended(self, end: int, number: int) -> None:
        ends, chain = self.ends[number], self._chains[number]
        ends.append(end)
        if len(ends) < len(chain.steps):
            self._push(end + chain.steps[len(ends)].pause, _GO_ON, number)
            return
        for follower in self._followers.get(number, ()):
            self._begin(end + self._chains[follower].start - chain.end, follower)

    def _changed(self, now: int, change: Callable[[int, int], None], cell: CellOf, value: int, mode: int) -> None:
        """A cell is changed, which may end waits on it."""
        change(value, mode)
        asleep = self._cells[cell].sleepers
        self._cells[cell].sleepers = []
        for number in asleep:
            self._step(now, number)


def _predecessors(chains: Sequence[SignalChain]) -> list[int]:
    """Per chain: the chain of its rank that ended last before it began, -1 for none."""
    by_rank: dict[int, list[tuple[int, int]]] = {}
    for number, chain in enumerate(chains):
        by_rank.setdefault(chain.rank, []).append((chain.end, number))
    for ended in by_rank.values():
        ended.sort()
    found = []
    for chain in chains:
        ended = by_rank[chain.rank]
        place = bisect.bisect_right(ended, (chain.start, len(chains))) - 1
        while place >= 0 and chains[ended[place][1]].start >= chain.start:  # itself, when it takes no time
            place -= 1
        found.append(ended[place][1] if place >= 0 else -1)
    return found


__all__ = ["SignalChain", "SignalPlay", "Step"]

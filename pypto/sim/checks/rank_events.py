"""The events of a run on several chips: columns over all of them, and each as an object when it is asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from pypto.sim.checks import words as w
from pypto.sim.checks.rank_log import EV_BOX, EV_KIND, EV_NODE, EV_PLACE, EV_SEAT, Place, RankLog
from pypto.sim.checks.signal_cells import SET
from pypto.sim.recording import Words

NOTIFIES, WAITED = w.NOTIFIES, w.WAITED
Cell = tuple[int, int]
"""Name of a cell (domain and byte) and the world rank that owns it."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the run; ``number`` is its position in the run, ``thread`` what happens in program order."""

    number: int
    rank: int
    dispatch: int
    thread: tuple[int, int]
    node: int
    kind: int
    place: Place
    words: Words

    @property
    def cell(self) -> Cell:
        owner = int(self.words[1]) if self.kind == NOTIFIES else self.rank
        return int(self.words[0]), owner

    @property
    def writes(self) -> bool:
        return bool(self.kind & w.WRITES)


@dataclass(frozen=True)
class Thread:
    """What one block did: the numbers of its events in program order, and its task (dispatch, node)."""

    numbers: Words
    task: tuple[int, int]


class RunEvents(Sequence[Event]):
    """All events of a run, numbered by dispatch; ``logs``: dispatch -> (rank, log)."""

    def __init__(self, logs: Mapping[int, tuple[int, RankLog]]) -> None:
        self.dispatches = sorted(logs)
        self._logs = [logs[dispatch] for dispatch in self.dispatches]
        self._starts = np.cumsum([0, *(len(log.events) for _, log in self._logs)]).tolist()
        self.cells: list[Cell] = []
        self._numbers: dict[Cell, int] = {}
        columns = [self._columns(rank, log) for rank, log in self._logs]
        kinds, cells, sets = (
            np.concatenate([column[k] for column in columns]) if columns else np.zeros(0, np.int64) for k in range(3)
        )
        self.kind, self.cell, self.sets = kinds.astype(np.int16), cells.astype(np.int32), sets.astype(bool)
        """Of every event: its kind, the number of its cell (-1: it is no signal), whether it sets its cell."""
        amounts = [log.events.coded["amount"] for _, log in self._logs]
        self.amount: Words = np.concatenate(amounts) if amounts else np.zeros(0, np.int64)
        """What a notify adds or sets, or what a wait expects."""

    def _columns(self, rank: int, log: RankLog) -> tuple[Words, Words, Words]:
        patterns = log.events.patterns
        cells = np.full(len(patterns), -1, np.int64)
        for index, pattern in enumerate(patterns):
            kind = int(pattern[EV_KIND])
            if kind in (NOTIFIES, WAITED):
                cell = int(pattern[EV_BOX]), int(pattern[EV_BOX + 1]) if kind == NOTIFIES else rank
                if cell not in self._numbers:
                    self._numbers[cell] = len(self.cells)
                    self.cells.append(cell)
                cells[index] = self._numbers[cell]
        sets = (patterns[:, EV_KIND] == NOTIFIES) & (patterns[:, EV_BOX + 3] == SET)
        of = log.events.coded["pattern"]
        return patterns[:, EV_KIND][of], cells[of], sets[of]

    def __len__(self) -> int:
        return int(self._starts[-1])

    @overload
    def __getitem__(self, number: int) -> Event: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Event]: ...
    def __getitem__(self, number: int | slice) -> Event | Sequence[Event]:
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(f"event {number} of {len(self)}")
        at = bisect_right(self._starts, number) - 1
        (rank, log), dispatch = self._logs[at], self.dispatches[at]
        row = log.events.row(number - self._starts[at])
        seat = dispatch, int(row[EV_SEAT])
        place = log.places[int(row[EV_PLACE])]
        return Event(number, rank, dispatch, seat, int(row[EV_NODE]), int(row[EV_KIND]), place, row[EV_BOX:])

    def chosen(self, numbers: Words) -> ChosenEvents:
        """Some of the events."""
        return ChosenEvents(self, numbers)

    def threads(self) -> Iterator[Thread]:
        """The blocks of every dispatch, by their first events."""
        for dispatch, (_, log), start in zip(self.dispatches, self._logs, self._starts):
            seats, nodes = log.events.coded["seat"], log.events.coded["node"]
            order = np.argsort(seats, kind="stable")
            ends = np.flatnonzero(np.diff(seats[order])) + 1
            groups = [group for group in np.split(order, ends) if len(group)]
            for group in sorted(groups, key=lambda group: int(group[0])):
                yield Thread((start + group).astype(np.int32), (dispatch, int(nodes[group[0]])))

    def boxes(self, numbers: Words) -> Words:
        """Boxes of memory accesses: ``int64[n, BOX_WORDS]``."""
        return np.stack([self[number].words for number in numbers.tolist()])

    def ranks(self) -> Words:
        """The rank of every event."""
        return np.repeat([rank for rank, _ in self._logs], np.diff(self._starts)).astype(np.int32)


class ChosenEvents(Sequence[Event]):
    """Events by their numbers."""

    def __init__(self, events: RunEvents, numbers: Words) -> None:
        self._events, self.numbers = events, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if isinstance(index, slice):
            return ChosenEvents(self._events, self.numbers[index])
        return self._events[int(self.numbers[index])]

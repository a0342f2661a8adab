"""What a launch does with windows and signals, kept for the comparison of the ranks after the run.

Between two signals of a block the order of its accesses does not matter to other ranks: equal ones are kept once. So
what is kept grows with the signals and with how windows are divided, not with the number of accesses.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pypto.sim.checks import conflicts as c
from pypto.sim.checks import words as w
from pypto.sim.checks.event_rows import EventCoder, EventRows
from pypto.sim.recording import Words

_BOX_WORDS = w.ACCESS_WORDS - w.ACCESS_BOX
_COLUMNS = 5 + _BOX_WORDS  # kind, node, seat, program, instruction, box; then the signals its block has passed


class RankAccesses:
    """Events in the order in which every block made them."""

    def __init__(self) -> None:
        self._closed = EventCoder()
        self._open = np.zeros((0, _COLUMNS + 1), np.int64)
        self._passed: dict[int, int] = {}
        self._lanes: dict[tuple[int, ...], set[int]] = {}

    def events(self) -> EventRows:
        """All rows (kind, node, seat, program, instruction, box), boxes at absolute addresses; none come any more."""
        self._closed.append(self._open[:, :_COLUMNS])
        self._open = self._open[:0]
        return self._closed.rows(_COLUMNS)

    def nodes(self) -> set[int]:
        """Nodes of the order graph that events name."""
        return self._closed.nodes().union(np.unique(self._open[:, 1]).tolist())

    def without_signals(self, records: Words, seats: Words, allocations: Words, windows: Iterable[int]) -> Words:
        """Keep what concerns ``windows`` and signals; returns the memory accesses among ``records``."""
        signals = records[:, w.ACCESS_KIND] >= w.NOTIFIES
        chosen = signals | np.isin(records[:, w.ACCESS_ALLOCATION], list(windows))
        if chosen.any():
            self._take(records[chosen], seats, allocations)
        return np.ascontiguousarray(records[~signals]) if signals.any() else records

    def _take(self, records: Words, seats: Words, allocations: Words) -> None:
        of = seats[records[:, w.ACCESS_SEAT]]
        events = np.zeros((len(records), _COLUMNS + 1), np.int64)
        events[:, 0], events[:, 1], events[:, 2] = records[:, w.ACCESS_KIND], of[:, c.S_NODE], of[:, c.S_SEAT]
        events[:, 3], events[:, 4] = of[:, c.S_PROGRAM], records[:, w.ACCESS_INSTRUCTION]
        events[:, 5:_COLUMNS] = records[:, w.ACCESS_BOX :]
        signals = events[:, 0] >= w.NOTIFIES
        self._note_lanes(events[events[:, 0] == w.NOTIFIES], of[events[:, 0] == w.NOTIFIES])
        events[~signals, 5] += allocations[records[~signals, w.ACCESS_ALLOCATION], w.GM_BASE]
        for seat in np.unique(events[:, 2]).tolist():
            own = events[:, 2] == seat
            passed = self._passed.get(seat, 0) + np.cumsum(2 * signals[own])
            events[own, _COLUMNS] = passed - signals[own]  # a signal stands between what is before and behind it
            self._passed[seat] = int(passed[-1])
        self._close(np.concatenate((self._open, events)))

    def _note_lanes(self, notifies: Words, of: Words) -> None:
        """Which vector lanes of a block made the same addition."""
        for event, seat in zip(notifies.tolist(), of.tolist()):
            node, program, instruction, (cell, rank, value, sets) = event[1], event[3], event[4], event[5:9]
            if not sets and seat[c.S_CORE] > 0:
                key = node, seat[c.S_BLOCK], program, instruction, cell, rank, value
                self._lanes.setdefault(key, set()).add(seat[c.S_LANE])

    def doubled(self) -> list[tuple[int, int, int, int, int]]:
        """(program, instruction, cell, rank, value) of the additions that both lanes of a block made."""
        return [key[2:] for key, lanes in self._lanes.items() if len(lanes) > 1]  # type: ignore[misc]

    def _close(self, events: Words) -> None:
        """Drop repeated events, and put away those that no later one can be equal to."""
        _, firsts = np.unique(events, axis=0, return_index=True)
        events = events[np.sort(firsts)]
        now = np.array([self._passed[seat] for seat in events[:, 2].tolist()], np.int64)
        is_open = events[:, _COLUMNS] == now
        if not is_open.all():
            self._closed.append(events[~is_open, :_COLUMNS])
        self._open = events[is_open]

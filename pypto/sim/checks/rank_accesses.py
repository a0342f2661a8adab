"""What a launch does with windows and signals, kept for the comparison of the ranks after the run.

Between two signals of a block the order of its accesses does not matter to other ranks: equal ones are kept once. So
what is kept grows with the signals and with how windows are divided, not with the number of accesses; and it is packed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from pypto.sim.checks import conflicts as c
from pypto.sim.checks import event_taking as t
from pypto.sim.checks import words as w
from pypto.sim.checks.event_rows import CHUNK, Chunk, EventRows
from pypto.sim.recording import Words

_ROOM: Final = 256
"""Patterns and threads there is room for at first."""
_OPEN_ROOM: Final = 1 << 12
_OPEN_MOST: Final = 1 << 20


class RankAccesses:
    """Events in the order in which every block made them."""

    def __init__(self) -> None:
        self._request = np.zeros(t.REQUEST_WORDS, np.int64)
        self._chunks: list[Chunk] = []
        self._arrays: dict[int, Words] = {}  # by the word of the request that holds their address
        self._lanes: dict[tuple[int, ...], set[int]] = {}

    def events(self) -> EventRows:
        """All rows (kind, node, seat, program, instruction, box), boxes at absolute addresses; none come any more."""
        if not self._arrays:
            return EventRows.of(np.zeros((0, t.PATTERN_WORDS), np.int64))
        self._pack()
        patterns = self._arrays[t.PATTERNS][: self._request[t.PATTERN_COUNT]].copy()
        return EventRows(patterns, self._named_threads()[:, [t.T_SEAT, t.T_NODE, t.T_EVENTS]], tuple(self._chunks))

    def nodes(self) -> set[int]:
        """Nodes of the order graph that events name."""
        return set(self._named_threads()[:, t.T_NODE].tolist()) if self._arrays else set()

    def _named_threads(self) -> Words:
        return self._arrays[t.THREADS][: self._request[t.THREAD_COUNT]]

    def without_signals(self, records: Words, seats: Words, allocations: Words, windows: Iterable[int]) -> Words:
        """Keep what concerns ``windows`` and signals; returns the memory accesses among ``records``."""
        signals = records[:, w.ACCESS_KIND] >= w.NOTIFIES
        chosen = signals | np.isin(records[:, w.ACCESS_ALLOCATION], list(windows))
        if chosen.any():
            self._note_lanes(records[records[:, w.ACCESS_KIND] == w.NOTIFIES], seats)
            self._take(np.ascontiguousarray(records[chosen]), seats, allocations)
        return np.ascontiguousarray(records[~signals]) if signals.any() else records

    def _take(self, records: Words, seats: Words, allocations: Words) -> None:
        if not self._arrays:
            self._begin()
        request = self._request
        request[[t.RECORDS, t.COUNT, t.DONE]] = records.ctypes.data, len(records), 0
        request[[t.SEATS, t.ALLOCATIONS]] = seats.ctypes.data, allocations.ctypes.data
        while (why := t.take_all()(request.ctypes.data)) != t.ALL_TAKEN:
            if why == t.OUT_IS_FULL:
                self._pack()
            elif why == t.PATTERNS_ARE_FULL:
                self._make_room_for_patterns(2 * int(request[t.PATTERN_CAPACITY]))
            else:
                self._make_room_for_threads(2 * int(request[t.THREAD_CAPACITY]))
        open_ = int(request[t.OPEN_CAPACITY])
        if request[t.CROWDED] > open_ // 16 and open_ < _OPEN_MOST:
            self._make_room_for_open(4 * open_)

    def _begin(self) -> None:
        self._hold(t.OUT, np.zeros((3, CHUNK), np.int64))
        self._hold(t.ROW, np.zeros(t.PATTERN_WORDS, np.int64))
        self._request[t.OUT_CAPACITY] = CHUNK
        self._make_room_for_patterns(_ROOM)
        self._make_room_for_threads(_ROOM)
        self._make_room_for_open(_OPEN_ROOM)

    def _hold(self, word: int, array: Words) -> None:
        self._arrays[word], self._request[word] = array, array.ctypes.data

    def _grow(self, word: int, capacity: int, columns: int) -> Words:
        rows = np.zeros((capacity, columns), np.int64)
        if word in self._arrays:
            rows[: len(self._arrays[word])] = self._arrays[word]
        self._hold(word, rows)
        return rows

    def _make_room_for_patterns(self, capacity: int) -> None:
        rows, used = self._grow(t.PATTERNS, capacity, t.PATTERN_WORDS), int(self._request[t.PATTERN_COUNT])
        self._hold(t.PATTERN_SLOTS, t.slots(t.pattern_keys(rows[:used]), capacity))
        self._request[t.PATTERN_CAPACITY] = capacity

    def _make_room_for_threads(self, capacity: int) -> None:
        rows, used = self._grow(t.THREADS, capacity, t.THREAD_WORDS), int(self._request[t.THREAD_COUNT])
        self._hold(t.THREAD_SLOTS, t.slots(t.mixed(rows[:used, t.T_SEAT]), capacity))
        self._request[t.THREAD_CAPACITY] = capacity

    def _make_room_for_open(self, capacity: int) -> None:
        self._hold(t.OPEN, np.zeros((capacity, t.OPEN_WORDS), np.int64))
        self._request[[t.OPEN_CAPACITY, t.CROWDED]] = capacity, 0

    def _pack(self) -> None:
        """Put away the events that have come since the last time."""
        used = int(self._request[t.OUT_COUNT])
        if used:
            self._chunks.append(Chunk.of(*self._arrays[t.OUT][:, :used]))
            self._request[t.OUT_COUNT] = 0

    def _note_lanes(self, notifies: Words, seats: Words) -> None:
        """Which vector lanes of a block made the same addition."""
        cell, rank, value, sets = (w.ACCESS_BOX + k for k in range(4))
        of = seats[notifies[:, w.ACCESS_SEAT]]
        adding = (notifies[:, sets] == 0) & (of[:, c.S_CORE] > 0)
        if not adding.any():
            return
        where = of[:, [c.S_NODE, c.S_BLOCK, c.S_PROGRAM]], notifies[:, [w.ACCESS_INSTRUCTION, cell, rank, value]]
        keys = np.concatenate((*where, of[:, [c.S_LANE]]), axis=1)[adding]
        for *key, lane in np.unique(keys, axis=0).tolist():
            self._lanes.setdefault(tuple(key), set()).add(lane)

    def doubled(self) -> list[tuple[int, int, int, int, int]]:
        """(program, instruction, cell, rank, value) of the additions that both lanes of a block made."""
        return [key[2:] for key, lanes in self._lanes.items() if len(lanes) > 1]  # type: ignore[misc]

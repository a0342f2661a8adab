"""Whether a run on several chips is free of races and of misused signals, found out with little memory.

The logs are read chunk by chunk, and what is over in every possible run is forgotten (held_runs.py). A run that is not
clearly in order is looked at again as a whole, which tells what is wrong (rank_order.py, ranks.py). So the screen may
doubt a run that is in order, never the reverse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from pypto.sim.checks import held_words as h
from pypto.sim.checks import words as w
from pypto.sim.checks.held_runs import advance
from pypto.sim.checks.rank_chains import RankChains, chains_of
from pypto.sim.checks.rank_log import RankLog
from pypto.sim.checks.rank_patterns import RankPatterns, patterns_of
from pypto.sim.checks.signal_cells import NEVER_SET
from pypto.sim.checks.signal_use import may_be_misused
from pypto.sim.recording import Words

MOST_CHAINS: Final = 8192
"""A run of more blocks at once is not screened: what a screen keeps grows with the square of their number."""
TOGETHER: Final = 512
"""As many chains are held back at once; of a run with more, all events are read first."""
_IN_TURN: Final = 64
_ROOM: Final = 1024


def is_in_order(
    logs: Mapping[int, tuple[int, RankLog]],
    after: Mapping[int, Iterable[int]],
    before_run: Mapping[tuple[int, int], int],
) -> bool:
    """Whether a run surely has no race and no misused signal; arguments as for ``RunOrder``."""
    chains = chains_of(logs, after)
    if len(chains.first) > MOST_CHAINS:
        return False
    patterns = patterns_of(chains.logs)
    if may_be_misused(chains, patterns):
        return False
    return RankScreen(chains, patterns, before_run).is_in_order()


class RankScreen:
    """The runs with one chain held back (held_runs.py), and the events they are about."""

    def __init__(self, chains: RankChains, patterns: RankPatterns, before_run: Mapping[tuple[int, int], int]):
        self._chains, self._patterns = chains, patterns
        self._readers: list[Iterator[Any]] = [log.events.columns() for _, log in chains.logs]
        self._request = np.zeros(h.REQUEST_WORDS, np.int64)
        self._arrays: dict[int, Any] = {}
        count, cells = len(chains.first), len(patterns.cells)
        self._rows = 1 + (count if count <= TOGETHER else min(count, _IN_TURN))
        self._request[[h.CHAINS, h.CELLS, h.DISPATCHES, h.ROWS]] = count, cells, len(chains.logs), self._rows
        for word, array in (
            (h.THREADS, chains.threads.copy()), (h.NEEDS, chains.needs), (h.PATTERNS, patterns.table),
            (h.BOXES, patterns.boxes), (h.STARTS, patterns.held(before_run)),
            (h.PLACES, np.zeros((self._rows, count, h.PLACE_WORDS), np.int32)),
            (h.RUNS, np.zeros((self._rows, h.RUN_WORDS), np.int64)),
            (h.CELL_STATE, np.zeros((self._rows, cells, h.CELL_WORDS), np.int64)),
            (h.ENDED, np.zeros((self._rows, len(chains.logs), 2), np.int32)),
            (h.CHAIN_STATE, np.full((count, h.CHAIN_WORDS), -1, np.int64)),
            (h.STEPS, np.zeros((_ROOM, h.STEP_WORDS), np.int64)),
        ):  # fmt: skip
            self._hold(word, np.ascontiguousarray(array))
        self._arrays[h.CHAIN_STATE][:, [h.CH_STEPS, h.CH_STAGE]] = 0
        if any(chunk.lowest < 0 for _, log in chains.logs for chunk in log.events.chunks):
            self._hold(h.TAKEN_BACK, np.zeros((count, cells), np.int64))
        self._request[[h.FREE_SEGMENT, h.FREE_ACCESS, h.STEP_CAPACITY]] = -1, -1, _ROOM
        self._arrays[h.RUNS][:, h.RN_FINISHED] = 1
        self._hold_back([self._rows - 1], [-1])

    def _hold(self, word: int, array: Any) -> None:
        self._arrays[word], self._request[word] = array, array.ctypes.data

    def _hold_back(self, rows: Sequence[int], chains: Sequence[int]) -> None:
        """Begin runs with these chains held back, one in every row; -1 holds nobody."""
        places, runs = self._arrays[h.PLACES], self._arrays[h.RUNS]
        places[rows], runs[rows] = 0, 0
        places[rows, :, h.PL_STEP] = self._arrays[h.CHAIN_STATE][:, h.CH_HEAD]
        places[rows, :, h.PL_THREAD] = self._chains.first
        places[rows, :, h.PL_STACK] = np.arange(len(self._chains.first))
        runs[rows, h.RN_READY], runs[rows, h.RN_HELD] = len(self._chains.first), chains
        self._arrays[h.ENDED][rows] = 0
        state = self._arrays[h.CELL_STATE]
        state[rows] = 0
        state[rows, :, h.CE_LARGEST] = NEVER_SET

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._arrays.values())

    def is_in_order(self) -> bool:
        """Read everything; whether nothing is doubtful."""
        every = range(len(self._chains.first))
        if len(every) < self._rows:
            self._hold_back(every, every)
            return self._is_read()
        step = self._rows - 1
        parts = (every[first : first + step] for first in range(0, len(every), step))
        return self._is_read() and all(self._is_settled(part) for part in parts)

    def _is_settled(self, chains: Sequence[int]) -> bool:
        """Go through the runs that hold these chains, when everything has been read."""
        self._hold_back(range(len(chains)), chains)
        return self._is_read()

    def _is_read(self) -> bool:
        while (found := advance()(self._request.ctypes.data)) == h.READ_ON:
            if not self._read_on():
                return False
        return bool(found == h.ALL_ORDERED)

    def _read_on(self) -> bool:
        """Give the run that goes ahead what it lacks."""
        ahead = self._arrays[h.PLACES][-1]
        lacking = ahead[ahead[:, h.PL_STATUS] == h.STARVED, h.PL_THREAD]
        parts = []
        for dispatch in np.unique(self._chains.threads[lacking, h.TH_DISPATCH]).tolist():
            columns = next(self._readers[dispatch], None)
            if columns is None:
                return False
            pattern, thread, amount = columns
            parts.append((pattern + self._patterns.starts[dispatch], thread + self._chains.starts[dispatch], amount))
        events = np.concatenate([np.stack(part) for part in parts], axis=1) if parts else np.zeros((3, 0), np.int64)
        self._hold(h.EVENTS, np.ascontiguousarray(events))
        self._request[h.EVENT_COUNT] = events.shape[1]
        self._make_room(events)
        return bool(parts)

    def _make_room(self, events: Words) -> None:
        """Room for what the events become."""
        accesses = int(np.count_nonzero(self._patterns.table[events[0], h.PT_KIND] < w.NOTIFIES))
        self._make_room_for_steps(2 * events.shape[1])
        while self._request[h.FREE_SEGMENTS] < accesses:
            self._grow(h.SEGMENTS, h.FREE_SEGMENT, h.FREE_SEGMENTS, h.SEGMENT_WORDS, h.SG_NEXT)
            vectors = np.zeros((len(self._arrays[h.SEGMENTS]), len(self._chains.first)), np.int32)
            old = self._arrays.get(h.VECTORS, vectors[:0])
            vectors[: len(old)] = old
            self._hold(h.VECTORS, vectors)
        while self._request[h.FREE_ACCESSES] < accesses:
            self._grow(h.ACCESSES, h.FREE_ACCESS, h.FREE_ACCESSES, 2, 1)

    def _grow(self, word: int, first: int, count: int, columns: int, link: int) -> None:
        """Twice as many elements of a pool, the new ones in the list of those not in use."""
        old = self._arrays.get(word, np.zeros((0, columns), np.int64))
        new = np.zeros((max(_ROOM, 2 * len(old)), columns), np.int64)
        new[: len(old)] = old
        new[len(old) :, link] = np.arange(len(old) + 1, len(new) + 1)
        new[-1, link] = self._request[first]
        self._request[first] = len(old)
        self._request[count] += len(new) - len(old)
        self._hold(word, new)

    def _make_room_for_steps(self, wanted: int) -> None:
        request, steps = self._request, self._arrays[h.STEPS]
        going_on = self._arrays[h.RUNS][:, h.RN_FINISHED] == 0
        next_steps = self._arrays[h.PLACES][going_on, :, h.PL_STEP]
        next_steps = next_steps[next_steps >= 0]
        count, old = int(request[h.STEP_COUNT]), len(steps)
        base = int(next_steps.min()) if len(next_steps) else count
        if self._rows <= len(self._chains.first):
            base = 0  # the runs to come need every step
        request[h.STEP_BASE] = base
        room = old
        while room < count - base + wanted:
            room *= 2
        if room > old:
            new, kept = np.zeros((room, h.STEP_WORDS), np.int64), np.arange(base, count)
            new[kept & (room - 1)] = steps[kept & (old - 1)]
            request[h.STEP_CAPACITY] = room
            self._hold(h.STEPS, new)


__all__ = ["MOST_CHAINS", "RankScreen", "is_in_order"]

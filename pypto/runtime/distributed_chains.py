"""From the latest timing of launches to the chains of signals their cores' tasks make, and back to times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pypto.runtime.distributed_signal_play import SignalChain, SignalPlay, Step
from pypto.runtime.ranks_protocol import Words

if TYPE_CHECKING:
    from pypto.runtime.distributed_clock import ClockedTask, LaunchTimes


@dataclass(frozen=True)
class _Place:
    """Which launch a chain belongs to, and which of its notifies (waits: -1 - position) its steps are."""

    launch: int
    items: tuple[int, ...]


class Chains:
    """The chains of a run; ``begin``: ps at which the device wall of each launch starts.

    ``until``: what the waits were told. A wait that was over before its core came to it says how long the core takes
    to come; it is kept in ``pauses`` for the timings in which the wait takes longer.
    """

    def __init__(
        self,
        tasks: Sequence[ClockedTask],
        timed: Sequence[LaunchTimes],
        begin: Sequence[int],
        until: Sequence[Words],
        pauses: Sequence[Words],
    ):
        self._timed, self._begin = timed, begin
        self._places: list[_Place] = []
        self._chains: list[SignalChain] = []
        for launch, task in enumerate(tasks):
            if len(task.signals.notify_row) + len(task.signals.wait_row):
                self._add(launch, task, until[launch] + begin[launch], pauses[launch])

    def _add(self, launch: int, task: ClockedTask, until: Words, pauses: Words) -> None:
        s, times = task.signals, self._timed[launch]
        row, chain = np.concatenate([s.notify_row, s.wait_row]), np.concatenate([s.notify_chain, s.wait_chain])
        item = np.concatenate([np.arange(len(s.notify_row)), -1 - np.arange(len(s.wait_row))])
        order = np.lexsort((row, chain))
        for members in np.split(order, np.flatnonzero(np.diff(chain[order])) + 1):
            start = end = int(times.chain_start[chain[members[0]]])
            steps = []
            for number in item[members].tolist():
                step, end = self._step(task, times, number, end, until, pauses)
                steps.append(step)
            self._places.append(_Place(launch, tuple(item[members].tolist())))
            self._chains.append(SignalChain(task.rank, start, end, tuple(steps)))

    @staticmethod
    def _step(
        task: ClockedTask, times: LaunchTimes, number: int, before: int, until: Words, pauses: Words
    ) -> tuple[Step, int]:
        """The step and its end; ``before``: end of the step before."""
        s = task.signals
        if number >= 0:
            end = int(times.notify_end[number])
            cell = (int(s.notify_rank[number]), int(s.notify_cell[number]))
            return Step(end - before, cell, int(s.notify_value[number]), int(s.notify_sets[number]), False), end
        wait = -1 - number
        start, end = int(times.wait_start[wait]), int(times.wait_end[wait])
        if start > until[wait]:
            pauses[wait] = start - before
        cell = (task.rank, int(s.wait_cell[wait]))
        expected, comparison = int(s.wait_expected[wait]), int(s.wait_comparison[wait])
        return Step(int(pauses[wait]), cell, expected, comparison, True, end - start), end

    def play(self, delay_ps: int) -> tuple[list[Words], list[int]]:
        """Ends of the notifies of every launch, and when its device wall starts; both in ps from the run's start."""
        played = SignalPlay(self._chains, delay_ps).play()
        ends = [times.notify_end.copy() for times in self._timed]
        shifts: list[list[int]] = [[] for _ in self._timed]
        for chain, place, start, steps in zip(self._chains, self._places, played.starts, played.ends):
            shifts[place.launch].append(start - chain.start)
            for item, end in zip(place.items, steps):
                if item >= 0:
                    ends[place.launch][item] = end
        return ends, [begin + min(shift, default=0) for begin, shift in zip(self._begin, shifts)]


__all__ = ["Chains"]

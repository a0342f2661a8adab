"""Vector clocks of the events of several ranks: the run once more, with one chain of events held back.

An event needs the first n events of a chain when it cannot happen as long as the chain has not got beyond the first
n - 1, whatever all others do. So the chain is let go on one event at a time, and everything else as far as it can each
time. Signals only help: what is taken back counts where it is known to have happened before the wait, and a cell that
is set counts as the largest value it was set to. Then what can happen does not depend on who goes first, and one run
per chain tells everything. Only signals and the ends of threads take part; what is between them follows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pypto.sim.checks import words as w
from pypto.sim.checks.signal_cells import NEVER_SET, SET
from pypto.sim.recording import Words

if TYPE_CHECKING:
    from pypto.sim.checks.rank_order import Cell, Event

_NOBODY = -1
Clocks = NDArray[np.int32]


@dataclass(slots=True)
class _Step:
    """A signal, or an end of a thread; ``cell``: number of the cell of a signal; ``amount`` added, set or expected."""

    number: int
    kind: int
    chain: int
    position: int
    before: tuple[int, ...]
    cell: int = -1
    amount: int = 0
    sets: bool = False
    freely: bool = False
    """A wait that the run passed although the cell never seems to reach what it expects."""
    lost: int = 0
    """What is taken back from the cell before a wait, at most 0."""


class RankClocks:
    """Works out the clocks of a run whose ``threads`` are events in program order.

    ``before``: events before the first one of a thread; ``chain`` and ``position`` of every event; ``cells``: what the
    signal cells held when the run began.
    """

    def __init__(
        self,
        threads: Iterable[Sequence[Event]],
        before: Mapping[int, set[int]],
        chain: Words,
        position: Words,
        cells: Mapping[Cell, int],
    ):
        self._events = [[event.number for event in thread] for thread in threads]
        self._chain, self._position = chain, position
        self._cells: dict[Cell, int] = {}
        self.threads = [self._steps(thread, before) for thread in threads]
        self.start = [cells.get(cell, 0) for cell in self._cells]
        self._losses = self._taken_back()

    def _steps(self, thread: Sequence[Event], before: Mapping[int, set[int]]) -> list[_Step]:
        ends = thread[0].number, thread[-1].number
        return [self._step(event, before) for event in thread if event.kind >= w.NOTIFIES or event.number in ends]

    def _step(self, event: Event, before: Mapping[int, set[int]]) -> _Step:
        number = event.number
        place = int(self._chain[number]), int(self._position[number])
        step = _Step(number, event.kind, *place, tuple(before.get(number, ())))
        if event.kind in (w.NOTIFIES, w.WAITED):
            step.cell = self._cells.setdefault(event.cell, len(self._cells))
            step.amount, step.sets = int(event.words[2]), event.kind == w.NOTIFIES and int(event.words[3]) == SET
        return step

    def _taken_back(self) -> dict[int, dict[int, tuple[list[int], list[int]]]]:
        """By cell and chain: positions of the notifies that take something back, and the sums up to each."""
        found: dict[int, dict[int, tuple[list[int], list[int]]]] = {}
        steps = (step for thread in self.threads for step in thread if step.kind == w.NOTIFIES and not step.sets)
        for step in sorted((step for step in steps if step.amount < 0), key=lambda step: step.position):
            positions, sums = found.setdefault(step.cell, {}).setdefault(step.chain, ([], [0]))
            positions.append(step.position)
            sums.append(sums[-1] + step.amount)
        return found

    def clocks(self) -> Clocks:
        """``int32[event, chain]``: how many events of the chain must have happened before the event."""
        found = np.zeros((len(self._chain), 1 + max(self._chain.tolist(), default=0)), np.int32)
        changed = True
        while changed:
            _Sweep(self, _NOBODY, None).run()
            for chain in range(found.shape[1]):
                _Sweep(self, chain, found[:, chain]).run()
            changed = self._note_losses(found)
        for events, steps in zip(self._events, self.threads):
            self._fill(found, np.array(events), np.array([step.number for step in steps]))
        return found

    def _note_losses(self, clocks: Clocks) -> bool:
        """Tell every wait what is surely taken back before it; whether more is known than was."""
        changed = False
        waits = (step for thread in self.threads for step in thread if step.kind == w.WAITED)
        for step in waits if self._losses else ():
            taken = self._losses.get(step.cell, {}).items()
            lost = sum(sums[bisect_left(at, int(clocks[step.number, chain]))] for chain, (at, sums) in taken)
            changed, step.lost = changed or lost != step.lost, lost
        return changed

    def _fill(self, clocks: Clocks, events: Words, steps: Words) -> None:
        """Give the events between two steps of a thread the clock of the earlier one."""
        clocks[events] = clocks[steps[np.searchsorted(steps, events, side="right") - 1]]
        clocks[events, self._chain[events]] = self._position[events]


class _Sweep:
    """One run with chain ``held`` as late as can be; ``clock[event]`` becomes how far the chain had to get for it.

    With nobody held back, waits that the signals do not satisfy are noted instead.
    """

    def __init__(self, program: RankClocks, held: int, clock: Clocks | None):
        self._threads, self._start, self._held, self._clock = program.threads, program.start, held, clock
        self._next, self._ready = [0] * len(program.threads), list(range(len(program.threads)))
        self._gains, self._largest = [0] * len(program.start), [NEVER_SET] * len(program.start)
        self._done: set[int] = set()
        self._for_event: defaultdict[int, list[int]] = defaultdict(list)
        self._for_cell: defaultdict[int, list[int]] = defaultdict(list)
        self._parked, self._stage = _NOBODY, 0

    def run(self) -> None:
        """Let everything happen."""
        while True:
            while self._ready:
                self._advance(self._ready.pop())
            if self._parked != _NOBODY:
                thread, self._parked = self._parked, _NOBODY
                self._stage = self._threads[thread][self._next[thread]].position + 1
                self._ready.append(thread)
            elif self._held != _NOBODY or not self._pass_one():
                return

    def _advance(self, thread: int) -> None:
        """Let a thread go on until it waits."""
        steps, at = self._threads[thread], self._next[thread]
        while at < len(steps) and self._can_happen(steps[at], thread):
            self._happen(steps[at])
            at += 1
        self._next[thread] = at

    def _can_happen(self, step: _Step, thread: int) -> bool:
        for other in step.before:
            if other not in self._done:
                self._for_event[other].append(thread)
                return False
        if step.kind == w.WAITED and not step.freely and not self._satisfied(step):
            self._for_cell[step.cell].append(thread)
            return False
        if step.chain == self._held and step.position >= self._stage:
            self._parked = thread
            return False
        return True

    def _satisfied(self, step: _Step) -> bool:
        cell = step.cell
        gained = self._gains[cell] + max(self._start[cell] + step.lost, self._largest[cell])
        return gained >= step.amount

    def _happen(self, step: _Step) -> None:
        self._done.add(step.number)
        if self._clock is not None:
            self._clock[step.number] = step.position if step.chain == self._held else self._stage
        if step.kind == w.NOTIFIES:
            if step.sets:
                self._largest[step.cell] = max(self._largest[step.cell], step.amount)
            else:
                self._gains[step.cell] += max(step.amount, 0)
            self._ready += self._for_cell.pop(step.cell, ())
        self._ready += self._for_event.pop(step.number, ())

    def _pass_one(self) -> bool:
        """Let a wait that nothing satisfies happen, as the run did; False when all threads have ended."""
        for thread, steps in enumerate(self._threads):
            if self._next[thread] < len(steps) and steps[self._next[thread]].kind == w.WAITED:
                step = steps[self._next[thread]]
                if all(other in self._done for other in step.before):
                    step.freely = True
                    self._for_cell[step.cell].remove(thread)
                    self._ready.append(thread)
                    return True
        return False

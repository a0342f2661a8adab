"""Vector clocks of the events of several ranks: the run once more, with one chain of events held back.

An event needs the first n events of a chain when it cannot happen as long as the chain has not got beyond the first
n - 1, whatever all others do. So the chain is let go on one event at a time, and everything else as far as it can each
time. Signals only help: what is taken back counts where it is known to have happened before the wait, and a cell that
is set counts as the largest value it was set to. Then what can happen does not depend on who goes first, and one run
per chain tells everything. Only signals and the ends of threads take part; what is between them follows.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pypto.sim.checks import words as w
from pypto.sim.checks.signal_cells import NEVER_SET
from pypto.sim.recording import Words

if TYPE_CHECKING:
    from pypto.sim.checks.rank_events import RunEvents, Thread

_NOBODY = -1
Clocks = NDArray[np.int32]


def _compact(column: NDArray[Any], code: str) -> array[int]:
    """A column whose numbers are quickly read one by one."""
    return array(code, column.astype(np.dtype(code)).tobytes())


class RankClocks:
    """Works out the clocks of a run.

    ``before``: events before the first one of a thread; ``chain`` and ``position`` of every event; ``start``: what the
    cells of ``events`` held when the run began.
    """

    def __init__(
        self,
        events: RunEvents,
        threads: Sequence[Thread],
        before: Mapping[int, set[int]],
        chain: Clocks,
        position: Clocks,
        start: Sequence[int],
    ):
        self.kind, self.cell = _compact(events.kind, "h"), _compact(events.cell, "i")
        self.amount, self.sets = _compact(events.amount, "q"), _compact(events.sets, "b")
        self.chain, self.position = _compact(chain, "i"), _compact(position, "i")
        self.before, self.start = before, start
        self.passed: set[int] = set()
        """Waits that the run passed although the cell never seems to reach what they expect."""
        self.lost: dict[int, int] = {}
        """Wait: what is surely taken back from its cell before it, at most 0."""
        self._events = [thread.numbers for thread in threads]
        self.threads = [_compact(_steps(numbers, events.kind), "i") for numbers in self._events]
        self._columns = chain, position
        self._losses = self._taken_back()

    def _taken_back(self) -> dict[int, dict[int, tuple[list[int], list[int]]]]:
        """By cell and chain: positions of the notifies that take something back, and the sums up to each."""
        found: dict[int, dict[int, tuple[list[int], list[int]]]] = {}
        taking = (n for n in self._of_kind(w.NOTIFIES) if self.amount[n] < 0 and not self.sets[n])
        for number in sorted(taking, key=self.position.__getitem__):
            positions, sums = found.setdefault(self.cell[number], {}).setdefault(self.chain[number], ([], [0]))
            positions.append(self.position[number])
            sums.append(sums[-1] + self.amount[number])
        return found

    def _of_kind(self, kind: int) -> Iterator[int]:
        return (number for thread in self.threads for number in thread if self.kind[number] == kind)

    def clocks(self) -> Clocks:
        """``int32[event, chain]``: how many events of the chain must have happened before the event."""
        chain, position = self._columns
        found = np.zeros((len(chain), 1 + int(max(chain, default=0))), np.int32)
        changed = True
        while changed:
            _Sweep(self, _NOBODY, None).run()
            for held in range(found.shape[1]):
                clock = array("i", bytes(4 * len(chain)))
                _Sweep(self, held, clock).run()
                found[:, held] = np.frombuffer(clock, np.int32)
            changed = self._note_losses(found)
        for events, steps in zip(self._events, self.threads):
            at = np.frombuffer(steps, np.int32)
            found[events] = found[at[np.searchsorted(at, events, side="right") - 1]]
            found[events, chain[events]] = position[events]
        return found

    def _note_losses(self, clocks: Clocks) -> bool:
        """Tell every wait what is surely taken back before it; whether more is known than was."""
        changed = False
        for number in self._of_kind(w.WAITED) if self._losses else ():
            taken = self._losses.get(self.cell[number], {}).items()
            lost = sum(sums[bisect_left(at, int(clocks[number, chain]))] for chain, (at, sums) in taken)
            if lost != self.lost.get(number, 0):
                changed, self.lost[number] = True, lost
        return changed


def _steps(numbers: Words, kinds: NDArray[Any]) -> Words:
    """Those events of a thread that matter to others: its signals and its ends."""
    matters = kinds[numbers] >= w.NOTIFIES
    matters[[0, -1]] = True
    return numbers[matters]


class _Sweep:
    """One run with chain ``held`` as late as can be; ``clock[event]`` becomes how far the chain had to get for it.

    With nobody held back, waits that the signals do not satisfy are noted instead.
    """

    def __init__(self, program: RankClocks, held: int, clock: array[int] | None):
        self._program, self._held, self._clock = program, held, clock
        self._threads = program.threads
        self._next, self._ready = [0] * len(self._threads), list(range(len(self._threads)))
        self._gains, self._largest = [0] * len(program.start), [NEVER_SET] * len(program.start)
        self._done = bytearray(len(program.kind))
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
                self._stage = self._program.position[self._threads[thread][self._next[thread]]] + 1
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

    def _can_happen(self, step: int, thread: int) -> bool:
        program = self._program
        for other in program.before.get(step, ()):
            if not self._done[other]:
                self._for_event[other].append(thread)
                return False
        if program.kind[step] == w.WAITED and not self._satisfied(step):
            self._for_cell[program.cell[step]].append(thread)
            return False
        if program.chain[step] == self._held and program.position[step] >= self._stage:
            self._parked = thread
            return False
        return True

    def _satisfied(self, step: int) -> bool:
        program = self._program
        cell = program.cell[step]
        held = max(program.start[cell] + program.lost.get(step, 0), self._largest[cell])
        return self._gains[cell] + held >= program.amount[step] or step in program.passed

    def _happen(self, step: int) -> None:
        program = self._program
        self._done[step] = 1
        if self._clock is not None:
            self._clock[step] = program.position[step] if program.chain[step] == self._held else self._stage
        if program.kind[step] == w.NOTIFIES:
            cell, amount = program.cell[step], program.amount[step]
            if program.sets[step]:
                self._largest[cell] = max(self._largest[cell], amount)
            else:
                self._gains[cell] += max(amount, 0)
            self._ready += self._for_cell.pop(cell, ())
        self._ready += self._for_event.pop(step, ())

    def _pass_one(self) -> bool:
        """Let a wait that nothing satisfies happen, as the run did; False when all threads have ended."""
        program = self._program
        for thread, steps in enumerate(self._threads):
            step = steps[self._next[thread]] if self._next[thread] < len(steps) else _NOBODY
            if step != _NOBODY and all(self._done[other] for other in program.before.get(step, ())):
                program.passed.add(step)
                self._for_cell[program.cell[step]].remove(thread)
                self._ready.append(thread)
                return True
        return False

"""An order in which the events of a run could have happened: threads go on until a wait is not satisfied."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pypto.sim.checks import words as w
from pypto.sim.checks.signal_cells import SET

if TYPE_CHECKING:
    from pypto.sim.checks.rank_order import Cell, Event

Thread = tuple[int, int]


def possible_order(
    events: Sequence[Event],
    edges: Mapping[int, set[int]],
    threads: Mapping[Thread, Sequence[Event]],
    before_run: Mapping[Cell, int],
) -> list[int]:
    """Numbers of all events, each behind its ``edges``, and a wait behind notifies that satisfy it if there are any."""
    return _Run(events, edges, threads, before_run).order


class _Run:
    def __init__(
        self,
        events: Sequence[Event],
        edges: Mapping[int, set[int]],
        threads: Mapping[Thread, Sequence[Event]],
        before_run: Mapping[Cell, int],
    ):
        self.order: list[int] = []
        self._edges = {number: before for number, before in edges.items() if before}
        self._threads, self._cells = threads, dict(before_run)
        self._done = bytearray(len(events))
        self._next = dict.fromkeys(threads, 0)
        self._for_event: defaultdict[int, list[Thread]] = defaultdict(list)
        self._for_cell: defaultdict[Cell, list[Thread]] = defaultdict(list)
        ready = deque(threads)
        while len(self.order) < len(events):
            if not ready:
                ready += self._let_go()
            ready += self._advance(ready.popleft())

    def _advance(self, thread: Thread) -> list[Thread]:
        """Let a thread go on until it waits; the threads that can go on because of it."""
        woken: list[Thread] = []
        events = self._threads[thread]
        while self._next[thread] < len(events):
            event = events[self._next[thread]]
            missing = next((n for n in self._edges.get(event.number, ()) if not self._done[n]), None)
            if missing is not None:
                self._for_event[missing].append(thread)
                return woken
            if event.kind == w.WAITED and self._cells.get(event.cell, 0) < int(event.words[2]):
                self._for_cell[event.cell].append(thread)
                return woken
            woken += self._pass(thread, event)
        return woken

    def _pass(self, thread: Thread, event: Event) -> list[Thread]:
        self._next[thread] += 1
        self._done[event.number] = 1
        self.order.append(event.number)
        woken = self._for_event.pop(event.number, [])
        if event.kind == w.NOTIFIES:
            amount, cell = int(event.words[2]), event.cell
            self._cells[cell] = amount if int(event.words[3]) == SET else self._cells.get(cell, 0) + amount
            woken += self._for_cell.pop(cell, [])
        return woken

    def _let_go(self) -> list[Thread]:
        """Nothing goes on although the run did, as when a value was set and taken back: pass one wait unsatisfied."""
        for cell, waiting in self._for_cell.items():
            thread, *rest = waiting
            self._for_cell[cell] = rest
            if not rest:
                del self._for_cell[cell]
            woken = self._pass(thread, self._threads[thread][self._next[thread]])
            return [thread, *woken]
        thread = next(t for t, events in self._threads.items() if self._next[t] < len(events))
        return [thread, *self._pass(thread, self._threads[thread][self._next[thread]])]

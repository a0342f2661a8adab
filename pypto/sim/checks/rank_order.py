"""Order between ranks: vector clocks over signals, worked out from the logs of a run after its end.

What a wait proves does not depend on how the run went: a wait for a cell proves that a notify has happened only when
the wait cannot end as long as the notify is held back (spec distributed 2.9, 2.10; rank_clocks.py). Credits of earlier
rounds, or of earlier runs in a window that was kept, therefore prove nothing about later ones.

Events that certainly happen one after the other share a chain, so a clock has one count per chain; sums over the
notifies of a chain (signal_cells.py) tell what one wait has to do with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pypto.sim.checks.rank_clocks import RankClocks
from pypto.sim.checks.rank_events import NOTIFIES, WAITED, Cell, Event, RunEvents, Thread
from pypto.sim.checks.rank_log import RankLog
from pypto.sim.checks.signal_cells import ADD, SET, ChainOfNotifies, SignalCell
from pypto.sim.recording import Words


class RunOrder:
    """The events of one run and what happened before what, whatever the schedule."""

    def __init__(
        self,
        logs: Mapping[int, tuple[int, RankLog]],
        after: Mapping[int, Sequence[int]],
        before_run: Mapping[Cell, int],
    ):
        self.logs, self.after, self.before_run = logs, after, before_run
        self.events = events = RunEvents(logs)
        self._threads = list(events.threads())
        self._edges: defaultdict[int, set[int]] = defaultdict(set)  # first of a thread -> before it
        self._join_tasks()
        self.chain, self.position = self._chains()
        start = [before_run.get(cell, 0) for cell in events.cells]
        self.clocks = RankClocks(events, self._threads, self._edges, self.chain, self.position, start).clocks()
        """[event, chain]: how many events of the chain happened before."""
        signals = {cell: events.chosen(numbers) for cell, numbers in self._of_cells(NOTIFIES)}
        self.notifies: Mapping[Cell, Sequence[Event]] = signals
        self.waits: Sequence[Event] = events.chosen(np.flatnonzero(events.kind == WAITED))
        self._cells = self._signal_cells()
        self._old_news: dict[int, bool] | None = None
        self._notified: dict[Cell, Words] = {}

    def _of_cells(self, kind: int) -> Iterator[tuple[Cell, Words]]:
        """(cell, numbers of its events of a kind), by first event."""
        numbers = np.flatnonzero(self.events.kind == kind)
        cells = self.events.cell[numbers]
        for cell in dict.fromkeys(cells.tolist()):
            yield self.events.cells[cell], numbers[cells == cell]

    def _join_tasks(self) -> None:
        """Tasks of a dispatch as its order graph says; dispatches of a rank, and those that the host makes wait."""
        by_task: defaultdict[tuple[int, int], list[Thread]] = defaultdict(list)
        chains: defaultdict[int, list[Thread]] = defaultdict(list)
        for thread in self._threads:
            by_task[thread.task].append(thread)
            chains[thread.task[0]].append(thread)
        last_of_rank: dict[int, int] = {}
        for dispatch, (rank, log) in sorted(self.logs.items()):
            for a, b in log.before:
                self._join(by_task[dispatch, a], by_task[dispatch, b])
            waits_for = set(self.after.get(dispatch, ()))
            if rank in last_of_rank:
                waits_for.add(last_of_rank[rank])
            for other in waits_for:
                self._join(chains[other], chains[dispatch])
            last_of_rank[rank] = dispatch

    def _join(self, first: list[Thread], second: list[Thread]) -> None:
        for a in first:
            for b in second:
                self._edges[int(b.numbers[0])].add(int(a.numbers[-1]))

    def _chains(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Chain of every event and its position there: threads that follow each other go on in one chain."""
        chain, position = np.zeros((2, len(self.events)), np.int32)
        ends: dict[int, int] = {}  # last event -> chain
        lengths: list[int] = []
        for thread in self._threads:
            follows = self._edges.get(int(thread.numbers[0]), set()) & ends.keys()
            if follows:
                number = ends.pop(max(follows))
            else:
                number = len(lengths)
                lengths.append(0)
            chain[thread.numbers] = number
            position[thread.numbers] = lengths[number] + np.arange(len(thread.numbers))
            lengths[number] += len(thread.numbers)
            ends[int(thread.numbers[-1])] = number
        return chain, position

    def _signal_cells(self) -> dict[Cell, SignalCell]:
        cells, events = {}, self.events
        for name, numbers in self._of_cells(NOTIFIES):
            cell = cells[name] = SignalCell(self.before_run.get(name, 0))
            for number in numbers[np.argsort(self.position[numbers], kind="stable")].tolist():
                operation = SET if events.sets[number] else ADD
                chain, position = int(self.chain[number]), int(self.position[number])
                cell.add(chain, number, position, int(events.amount[number]), operation)
        return cells

    # order

    def reaches(self, first: Event, second: Event) -> bool:
        """Whether ``first`` has happened when ``second`` does."""
        return self._before(first.number, second.number)

    def _before(self, first: int, second: int) -> bool:
        return bool(self.clocks[second, self.chain[first]] > self.position[first])

    def _first_after(self, number: int, chain: ChainOfNotifies) -> int:
        """How many notifies of a chain do not have to wait for event ``number``."""
        low, high = 0, len(chain.numbers)
        while low < high:
            middle = (low + high) // 2
            if self._before(number, chain.numbers[middle]):
                high = middle
            else:
                low = middle + 1
        return low

    def _happened(self, wait: Event, cell: SignalCell) -> list[int]:
        """How many notifies of every chain are known to come before ``wait``."""
        clock = self.clocks[wait.number]
        return [bisect_left(chain.positions, int(clock[name])) for name, chain in cell.chains.items()]

    def _needed(self, wait: Event, cell: SignalCell, above: Sequence[int]) -> list[int]:
        """How many notifies of every chain ``wait`` proves; only numbers beyond ``above`` are looked for, else 0."""
        expected, chains = int(wait.words[2]), cell.chains.values()
        limits = [self._first_after(wait.number, chain) for chain in chains]
        before = self._happened(wait, cell)
        losses = sum(chain.losses[min(pair)] for chain, *pair in zip(chains, limits, before))
        found = [0] * len(limits)
        for at, chain in enumerate(chains):
            # more than what the chain itself adds before a notify is not needed to do without it
            highest = min(limits[at], bisect_left(chain.gains, expected - cell.start - losses))
            for index in range(highest - 1, above[at] - 1, -1):
                if cell.most(self._limits_without(chain, index, cell, limits), before) < expected:
                    found[at] = index + 1
                    break
        return found

    def _limits_without(self, chain: ChainOfNotifies, index: int, cell: SignalCell, limits: Sequence[int]) -> list[int]:
        """``limits`` without notify ``index`` of ``chain`` and all that happens only after it."""
        number = chain.numbers[index]
        return [
            min(limit, index if other is chain else self._first_after(number, other))
            for other, limit in zip(cell.chains.values(), limits)
        ]

    def credits_behind(self, first: Event, wait: Event, *, adding_only: bool) -> bool:
        """Whether the rank of ``first`` notifies the cell of ``wait`` after ``first`` and not only after the wait."""
        rows = self._notified.get(wait.cell)
        if rows is None:
            notifies = self.notifies.get(wait.cell, [])
            words = [(event.number, event.rank, sets_cell(event)) for event in notifies]
            rows = self._notified[wait.cell] = np.array(words, np.int64).reshape(-1, 3)
        chosen = rows[rows[:, 1] == first.rank]
        numbers = chosen[chosen[:, 2] == 0, 0] if adding_only else chosen[:, 0]
        after = self.clocks[numbers, self.chain[first.number]] > self.position[first.number]
        late = self.clocks[numbers, self.chain[wait.number]] > self.position[wait.number]
        return bool(np.any(after & ~late))

    def tells_nothing_new(self, wait: Event) -> bool:
        """Whether a wait proves no notify that earlier waits for its cell have not proved already."""
        if self._old_news is None:
            self._old_news = {number: old for name in self._cells for number, old in self._news_of(name)}
        return self._old_news.get(wait.number, False)

    def _news_of(self, name: Cell) -> Iterator[tuple[int, bool]]:
        """(wait, whether it tells nothing new) of the waits for one cell that have earlier ones."""
        cell, nothing = self._cells[name], [0] * len(self._cells[name].chains)
        waits = [wait for wait in self.waits if wait.cell == name]
        waits.sort(key=lambda wait: int(self.position[wait.number]))
        known: defaultdict[int, tuple[list[int], list[list[int]]]] = defaultdict(lambda: ([], [nothing]))
        for wait in waits:  # by chain: their positions, and the most that the first n of them prove
            positions, most = known[int(self.chain[wait.number])]
            positions.append(int(self.position[wait.number]))
            most.append([max(pair) for pair in zip(most[-1], self._needed(wait, cell, nothing))])
        for wait in waits:
            clock = self.clocks[wait.number]
            earlier = [(most, bisect_left(at, int(clock[chain]))) for chain, (at, most) in known.items()]
            if any(count for _, count in earlier):
                told = [max(counts) for counts in zip(nothing, *(most[count] for most, count in earlier))]
                yield wait.number, all(n <= m for n, m in zip(self._needed(wait, cell, nothing), told))

    def reachable_value(self, wait: Event) -> int:
        """Most the cell of ``wait`` can hold while it waits."""
        cell = self._cells.get(wait.cell)
        if cell is None:
            return self.before_run.get(wait.cell, 0)
        value = cell.start
        for chain in cell.chains.values():
            limit = self._first_after(wait.number, chain)
            value += chain.gains[limit] + chain.losses[limit]
        return value


def sets_cell(notify: Event) -> bool:
    """Whether a notify sets its cell instead of adding to it."""
    return int(notify.words[3]) == SET


__all__ = ["NOTIFIES", "WAITED", "Cell", "Event", "RunOrder", "sets_cell"]

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
from dataclasses import dataclass

import numpy as np

from pypto.sim.checks import words as w
from pypto.sim.checks.rank_clocks import RankClocks
from pypto.sim.checks.rank_log import EV_BOX, EV_KIND, EV_NODE, EV_PLACE, EV_SEAT, Place, RankLog
from pypto.sim.checks.signal_cells import SET, ChainOfNotifies, SignalCell
from pypto.sim.recording import Words

NOTIFIES, WAITED = w.NOTIFIES, w.WAITED
Cell = tuple[int, int]
"""Name of a cell (domain and byte) and the world rank that owns it."""


@dataclass(frozen=True)
class Event:
    """One event of the run; ``number`` is its position in the graph, ``thread`` what runs in program order."""

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


class RunOrder:
    """The events of one run and what happened before what, whatever the schedule."""

    def __init__(
        self,
        logs: Mapping[int, tuple[int, RankLog]],
        after: Mapping[int, Sequence[int]],
        before_run: Mapping[Cell, int],
    ):
        self.logs, self.after, self.before_run = logs, after, before_run
        self.events: list[Event] = []
        self._edges: defaultdict[int, set[int]] = defaultdict(set)  # first of a thread -> before it
        self._threads: dict[tuple[int, int], list[Event]] = {}
        self.notifies: defaultdict[Cell, list[Event]] = defaultdict(list)
        self.waits: list[Event] = []
        self._gather()
        self.chain, self.position = self._chains()
        self.clocks = RankClocks(
            list(self._threads.values()), self._edges, self.chain, self.position, before_run
        ).clocks()
        """[event, chain]: how many events of the chain happened before."""
        self._cells = self._signal_cells()
        self._old_news: dict[int, bool] | None = None
        self._notified: dict[Cell, Words] = {}

    def _gather(self) -> None:
        by_node: defaultdict[tuple[int, int], list[list[Event]]] = defaultdict(list)
        for dispatch, (rank, log) in sorted(self.logs.items()):
            threads: dict[tuple[int, int], list[Event]] = {}
            for row in log.events:
                seat = dispatch, int(row[EV_SEAT])
                event = Event(
                    len(self.events), rank, dispatch, seat, int(row[EV_NODE]), int(row[EV_KIND]),
                    log.places[int(row[EV_PLACE])], row[EV_BOX:],
                )  # fmt: skip
                threads.setdefault(seat, []).append(event)
                self._note(event)
            for chain in threads.values():
                by_node[dispatch, chain[0].node].append(chain)
            for a, b in log.before:
                self._join(by_node[dispatch, a], by_node[dispatch, b])
            self._threads.update(threads)
        self._join_dispatches(by_node)

    def _note(self, event: Event) -> None:
        self.events.append(event)
        if event.kind == NOTIFIES:
            self.notifies[event.cell].append(event)
        elif event.kind == WAITED:
            self.waits.append(event)

    def _join(self, first: list[list[Event]], second: list[list[Event]]) -> None:
        for a in first:
            for b in second:
                self._edges[b[0].number].add(a[-1].number)

    def _join_dispatches(self, by_node: Mapping[tuple[int, int], list[list[Event]]]) -> None:
        """Dispatches of one rank run one after the other; others when the host makes them wait."""
        chains: defaultdict[int, list[list[Event]]] = defaultdict(list)
        for (dispatch, _), found in by_node.items():
            chains[dispatch] += found
        last_of_rank: dict[int, int] = {}
        for dispatch, (rank, _) in sorted(self.logs.items()):
            waits_for = set(self.after.get(dispatch, ()))
            if rank in last_of_rank:
                waits_for.add(last_of_rank[rank])
            for other in waits_for:
                self._join(chains[other], chains[dispatch])
            last_of_rank[rank] = dispatch

    def _chains(self) -> tuple[Words, Words]:
        """Chain of every event and its position there: threads that follow each other go on in one chain."""
        chain, position = np.zeros((2, len(self.events)), np.int64)
        ends: dict[int, int] = {}  # last event -> chain
        lengths: list[int] = []
        for thread in self._threads.values():
            follows = self._edges[thread[0].number] & ends.keys()
            if follows:
                number = ends.pop(max(follows))
            else:
                number = len(lengths)
                lengths.append(0)
            for event in thread:
                chain[event.number], position[event.number] = number, lengths[number]
                lengths[number] += 1
            ends[thread[-1].number] = number
        return chain, position

    def _signal_cells(self) -> dict[Cell, SignalCell]:
        cells = {}
        for name, notifies in self.notifies.items():
            cell = cells[name] = SignalCell(self.before_run.get(name, 0))
            for event in sorted(notifies, key=lambda event: int(self.position[event.number])):
                chain, position = int(self.chain[event.number]), int(self.position[event.number])
                cell.add(chain, event.number, position, int(event.words[2]), int(event.words[3]))
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

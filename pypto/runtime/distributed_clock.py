"""One clock for all ranks: arrivals of signals, ends of waits, lengths of transfers (spec hardware 13b).

Every launch is timed on its own, given when its waits end and how long its remote transfers take. Both follow from the
times of the other ranks, so the launches are timed again until nothing changes. Between two timings the signals of all
ranks are played together, so that a chain of them is right at once however long it is, where the time between its
signals does not depend on them. What depends is right one link of a chain later with every pass, and a chain has no
circle, because the values were computed in an order in which every wait was answered. Nothing depends on how fast the
host was.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from pypto.runtime.distributed_cells import Cell
from pypto.runtime.distributed_chains import Chains
from pypto.runtime.distributed_links import LinkTimes, Piece
from pypto.runtime.ranks_protocol import QUARTERS, Done, Signals, Timed, TimeIt, Words
from pypto.sim.chips import Chip

PS: Final = 1000
MEMO: Final = 64
# Passes over transfers that share a link: their times may swing, so they are settled after this many.
SHARING_PASSES: Final = 12
# Passes whose signals are played: after them, each gets one more link of every chain right.
PLAYED_PASSES: Final = 32

Ask = Callable[[int, TimeIt], Timed]


@dataclass
class ClockedTask:
    """One dispatch: its rank, what it waits for, when the host submits it (ns from the start of the run)."""

    number: int
    rank: int
    after: tuple[int, ...]
    submit_ns: int
    done: Done
    start_ns: int = 0
    wall_ns: int = 0

    @property
    def signals(self) -> Signals:
        return self.done.signals or Signals()

    @property
    def device_ns(self) -> int:
        """Start of the device wall."""
        return self.start_ns + self.done.before_ns

    @property
    def end_ns(self) -> int:
        return self.device_ns + self.wall_ns + self.done.after_ns


@dataclass(frozen=True)
class Settled:
    """The times of a run, relative to its start.

    ``notify_end``: per launch, when its signals left it, in ps from the start of the run; ``until``: when its waits
    were over, in ps from the start of its device wall.
    """

    start_ns: tuple[int, ...]
    wall_ns: tuple[int, ...]
    passes: int
    notify_end: tuple[Words, ...] = ()
    until: tuple[Words, ...] = ()


@dataclass
class RankClock:
    """Times runs; equal runs are remembered."""

    chip: Chip
    hop_ns: int
    _memo: OrderedDict[Any, tuple[list[Words], list[Words]]] = field(default_factory=OrderedDict)

    def settle(
        self, tasks: Sequence[ClockedTask], ask: Callable[[Mapping[int, TimeIt]], Mapping[int, Timed]]
    ) -> Settled:
        """Find the times of ``tasks``; ``ask`` times the dispatches of the ranks given."""
        key = tuple((t.rank, t.after, t.submit_ns, t.done.digest, t.done.before_ns, t.done.after_ns) for t in tasks)
        known = self._memo.pop(key, None)
        until = [np.zeros(len(t.signals.wait_row), np.int64) for t in tasks]
        work = [self._alone(t.signals) for t in tasks]
        if known is not None:
            until, work = known
        pauses = [np.zeros(len(t.signals.wait_row), np.int64) for t in tasks]
        passes = 0
        most = 2 * (PLAYED_PASSES + SHARING_PASSES + len(tasks) + sum(len(u) for u in until))
        while True:
            passes += 1
            if passes > most:  # a chain has no circle, so this is a mistake of the timing and not of the program
                raise RuntimeError(f"the times of {len(tasks)} launches do not settle in {most} passes")
            timed = self._time(tasks, until, work, ask)
            begun = [task.device_ns * PS for task in tasks]
            next_until = self._arrivals(tasks, [times.notify_end for times in timed], begun)
            next_work = work if passes > SHARING_PASSES else self._shared(tasks, timed)
            told = _same(until, next_until)
            if told and _same(work, next_work):
                break
            if not told and passes <= PLAYED_PASSES:
                chains = Chains(tasks, timed, begun, until, pauses)
                next_until = self._arrivals(tasks, *chains.play(self._notify_ps))
            until, work = next_until, next_work
        if len(self._memo) >= MEMO:
            self._memo.popitem(last=False)
        self._memo[key] = (until, work)
        return Settled(
            tuple(t.start_ns for t in tasks),
            tuple(t.wall_ns for t in tasks),
            passes,
            tuple(times.notify_end for times in timed),
            tuple(until),
        )

    def senders(self, tasks: Sequence[ClockedTask], settled: Settled) -> list[list[int]]:
        """Per launch and wait: the launch whose signal ended it, by position; -1 when it waited for none."""
        sent: dict[tuple[int, int, int], int] = {}
        for position, task in enumerate(tasks):
            s = task.signals
            arrived = (settled.notify_end[position] + self._notify_ps).tolist()
            for key in zip(s.notify_rank.tolist(), s.notify_cell.tolist(), arrived):
                sent.setdefault(key, position)
        return [
            [
                sent.get((task.rank, cell, until + task.device_ns * PS), -1)
                for cell, until in zip(task.signals.wait_cell.tolist(), settled.until[position].tolist())
            ]
            for position, task in enumerate(tasks)
        ]

    def _time(self, tasks: Sequence[ClockedTask], until: list[Words], work: list[Words], ask: Any) -> list[LaunchTimes]:
        """One pass over all tasks."""
        by_rank: dict[int, list[int]] = {}
        for position, task in enumerate(tasks):
            by_rank.setdefault(task.rank, []).append(position)
        requests = {
            rank: TimeIt(tuple(tasks[p].number for p in ps), tuple(until[p] for p in ps), tuple(work[p] for p in ps))
            for rank, ps in by_rank.items()
        }
        found: dict[int, tuple[Words, ...]] = {}
        for rank, answer in ask(requests).items():
            for place, position in enumerate(by_rank[rank]):
                tasks[position].wall_ns = answer.walls_ns[place]
                found[position] = (
                    answer.notify_end[place],
                    answer.remote_start[place],
                    answer.remote_end[place],
                    answer.cubes[place],
                    answer.wait_start[place],
                    answer.wait_end[place],
                    answer.chain_start[place],
                )
        self._place(tasks)
        return [_absolute(task.device_ns * PS, *found[position]) for position, task in enumerate(tasks)]

    def _place(self, tasks: Sequence[ClockedTask]) -> None:
        """Start times: a launch follows what it waits for and what its rank did before."""
        ends: dict[int, int] = {}
        free: dict[int, int] = {}
        for task in tasks:
            waits = [ends[a] for a in task.after if a in ends]
            task.start_ns = self.hop_ns + max([task.submit_ns, free.get(task.rank, 0), *waits])
            ends[task.number] = free[task.rank] = task.end_ns

    # --- signals ------------------------------------------------------------------------------------------------------

    @property
    def _notify_ps(self) -> int:
        return round(self.chip.link.notify_ns.value * PS)

    def _arrivals(self, tasks: Sequence[ClockedTask], notify_end: Sequence[Words], begun: Sequence[int]) -> list[Words]:
        """When every wait is over, in ps from the start of its own device wall, which ``begun`` says."""
        delay = self._notify_ps
        sent: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}
        for position, task in enumerate(tasks):
            s = task.signals
            for n in range(len(s.notify_row)):
                if int(s.notify_rank[n]) != task.rank:
                    cell = (int(s.notify_rank[n]), int(s.notify_cell[n]))
                    sent.setdefault(cell, []).append(
                        (
                            int(notify_end[position][n]) + delay,
                            len(sent.get(cell, ())),
                            int(s.notify_value[n]),
                            int(s.notify_sets[n]),
                        )
                    )
        for arrivals in sent.values():
            arrivals.sort()
        result = [np.zeros(len(t.signals.wait_row), np.int64) for t in tasks]
        cells: dict[tuple[int, int], Cell] = {}
        for position, task in enumerate(tasks):
            s = task.signals
            for item in s.order.tolist():
                if item >= 0:
                    if int(s.notify_rank[item]) == task.rank:
                        cell = (task.rank, int(s.notify_cell[item]))
                        cells.setdefault(cell, Cell(sent.get(cell, []))).change(
                            int(s.notify_value[item]), int(s.notify_sets[item])
                        )
                else:
                    wait = -1 - item
                    cell = (task.rank, int(s.wait_cell[wait]))
                    at = cells.setdefault(cell, Cell(sent.get(cell, []))).reached(
                        int(s.wait_expected[wait]), int(s.wait_comparison[wait])
                    )
                    result[position][wait] = max(0, at - begun[position])
        return result

    # --- links --------------------------------------------------------------------------------------------------------

    def _alone(self, signals: Signals) -> Words:
        """Time of every remote transfer on an idle link: staged through one core's memory."""
        link = self.chip.link
        return np.rint(PS * (link.staged_ns.value + signals.remote_bytes / link.staged_gbps.value)).astype(np.int64)

    def _shared(self, tasks: Sequence[ClockedTask], timed: Sequence[LaunchTimes]) -> list[Words]:
        """Times with the links shared, from the starts, ends and pauses of the last pass."""
        result = [self._alone(t.signals) for t in tasks]
        chains = [c for position, task in enumerate(tasks) for c in _chains(position, task, timed[position])]
        if not chains:
            return result
        loads = {rank: _loads(tasks, timed, rank) for rank in {task.rank for task in tasks}}
        played = LinkTimes(self.chip, [pieces for _, _, pieces in chains], loads).play()
        for (position, rows, _), work in zip(chains, played):
            result[position][rows] = work
        return result


@dataclass(frozen=True)
class LaunchTimes:
    """Of one launch, in ps from the start of the run."""

    notify_end: Words
    remote_start: Words
    remote_end: Words
    cubes: Words
    wait_start: Words
    wait_end: Words
    chain_start: Words


def _chains(position: int, task: ClockedTask, times: LaunchTimes) -> Iterator[tuple[int, Words, list[Piece]]]:
    """The launch's transfers as they follow each other: which launch, which transfers, and what is known of them."""
    s = task.signals
    for chain in np.unique(s.remote_chain):
        rows = np.flatnonzero(s.remote_chain == chain)
        rows = rows[np.argsort(times.remote_start[rows], kind="stable")]
        pieces = []
        for n in rows.tolist():
            peer = int(s.remote_peer[n])
            own = peer in (task.rank, -1)
            way = None if own else (task.rank, peer) if s.remote_writes[n] else (peer, task.rank)
            pieces.append(Piece(way, int(s.remote_bytes[n]), int(times.remote_start[n]), int(times.remote_end[n])))
        yield position, rows, pieces


def _loads(tasks: Sequence[ClockedTask], timed: Sequence[LaunchTimes], rank: int) -> list[tuple[int, float]]:
    """When the share of a rank's cubes that work changes."""
    changes = [
        (at, quarters / QUARTERS)
        for position, task in enumerate(tasks)
        if task.rank == rank
        for at, quarters in timed[position].cubes.tolist()
    ]
    return sorted(changes, key=lambda change: change[0])


def _absolute(begin: int, notify_end: Words, start: Words, end: Words, cubes: Words, *waits: Words) -> LaunchTimes:
    from_run = (notify_end + begin, start + begin, end + begin, cubes + np.array([begin, 0], np.int64))
    return LaunchTimes(*from_run, *(words + begin for words in waits))


def _same(a: list[Words], b: list[Words]) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b))

"""The blocks of a run on several chips as chains: blocks that certainly follow each other go on in one chain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain as joined

import numpy as np

from pypto.sim.checks import held_words as h
from pypto.sim.checks.rank_log import RankLog
from pypto.sim.recording import Words

Need = tuple[int, int]
"""(chain, how many of its threads have ended), or (-1 - number of a dispatch, the same)."""


@dataclass(frozen=True)
class RankChains:
    """``logs``: (rank, log) by dispatch; ``starts``: first thread of each; ``first``: first thread of every chain.

    ``threads`` and ``needs`` are those of held_words.py.
    """

    logs: tuple[tuple[int, RankLog], ...]
    starts: tuple[int, ...]
    first: Words
    threads: Words
    needs: Words


def chains_of(logs: Mapping[int, tuple[int, RankLog]], after: Mapping[int, Iterable[int]]) -> RankChains:
    """The chains of a run; ``logs``: dispatch -> (rank, log), ``after``: dispatch -> those it waits for."""
    dispatches = sorted(logs)
    starts = np.cumsum([0, *(len(logs[dispatch][1].events.threads) for dispatch in dispatches)]).tolist()
    made = _Making({dispatch: n for n, dispatch in enumerate(dispatches)}, starts)
    last_of_rank: dict[int, int] = {}
    for dispatch in dispatches:
        rank, log = logs[dispatch]
        before = last_of_rank.get(rank)
        made.add(
            dispatch, rank, log, sorted({*after.get(dispatch, ()), *(() if before is None else (before,))}), before
        )
        last_of_rank[rank] = dispatch
    return RankChains(
        tuple(logs[dispatch] for dispatch in dispatches), tuple(starts), np.array(made.first, np.int64),
        made.threads, np.array(made.needs, np.int64).reshape(-1, 2),
    )  # fmt: skip


class _Making:
    """Chains so far."""

    def __init__(self, numbers: Mapping[int, int], starts: Sequence[int]):
        self._numbers, self._starts = numbers, starts
        self.threads = np.zeros((starts[-1], h.THREAD_WORDS), np.int64)
        self.threads[:, h.TH_NEXT] = -1
        self.needs: list[Need] = []
        self.first: list[int] = []
        self._chain: list[int] = []  # of every thread
        self._place: list[int] = []  # in its chain
        self._last: list[int] = []  # thread of every chain

    def add(self, dispatch: int, rank: int, log: RankLog, earlier: Sequence[int], same_rank: int | None) -> None:
        """The threads of one dispatch, which waits for the dispatches ``earlier``."""
        number = self._numbers[dispatch]
        start, rows = self._starts[number], log.events.threads
        of_node: defaultdict[int, list[int]] = defaultdict(list)
        for index, node in enumerate(rows[:, 1].tolist()):
            of_node[node].append(start + index)
        before: defaultdict[int, list[int]] = defaultdict(list)
        for a, b in log.before:
            if a in of_node and b in of_node:
                before[b].append(a)
        ends = {node: list(own) for node, own in of_node.items()}
        dispatch_ends = self._threads_of(same_rank)
        for index, node in enumerate(rows[:, 1].tolist()):
            self._chain_on(start + index, [*(ends[a] for a in before[node]), dispatch_ends])
        own = self.threads[start : start + len(rows)]
        own[:, h.TH_CHAIN] = self._chain[start:]
        own[:, h.TH_DISPATCH], own[:, h.TH_RANK], own[:, h.TH_EVENTS] = number, rank, rows[:, 2]
        wanted = [(-1 - self._numbers[other], len(self._threads_of(other))) for other in earlier]
        for node, threads in of_node.items():
            needs = [*wanted, *map(self._end_of, joined.from_iterable(of_node[a] for a in before[node]))]
            self.threads[threads, h.TH_NEED], self.threads[threads, h.TH_NEEDS] = len(self.needs), len(needs)
            self.needs += needs

    def _threads_of(self, dispatch: int | None) -> list[int]:
        if dispatch is None:
            return []
        number = self._numbers[dispatch]
        return list(range(self._starts[number], self._starts[number + 1]))

    def _chain_on(self, thread: int, ends: Iterable[list[int]]) -> None:
        """Let a thread follow one of those before it that nothing follows yet, or begin a chain."""
        for threads in ends:
            while threads and threads[-1] < thread:
                before = threads.pop()
                chain = self._chain[before]
                if self._last[chain] == before:
                    self.threads[before, h.TH_NEXT] = thread
                    self._last[chain] = thread
                    self._note(chain, self._place[before] + 1)
                    return
        self._note(len(self.first), 0)
        self.first.append(thread)
        self._last.append(thread)

    def _note(self, chain: int, place: int) -> None:
        self._chain.append(chain)
        self._place.append(place)

    def _end_of(self, thread: int) -> Need:
        return self._chain[thread], self._place[thread] + 1


__all__ = ["RankChains", "chains_of"]

"""How the ranks of a run wake each other, and what the parent sees of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Final

from pypto.runtime.ranks_protocol import Blocked, Words
from pypto.runtime.shared_memory import SharedRegion
from pypto.sim.distributed_tasks import Waiting
from pypto.sim.told_signals import ToldSignals

GO: Final = ("go",)


class RunAbandoned(Exception):
    """The run failed on another rank; this one gives up what it was doing."""


class RankBoard:
    """Shared words of all ranks: which sleep, and which runs were given up; plus one wake-up counter per rank.

    A rank that sleeps blocks in the kernel until its counter is raised; nothing polls.
    """

    def __init__(self, region: SharedRegion, ranks: int):
        self.ranks = ranks
        size = 8 * (ranks + 1)
        self._words: Words = region.words(region.allocate(size), ranks + 1)
        self._bells = [os.eventfd(0, os.EFD_CLOEXEC) for _ in range(ranks)]

    @property
    def abandoned(self) -> int:
        """Number of the last run that was given up."""
        return int(self._words[self.ranks])

    def abandon(self, run: int) -> None:
        """Give up ``run`` and every one before it."""
        self._words[self.ranks] = run
        for rank in range(self.ranks):
            self.ring(rank)

    def asleep(self, rank: int) -> int:
        """Which of its sleeps ``rank`` is in; 0 while it is awake."""
        return int(self._words[rank])

    def fall_asleep(self, rank: int, number: int) -> None:
        self._words[rank] = number

    def ring(self, rank: int) -> None:
        """Wake ``rank``; when it is awake, its next sleep ends at once."""
        os.eventfd_write(self._bells[rank], 1)

    def listen(self, rank: int) -> None:
        """Sleep until somebody rings for ``rank``."""
        os.eventfd_read(self._bells[rank])

    def close(self) -> None:
        for bell in self._bells:
            os.close(bell)
        self._bells.clear()


class RankExchange:
    """The side of one rank, for one dispatch.

    ``in_turns``: the ranks run one at a time, which makes the order of remote atomic additions, and with it their
    rounding, the same every time.
    """

    sleeps = 0

    def __init__(self, board: RankBoard, rank: int, connection: Connection, number: int, run: int, in_turns: bool):
        self.board, self.rank, self.connection = board, rank, connection
        self.number, self.run, self.in_turns = number, run, in_turns
        self.told = ToldSignals()

    def wake(self, rank: int) -> None:
        """A signal cell of ``rank`` was changed."""
        if rank != self.rank and not self.in_turns:
            self.board.ring(rank)

    def check(self) -> None:
        """:class:`RunAbandoned` when the run was given up."""
        if self.board.abandoned >= self.run:
            raise RunAbandoned

    def sleep(self, waits: Sequence[Waiting]) -> None:
        """Tell the parent what is waited for and sleep until it may have come."""
        RankExchange.sleeps += 1
        number = RankExchange.sleeps
        cells = tuple((w.address, w.expected, w.comparison) for w in waits)
        self.board.fall_asleep(self.rank, number)
        texts, names = tuple(w.text for w in waits), tuple(w.cell for w in waits)
        self.connection.send(Blocked(self.number, number, cells, texts, names))
        if self.in_turns:
            self.connection.recv()
        else:
            self.board.listen(self.rank)
        self.board.fall_asleep(self.rank, 0)
        self.check()


def cell_value(address: int) -> int:
    """What the signal cell at ``address`` holds now."""
    import ctypes

    return ctypes.c_int32.from_address(address).value


def holds(address: int, expected: int, comparison: int) -> bool:
    """Whether the signal cell at ``address`` is what a wait expects."""
    value = cell_value(address)
    if comparison == 0:
        return value == expected
    if comparison == 2:
        return value & 0xFFFFFFFF >= expected & 0xFFFFFFFF
    return value >= expected

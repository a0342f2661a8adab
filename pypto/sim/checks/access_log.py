"""Accesses on their way from the observer to the table: the log of a launch, and the blocks that its rows name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pypto.sim.checks import words as w
from pypto.sim.checks.buffers import LaunchBuffers
from pypto.sim.checks.crews import Crew
from pypto.sim.recording import Words


class Seated(Protocol):
    """A core whose block logs accesses."""

    state: Words
    crew: Crew | None

    def seat(self, row: Words) -> None:
        """Describe the block that runs (conflicts.py, a seat)."""


class AccessLog:
    """Rows of all cores in the order in which they were made; ``take(rows, seats)`` gets them when there are enough."""

    def __init__(self, buffers: LaunchBuffers, take: Callable[[Words, Words], None]) -> None:
        self._rows, self._seats, self._launch = buffers.log, buffers.seats, buffers.words
        self._seated = 0
        self._running: dict[int, Seated] = {}
        self._take = take

    def begin(self, core: Seated) -> None:
        """The accesses of ``core`` are of a new block, or of a new node of the order graph, from now on."""
        if self._seated == len(self._seats):
            self.flush()
        self._running[id(core)] = core
        self._sit(core)

    def end(self, core: Seated) -> None:
        """The block of ``core`` has ended."""
        self._running.pop(id(core), None)

    def _sit(self, core: Seated) -> None:
        core.seat(self._seats[self._seated])
        core.state[w.SEAT_ROW] = self._seated
        self._seated += 1

    @property
    def running(self) -> list[Seated]:
        return list(self._running.values())

    def close(self) -> None:
        """No more rows come."""
        self._running.clear()
        del self._take

    def flush(self) -> None:
        """Hand over what there is."""
        used = int(self._launch[w.LOG_USED])
        if used:
            self._take(self._rows[:used], self._seats[: self._seated])
            self._launch[w.LOG_USED] = 0
        self._seated = 0
        for core in self._running.values():
            self._sit(core)

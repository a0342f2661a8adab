"""Clocks for host spans: modelled on the clocked platforms, the wall on the others.

The modelled clock starts at the host's monotonic clock when a worker opens and advances by modelled costs only, so the
host spans of a launch are the same every time, and a simulation that takes long does not lengthen them.
"""

from __future__ import annotations

import time
from typing import Protocol


class HostClock(Protocol):
    """Nanoseconds on the scale of CLOCK_MONOTONIC."""

    modelled: bool

    def now_ns(self) -> int:
        """The present time."""
        ...

    def advance(self, duration_ns: int) -> None:
        """Let a modelled cost pass; a wall clock advances by itself."""
        ...


class ModelledClock:
    """Advances by what is charged to it."""

    modelled = True

    def __init__(self, start_ns: int | None = None):
        self._now_ns = time.monotonic_ns() if start_ns is None else start_ns

    def now_ns(self) -> int:
        return self._now_ns

    def advance(self, duration_ns: int) -> None:
        if duration_ns < 0:
            raise ValueError(f"a clock cannot go back by {-duration_ns} ns")
        self._now_ns += duration_ns


class WallClock:
    """The host's monotonic clock."""

    modelled = False

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def advance(self, duration_ns: int) -> None:
        """Nothing: the time has passed already."""

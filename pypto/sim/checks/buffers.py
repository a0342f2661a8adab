"""Arrays of fixed size that a launch needs while it is watched, handed on from launch to launch."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

from pypto.sim.checks import conflicts as c
from pypto.sim.checks import words as w

_SEATS: Final = 4096


class LaunchBuffers:
    """Arrays of one launch (words.py, conflicts.py)."""

    def __init__(self) -> None:
        self.log = np.empty((w.LOG_ROWS, w.ACCESS_WORDS), np.int64)
        self.seats = np.empty((_SEATS, c.SEAT_WORDS), np.int64)
        self.findings = np.empty((c.FINDING_CAPACITY, c.FINDING_WORDS), np.int64)
        self.origins = np.zeros((w.ORIGIN_CAPACITY, w.ORIGIN_WORDS), np.int64)
        self.events = np.zeros((w.EVENT_CAPACITY, w.ORIGIN_WORDS), np.int64)
        self.scratch = np.empty(w.SCRATCH_BYTES, np.uint8)


_FREE: Final[deque[LaunchBuffers]] = deque(maxlen=4)


def take_buffers() -> LaunchBuffers:
    """Buffers that nobody uses."""
    try:
        return _FREE.pop()
    except IndexError:
        return LaunchBuffers()


def give_back(buffers: LaunchBuffers, origins: int) -> None:
    """A launch with ``origins`` origins has been reported on and needs its buffers no more."""
    buffers.origins[:origins] = 0
    _FREE.append(buffers)

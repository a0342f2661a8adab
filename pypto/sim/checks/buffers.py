"""What a launch needs while it is watched and the next one can use again: arrays whose addresses stay the same."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import numpy as np

from pypto.sim.checks import conflicts as c
from pypto.sim.checks import words as w
from pypto.sim.checks.order import AccessTable, OrderGraph
from pypto.sim.checks.rules.table import new_handlers
from pypto.sim.recording import Words

if TYPE_CHECKING:
    from pypto.sim.checks.core_watch import CoreWatch

_SEATS: Final = 4096
_KEPT_BYTES: Final = 1 << 24  # a launch that needed a larger table does not hand it on


class LaunchBuffers:
    """Arrays of one launch (words.py, conflicts.py), and what works on them."""

    def __init__(self) -> None:
        self.log = np.empty((w.LOG_ROWS, w.ACCESS_WORDS), np.int64)
        self.seats = np.empty((_SEATS, c.SEAT_WORDS), np.int64)
        self.origins = np.zeros((w.ORIGIN_CAPACITY, w.ORIGIN_WORDS), np.int64)
        self.events = np.zeros((w.EVENT_CAPACITY, w.ORIGIN_WORDS), np.int64)
        self.scratch = np.empty(w.SCRATCH_BYTES, np.uint8)
        self.allocations = np.zeros((64, w.ALLOCATION_WORDS), np.int64)
        self.handlers = new_handlers()
        self.words = np.zeros(w.LAUNCH_WORDS, np.int64)
        words = self.words
        words[w.LOG], words[w.LOG_CAPACITY] = self.log.ctypes.data, len(self.log)
        words[w.ORIGINS], words[w.EVENTS] = self.origins.ctypes.data, self.events.ctypes.data
        words[w.ALLOCATIONS] = self.allocations.ctypes.data
        self.graph = OrderGraph()
        self.table = AccessTable(self.graph)
        self.cores: list[CoreWatch] = []

    def grow_allocations(self) -> Words:
        """Room for as many allocations again."""
        self.allocations = np.concatenate((self.allocations, np.zeros_like(self.allocations)))
        self.words[w.ALLOCATIONS] = self.allocations.ctypes.data
        return self.allocations

    def reset(self) -> None:
        """Nothing is known of any launch."""
        words = self.words
        self.origins[: words[w.ORIGIN_COUNT]] = 0
        words[w.ORIGIN_COUNT], words[w.EVENT_COUNT], words[w.LOG_USED], words[w.SCALAR_STORES] = 0, 0, 0, 0
        self.handlers[:] = 0
        self.graph.reset()
        self.table.reset()


_FREE: Final[deque[LaunchBuffers]] = deque(maxlen=4)


def take_buffers() -> LaunchBuffers:
    """Buffers that nobody uses."""
    try:
        buffers = _FREE.pop()
    except IndexError:
        return LaunchBuffers()
    buffers.reset()
    return buffers


def give_back(buffers: LaunchBuffers) -> None:
    """A launch has been reported on and needs its buffers no more."""
    if buffers.table.nbytes + buffers.allocations.nbytes + buffers.graph.nbytes <= _KEPT_BYTES:
        _FREE.append(buffers)

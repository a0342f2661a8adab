"""Cores that wait for each other: their vector clocks (clocks.py), and the snapshots that logged accesses name."""

from __future__ import annotations

import numpy as np

from pypto.sim import tile_queues
from pypto.sim.checks import words as w
from pypto.sim.checks.clocks import EVENT_PLACES, GLOBAL_PLACES
from pypto.sim.recording import Words

_FIRST_SNAPSHOTS = 256


class Crew:
    """``size`` cores in ``clusters`` clusters, whose queues are those of the cluster words ``channels``."""

    def __init__(self, number: int, size: int, clusters: int, channels: Words) -> None:
        self.number, self.size = number, size
        self.words = np.zeros(w.CREW_WORDS, np.int64)
        queues = channels[tile_queues.QUEUES : tile_queues.QUEUES_END].reshape(-1, tile_queues.QUEUE_WORDS)
        places = np.where(queues[:, tile_queues.SLOT_BYTES] > 0, queues[:, tile_queues.DEPTH] + 1, 0)
        ends = EVENT_PLACES + np.cumsum(places)
        self.words[w.CREW_QUEUES : w.CREW_QUEUES + w.QUEUES] = ends - places
        self.words[w.CREW_PLACES] = ends[-1]
        self.clocks = np.eye(size, dtype=np.int64)
        self.shared = np.zeros((GLOBAL_PLACES + clusters * int(ends[-1]), size), np.int64)
        self._hold(np.empty((_FIRST_SNAPSHOTS, size), np.int64))

    def _hold(self, snapshots: Words) -> None:
        self.snapshots = snapshots
        self.words[w.CREW_SNAPSHOTS], self.words[w.CREW_CAPACITY] = snapshots.ctypes.data, len(snapshots)

    @property
    def is_full(self) -> bool:
        """Whether a core may find no room for its snapshots."""
        return int(self.words[w.CREW_USED]) > len(self.snapshots) - w.SNAPSHOT_RESERVE

    def keep(self, named: Words) -> Words:
        """Forget all snapshots but those in ``named`` (row numbers, rising); their new numbers are 0, 1, …

        Room for as many again is made. The cores have to take new snapshots from now on.
        """
        snapshots = np.empty((max(_FIRST_SNAPSHOTS, 2 * len(named)), self.size), np.int64)
        snapshots[: len(named)] = self.snapshots[named]
        self._hold(snapshots)
        self.words[w.CREW_USED] = len(named)
        return np.arange(len(named))

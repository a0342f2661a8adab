"""What is known of the values in the slots of queues between cores (rules/queues.py): one code per byte of a slot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pypto.sim import tile_queues
from pypto.sim.recording import Words


class QueueShadows:
    """Codes of the slots of all queues of a launch. They are kept as long as the queues are."""

    def __init__(self) -> None:
        self._codes: dict[int, NDArray[np.uint8]] = {}
        """By the address of a queue's first slot."""

    def follow(self, cluster: Words) -> None:
        """Give every queue of a cluster (its words) codes for its slots."""
        queues = cluster[tile_queues.QUEUES : tile_queues.QUEUES_END].reshape(-1, tile_queues.QUEUE_WORDS)
        for number in np.flatnonzero(queues[:, tile_queues.SLOT_BYTES]):
            queue = queues[number]
            first = int(queue[tile_queues.DATA])
            size = int(queue[tile_queues.DEPTH]) * (int(queue[tile_queues.SLOT_BYTES]) + tile_queues.SLOT_HEADER)
            codes = self._codes.get(first)
            if codes is None or len(codes) < size:
                codes = self._codes[first] = np.zeros(size, np.uint8)
            queue[tile_queues.SHADOW] = codes.ctypes.data - first

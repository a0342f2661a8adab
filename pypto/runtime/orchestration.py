"""What a host may make for the time of an orchestration: channels to its chips (spec distributed 2.14)."""

from __future__ import annotations

import itertools
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pypto.runtime.channel_memory import ChannelMemory, Side, block_bytes, block_layout
from pypto.runtime.channel_queue import COUNTERS, QueueShape, WorkerChipQueue
from pypto.runtime.channel_region import WorkerChipRegion

if TYPE_CHECKING:
    from pypto.runtime.distributed_worker import DistributedWorker

_numbers = itertools.count(1)


class Orchestration:
    """A context of a worker; leaving it releases the channels made in it."""

    def __init__(self, worker: DistributedWorker):
        self._worker = worker
        self._regions: list[WorkerChipRegion] = []
        self._open = True

    def create_worker_chip_region(self, worker_id: int, payload_bytes: int, counter_bytes: int) -> WorkerChipRegion:
        """Payload and 32-bit counters (all zero) in the memory of chip ``worker_id``.

        Hand ``region.descriptor`` to the chip program as six UINT64 scalars; its stand-in opens the other end with
        ``ChipEndpoint``.
        """
        if not self._open:
            raise RuntimeError("this orchestration has ended")
        worker = self._worker
        nbytes = block_bytes(payload_bytes, counter_bytes)
        address = worker.malloc(nbytes, worker_id=worker_id)
        descriptor = block_layout(address, next(_numbers), payload_bytes, counter_bytes)
        memory = ChannelMemory(descriptor, Side.HOST, lambda: worker._gone(worker_id))
        memory.create()
        region = WorkerChipRegion(memory, worker_id, lambda: worker.free(address, worker_id=worker_id))
        self._regions.append(region)
        return region

    def create_worker_chip_queue(
        self, worker_id: int, depth: int, input_arena_bytes: int, output_arena_bytes: int
    ) -> WorkerChipQueue:
        """Messages to and from chip ``worker_id``: ``depth`` (a power of two) each way, payload in arenas of so many
        bytes (multiples of 64). Its stand-in opens the other end with ``ChipQueue(descriptor)``.
        """
        shape = QueueShape(depth, input_arena_bytes, output_arena_bytes)
        region = self.create_worker_chip_region(worker_id, shape.payload_bytes, COUNTERS)
        return WorkerChipQueue(region, shape)

    def close(self) -> None:
        """Release every channel; calling it again does nothing."""
        self._open = False
        for region in self._regions:
            region.free()
        self._regions.clear()

    def __enter__(self) -> Orchestration:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        self.close()


__all__ = ["Orchestration"]

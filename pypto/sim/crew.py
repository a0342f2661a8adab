"""Blocks that wait for each other, run as coroutines: the cores of a cluster, or all blocks of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pypto.sim import crosscore, tile_queues
from pypto.sim import opcodes as op
from pypto.sim.faults import DeadlockError
from pypto.sim.frames import Core, Frame, Trace
from pypto.sim.memory import Allocations
from pypto.sim.queue_faults import QueueError
from pypto.sim.queue_state import EventState, QueueState, event_states, queue_states
from pypto.sim.recording import Words
from pypto.sim.tasks import TaskPlan
from pypto.sim.tile_program import Transfer
from pypto.sim.wait_answers import answers
from pypto.sim.waiting import deadlock_text, overdue


@dataclass(frozen=True)
class Seat:
    """One core of a running task."""

    frame: Frame
    block: int
    core: int
    trace: Trace


@dataclass(frozen=True)
class LeftBehind:
    """What a block leaves for the next task on its cores: tiles, slots that stay taken, events nobody waited for."""

    queues: tuple[QueueState, ...]
    events: tuple[EventState, ...]


@dataclass
class Channels:
    """Cross-core state of the clusters of one task; queues sized by what its programs push. Reused by later blocks."""

    clusters: list[Words] = field(default_factory=list)
    _fresh: list[Words] = field(default_factory=list)
    launch: Words = field(default_factory=lambda: np.zeros(crosscore.LAUNCH_WORDS, np.int64))
    _data: list[NDArray[np.uint8]] = field(default_factory=list)

    @classmethod
    def of(cls, plan: TaskPlan, together: int) -> Channels:
        """State for ``together`` clusters that run at once; :meth:`reset` says of how large a launch."""
        channels = cls()
        lanes, cubes = _sides(plan)
        transfers = [transfer for member in plan.members for transfer in member.program.transfers]
        for _ in range(together):
            cluster = np.zeros(crosscore.CLUSTER_WORDS, np.int64)
            cluster[tile_queues.LAUNCH] = channels.launch.ctypes.data
            cluster[tile_queues.LANES], cluster[tile_queues.HAS_CUBE] = lanes, cubes
            channels._add_queues(cluster, transfers)
            channels.clusters.append(cluster)
            channels._fresh.append(cluster.copy())
        return channels

    def reset(self, plan: TaskPlan, blocks: int) -> None:
        """Back to the start, for a launch of ``blocks``."""
        lanes, cubes = _sides(plan)
        participants = (blocks * lanes, blocks * cubes, blocks * (lanes + cubes))
        self.launch[:] = 0
        self.launch[crosscore.PARTICIPANTS : crosscore.PARTICIPANTS + 3] = np.maximum(participants, 1)
        for cluster, fresh in zip(self.clusters, self._fresh):
            cluster[:] = fresh

    def counters(self) -> bytes:
        """Everything that a transfer, an event or a barrier changes."""
        return b"".join(words.tobytes() for words in (self.launch, *self.clusters))

    def left_behind(self) -> list[LeftBehind]:
        """What the clusters still hold."""
        found = []
        for words in self.clusters:
            queues = tuple(queue for queue in queue_states(words) if queue.pushed != queue.freed)
            events = tuple(event_states(words))
            if queues or events:
                found.append(LeftBehind(queues, events))
        return found

    def _add_queues(self, cluster: Words, transfers: Sequence[Transfer]) -> None:
        sizes: dict[tuple[int, int], int] = {}
        stated: dict[tuple[int, int], int] = {}
        for transfer in transfers:
            key = transfer.direction, transfer.channel
            sizes[key] = max(sizes.get(key, 0), transfer.bytes)
            stated[key] = max(stated.get(key, 0), transfer.slots)
        for (direction, channel), size in sizes.items():
            both = (1 - direction, channel) in sizes
            depth = stated[direction, channel] or (tile_queues.SLOTS_BOTH_WAYS if both else tile_queues.SLOTS_ONE_WAY)
            size = -(-size // 64) * 64
            for lane in range(2):
                data = np.zeros(depth * (size + tile_queues.SLOT_HEADER) + 64, np.uint8)
                self._data.append(data)
                at = (
                    tile_queues.QUEUES
                    + ((direction * tile_queues.CHANNELS + channel) * 2 + lane) * tile_queues.QUEUE_WORDS
                )
                cluster[at + tile_queues.DEPTH], cluster[at + tile_queues.SLOT_BYTES] = depth, size
                cluster[at + tile_queues.DATA] = -(-data.ctypes.data // 64) * 64


def _sides(plan: TaskPlan) -> tuple[int, int]:
    """Vector lanes and cube cores of one block."""
    cores = [core for member in plan.members for core in member.cores]
    return sum(core > 0 for core in cores), sum(core == 0 for core in cores)


def run_crew(
    plan: TaskPlan,
    values: Words,
    chosen: Sequence[int],
    total: int,
    cores: Sequence[Core],
    allocations: Allocations,
    channels: Channels,
    *,
    record: bool,
) -> list[Seat]:
    """Run the blocks ``chosen`` (of ``total``) at once, each member on a core of its own; returns the seats in order.

    ``DeadlockError`` when every block that is not done waits.
    """
    channels.reset(plan, total)
    free = iter(cores)
    seats = []
    for number, block in enumerate(chosen):
        for member in plan.members:
            for core in member.cores:
                frame = next(free).frame(member.program)
                frame.start(member.places, values, block, total, core, record=record)
                frame.words[op.CHANNELS] = channels.clusters[number].ctypes.data
                seats.append(Seat(frame, block, core, Trace()))
    if seats and seats[0].frame.watch is not None:
        seats[0].frame.watch.together(seats)
    _run(seats, allocations, channels, total)
    return seats


def _run(seats: list[Seat], allocations: Allocations, channels: Channels, total: int) -> None:
    """Resume everybody in turn. A core may come round a loop to the wait it stood at, so only a round that moves no
    core and leaves the counters of the transfers as they were is a deadlock."""
    waiting, quiet = list(seats), b""
    while waiting:
        remaining, progress = [], False
        for seat in waiting:
            before = _progress(seat)
            status = resume(seat, seats, allocations)
            progress = progress or status != op.BLOCKED or _progress(seat) != before
            if status != op.DONE:
                remaining.append(seat)
        counters = b"" if progress else channels.counters()
        if not progress and counters == quiet:
            error = DeadlockError(deadlock_text(remaining, seats, total))
            error.waiting = tuple((seat.frame.program, int(seat.frame.words[op.SITE])) for seat in remaining)
            error.overdue, error.answers = tuple(overdue(remaining, seats)), tuple(answers(remaining, seats))
            raise error
        waiting, quiet = remaining, counters


def resume(seat: Seat, seats: Sequence[Seat], allocations: Allocations) -> int:
    """Go on with one of the ``seats`` that run together; faults of queues name the places on both sides."""
    try:
        return seat.frame.resume(seat.trace, allocations)
    except QueueError as error:
        error.complete(seat, seats)
        raise


def _progress(seat: Seat) -> tuple[int, int, int]:
    words = seat.frame.words
    return int(words[op.PC]), int(words[op.ARRIVED]), seat.trace.used

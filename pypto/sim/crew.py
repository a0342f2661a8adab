"""Blocks that wait for each other, run as coroutines: the cores of a cluster, or all blocks of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pypto.sim import crosscore
from pypto.sim import opcodes as op
from pypto.sim.faults import DeadlockError, where
from pypto.sim.frames import Core, Frame, Trace
from pypto.sim.memory import Allocations
from pypto.sim.recording import Words
from pypto.sim.syntax import Instruction
from pypto.sim.tasks import TaskPlan
from pypto.sim.tile_program import Transfer

_BARRIER_KINDS: Final = ("aiv_only", "aic_only", "mix")


@dataclass(frozen=True)
class Seat:
    """One core of a running task."""

    frame: Frame
    block: int
    core: int
    trace: Trace


@dataclass(frozen=True)
class LeftBehind:
    """A queue whose tiles were not all popped when its task ended."""

    direction: int
    channel: int
    pushed: int
    popped: int


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
            cluster[crosscore.LAUNCH] = channels.launch.ctypes.data
            cluster[crosscore.LANES], cluster[crosscore.HAS_CUBE] = lanes, cubes
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
        """Queues that hold tiles nobody has popped."""
        found = []
        for words in self.clusters:
            queues = words[crosscore.QUEUES :].reshape(-1, crosscore.QUEUE_WORDS)
            for number in np.flatnonzero(queues[:, crosscore.PUSHED] != queues[:, crosscore.POPPED]).tolist():
                pushed, popped = (int(queues[number, word]) for word in (crosscore.PUSHED, crosscore.POPPED))
                direction, channel = divmod(number // 2, crosscore.CHANNELS)
                found.append(LeftBehind(direction, channel, pushed, popped))
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
            depth = stated[direction, channel] or (crosscore.SLOTS_BOTH_WAYS if both else crosscore.SLOTS_ONE_WAY)
            size = -(-size // 64) * 64
            for lane in range(2):
                data = np.zeros(depth * (size + crosscore.SLOT_HEADER) + 64, np.uint8)
                self._data.append(data)
                at = crosscore.QUEUES + ((direction * crosscore.CHANNELS + channel) * 2 + lane) * crosscore.QUEUE_WORDS
                cluster[at + crosscore.DEPTH], cluster[at + crosscore.SLOT_BYTES] = depth, size
                cluster[at + crosscore.DATA] = -(-data.ctypes.data // 64) * 64


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
            status = seat.frame.resume(seat.trace, allocations)
            progress = progress or status != op.BLOCKED or _progress(seat) != before
            if status != op.DONE:
                remaining.append(seat)
        counters = b"" if progress else channels.counters()
        if not progress and counters == quiet:
            error = DeadlockError(_deadlock(remaining, len({seat.block for seat in seats}), total))
            error.waiting = tuple((seat.frame.program, int(seat.frame.words[op.SITE])) for seat in remaining)
            raise error
        waiting, quiet = remaining, counters


def _progress(seat: Seat) -> tuple[int, int, int]:
    words = seat.frame.words
    return int(words[op.PC]), int(words[op.ARRIVED]), seat.trace.used


def _deadlock(seats: list[Seat], running: int, total: int) -> str:
    lines = [f"deadlock: {len(seats)} of the cores that run wait and none can go on"]
    lines += [waits_text(seat) for seat in seats[:8]]
    if len(seats) > 8:
        lines.append(f"  … and {len(seats) - 8} more")
    if running < total:
        lines.append(
            f"  {total - running} of the {total} blocks cannot start before these end: a task whose blocks wait for "
            f"each other must fit the chip, which runs {running} of its blocks at once"
        )
    return "\n".join(lines)


def waits_text(seat: Seat) -> str:
    """Which core of which block waits where, for what."""
    program, index = seat.frame.program, int(seat.frame.words[op.SITE])
    core = "AIC" if seat.core == 0 else f"AIV{seat.core - 1}"
    statement = program.statements[index]
    assert isinstance(statement, Instruction)
    return f"  {program.name}, block {seat.block}, {core}: {_reason(seat, statement)}{where(program, index)}"


def _reason(seat: Seat, instruction: Instruction) -> str:
    words = seat.frame.words
    name, channel = instruction.mnemonic, instruction.attributes.get("id", 0)
    if name == "syncall":
        kind = instruction.attributes.get("core_type", "mix")
        return f"waits at a barrier of all blocks ({kind})"
    if name == "syncall_soft":
        used, came = int(words[op.ARGUMENTS + 2]), int(words[op.ARGUMENTS + 3])
        return f"waits at a soft barrier of {used} cores, {came} of which have come to its workspace"
    if name == "sync_wait":
        return f"waits for event {int(words[op.ARGUMENTS])}, which nobody sets"
    peer = {"tpush_to_aiv": "AIV", "tpop_from_aiv": "AIV", "tpush_to_aic": "AIC", "tpop_from_aic": "AIC"}.get(
        name, "peer"
    )
    if name.startswith("tpush"):
        return f"waits for a free slot in queue {channel}: the {peer} frees none"
    return f"waits for a tile in queue {channel}: the {peer} pushes none"

"""What the queues and events of a cluster hold, read from its words for reports (tile_queues.py, crosscore.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from pypto.sim import crosscore, tile_queues
from pypto.sim.memory import memory_view
from pypto.sim.recording import Words

PUSHES: Final = ("tpush_to_aiv", "tpush_to_aic")
POPS: Final = ("tpop_from_aic", "tpop_from_aiv")
FREES: Final = ("tfree_to_aic", "tfree_to_aiv")
"""Mnemonics by direction of the queue."""


@dataclass(frozen=True)
class SlotState:
    """A slot that is taken: number of its tile, and the instructions that pushed, popped and named it in a free."""

    sequence: int
    push: int
    pop: int  # -1: still in the queue
    free: int  # -1: no free has named it


@dataclass(frozen=True)
class QueueState:
    """A queue of one lane; ``slots`` are taken, the oldest first."""

    direction: int
    channel: int
    lane: int
    depth: int
    pushed: int
    popped: int
    freed: int
    slots: tuple[SlotState, ...]

    @property
    def sender(self) -> int:
        """Core that pushes: 0 the cube, 1 + lane a vector lane."""
        return 0 if self.direction == tile_queues.CUBE_TO_VECTOR else 1 + self.lane

    @property
    def receiver(self) -> int:
        """Core that pops."""
        return 1 + self.lane if self.direction == tile_queues.CUBE_TO_VECTOR else 0

    @property
    def held(self) -> tuple[SlotState, ...]:
        """Slots whose tiles were popped and not freed; by name, as far as the frees name what was popped."""
        popped = tuple(slot for slot in self.slots if slot.pop >= 0)
        return tuple(slot for slot in popped if slot.free < 0) or popped


@dataclass(frozen=True)
class EventState:
    """An event that ``core`` of a cluster has ``awaited`` and has been given ``pending`` times more.

    ``missing``: the lanes that have not set it, when the others' sets do not count before; ``places`` are (core,
    instruction) of sets.
    """

    event: int
    core: int
    awaited: int
    pending: int
    missing: tuple[int, ...]
    places: tuple[tuple[int, int], ...]


def queue_state(cluster: Words, direction: int, channel: int, lane: int) -> QueueState:
    """The state of one queue."""
    at = tile_queues.QUEUES + ((direction * tile_queues.CHANNELS + channel) * 2 + lane) * tile_queues.QUEUE_WORDS
    depth, size, pushed, popped, freed, data = (int(word) for word in cluster[at : at + 6])
    slots = []
    for sequence in range(freed, pushed if depth else freed):
        address = data + sequence % depth * (size + tile_queues.SLOT_HEADER)
        header = memory_view(address, tile_queues.SLOT_HEADER).view(np.int64)
        taken = sequence < popped
        slots.append(
            SlotState(
                sequence, int(header[tile_queues.SLOT_PUSH]),
                int(header[tile_queues.SLOT_POP]) if taken else -1,
                int(header[tile_queues.SLOT_FREE]) if taken else -1,
            )
        )  # fmt: skip
    return QueueState(direction, channel, lane, depth, pushed, popped, freed, tuple(slots))


def queue_states(cluster: Words) -> Iterator[QueueState]:
    """All queues of a cluster that something was pushed into."""
    queues = cluster[tile_queues.QUEUES : tile_queues.QUEUES_END].reshape(-1, tile_queues.QUEUE_WORDS)
    for number in np.flatnonzero(queues[:, tile_queues.PUSHED]).tolist():
        place, lane = divmod(number, 2)
        direction, channel = divmod(place, tile_queues.CHANNELS)
        yield queue_state(cluster, direction, channel, lane)


def event_states(cluster: Words) -> Iterator[EventState]:
    """Events of a cluster that were set and not awaited."""
    lanes, cubes = int(cluster[tile_queues.LANES]), int(cluster[tile_queues.HAS_CUBE])
    cores = [*range(1 if not cubes else 0, 1 + lanes)]
    for event in range(crosscore.EVENTS):
        for core in cores:
            state = event_state(cluster, event, core)
            if state.pending or state.missing:
                yield state


def event_state(cluster: Words, event: int, core: int) -> EventState:
    """What ``core`` has been given of an event of its cluster."""
    lanes = int(cluster[tile_queues.LANES])
    pending = int(cluster[crosscore.PENDING + 3 * event + core])
    mode = 2 if core == 0 else 1
    first = crosscore.LANES_ARRIVED + ((mode - 1) * crosscore.EVENTS + event) * 2
    arrived = [int(word) for word in cluster[first : first + lanes]]
    missing = tuple(lane for lane, count in enumerate(arrived) if count == 0) if any(arrived) else ()
    places = cluster[crosscore.SET_PLACES + 3 * event :][:3]
    awaited = int(cluster[crosscore.WAIT_COUNT + 3 * event + core])
    return EventState(
        event,
        core,
        awaited,
        pending,
        missing,
        tuple((c, int(place) - 1) for c, place in enumerate(places) if place > 0),
    )

"""What one launch did with windows and signals, in the form its parent compares with those of the other ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from pypto.sim.checks import words as w
from pypto.sim.checks.event_rows import EventRows
from pypto.sim.checks.findings import Location
from pypto.sim.checks.lane_guards import under_lane_condition
from pypto.sim.checks.places import location, operation, tensor_operand
from pypto.sim.recording import Words

if TYPE_CHECKING:
    from pypto.sim.checks.watch import LaunchWatch

# columns of RankLog.events; BOX holds an absolute box, or the four words of a signal
EV_KIND, EV_NODE, EV_SEAT, EV_PLACE, EV_BOX = 0, 1, 2, 3, 4
EVENT_WORDS: Final = EV_BOX + w.ACCESS_WORDS - w.ACCESS_BOX


@dataclass(frozen=True)
class Place:
    """An instruction that touched a window or a signal."""

    task: str
    operation: str
    tensor: str
    location: Location


@dataclass(frozen=True)
class Window:
    """A window of this rank: address of its first byte, and the tensor it is seen as."""

    name: str
    address: int
    size: int
    shape: tuple[int, ...]
    bits: int
    stride: int  # bytes to the same window of the next rank
    rank: int
    ranks: int
    domain: int = 0
    offset: int = 0  # bytes from the start of the domain's memory of a rank


@dataclass(frozen=True)
class RankLog:
    """Events in program order per seat; ``before`` are pairs (node, node) that order the tasks of the launch."""

    events: EventRows
    places: tuple[Place, ...] = ()
    before: tuple[tuple[int, int], ...] = ()
    windows: tuple[Window, ...] = field(default_factory=tuple)
    doubled: tuple[tuple[int, int, int, int], ...] = ()
    """Additions that both lanes of a block made: (place, cell, rank, value)."""


def rank_log(watch: LaunchWatch, windows: Sequence[Window]) -> RankLog:
    """Everything the launch did with windows and signals."""
    events = watch.rank_accesses.events()
    places: list[Place] = []
    numbers: dict[tuple[int, int], int] = {}

    def with_places(patterns: Words) -> Words:
        rows = np.zeros((len(patterns), EVENT_WORDS), np.int64)
        for row, pattern in zip(rows, patterns):
            program, index = int(pattern[3]), int(pattern[4])
            if (program, index) not in numbers:
                numbers[program, index] = len(places)
                places.append(_place(watch, program, index))
            row[:3], row[EV_PLACE], row[EV_BOX:] = pattern[:3], numbers[program, index], pattern[5:]
        return rows

    events = events.translated(with_places)
    doubled = []
    for program, index, cell, rank, value in watch.rank_accesses.doubled():
        if under_lane_condition(watch.programs[program], index):
            continue  # the lanes take turns
        doubled.append((numbers[program, index], cell, rank, value))
    before = watch.graph.pairs(sorted(watch.rank_accesses.nodes()))
    return RankLog(events, tuple(places), tuple(before), tuple(windows), tuple(doubled))


def _place(watch: LaunchWatch, program: int, index: int) -> Place:
    text = watch.programs[program]
    name = operation(text, index)
    return Place(text.name, name, tensor_operand(text, index), location(text, index, f"'{name}' in '{text.name}'"))

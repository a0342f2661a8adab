"""Gathers what a launch does into a :class:`Recording`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain

import numpy as np

from pypto.sim.recording import Recording, Words
from pypto.sim.tile_program import TileProgram


@dataclass
class Recorder:
    """Lists that grow while a launch runs; one entry per task, subtask, dependency or event."""

    events: list[tuple[int, int, int, int]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    tensors: list[int] = field(default_factory=list)
    scalars: list[int] = field(default_factory=list)
    lookups: list[int] = field(default_factory=list)
    scopes: list[int] = field(default_factory=list)
    dependencies: list[int] = field(default_factory=list)
    dependency_kinds: list[int] = field(default_factory=list)
    dependency_start: list[int] = field(default_factory=lambda: [0])
    subtasks: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """(program, block, lane, first trace row, last trace row + 1)."""
    subtask_start: list[int] = field(default_factory=lambda: [0])
    programs: dict[TileProgram, int] = field(default_factory=dict)

    def task(
        self,
        name: str,
        kind: int,
        blocks: int,
        flags: int,
        tensors: int,
        scalars: int,
        lookups: int,
        scope: int,
        producers: Sequence[int],
        kinds: Sequence[int],
    ) -> None:
        """A task in submit order."""
        self.names.append(name)
        self.kinds.append(kind)
        self.blocks.append(blocks)
        self.flags.append(flags)
        self.tensors.append(tensors)
        self.scalars.append(scalars)
        self.lookups.append(lookups)
        self.scopes.append(scope)
        self.dependencies.extend(producers)
        self.dependency_kinds.extend(kinds)
        self.dependency_start.append(len(self.dependencies))

    def end_task(self) -> None:
        self.subtask_start.append(len(self.subtasks))

    def program(self, program: TileProgram) -> int:
        """Index of ``program`` among the recorded ones."""
        return self.programs.setdefault(program, len(self.programs))

    def recording(self, name: str, platform: str, trace: Words, arguments: Words, allocations: Words) -> Recording:
        """Everything gathered, as arrays."""
        tasks = _columns(
            self.kinds, self.blocks, self.flags, self.tensors, self.scalars, self.lookups, self.scopes,
            self.dependency_start, self.dependencies, self.dependency_kinds, self.subtask_start,
        )  # fmt: skip
        subtasks = np.array(self.subtasks, np.int64).reshape(-1, 5).T.copy()
        return Recording(
            name, platform, [program.record for program in self.programs], trace, self.names, *tasks, *subtasks,
            np.array(self.events, np.int64).reshape(-1, 4), arguments, allocations,
        )  # fmt: skip


def _columns(*lists: list[int]) -> list[Words]:
    """The lists as arrays, which share one block of memory: a launch of few tasks is mostly made of such lists."""
    words = np.array(list(chain.from_iterable(lists)), np.int64)
    ends = list(accumulate(map(len, lists)))
    return [words[end - len(items) : end] for items, end in zip(lists, ends)]

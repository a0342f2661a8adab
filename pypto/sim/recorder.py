"""Gathers what a launch does into a :class:`Recording`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
        columns = np.array(self.subtasks, np.int64).reshape(-1, 5)
        return Recording(
            name=name,
            platform=platform,
            programs=[program.record for program in self.programs],
            trace=trace,
            task_name=self.names,
            task_kind=_words(self.kinds),
            task_blocks=_words(self.blocks),
            task_flags=_words(self.flags),
            task_tensors=_words(self.tensors),
            task_scalars=_words(self.scalars),
            task_lookups=_words(self.lookups),
            task_scope=_words(self.scopes),
            deps_start=_words(self.dependency_start),
            deps=_words(self.dependencies),
            deps_kind=_words(self.dependency_kinds),
            subtask_start=_words(self.subtask_start),
            subtask_program=columns[:, 0].copy(),
            subtask_block=columns[:, 1].copy(),
            subtask_lane=columns[:, 2].copy(),
            subtask_trace_start=columns[:, 3].copy(),
            subtask_trace_stop=columns[:, 4].copy(),
            events=np.array(self.events, np.int64).reshape(-1, 4),
            arguments=arguments,
            allocations=allocations,
        )


def _words(items: list[int]) -> Words:
    return np.array(items, np.int64)

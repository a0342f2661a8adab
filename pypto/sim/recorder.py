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
    tasks: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    """(kind, blocks, flags, tensors, scalars, lookups, scope)."""
    dependencies: list[int] = field(default_factory=list)
    dependency_kinds: list[int] = field(default_factory=list)
    dependency_start: list[int] = field(default_factory=lambda: [0])
    subtasks: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """(program, block, lane, first trace row, last trace row + 1)."""
    subtask_start: list[int] = field(default_factory=lambda: [0])
    programs: dict[TileProgram, int] = field(default_factory=dict)
    allocated: int = 0
    """Bytes of all tensors of the orchestration."""
    _late: dict[int, list[tuple[int, int, int, int, int]]] = field(default_factory=dict)

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
        self.tasks.append((kind, blocks, flags, tensors, scalars, lookups, scope))
        self.dependencies.extend(producers)
        self.dependency_kinds.extend(kinds)
        self.dependency_start.append(len(self.dependencies))

    def end_task(self) -> None:
        self.subtask_start.append(len(self.subtasks))

    def place(self, task: int, subtasks: list[tuple[int, int, int, int, int]]) -> None:
        """The subtasks of a task that ended after later ones were submitted."""
        self._late[task] = subtasks

    def _ordered(self, trace: Words) -> Words:
        """Bring the subtasks of late tasks, their rows and their programs into submit order; returns the rows."""
        if not self._late:
            return trace
        old = list(self.programs)
        self.programs = {}
        ordered: list[tuple[int, int, int, int, int]] = []
        rows, used, start = [], 0, [0]
        for task, (begin, end) in enumerate(zip(self.subtask_start, self.subtask_start[1:])):
            for number, block, lane, first, last in self._late.get(task) or self.subtasks[begin:end]:
                rows.append(trace[first:last])
                ordered.append((self.program(old[number]), block, lane, used, used + last - first))
                used += last - first
            start.append(len(ordered))
        self.subtasks, self.subtask_start, self._late = ordered, start, {}
        return np.concatenate(rows) if rows else trace

    def program(self, program: TileProgram) -> int:
        """Index of ``program`` among the recorded ones."""
        return self.programs.setdefault(program, len(self.programs))

    def recording(self, name: str, platform: str, trace: Words, arguments: Words, allocations: Words) -> Recording:
        """Everything gathered, as arrays."""
        trace = self._ordered(trace)
        columns = {**_columns(_TASK_COLUMNS, self.tasks), **_columns(_SUBTASK_COLUMNS, self.subtasks)}
        return Recording(
            name=name,
            platform=platform,
            programs=[program.record for program in self.programs],
            trace=trace,
            task_name=self.names,
            deps_start=np.array(self.dependency_start, np.int64),
            deps=np.array(self.dependencies, np.int64),
            deps_kind=np.array(self.dependency_kinds, np.int64),
            subtask_start=np.array(self.subtask_start, np.int64),
            events=np.array(self.events, np.int64).reshape(-1, 4),
            arguments=arguments,
            allocations=allocations,
            **columns,
        )


_TASK_COLUMNS = (
    "task_kind",
    "task_blocks",
    "task_flags",
    "task_tensors",
    "task_scalars",
    "task_lookups",
    "task_scope",
)
_SUBTASK_COLUMNS = (
    "subtask_program",
    "subtask_block",
    "subtask_lane",
    "subtask_trace_start",
    "subtask_trace_stop",
)


def _columns(names: tuple[str, ...], rows: Sequence[tuple[int, ...]]) -> dict[str, Words]:
    """The columns of ``rows`` as arrays."""
    return dict(zip(names, np.array(rows, np.int64).reshape(-1, len(names)).T.copy()))

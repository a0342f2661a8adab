"""What gated the makespan: static longest path and observed critical path (``profiling.md`` 5.4)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pypto.perf.chip_records import ChipRecords, ChipTask
from pypto.perf.task_graph import TaskGraph

Wait = Literal["data-wait", "core-wait", "front-gap"]
_FAMILY_SUFFIX = re.compile(r"(_\d+|_aic|_aiv)$")


@dataclass(frozen=True)
class TimedTask:
    """A task over all its rows, in ns; ``core`` is where it landed first."""

    task_id: int
    name: str
    start_ns: int
    end_ns: int
    core: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def family(self) -> str:
        """Kernel name without a trailing number and engine."""
        return family_of_kernel(self.name)


@dataclass(frozen=True)
class PathStep:
    """A task on the observed path: how long the path stalled before it and what it waited for."""

    task: TimedTask
    wait: Wait
    stall_ns: int
    compute_ns: int


@dataclass(frozen=True)
class CriticalPath:
    """Both paths over one run; ``static`` lists task ids of the longest path when cores are unlimited."""

    tasks: dict[int, TimedTask]
    edges: int
    makespan_ns: int
    static: list[int]
    static_ns: int
    steps: list[PathStep] = field(default_factory=list)

    @property
    def compute_ns(self) -> int:
        return sum(step.compute_ns for step in self.steps)

    @property
    def stall_ns(self) -> int:
        return sum(step.stall_ns for step in self.steps)

    def stall_by_wait(self) -> dict[str, int]:
        """Stall in ns by what was waited for, largest first."""
        totals: dict[str, int] = defaultdict(int)
        for step in self.steps:
            totals[step.wait] += step.stall_ns
        return dict(sorted(totals.items(), key=lambda item: -item[1]))

    @property
    def tiles(self) -> bool:
        """Whether stall and compute add up to the makespan, as they do for a well-formed trace."""
        return self.compute_ns + self.stall_ns == self.makespan_ns


def family_of_kernel(name: str) -> str:
    """Kernel name without a trailing ``_<digits>`` and/or ``_aic``/``_aiv``."""
    while match := _FAMILY_SUFFIX.search(name):
        name = name[: match.start()]
    return name


def critical_path(
    records: ChipRecords, graph: TaskGraph, names: Mapping[int, str] | None = None, *, tolerance_cycles: int = 2
) -> CriticalPath:
    """Analyse one run.

    Args:
        tolerance_cycles: a producer that ends up to this much after its consumer started still counts as before it.
    """
    tolerance = tolerance_cycles * 10**9 // records.clock_freq_hz
    tasks = _timed_tasks(records, graph, names or {})
    producers: dict[int, list[int]] = defaultdict(list)
    edges = 0
    for pred, succ in graph.pairs:
        if pred in tasks and succ in tasks and _happens_before(tasks[pred], tasks[succ], tolerance):
            producers[succ].append(pred)
            edges += 1
    if not tasks:
        return CriticalPath({}, 0, 0, [], 0)
    first = min(task.start_ns for task in tasks.values())
    makespan = max(task.end_ns for task in tasks.values()) - first
    static, length = _longest_path(tasks, producers)
    cores = _CoreSlices(records, tolerance)
    return CriticalPath(tasks, edges, makespan, static, length, _observed(tasks, producers, cores, first))


def _happens_before(pred: TimedTask, succ: TimedTask, tolerance: int) -> bool:
    return pred.end_ns <= succ.start_ns + tolerance and pred.start_ns < succ.start_ns


def _timed_tasks(records: ChipRecords, graph: TaskGraph, names: Mapping[int, str]) -> dict[int, TimedTask]:
    rows: dict[int, list[ChipTask]] = defaultdict(list)
    for row in records.tasks:
        rows[row.task_id].append(row)
    timed = {}
    for task_id, own in rows.items():
        known = graph.tasks.get(task_id)
        kernel = next((k for k in known.kernel_ids if k >= 0), -1) if known else -1
        name = "unknown" if kernel < 0 else names.get(kernel, f"cid{kernel}")
        landed = min(own, key=lambda row: row.start_ns)
        timed[task_id] = TimedTask(task_id, name, landed.start_ns, max(row.end_ns for row in own), landed.core_id)
    return timed


def _longest_path(tasks: Mapping[int, TimedTask], producers: Mapping[int, list[int]]) -> tuple[list[int], int]:
    best: dict[int, int] = {}
    via: dict[int, int | None] = {}
    for task_id in sorted(tasks, key=lambda t: tasks[t].start_ns):
        gate = max(producers.get(task_id, ()), key=lambda p: best[p], default=None)
        best[task_id] = tasks[task_id].duration_ns + (best[gate] if gate is not None else 0)
        via[task_id] = gate
    at: int | None = max(best, key=lambda t: best[t])
    length, path = best[at], []  # type: ignore[index]
    while at is not None:
        path.append(at)
        at = via[at]
    return path[::-1], length


class _CoreSlices:
    """Rows of every core by end, to find what ran there before a task."""

    def __init__(self, records: ChipRecords, tolerance: int) -> None:
        self._tolerance = tolerance
        self._rows: dict[int, list[ChipTask]] = defaultdict(list)
        for row in records.tasks:
            self._rows[row.core_id].append(row)
        for rows in self._rows.values():
            rows.sort(key=lambda row: row.end_ns)
        self._ends = {core: [row.end_ns for row in rows] for core, rows in self._rows.items()}

    def before(self, task: TimedTask) -> int | None:
        """The task whose row ended last on the core before this one began."""
        rows, ends = self._rows[task.core], self._ends[task.core]
        at = bisect_right(ends, task.start_ns + self._tolerance) - 1
        while at >= 0 and (rows[at].task_id == task.task_id or rows[at].start_ns >= task.start_ns):
            at -= 1
        return rows[at].task_id if at >= 0 else None


def _observed(
    tasks: Mapping[int, TimedTask], producers: Mapping[int, list[int]], cores: _CoreSlices, first: int
) -> list[PathStep]:
    """From the last task backwards through whatever ended last before each; then forwards to split the time."""
    chain: list[tuple[TimedTask, Wait]] = []
    current: TimedTask | None = max(tasks.values(), key=lambda t: (t.end_ns, t.task_id))
    while current is not None:
        gates: list[tuple[int, int, Wait, int]] = [
            (tasks[p].end_ns, 1, "data-wait", p) for p in producers.get(current.task_id, ())
        ]
        neighbour = cores.before(current)
        if neighbour is not None and tasks[neighbour].start_ns < current.start_ns:
            gates.append((tasks[neighbour].end_ns, 0, "core-wait", neighbour))
        gate = max(gates, default=None)
        chain.append((current, gate[2] if gate else "front-gap"))
        current = tasks[gate[3]] if gate else None
    steps, frontier = [], first
    for task, wait in reversed(chain):
        compute = max(0, task.end_ns - max(frontier, task.start_ns))
        steps.append(PathStep(task, wait, max(0, task.start_ns - frontier), compute))
        frontier = max(frontier, task.end_ns)
    return steps

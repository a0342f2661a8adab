"""Reader of ``chip_swimlane_records.json`` (``profiling.md`` 5.2): cycles on disk, integer ns here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from typing import Any, Literal

from pypto.perf.chip_clock import Alignment, align
from pypto.perf.task_id import ring_of

CoreType = Literal["aic", "aiv"]
HOST_KEYS = ("host_orchestrator_phases", "host_device_uploads")


class ChipRecordsError(ValueError):
    """A records file that cannot be read; the message names the file, the place and what would be legal."""


@dataclass(frozen=True)
class ChipTask:
    """One row of work on one core; times in ns from the common zero, None where the level did not record them."""

    task_id: int
    reg_task_id: int
    core_id: int
    core_type: CoreType
    receive_ns: int
    start_ns: int
    end_ns: int
    dispatch_ns: int | None = None
    finish_ns: int | None = None

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class SchedulerPhase:
    """One phase record of a scheduler thread; times in ns from the common zero."""

    thread: int
    kind: str
    start_ns: int
    end_ns: int
    loop_iter: int
    tasks_processed: int
    pop_hit: int | None = None
    pop_miss: int | None = None
    task_id: int | None = None
    shared_at_start: tuple[int, ...] = (0, 0, 0)
    shared_at_end: tuple[int, ...] = (0, 0, 0)

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class Submit:
    """One task submission by an orchestrator lane, in ns from the common zero."""

    lane: int
    submit_idx: int
    task_id: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Upload:
    """A host to device transfer of a host-built graph, in ns from the common zero; ``detail`` counts bytes."""

    phase: str
    start_ns: int
    end_ns: int
    detail: int


@dataclass(frozen=True)
class ChipRecords:
    """Everything one swimlane file holds; tasks sorted by task id.

    ``unmatched`` counts scheduler rows without their core's row (a lost buffer). ``timeline`` is the metadata of
    host-built graphs, None when the device built the graph.
    """

    level: int
    clock_freq_hz: int
    core_types: list[CoreType]
    tasks: list[ChipTask]
    phases: list[list[SchedulerPhase]] = field(default_factory=list)
    submits: list[Submit] = field(default_factory=list)
    uploads: list[Upload] = field(default_factory=list)
    orchestrator: Literal["aicpu", "host"] | None = None
    core_to_thread: list[int] = field(default_factory=list)
    unmatched: int = 0
    timeline: dict[str, Any] | None = None
    receive_recorded: bool = True

    def to_dict(self) -> dict[str, Any]:
        """The view of 5.2.1 in us."""
        view: dict[str, Any] = {"chip_swimlane_level": self.level, "tasks": [self._task_view(t) for t in self.tasks]}
        if self.phases:
            view["aicpu_scheduler_phases"] = [[_phase_view(p) for p in thread] for thread in self.phases]
        if self.orchestrator:
            lanes = max((s.lane for s in self.submits), default=-1) + 1
            view["aicpu_orchestrator_phases"] = [
                [_submit_view(s) for s in self.submits if s.lane == lane] for lane in range(lanes)
            ]
            view["orchestrator_source"] = self.orchestrator
        if self.uploads:
            view["host_device_uploads"] = [_times_us(vars(upload)) for upload in self.uploads]
        if self.timeline is not None:
            view["timeline_metadata"] = self.timeline
        if self.core_to_thread:
            view["core_to_thread"] = self.core_to_thread
        return view

    def _task_view(self, task: ChipTask) -> dict[str, Any]:
        view: dict[str, Any] = {
            "task_id": task.task_id,
            "func_id": -1,
            "core_id": task.core_id,
            "core_type": task.core_type,
            "ring_id": ring_of(task.task_id),
            "start_time_us": task.start_ns / 1000,
            "end_time_us": task.end_ns / 1000,
            "duration_us": task.duration_ns / 1000,
            "dispatch_time_us": (task.dispatch_ns or 0) / 1000,
            "finish_time_us": (task.finish_ns or 0) / 1000,
            "receive_time_us": task.receive_ns / 1000,
            "local_setup_us": (task.start_ns - task.receive_ns) / 1000,
        }
        if task.dispatch_ns is not None:
            view["propagation_us"] = (task.receive_ns - task.dispatch_ns) / 1000
        return view


def _times_us(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k[: -len("_ns")] + "_time_us" if k.endswith("_ns") else k: v / 1000 if k.endswith("_ns") else v
            for k, v in values.items()}  # fmt: skip


def _phase_view(phase: SchedulerPhase) -> dict[str, Any]:
    view = {"phase": phase.kind, **_times_us(vars(phase))}
    return {k: v for k, v in view.items() if k not in ("kind", "thread") and v is not None}


def _submit_view(submit: Submit) -> dict[str, Any]:
    return {"phase": "orch_submit", **{k: v for k, v in _times_us(vars(submit)).items() if k != "lane"}}


def read_chip_records(path: str | Path) -> ChipRecords:
    """Read a swimlane file.

    Raises:
        OSError: the file cannot be read.
        ChipRecordsError: it is no JSON object, its level is none of 1 to 4, or it has no clock frequency.
    """
    try:
        raw = json.loads(Path(path).read_text())
    except ValueError as error:
        raise ChipRecordsError(f"{path}: not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise ChipRecordsError(f"{path}: expected an object with chip_swimlane_level, found {type(raw).__name__}")
    try:
        return records_of(raw)
    except ChipRecordsError as error:
        raise ChipRecordsError(f"{path}: {error}") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ChipRecordsError(f"{path}: a record does not have the shape of profiling.md 5.2: {error!r}") from None


def records_of(raw: Mapping[str, Any]) -> ChipRecords:
    """Records of a parsed swimlane document."""
    level, metadata = raw.get("chip_swimlane_level"), raw.get("metadata", {})
    if level not in (1, 2, 3, 4):
        raise ChipRecordsError(f"Unsupported chip_swimlane_level {level!r}: expected 1 to 4")
    frequency = metadata.get("clock_freq_hz", 0)
    if not isinstance(frequency, int) or frequency <= 0:
        raise ChipRecordsError(f"metadata.clock_freq_hz is {frequency!r}: expected a positive number of Hz")
    if raw.get("aicpu_orchestrator_phases") and raw.get("host_orchestrator_phases"):
        raise ChipRecordsError("both aicpu_orchestrator_phases and host_orchestrator_phases: only one may be present")
    host = metadata.get("orchestrator_source") == "host" or any(raw.get(k) for k in HOST_KEYS)
    host = host or "host_capture" in metadata
    alignment = align(raw, list(_timestamps(raw)), frequency, host=host)
    return _assemble(raw, level, frequency, alignment, host=host)


def _timestamps(raw: Mapping[str, Any]) -> Iterator[int]:
    """Every positive device timestamp in cycles, the moment of receiving included."""
    for row in raw.get("aicore_tasks", ()):
        yield from (t for t in (row[3] - (row[5] if len(row) > 5 else 0), row[3], row[4]) if t > 0)
    for row in raw.get("aicpu_tasks", ()):
        yield from (t for t in row[2:4] if t > 0)
    for key in ("aicpu_scheduler_phases", "aicpu_orchestrator_phases"):
        for thread in raw.get(key, ()):
            for phase in thread:
                yield from (t for t in (phase["start_cycles"], phase["end_cycles"]) if t > 0)


def _assemble(raw: Mapping[str, Any], level: int, frequency: int, clock: Alignment, *, host: bool) -> ChipRecords:
    metadata = raw["metadata"]
    types = list(metadata.get("core_types", ()))
    for core, kind in enumerate(types):
        if kind not in ("aic", "aiv"):
            raise ChipRecordsError(f"metadata.core_types[{core}] is {kind!r}: expected 'aic' or 'aiv'")
    tasks, unmatched = _tasks(raw, level, types, clock)
    device_submits = raw.get("aicpu_orchestrator_phases")
    return ChipRecords(
        level=level,
        clock_freq_hz=frequency,
        core_types=types,
        tasks=sorted(tasks, key=lambda task: task.task_id),
        phases=[
            [_phase(thread, phase, clock) for phase in phases]
            for thread, phases in enumerate(raw.get("aicpu_scheduler_phases", ()))
        ],
        submits=_submits(device_submits or (), clock) or _host_submits(raw, clock),
        uploads=[
            Upload(u["phase"], clock.host_ns(u["start_host_ns"]), clock.host_ns(u["end_host_ns"]), u.get("detail", 0))
            for u in raw.get("host_device_uploads", ())
        ],
        orchestrator="host" if host else "aicpu" if device_submits else None,
        core_to_thread=list(map(index, metadata.get("core_to_thread", ()))),
        unmatched=unmatched,
        timeline=clock.metadata if host else None,
        receive_recorded=all(len(row) > 5 for row in raw.get("aicore_tasks", ())),
    )


def _tasks(
    raw: Mapping[str, Any], level: int, types: Sequence[CoreType], clock: Alignment
) -> tuple[list[ChipTask], int]:
    def task(row: Sequence[int], dispatch: int | None, finish: int | None) -> ChipTask:
        core, token, register, start, end = map(index, row[:5])
        receive = start - (row[5] if len(row) > 5 else 0)
        kind: CoreType = types[core] if core < len(types) else "aiv"
        times = (clock.device_ns(receive), clock.device_ns(start), clock.device_ns(end))
        return ChipTask(token, register, core, kind, *times, dispatch, finish)

    core_rows = raw.get("aicore_tasks", ())
    if level == 1 or not raw.get("aicpu_tasks"):
        return [task(row, None, None) for row in core_rows], 0
    by_key = {(row[0], row[2]): row for row in core_rows}
    tasks, unmatched = [], 0
    for core, register, dispatch, finish in raw["aicpu_tasks"]:
        row = by_key.get((core, register))
        if row is None:
            unmatched += 1
        else:
            tasks.append(task(row, clock.device_ns(dispatch), clock.device_ns(finish)))
    return tasks, unmatched


def _phase(thread: int, raw: Mapping[str, Any], clock: Alignment) -> SchedulerPhase:
    if not isinstance(raw["kind"], str):
        raise TypeError(f"kind {raw['kind']!r}")
    return SchedulerPhase(
        thread,
        raw["kind"],
        clock.device_ns(raw["start_cycles"]),
        clock.device_ns(raw["end_cycles"]),
        index(raw.get("loop_iter", 0)),
        index(raw.get("tasks_processed", 0)),
        _optional(raw, "pop_hit"),
        _optional(raw, "pop_miss"),
        _optional(raw, "task_id"),
        tuple(map(index, raw.get("shared_at_start", (0, 0, 0)))),
        tuple(map(index, raw.get("shared_at_end", (0, 0, 0)))),
    )


def _optional(raw: Mapping[str, Any], key: str) -> int | None:
    value = raw.get(key)
    return None if value is None else index(value)


def _submits(threads: Sequence[Sequence[Mapping[str, Any]]], clock: Alignment) -> list[Submit]:
    return [
        Submit(
            lane,
            s["submit_idx"],
            index(s["task_id"]),
            clock.device_ns(s["start_cycles"]),
            clock.device_ns(s["end_cycles"]),
        )
        for lane, thread in enumerate(threads)
        for s in thread
    ]


def _host_submits(raw: Mapping[str, Any], clock: Alignment) -> list[Submit]:
    submits = [
        Submit(
            lane,
            s["submit_idx"],
            index(s["task_id"]),
            clock.host_ns(s["start_host_ns"]),
            clock.host_ns(s["end_host_ns"]),
        )
        for lane, thread in enumerate(raw.get("host_orchestrator_phases", ()))
        for s in thread
    ]
    for submit in submits:
        if submit.start_ns < 0 or submit.end_ns < submit.start_ns:
            raise ChipRecordsError(
                f"host submit {submit.submit_idx} runs from {submit.start_ns} to {submit.end_ns} ns after the origin: "
                "expected 0 <= start <= end"
            )
    return submits

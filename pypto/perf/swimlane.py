"""Joins swimlane records and task graph into one trace of orchestrator, schedulers and cores (``profiling.md`` 5.3).

What each view shows is decided here; arrows are drawn by :mod:`pypto.perf.swimlane_flows`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pypto.perf.chip_records import ChipRecords, ChipTask, SchedulerPhase
from pypto.perf.task_graph import TaskGraph, task_label
from pypto.perf.task_id import display_id
from pypto.perf.trace_events import Event, Slice, TraceDocument, nesting_lanes

ORCHESTRATOR, SCHEDULER, SCHEDULER_VIEW, WORKER_VIEW, GRAPHS = 1, 2, 3, 4, 5
QUEUE_TID, ORCH_TID, UPLOAD_TID, CORE_TID, AICPU_TID, SCHED_TID = 3999, 4000, 4100, 10000, 19000, 30000
OVERFLOW_TID = 1_000_000
OWN_LANE_KINDS = ("dummy_task", "predicated_skip")
COLOURS = {
    "complete": "good",
    "dispatch": "terrible",
    "release": "olive",
    "resolve": "vsync_highlight_color",
    "async_poll": "yellow",
    "dummy": "grey",
    "early_dispatch": "bad",
    "drain": "thread_state_iowait",
    "drain_prepare": "thread_state_runnable",
    "drain_publish": "thread_state_running",
    "graph_prepare": "rail_load",
}


TimedTask = tuple[ChipTask, int, int, Event]
"""A task, the start and end of its bar in ns, and the bar's arguments."""


@dataclass(frozen=True)
class Bar:
    """A task on a core as one view draws it."""

    task: ChipTask
    slice: Slice
    number: int


@dataclass
class Swimlane:
    """The trace under construction and what the arrows need to find their ends."""

    records: ChipRecords
    graph: TaskGraph | None
    names: Mapping[int, str]
    slices: list[Slice] = field(default_factory=list)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    workers: list[Bar] = field(default_factory=list)
    dispatched: list[Bar] = field(default_factory=list)
    phases: list[tuple[SchedulerPhase, Slice]] = field(default_factory=list)
    submits: dict[int, Slice] = field(default_factory=dict)

    @property
    def tasks(self) -> list[ChipTask]:
        return self.records.tasks

    def kernel_of(self, task: ChipTask) -> int:
        known = self.graph.tasks.get(task.task_id) if self.graph else None
        return known.kernel_on(task.core_type) if known else -1

    def is_spmd(self, task: ChipTask) -> bool:
        known = self.graph.tasks.get(task.task_id) if self.graph else None
        return known.block_num > 1 if known else self._rows[task.task_id, task.core_type] > 1

    def label(self, task: ChipTask) -> str:
        return task_label(task.task_id, self.kernel_of(task), self.names, spmd=self.is_spmd(task))

    def scheduler_tid(self, core_id: int) -> int | None:
        """Lane of the scheduler thread that owns a core."""
        owners = self.records.core_to_thread
        thread = owners[core_id] if core_id < len(owners) else -1
        return SCHED_TID + 10 * thread if thread >= 0 else None

    def __post_init__(self) -> None:
        self._rows = Counter((task.task_id, task.core_type) for task in self.records.tasks)
        self.finishes_by_thread: dict[int, list[int]] = defaultdict(list)
        for task in self.records.tasks:
            owner = self.scheduler_tid(task.core_id)
            if owner is not None and task.finish_ns is not None:
                self.finishes_by_thread[(owner - SCHED_TID) // 10].append(task.finish_ns)
        for finishes in self.finishes_by_thread.values():
            finishes.sort()


def swimlane_document(
    records: ChipRecords,
    graph: TaskGraph | None = None,
    names: Mapping[int, str] | None = None,
    *,
    overhead: bool = False,
) -> TraceDocument:
    """The merged trace.

    Args:
        graph: task graph; without one there are no arrows and no kernel names.
        names: kernel names by id.
        overhead: add the scheduler-overhead counters (needs level 3 and a graph).
    """
    from pypto.perf.swimlane_flows import flows_of
    from pypto.perf.swimlane_graphs import add_graphs

    lane = Swimlane(records, graph, names or {})
    _add_worker_view(lane)
    _add_scheduler_view(lane)
    _add_scheduler(lane)
    _add_orchestrator(lane)
    add_graphs(lane)
    document = TraceDocument(
        _metadata(lane), lane.slices, flows_of(lane), _queue_counters(lane), first_flow=0, indent=2
    )
    if overhead and graph is not None:
        from pypto.perf.sched_overhead import overhead_counters

        document.counters += overhead_counters(records, graph)
    if records.timeline is not None:
        document.entries["metadata"] = records.timeline
    return document


def _core_title(task: ChipTask) -> str:
    return f"{task.core_type.upper()}_{task.core_id}"


def _add_bars(
    lane: Swimlane, pid: int, spans: Sequence[tuple[ChipTask, int, int, Event]], *, disjoint: bool
) -> list[Bar]:
    """One bar per task; what does not fit a core's track goes to the track beside it."""
    by_core: dict[int, list[int]] = defaultdict(list)
    for index, (task, *_) in enumerate(spans):
        by_core[task.core_id].append(index)
    tracks: dict[int, int] = {}
    for members in by_core.values():
        intervals = [(spans[i][1], spans[i][2]) for i in members]
        for index, track in zip(members, disjoint_lanes(intervals) if disjoint else nesting_lanes(intervals)):
            tracks[index] = track
    bars: list[Bar] = []
    for index, (task, start, end, args) in enumerate(spans):
        tid = track_tid(CORE_TID + 10 * task.core_id, tracks[index], room=10)
        lane.threads[pid, tid] = _core_title(task)
        number = len(lane.workers) + len(lane.dispatched) + len(bars)
        bar = Slice(lane.label(task), pid, tid, start, end - start, args, "event", {"id": number})
        lane.slices.append(bar)
        bars.append(Bar(task, bar, number))
    return bars


def track_tid(base: int, track: int, *, room: int) -> int:
    """Thread number of a further track of a lane: beside it while there is room, else above all other numbers."""
    return base + track if track < room else OVERFLOW_TID + 1000 * base + track


def disjoint_lanes(intervals: Sequence[tuple[int, int]]) -> list[int]:
    """Lane of every (start, end) so that no two of a lane overlap."""
    free_at: list[int] = []
    result = [0] * len(intervals)
    for index in sorted(range(len(intervals)), key=lambda i: intervals[i]):
        start, end = intervals[index]
        lane = next((at for at, free in enumerate(free_at) if free <= start), len(free_at))
        free_at[lane : lane + 1] = [end]
        result[index] = lane
    return result


def _add_worker_view(lane: Swimlane) -> None:
    from pypto.perf.swimlane_aicpu import add_aicpu_slivers

    spans = [(task, task.receive_ns, task.end_ns, _worker_args(lane, task)) for task in lane.tasks]
    lane.workers = _add_bars(lane, WORKER_VIEW, spans, disjoint=False)
    add_aicpu_slivers(lane)


def _worker_args(lane: Swimlane, task: ChipTask) -> Event:
    graph = lane.graph
    return {
        "event-hint": _hint(lane, task),
        "fanout-hint": _ids(graph.succs.get(task.task_id, []) if graph else []),
        "fanin-hint": _ids(graph.preds.get(task.task_id, []) if graph else []),
        "duration-us": (task.end_ns - task.receive_ns) / 1000,
        "kernel-duration-us": task.duration_ns / 1000,
        "local_setup_us": (task.start_ns - task.receive_ns) / 1000,
        "taskId": task.task_id,
    }


def _hint(lane: Swimlane, task: ChipTask) -> str:
    return f"Task:{display_id(task.task_id)}, FuncId:{lane.kernel_of(task)}, CoreId:{task.core_id}"


def _ids(tasks: Sequence[int]) -> str:
    return f"{len(tasks)}: [{', '.join(map(display_id, tasks))}]"


def _add_scheduler_view(lane: Swimlane) -> None:
    spans = []
    for task in lane.tasks:
        if task.dispatch_ns is None or task.finish_ns is None:
            continue
        args = {
            "event-hint": _hint(lane, task),
            "dispatch-time-us": task.dispatch_ns / 1000,
            "finish-time-us": task.finish_ns / 1000,
            "aicpu-duration-us": (task.finish_ns - task.dispatch_ns) / 1000,
            "taskId": task.task_id,
        }
        spans.append((task, task.dispatch_ns, task.finish_ns, args))
    lane.dispatched = _add_bars(lane, SCHEDULER_VIEW, spans, disjoint=True)


def _add_scheduler(lane: Swimlane) -> None:
    for thread, phases in enumerate(lane.records.phases):
        base = SCHED_TID + 10 * thread
        lane.threads[SCHEDULER, base] = f"Sched_{thread}"
        outer = [p for p in phases if p.kind != "resolve" and p.kind not in OWN_LANE_KINDS]
        tracks = nesting_lanes([(p.start_ns, p.end_ns) for p in outer])
        _add_phases(lane, outer, [track_tid(base + 1, track, room=5) if track else base for track in tracks], thread)
        resolving = [p for p in phases if p.kind == "resolve"]
        inner = nesting_lanes([(p.start_ns, p.end_ns) for p in resolving])
        _add_phases(
            lane, resolving, [track_tid(base + 5, track, room=5) if track else base + 1 for track in inner], thread
        )
    if any(lane.records.phases):
        lane.threads[SCHEDULER, QUEUE_TID] = "shared_ready_queue (global)"


def _add_phases(lane: Swimlane, phases: Sequence[SchedulerPhase], tids: Sequence[int], thread: int) -> None:
    for phase, tid in zip(phases, tids):
        lane.threads[SCHEDULER, tid] = f"Sched_{thread}"
        name, extra = f"{phase.kind}({phase.tasks_processed})", {"cname": COLOURS.get(phase.kind, "generic_work")}
        args = _phase_args(lane, phase)
        bar = Slice(name, SCHEDULER, tid, phase.start_ns, phase.duration_ns, args, "scheduler", extra)
        lane.slices.append(bar)
        lane.phases.append((phase, bar))


def _phase_args(lane: Swimlane, phase: SchedulerPhase) -> Event:
    args: dict[str, Any] = {
        "phase": phase.kind,
        "loop_iter": phase.loop_iter,
        "tasks_processed": phase.tasks_processed,
        "shared_at_start (aic,aiv,mix)": list(phase.shared_at_start),
        "shared_at_end (aic,aiv,mix)": list(phase.shared_at_end),
    }
    if phase.kind == "complete":
        finishes = lane.finishes_by_thread[phase.thread]
        rows = bisect_right(finishes, phase.end_ns) - bisect_left(finishes, phase.start_ns)
        args |= {"finishes_processed": phase.tasks_processed, "finish_rows_attributed": rows}
    return args


def _add_orchestrator(lane: Swimlane) -> None:
    host = lane.records.orchestrator == "host"
    by_lane: dict[int, list[Any]] = defaultdict(list)
    for submit in lane.records.submits:
        by_lane[submit.lane].append(submit)
    for number, submits in by_lane.items():
        tracks = nesting_lanes([(s.start_ns, s.end_ns) for s in submits])
        for submit, track in zip(submits, tracks):
            tid = ORCH_TID + number + 10 * track
            lane.threads[ORCHESTRATOR, tid] = f"{'Host' if host else 'Orch'}_{number}"
            args = {"phase": "orch_submit", "submit_idx": submit.submit_idx, "task_id": submit.task_id}
            name, extra = f"submit({display_id(submit.task_id)})", {"cname": "rail_animation"}
            dur = submit.end_ns - submit.start_ns
            bar = Slice(name, ORCHESTRATOR, tid, submit.start_ns, dur, args, "orchestrator", extra)
            lane.slices.append(bar)
            lane.submits.setdefault(submit.task_id, bar)
    for upload in lane.records.uploads:
        lane.threads[ORCHESTRATOR, UPLOAD_TID] = "H2D"
        dur = upload.end_ns - upload.start_ns
        args = {"bytes": upload.detail}
        lane.slices.append(Slice(upload.phase, ORCHESTRATOR, UPLOAD_TID, upload.start_ns, dur, args, "host_h2d"))


def _queue_counters(lane: Swimlane) -> list[Event]:
    counters: list[Event] = []
    for phase, _ in lane.phases:
        if phase.kind in ("complete", "dispatch"):
            series = dict(zip(("AIC", "AIV", "MIX"), phase.shared_at_end))
            counters.append(
                {"name": "shared_ready_queue", "cat": "queue", "ph": "C", "pid": SCHEDULER, "tid": QUEUE_TID,
                 "ts": phase.end_ns / 1000, "args": series}
            )  # fmt: skip
    return counters


def _metadata(lane: Swimlane) -> list[Event]:
    """Process and thread names; only processes and threads that own a row get one."""
    host = lane.records.orchestrator == "host"
    orchestrator = "Host Prepare" if lane.records.uploads else "Host Orchestrator" if host else "AICPU Orchestrator"
    titles = {ORCHESTRATOR: orchestrator, SCHEDULER: "AICPU Scheduler", SCHEDULER_VIEW: "Scheduler View"}
    titles |= {WORKER_VIEW: "Worker View", GRAPHS: "Graph Execution"}
    events: list[Event] = []
    for pid in sorted({pid for pid, _ in lane.threads}, reverse=True):
        common: Event = {"cat": "__metadata", "ph": "M", "pid": pid}
        events.append({**common, "name": "process_name", "args": {"name": titles[pid]}})
        events.append({**common, "name": "process_sort_index", "args": {"sort_index": 1 if pid == GRAPHS else pid}})
        for (owner, tid), title in lane.threads.items():
            if owner == pid:
                events.append({**common, "name": "thread_name", "tid": tid, "args": {"name": title}})
        if pid == SCHEDULER and (SCHEDULER, QUEUE_TID) in lane.threads:
            events.append({**common, "name": "thread_sort_index", "tid": QUEUE_TID, "args": {"sort_index": 100}})
    return events

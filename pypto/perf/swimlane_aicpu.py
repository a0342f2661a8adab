"""What AICPU threads did themselves, as slivers beside the cores: dummies, skipped tasks, allocations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pypto.perf.task_id import display_id
from pypto.perf.trace_events import Event, Slice, nesting_lanes

if TYPE_CHECKING:
    from pypto.perf.swimlane import Swimlane

SLIVER_NS = 20
Sliver = tuple[int, int, str, Event]
"""Start and duration in ns, name, arguments."""


def add_aicpu_slivers(lane: Swimlane) -> None:
    """Add the slivers and the titles of their threads; what would cross another goes to a further track."""
    from pypto.perf.swimlane import AICPU_TID, WORKER_VIEW, track_tid

    for thread in range(len(lane.records.phases)):
        lane.threads[WORKER_VIEW, AICPU_TID + thread] = f"AICPU_{thread}"
    slivers: dict[int, list[Sliver]] = defaultdict(list)
    for thread, sliver in [*_from_phases(lane), *_allocations(lane)]:
        slivers[thread].append(sliver)
    for thread, own in slivers.items():
        tracks = nesting_lanes([(start, start + duration) for start, duration, *_ in own])
        for (start, duration, name, args), track in zip(own, tracks):
            tid = track_tid(AICPU_TID + thread, track, room=1)
            lane.threads[WORKER_VIEW, tid] = f"AICPU_{thread}"
            lane.slices.append(Slice(name, WORKER_VIEW, tid, start, duration, args, "event"))


def _from_phases(lane: Swimlane) -> Iterator[tuple[int, Sliver]]:
    from pypto.perf.swimlane import OWN_LANE_KINDS

    for phase in (p for thread in lane.records.phases for p in thread if p.kind in OWN_LANE_KINDS):
        task_id, skipped = phase.task_id or 0, phase.kind == "predicated_skip"
        args: Event = {"taskId": task_id} | ({"predicated_pass": False} if skipped else {})
        name = f"{'skip' if skipped else 'dummy'}({display_id(task_id)})"
        yield phase.thread, (phase.start_ns, max(SLIVER_NS, phase.duration_ns), name, args)


def _allocations(lane: Swimlane) -> Iterator[tuple[int, Sliver]]:
    """Submits without a task in the graph only allocate; their threads follow those of the schedulers."""
    if lane.graph is None or lane.records.orchestrator != "aicpu":
        return
    schedulers = max((thread + 1 for thread, phases in enumerate(lane.records.phases) if phases), default=0)
    on_cores = {task.task_id for task in lane.tasks}
    for submit in lane.records.submits:
        if submit.task_id not in lane.graph.tasks and submit.task_id not in on_cores:
            duration = max(SLIVER_NS, submit.end_ns - submit.start_ns)
            name = f"alloc({display_id(submit.task_id)})"
            yield schedulers + submit.lane, (submit.start_ns, duration, name, {"taskId": submit.task_id})

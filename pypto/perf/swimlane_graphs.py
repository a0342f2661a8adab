"""Graph tasks of a host-built graph that is replayed: one envelope from preparing to the last node's end.

A graph task shows in the records as the scheduler's ``graph_prepare`` phases, which name it and count the nodes they
made, and as the rows of those nodes, which carry its task id.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pypto.perf.chip_records import ChipTask, SchedulerPhase
from pypto.perf.task_id import display_id
from pypto.perf.trace_events import Slice

if TYPE_CHECKING:
    from pypto.perf.swimlane import Swimlane

GRAPH_TID = 5000


def add_graphs(lane: Swimlane) -> None:
    """Add the envelopes; graphs that overlap stand on lanes of their own."""
    from pypto.perf.swimlane import GRAPHS, disjoint_lanes

    prepared: dict[int, list[SchedulerPhase]] = defaultdict(list)
    for phase in (p for thread in lane.records.phases for p in thread):
        if phase.kind == "graph_prepare" and phase.task_id is not None:
            prepared[phase.task_id].append(phase)
    rows: dict[int, list[ChipTask]] = defaultdict(list)
    for task in lane.tasks:
        rows[task.task_id].append(task)
    envelopes = [_envelope(task_id, phases, rows.get(task_id, [])) for task_id, phases in prepared.items()]
    tracks = disjoint_lanes([(envelope.ts, envelope.end) for envelope in envelopes])
    for envelope, track in zip(envelopes, tracks):
        lane.threads[GRAPHS, GRAPH_TID + track] = f"Graph_{track}"
        lane.slices.append(Slice(envelope.name, GRAPHS, GRAPH_TID + track, envelope.ts, envelope.dur, envelope.args))


def _envelope(task_id: int, phases: list[SchedulerPhase], rows: list[ChipTask]) -> Slice:
    from pypto.perf.swimlane import GRAPHS

    start, end = min(p.start_ns for p in phases), max([*(p.end_ns for p in phases), *(t.end_ns for t in rows)])
    execution_ns = max(t.end_ns for t in rows) - min(t.start_ns for t in rows) if rows else 0
    args = {
        "outer_task_id": task_id,
        "nodes_prepared": sum(p.tasks_processed for p in phases),
        "node_rows": len(rows),
        "prepare-us": sum(p.duration_ns for p in phases) / 1000,
        "execution-us": execution_ns / 1000,
    }
    return Slice(f"graph({display_id(task_id)})", GRAPHS, GRAPH_TID, start, end - start, args)

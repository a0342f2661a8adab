"""Lanes beside the cores: what AICPU threads did themselves, and graphs that are replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pypto.perf.chip_records import records_of
from pypto.perf.swimlane import swimlane_document
from pypto.perf.task_graph import GraphTask, TaskGraph
from pypto.perf.trace_events import TraceDocument, problems_of


def phase(kind: str, start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "start_cycles": start, "end_cycles": end, "loop_iter": 1, "tasks_processed": 1, **more}


def document(phases: list[list[dict[str, Any]]], *, graph: TaskGraph | None = None, **more: Any) -> TraceDocument:
    """One task from 1100 to 1900 ns; a counter of 1 GHz, whose zero is the first timestamp, 1000."""
    raw = {
        "chip_swimlane_level": 4,
        "metadata": {"clock_freq_hz": 1_000_000_000, "core_types": ["aiv"], "core_to_thread": [0]},
        "aicore_tasks": [[0, 7, 1, 1100, 1900, 0]],
        "aicpu_tasks": [[0, 1, 1000, 2000]],
        "aicpu_scheduler_phases": phases,
        **more,
    }
    return swimlane_document(records_of(raw), graph)


def named(trace: TraceDocument, prefix: str) -> list[tuple[str, int, int, int, int]]:
    return [(s.name, s.pid, s.tid, s.ts, s.dur) for s in trace.slices if s.name.startswith(prefix)]


def test_slivers_that_would_cross_stand_on_further_tracks(tmp_path: Path) -> None:
    """Two dummies 5 ns apart are both drawn 20 ns wide."""
    trace = document([[phase("dummy_task", 1200, 1201, task_id=1), phase("dummy_task", 1205, 1206, task_id=2)], []])
    first, second = named(trace, "dummy(")
    assert (first[1:], second[3:]) == ((4, 19000, 200, 20), (205, 20))
    assert first[2] != second[2]
    assert not list(problems_of(trace.slices, trace.flows))
    trace.write(tmp_path / "merged.json")
    titles = [
        e["args"]["name"]
        for e in json.loads((tmp_path / "merged.json").read_text())["traceEvents"]
        if e["name"] == "thread_name" and e["tid"] in (first[2], second[2])
    ]
    assert titles == ["AICPU_0", "AICPU_0"]


def test_submits_that_are_no_task_are_allocations_of_the_orchestrator() -> None:
    """Two scheduler threads and the orchestrator's, whose list of phases is empty."""
    submits = [
        {"submit_idx": 0, "task_id": 6, "start_cycles": 1010, "end_cycles": 1015},
        {"submit_idx": 1, "task_id": 7, "start_cycles": 1040, "end_cycles": 1100},
    ]
    phases = [[phase("dispatch", 1000, 1010)], [phase("complete", 1990, 2000)], []]
    graph = TaskGraph({7: GraphTask(7, (-1, 0, -1), 1)})
    trace = document(phases, graph=graph, aicpu_orchestrator_phases=[submits])
    assert named(trace, "alloc(") == [("alloc(t6)", 4, 19002, 10, 20)]
    assert not list(problems_of(trace.slices, trace.flows))
    assert named(document(phases, aicpu_orchestrator_phases=[submits]), "alloc(") == []


def test_a_replayed_graph_is_one_envelope() -> None:
    prepare = [
        phase("graph_prepare", 1010, 1030, task_id=7, tasks_processed=3),
        phase("graph_prepare", 1040, 1050, task_id=7, tasks_processed=2),
        phase("graph_prepare", 1060, 1070, task_id=8, tasks_processed=4),
    ]
    trace = document([prepare])
    assert named(trace, "graph(") == [("graph(t7)", 5, 5000, 10, 890), ("graph(t8)", 5, 5001, 60, 10)]
    (first, _) = [s for s in trace.slices if s.pid == 5]
    assert first.args == {
        "outer_task_id": 7, "nodes_prepared": 5, "node_rows": 1, "prepare-us": 0.03, "execution-us": 0.8,
    }  # fmt: skip
    events = trace.document()["traceEvents"]
    process = {e["name"]: e["args"] for e in events if e["pid"] == 5 and e["ph"] == "M" and "tid" not in e}
    assert process == {"process_name": {"name": "Graph Execution"}, "process_sort_index": {"sort_index": 1}}

"""Swimlane records, task graphs and what is worked out from them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto.perf.chip_records import (
    ChipRecords,
    ChipRecordsError,
    ChipTask,
    SchedulerPhase,
    read_chip_records,
    records_of,
)
from pypto.perf.critical_path import critical_path, family_of_kernel
from pypto.perf.graph_text import edges_shown, graph_dot, graph_text
from pypto.perf.sched_overhead import SchedOverheadError, overhead_counters, sched_overhead, stretches
from pypto.perf.sched_overhead_report import overhead_report, percentile
from pypto.perf.swimlane import disjoint_lanes, swimlane_document
from pypto.perf.task_graph import (
    GraphEdge,
    GraphTask,
    TaskGraph,
    TaskGraphError,
    letters,
    read_kernel_names,
    read_task_graph,
    task_label,
)
from pypto.perf.task_id import display_id
from pypto.perf.task_statistics import function_statistics, statistics_report

from .properties import examples

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def records() -> ChipRecords:
    return read_chip_records(SAMPLES / "chip_swimlane_records.json")


@pytest.fixture
def graph() -> TaskGraph:
    return read_task_graph(SAMPLES / "deps.json")


def rounded(value: Any) -> Any:
    """Whole ns instead of the binary dust of another writer's floats; keys in one order."""
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {key: rounded(value[key]) for key in sorted(value)}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def test_merged_trace_equals_the_one_of_the_hardware_runtime(records: ChipRecords, graph: TaskGraph) -> None:
    ours = swimlane_document(records, graph).document()["traceEvents"]
    theirs = json.loads((SAMPLES / "merged_swimlane.json").read_text())["traceEvents"]
    assert sorted(json.dumps(rounded(e)) for e in ours) == sorted(json.dumps(rounded(e)) for e in theirs)


MINIMAL = {
    "chip_swimlane_level": 2,
    "metadata": {"clock_freq_hz": 50_000_000, "num_cores": 2, "core_types": ["aic", "aiv"]},
    "aicore_tasks": [[0, 0, 1, 5000, 5600, 12], [1, 1, 1, 5650, 5900, 10], [1, 2, 9, 6000, 6100, 0]],
    "aicpu_tasks": [[0, 1, 4960, 5640], [1, 1, 5630, 5930], [1, 7, 6000, 6200]],
}


def test_reader_view_of_a_minimal_document() -> None:
    read = records_of(MINIMAL)
    assert read.unmatched == 1
    first, second = read.to_dict()["tasks"]
    assert (first["task_id"], second["task_id"]) == (0, 1)
    expected = {"dispatch_time_us": 0.0, "start_time_us": 0.8, "end_time_us": 12.8, "duration_us": 12.0}
    assert {key: first[key] for key in expected} == expected
    assert first["local_setup_us"] == 0.24
    assert first["propagation_us"] == 0.56


def test_level_one_has_no_dispatch_times() -> None:
    read = records_of({**MINIMAL, "chip_swimlane_level": 1, "aicpu_tasks": []})
    assert len(read.tasks) == 3
    view = read.to_dict()["tasks"][0]
    assert (view["dispatch_time_us"], view["finish_time_us"], "propagation_us" in view) == (0.0, 0.0, False)
    text = statistics_report(read, None, {})
    assert "AICore Observed Span: 22.00 us" in text
    assert "Avg Latency" not in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chip_swimlane_level": 5}, "Unsupported chip_swimlane_level 5: expected 1 to 4"),
        ({"metadata": {}}, "clock_freq_hz"),
        ({"aicore_tasks": [[1, 2]]}, "shape"),
        (
            {"aicpu_orchestrator_phases": [[{}]], "host_orchestrator_phases": [[{}]]},
            "only one may be present",
        ),
    ],
)
def test_bad_records_name_file_and_place(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "chip_swimlane_records.json"
    path.write_text(json.dumps({**MINIMAL, **change}))
    with pytest.raises(ChipRecordsError, match=message) as caught:
        read_chip_records(path)
    assert str(path) in str(caught.value)
    path.write_text("{")
    with pytest.raises(ChipRecordsError, match="not JSON"):
        read_chip_records(path)


def host_built(**changes: Any) -> dict[str, Any]:
    def sample(position: str, index: int, before: int, cycles: int | None, rtt: int) -> dict[str, Any]:
        error = None if cycles is not None else {"stage": "get_timestamp", "code": 1}
        return {"position": position, "sample_idx": index, "host_before_ns": before, "raw_device_timestamp": cycles,
                "device_cycles": cycles, "host_after_ns": before + rtt, "rtt_ns": rtt,
                "uncertainty_ns": (rtt + 1) // 2, "error": error}  # fmt: skip

    anchors = {
        "schema_version": 1,
        "device_timestamp_unit": "syscnt_cycles",
        "raw_device_timestamp_unit": "syscnt_cycles",
        "samples": [
            sample("pre_host_orchestration", 0, 900_000, 1_000, 400),
            sample("pre_host_orchestration", 1, 901_000, None, 10),
            sample("post_device_execution", 0, 1_900_000, 51_000, 200),
        ],
    }
    metadata = {
        "clock_freq_hz": 50_000_000, "num_cores": 1, "core_types": ["aiv"], "orchestrator_source": "host",
        "host_orchestration_origin_ns": 950_000, "host_capture": {"status": "complete"}, "clock_anchors": anchors,
        "host_timestamp_quantization_ns": 0, "timeline_relation": "host_orchestration_precedes_device",
    }  # fmt: skip
    submit = {"submit_idx": 0, "task_id": 0, "start_host_ns": 960_000, "end_host_ns": 970_000}
    return {
        "chip_swimlane_level": 4,
        "metadata": {**metadata, **changes},
        "aicore_tasks": [[0, 0, 1, 20_000, 30_000, 50]],
        "aicpu_tasks": [[0, 1, 19_000, 31_000]],
        "host_orchestrator_phases": [[submit]],
        "host_device_uploads": [{"phase": "sm_h2d", "start_host_ns": 980_000, "end_host_ns": 990_000, "detail": 64}],
    }


def test_host_built_graph_with_anchors_shares_the_host_axis() -> None:
    read = records_of(host_built())
    assert read.timeline is not None
    assert read.timeline["clock_alignment"]["status"] == "aligned"
    assert read.timeline["cross_domain_latency_available"]
    start_mid, end_mid, span = 900_200, 1_900_100, 50_000
    passed = 20_000 - 1_000
    nominal = start_mid + passed * 20
    drift = -((-(end_mid - (start_mid + span * 20)) * passed) // span)
    assert read.tasks[0].start_ns == nominal + drift - 950_000
    assert read.submits[0].start_ns == 10_000
    document = swimlane_document(read, TaskGraph()).document()
    assert document["metadata"]["layout"] == "clock_aligned"
    names = {e["args"]["name"] for e in document["traceEvents"] if e["name"] == "process_name"}
    assert "Host Prepare" in names


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"clock_anchors": None}, "missing_clock_anchors"),
        ({"clock_anchors": {"samples": []}}, "missing_clock_anchor_samples"),
        ({"host_timestamp_quantization_ns": -1}, "invalid_host_timestamp_quantization"),
    ],
)
def test_host_built_graph_without_anchors_puts_device_time_after_the_host(changes: dict[str, Any], reason: str) -> None:
    read = records_of(host_built(**changes))
    assert read.timeline is not None
    assert read.timeline["clock_alignment"]["reason"] == reason
    assert read.timeline["cross_domain_gap_unknown"]
    assert min(t.dispatch_ns or 0 for t in read.tasks) == 40_000 == read.uploads[0].end_ns


def test_labels() -> None:
    assert [letters(n) for n in (0, 25, 26, 27, 701, 702)] == ["a", "z", "aa", "ab", "zz", "aaa"]
    assert display_id((3 << 32) | 7) == "r3t7"
    assert task_label(7, 0, {0: "add"}, spmd=True) == "add_spmd(t7)"
    assert task_label(7, 0, {0: "add_SPMD_x"}, spmd=True) == "add_SPMD_x(t7)"
    assert task_label(7, 2, {}, spmd=False) == "func_2_c(t7)"
    assert task_label(7, -1, {}, spmd=False) == "task(t7)"
    assert [family_of_kernel(n) for n in ("qk_12", "qk_aic", "qk_3_aiv", "qk_aiv_3", "qk")] == ["qk"] * 5


def test_kernel_names_from_json_and_python(tmp_path: Path) -> None:
    as_json, as_python = tmp_path / "name_map_x.json", tmp_path / "kernel_config.py"
    as_json.write_text(json.dumps({"level": 2, "orchestrator_name": None, "callable_id_to_name": {"0": "add"}}))
    as_python.write_text("KERNELS = [{'func_id': 0, 'name': 'add'}, {'func_id': 1}]\n")
    assert read_kernel_names(as_json) == read_kernel_names(as_python) == {0: "add"}
    as_json.write_text("[]")
    with pytest.raises(TaskGraphError, match="no kernel names"):
        read_kernel_names(as_json)


@st.composite
def runs(draw: st.DrawFn) -> tuple[ChipRecords, TaskGraph]:
    """A well-formed run: tasks in order on cores, each after its producers; every row with all its times."""
    count = draw(st.integers(1, 14))
    free = dict.fromkeys(range(3), 0)
    rows: list[ChipTask] = []
    edges: list[GraphEdge] = []
    for task in range(count):
        preds = draw(st.sets(st.integers(0, task - 1), max_size=3)) if task else set()
        core = draw(st.integers(0, 2))
        edges += [GraphEdge(pred, task, "creator") for pred in preds]
        ready = max([rows[p].end_ns for p in preds], default=0)
        dispatch = max(ready, draw(st.integers(0, 40)) * 100)
        receive = max(free[core], dispatch) + draw(st.integers(0, 5)) * 100
        start = receive + draw(st.integers(0, 3)) * 100
        end = start + draw(st.integers(1, 20)) * 100
        finish = end + draw(st.integers(0, 5)) * 100
        free[core] = end
        kind = "aic" if core == 0 else "aiv"
        rows.append(ChipTask(task, task + 1, core, kind, receive, start, end, dispatch, finish))  # type: ignore[arg-type]
    tasks = {t: GraphTask(t, (0, 1, -1), 1) for t in range(count)}
    records = ChipRecords(3, 50_000_000, ["aic", "aiv", "aiv"], rows, core_to_thread=[0, 0, 0])
    return records, TaskGraph(tasks, edges)


@given(runs())
@examples(150)
def test_every_generated_run_gives_a_trace_that_passes_its_check(run: tuple[ChipRecords, TaskGraph]) -> None:
    document = swimlane_document(*run, overhead=True).document()
    bars = [e for e in document["traceEvents"] if e["ph"] == "X"]
    assert len(bars) == 2 * len(run[0].tasks)
    drawn = [e for e in document["traceEvents"] if e["ph"] == "s" and e["name"] == "dependency" and e["pid"] == 4]
    assert len(drawn) == len(run[1].pairs)


@given(runs())
@examples(150)
def test_critical_path_tiles_the_makespan_and_bounds_hold(run: tuple[ChipRecords, TaskGraph]) -> None:
    records, graph = run
    path = critical_path(records, graph)
    first = path.steps[0]
    assert path.tiles
    assert path.static_ns <= path.makespan_ns
    assert sum(path.tasks[t].duration_ns for t in path.static) == path.static_ns
    assert all(b in graph.succs[a] for a, b in pairwise(path.static))
    assert first.wait == "front-gap"
    assert all(step.wait != "front-gap" for step in path.steps[1:])


@given(runs())
@examples(150)
def test_scheduler_overhead_stays_inside_the_window(run: tuple[ChipRecords, TaskGraph]) -> None:
    records, graph = run
    result = sched_overhead(records, graph)
    cut = stretches(records, graph)
    assert all(a.end_ns == b.start_ns for a, b in pairwise(cut))
    assert all(state.idle >= 0 and state.ready >= 0 for s in cut for state in s.engines.values())
    assert 0 <= result.all_ns <= min(result.overhead_ns.values(), default=0) <= result.window_ns
    assert result.all_ns <= result.has_ns <= result.window_ns
    lower, upper = result.switch_bounds_ns
    assert lower <= upper or len(result.overhead_ns) == 1
    assert all(core.overhead_ns <= core.total_ns for core in result.switches)
    assert overhead_report(result).count("\n\n") == 5
    engines = {t.core_type for t in records.tasks}
    assert {e["name"].split("_")[1] for e in overhead_counters(records, graph)} == engines | {"all", "has"}


@pytest.mark.parametrize("waiting", [2, 11, 40])
def test_many_tasks_dispatched_to_one_core_get_tracks_of_their_own(waiting: int) -> None:
    rows = [
        ChipTask(t, t, t % 2, "aiv", 10 + t, 100 * t + 100, 100 * t + 150, 5, 100 * t + 160) for t in range(waiting)
    ]
    phases = [SchedulerPhase(0, kind, t, 50 + t, t, 1) for t in range(waiting) for kind in ("dispatch", "resolve")]
    records = ChipRecords(3, 50_000_000, ["aiv", "aiv"], rows, [phases], core_to_thread=[0, 0])
    document = swimlane_document(records, TaskGraph())
    assert document.document()["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in document.metadata if e["name"] == "thread_name"}
    for bar in document.slices:
        if bar.pid in (3, 4):
            assert names[bar.pid, bar.tid] == f"AIV_{bar.args['taskId'] % 2}"


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=25))
@examples()
def test_disjoint_lanes_never_overlap(raw: list[tuple[int, int]]) -> None:
    intervals = [(start, start + size) for start, size in raw]
    lanes = disjoint_lanes(intervals)
    for lane in set(lanes):
        own = sorted(interval for interval, at in zip(intervals, lanes) if at == lane)
        assert all(a[1] <= b[0] for a, b in pairwise(own))


def test_analysis_of_the_sample(records: ChipRecords, graph: TaskGraph) -> None:
    """Worked out by hand from the sample's cycles (20 ns each)."""
    result = sched_overhead(records, graph)
    assert result.window_ns == (63579619190 - 63579429271) * 20
    assert result.verdict == "compute/dependency-bound"
    assert result.tails_ns[0] == (63579476259 - 63579471178) * 20
    path = critical_path(records, graph)
    assert [display_id(s.task.task_id) for s in path.steps] == ["t0", "r1t0", "r1t2", "r1t3"]
    assert path.tiles
    functions = function_statistics(records, graph, {})
    assert [(f.func_id, f.name, f.count) for f in functions] == [
        (0, "func_0_a", 2),
        (1, "func_1_b", 2),
        (2, "func_2_c", 1),
    ]
    report = statistics_report(records, graph, {}).splitlines()
    assert "TOTAL                     5        3342.18          5640.44" in report
    assert "Total Test Time: 3860.52 us (from earliest dispatch to latest finish)" in report


def test_level_two_is_too_little_for_scheduler_overhead() -> None:
    with pytest.raises(SchedOverheadError, match="level 3 or more, the records have 2"):
        sched_overhead(records_of(MINIMAL), TaskGraph())


def test_percentiles_follow_the_rule() -> None:
    assert [percentile([1, 2, 3, 4], p) for p in (0, 25, 50, 75, 99)] == [1, 2, 3, 4, 4]


def chain(*pairs: tuple[int, int], source: str = "tensormap") -> TaskGraph:
    tasks = {t: GraphTask(t, (-1, 0, -1), 1) for pair in pairs for t in pair}
    return TaskGraph(tasks, [GraphEdge(a, b, source) for a, b in pairs])


def test_reduction_drops_implied_edges_and_keeps_lifetimes() -> None:
    graph = chain((0, 1), (1, 2), (0, 2))
    assert edges_shown(graph, "reduced") == [(0, 1), (1, 2)]
    assert edges_shown(graph, "omitted") == [(0, 2)]
    assert edges_shown(chain((0, 1), (1, 2), (0, 2), source="creator"), "reduced") == graph.pairs
    assert "  - 0 -> 2" in graph_text(graph, "deps.json", mode="omitted")
    assert '"0" -> "2"' not in graph_dot(graph, mode="reduced")


@given(st.sets(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda p: p[0] < p[1]), max_size=20))
@examples()
def test_reduction_keeps_reachability(pairs: set[tuple[int, int]]) -> None:
    graph = chain(*pairs)
    kept = chain(*edges_shown(graph, "reduced"))

    def reach(g: TaskGraph, task: int) -> set[int]:
        return {s for n in g.succs.get(task, ()) for s in {n, *reach(g, n)}}

    assert all(reach(graph, task) == reach(kept, task) for task in graph.all_ids)


def test_graph_text_of_the_sample(graph: TaskGraph) -> None:
    lines = graph_text(graph, "deps.json").splitlines()
    assert "TASK (1, 2) kind=submit func_id=[-1,2,-1] fanin=2 fanout=1" in lines
    assert {"tasks: 5", "unique_task_edges: 6", "annotated_edges: 6", "tensors: 7"} <= set(lines)
    alloc = TaskGraph({1: GraphTask(1, (-1, -1, -1), 1)}, [GraphEdge(0, 1, "creator")])
    text = graph_text(alloc, "x")
    assert "TASK 0 kind=alloc func_id=unknown fanin=0 fanout=1" in text
    assert "TASK 1 kind=dummy func_id=none fanin=1 fanout=0" in text

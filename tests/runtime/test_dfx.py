"""Diagnostics of a launch: swimlane, task graph, name map, merged trace (spec runtime 13)."""

import json

import pytest
import torch

import pypto.language as pl
from pypto import ir
from pypto.perf.chip_records import read_chip_records
from pypto.perf.task_graph import read_kernel_names, read_task_graph
from pypto.runtime import ChipWorker, RunConfig
from pypto.runtime.device_runner import execute_on_device

SAMPLE_PHASE = {
    "kind",
    "start_cycles",
    "end_cycles",
    "loop_iter",
    "tasks_processed",
    "shared_at_start",
    "shared_at_end",
}


@pl.jit.incore
def scale(a: pl.Tensor[[64, 64], pl.FP32], b: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    b = pl.store(pl.mul(pl.load(a, [0, 0], [64, 64]), 2.0), [0, 0], b)
    return b


@pl.jit.incore
def total(a: pl.Tensor[[64, 64], pl.FP32], b: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    y = pl.store(pl.add(pl.load(a, [0, 0], [64, 64]), pl.load(b, [0, 0], [64, 64])), [0, 0], y)
    return y


@pl.jit
def diamond(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    top = pl.create_tensor([64, 64], dtype=pl.FP32)
    top = scale(x, top)
    left = pl.create_tensor([64, 64], dtype=pl.FP32)
    left = scale(top, left)
    right = pl.create_tensor([64, 64], dtype=pl.FP32)
    right = scale(top, right)
    y = total(left, right, y)
    return y


def launched(tmp_path, platform="a2a3", **options):
    """A compiled diamond after one launch with diagnostics."""
    x, y = torch.randn(64, 64), torch.zeros(64, 64)
    compiled = ir.compile(diamond.lower(x, y), platform=platform, output_dir=str(tmp_path), dump_passes=False)
    compiled(x, y, config=RunConfig(platform=platform, **options))
    torch.testing.assert_close(y, 8 * x)
    return compiled, tmp_path / "dfx_outputs"


def test_nothing_is_written_unless_asked_for(tmp_path):
    assert not launched(tmp_path)[1].exists()


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_every_level_adds_to_the_one_below(tmp_path, level):
    _, folder = launched(tmp_path, enable_chip_swimlane=level)
    raw = json.loads((folder / "chip_swimlane_records.json").read_text())
    assert raw["chip_swimlane_level"] == level and raw["metadata"]["clock_freq_hz"] == 50_000_000
    assert len(raw["metadata"]["core_types"]) == raw["metadata"]["num_cores"] == 72
    assert len(raw["aicore_tasks"]) == 4 and len(raw["aicpu_tasks"]) == (4 if level >= 2 else 0)
    assert ("aicpu_scheduler_phases" in raw) == ("core_to_thread" in raw["metadata"]) == (level >= 3)
    assert ("aicpu_orchestrator_phases" in raw) == (level == 4)


def test_the_records_tell_one_consistent_story(tmp_path):
    _, folder = launched(tmp_path, enable_chip_swimlane=True)
    records = read_chip_records(folder / "chip_swimlane_records.json")
    graph = read_task_graph(folder / "deps.json")
    assert records.level == 4 and records.unmatched == 0 and len(records.tasks) == 4
    for task in records.tasks:
        assert task.dispatch_ns < task.receive_ns <= task.start_ns < task.end_ns < task.finish_ns
        assert task.core_type == "aiv"
    by_id = {task.task_id: task for task in records.tasks}
    assert len(graph.pairs) == 4
    for pred, succ in graph.pairs:
        assert by_id[pred].finish_ns <= by_id[succ].dispatch_ns
    assert [s.task_id for s in records.submits] == sorted(by_id)
    assert all(s.end_ns <= by_id[s.task_id].dispatch_ns for s in records.submits)
    for thread in records.phases:
        assert all(a.end_ns <= b.start_ns for a, b in zip(thread, thread[1:])), "a thread does one thing at a time"
    kinds = {p.kind for thread in records.phases for p in thread}
    assert {"dispatch", "complete"} <= kinds and records.phases[-1] == []
    assert sum(p.tasks_processed for thread in records.phases for p in thread if p.kind == "complete") == 4
    raw = json.loads((folder / "chip_swimlane_records.json").read_text())
    assert all(set(p) >= SAMPLE_PHASE for thread in raw["aicpu_scheduler_phases"] for p in thread)


def test_graph_and_names_fit_the_manifest(tmp_path):
    _, folder = launched(tmp_path, enable_dep_gen=True)
    names = read_kernel_names(folder / f"name_map_{tmp_path.name}.json")
    graph = read_task_graph(folder / "deps.json")
    kernels = [names[task.kernel_on("aiv")] for _, task in sorted(graph.tasks.items())]
    assert kernels == ["scale", "scale", "scale", "total"]
    assert not (folder / "chip_swimlane_records.json").exists()


def test_the_merged_trace_has_every_task_with_its_name(tmp_path):
    _, folder = launched(tmp_path, enable_chip_swimlane=2)
    (merged,) = folder.glob("merged_swimlane_*.json")
    events = json.loads(merged.read_text())["traceEvents"]
    bars = [e["name"] for e in events if e.get("ph") == "X" and e["pid"] == 4]
    assert sorted(name.split("(")[0] for name in bars) == ["scale", "scale", "scale", "total"]


def test_a_values_only_platform_writes_the_records_too(tmp_path):
    _, folder = launched(tmp_path, platform="a2a3sim", enable_chip_swimlane=1)
    assert len(read_chip_records(folder / "chip_swimlane_records.json").tasks) == 4


def test_warm_launches_are_told_as_they_were(tmp_path):
    """The log of a later launch starts from what the earlier one left in the caches."""
    x, y = torch.randn(64, 64), torch.zeros(64, 64)
    compiled = ir.compile(diamond.lower(x, y), platform="a2a3", output_dir=str(tmp_path), dump_passes=False)
    with ChipWorker(RunConfig(platform="a2a3")) as worker:
        worker.run(compiled, x, y)
        worker.run(compiled, x, y, config=RunConfig(platform="a2a3", enable_chip_swimlane=4))
    records = read_chip_records(tmp_path / "dfx_outputs" / "chip_swimlane_records.json")
    finishes = {t.finish_ns for t in records.tasks}
    completed = [p for thread in records.phases for p in thread if p.kind == "complete"]
    assert len(completed) <= 4 and all(any(p.start_ns <= f <= p.end_ns + 20 for p in completed) for f in finishes)


def test_diagnostics_go_where_the_caller_says(tmp_path, capsys):
    compiled, _ = launched(tmp_path / "build")
    x, y = torch.randn(64, 64), torch.zeros(64, 64)
    execute_on_device(
        compiled.chip_callable,
        [x, y],
        "a2a3",
        compiled.runtime_name,
        0,
        output_prefix=tmp_path / "here",
        enable_dep_gen=True,
        enable_pmu=2,
    )
    assert (tmp_path / "here" / "deps.json").is_file()
    text = capsys.readouterr().out
    assert (tmp_path / "here" / "pmu.csv").is_file()
    assert "counters PIPE_UTILIZATION" in text and "deps.json" in text

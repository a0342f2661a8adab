"""Diagnostics about the tasks of a launch: arguments, counters, scopes (spec runtime 13.5 to 13.8, profiling 5.7 to 5.10)."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import pypto.language as pl
from pypto import ir
from pypto.ir.dtype import FP32
from pypto.perf.counters import read_pipe_use
from pypto.perf.task_graph import read_kernel_names
from pypto.runtime import RunConfig
from pypto.runtime.dfx.argument_dump import _json_number
from pypto.runtime.dfx.pmu import COUNTERS, counters_without_model
from pypto.runtime.dfx.scope_stats import _times
from pypto.runtime.dfx.task_tensors import tensor_number
from pypto.runtime.launch import Launched
from pypto.sim.chips import chip
from pypto.sim.program import TensorArgument
from tests.runtime.builds import add_program

SAMPLES = Path(__file__).parents[1] / "perf" / "samples"


@pl.jit.incore
def shift(a: pl.Tensor[[64, 64], pl.FP32], by: pl.Scalar[pl.FP32], b: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    b = pl.store(pl.add(pl.load(a, [0, 0], [64, 64]), by), [0, 0], b)
    return b


@pl.jit(auto_scope=False)
def steps(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    top = pl.create_tensor([64, 64], dtype=pl.FP32)
    top = shift(x, 1.0, top)
    with pl.scope():
        low = pl.create_tensor([64, 64], dtype=pl.FP32)
        low = shift(top, 2.0, low)
        y = shift(low, 3.0, y)
    return y


@pl.jit
def tagged(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    top = pl.create_tensor([64, 64], dtype=pl.FP32)
    top = shift(x, 1.0, top)
    pl.dump_tag(top)
    pl.dump_tag(y)
    y = shift(top, 2.0, y)
    return y


def launched(tmp_path, function=steps, platform="a2a3", **options):
    x, y = torch.randn(64, 64), torch.zeros(64, 64)
    compiled = ir.compile(function.lower(x, y), platform=platform, output_dir=str(tmp_path), dump_passes=False)
    compiled(x, y, config=RunConfig(platform=platform, **options))
    return x, y, tmp_path / "dfx_outputs"


def kinds(value):
    """The JSON types of a value: keys of objects, the elements of lists taken together."""
    if isinstance(value, dict):
        return {key: kinds(item) for key, item in value.items()}
    if isinstance(value, list):
        return [kinds(value[0])] if value else []
    return type(value).__name__


def by_key(entries):
    return {tuple(entry): kinds(entry) for entry in entries}


def content(folder, entry):
    data = (folder / "args_dump" / "args.bin").read_bytes()[entry["bin_offset"] :][: entry["bin_size"]]
    return np.frombuffer(data, np.float32).reshape(entry["shape"])


def manifest(folder):
    return json.loads((folder / "args_dump" / "args_dump.json").read_text())


# --- argument dump ----------------------------------------------------------------------------------------------------


def test_a_full_dump_has_the_keys_and_types_of_a_real_one(tmp_path):
    folder = launched(tmp_path, enable_dump_args=2)[2]
    ours, theirs = manifest(folder), json.loads((SAMPLES / "args_dump.json").read_text())
    assert kinds({k: v for k, v in ours.items() if k != "args"}) == kinds(
        {k: v for k, v in theirs.items() if k != "args"}
    )
    known = {
        tuple(e): {k: v for k, v in kinds(e).items() if k not in ("shape", "strides", "value")} for e in theirs["args"]
    }
    for entry in ours["args"]:
        assert {k: v for k, v in kinds(entry).items() if k not in ("shape", "strides", "value")} == known[tuple(entry)]
    stages = [entry["stage"] for entry in ours["args"]]
    assert ours["total_args"] == len(stages) == 9
    assert ours["before_dispatch"] == stages.count("before_dispatch") == ours["input_args"] == 6
    assert ours["after_completion"] == ours["output_args"] == 3 and ours["inout_args"] == 0


def test_the_bytes_are_what_each_task_read_and_wrote(tmp_path):
    x, y, folder = launched(tmp_path, enable_dump_args=2)
    entries = manifest(folder)["args"]
    inputs = [content(folder, e) for e in entries if e["kind"] == "tensor" and e["role"] == "input"]
    outputs = [content(folder, e) for e in entries if e["role"] == "output"]
    expected = [x.numpy(), x.numpy() + 1, x.numpy() + 1 + 2, x.numpy() + 1 + 2 + 3]
    for found, want in zip([*inputs, *outputs], [*expected[:3], *expected[1:]], strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)
    scalars = [e for e in entries if e["kind"] == "scalar"]
    assert [(e["value"], e["dtype"], e["arg_index"]) for e in scalars] == [(n, "FLOAT32", 2) for n in (1.0, 2.0, 3.0)]
    assert [e["task_id"] for e in scalars] == ["0x0000000000000000", "0x0000000100000000", "0x0000000100000001"]


def test_a_partial_dump_holds_the_marked_tensors_of_later_tasks(tmp_path):
    """The mark follows the value: the task that made ``top`` before it was marked is not dumped."""
    x, y, folder = launched(tmp_path, tagged, enable_dump_args=1)
    entries = manifest(folder)["args"]
    assert [(e["task_id"], e["role"], e["kind"]) for e in entries] == [
        ("0x0000000000000001", "input", "tensor"),
        ("0x0000000000000001", "output", "tensor"),
    ]
    np.testing.assert_allclose(content(folder, entries[0]), x.numpy() + 1, rtol=1e-6)
    np.testing.assert_array_equal(content(folder, entries[1]), y.numpy())


@pl.jit
def listed(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    top = pl.create_tensor([64, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, dumps=[x]):
        top = pl.add(x, 1.0)
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.add(top, x)
    return y


@pl.inline
def shifted_twice(a, b, c):
    pl.dump_tag(a)
    b = shift(a, 1.0, b)
    c = shift(b, 2.0, c)
    return c


@pl.jit
def through_inlining(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    top = pl.create_tensor([64, 64], dtype=pl.FP32)
    y = shifted_twice(x, top, y)
    return y


@pytest.mark.parametrize("function", [listed, through_inlining])
def test_marks_of_one_dispatch_and_marks_set_in_an_inline_function(tmp_path, function):
    x, _, folder = launched(tmp_path, function, enable_dump_args=1)
    (entry,) = manifest(folder)["args"]
    assert (entry["task_id"], entry["role"]) == ("0x0000000000000000", "input")
    np.testing.assert_array_equal(content(folder, entry), x.numpy())


def test_nothing_marked_means_no_files(tmp_path, capsys):
    folder = launched(tmp_path, enable_dump_args=1)[2]
    assert not (folder / "args_dump").exists() and "nothing to write" in capsys.readouterr().out


@pytest.mark.parametrize(("function", "payloads"), [(steps, 0), (tagged, 2)])
def test_a_hybrid_dump_tells_of_every_task_and_keeps_marked_bytes(tmp_path, function, payloads):
    folder = launched(tmp_path, function, enable_dump_args=3)[2]
    told = manifest(folder)
    assert sum(e["bin_size"] > 0 for e in told["args"]) == payloads
    assert len({e["task_id"] for e in told["args"]}) == (3 if function is steps else 2)
    assert told["bin_file"] == ("args.bin" if payloads else None)
    assert (folder / "args_dump" / "args.bin").exists() == (payloads > 0)


def test_numbers_that_json_has_not():
    assert [_json_number(v) for v in (float("nan"), float("inf"), float("-inf"), 2, True)] == [
        None,
        "$Inf",
        "-$Inf",
        2,
        True,
    ]


# --- task graph -------------------------------------------------------------------------------------------------------


def test_tensor_numbers_are_those_of_real_files():
    for row in json.loads((SAMPLES / "deps.json").read_text())["tensors"]:
        assert str(tensor_number(int(row["buffer_addr"]), row["version"])) == row["tensor_id"]


def test_the_graph_names_arguments_and_tensors(tmp_path):
    folder = launched(tmp_path, enable_dep_gen=True)[2]
    ours, theirs = (json.loads(p.read_text()) for p in (folder / "deps.json", SAMPLES / "deps.json"))
    assert kinds(ours["tensors"]) == kinds(theirs["tensors"])
    known = by_key(arg for task in theirs["tasks"] for arg in task["args"])
    args = [task["args"] for task in ours["tasks"]]
    assert all(set(entry) in map(set, known) for task in args for entry in task)
    assert [[a["type"] for a in task] for task in args] == [["INPUT", "OUTPUT_EXISTING"]] * 3
    chain = [a["tensor_id"] for task in args for a in task]
    assert chain[1] == chain[2] and chain[3] == chain[4] and len(set(chain)) == 4
    assert set(chain) == {row["tensor_id"] for row in ours["tensors"]}
    edges = ours["edges"]
    assert [(e["source"], e["arg"], e["overlap"], e["tensor_id"]) for e in edges] == [
        ("tensormap", 0, "covered", chain[2]),
        ("tensormap", 0, "covered", chain[4]),
    ]


def test_the_graph_is_the_same_in_every_run(tmp_path):
    first, second = (launched(tmp_path / name, enable_dep_gen=True)[2] / "deps.json" for name in ("a", "b"))
    assert first.read_text() == second.read_text()


# --- counters ---------------------------------------------------------------------------------------------------------


def rows_of(folder):
    with (folder / "pmu.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_counters_have_the_columns_of_a_real_file_and_count(tmp_path):
    folder = launched(tmp_path, enable_pmu=2, enable_chip_swimlane=1)[2]
    assert (folder / "pmu.csv").read_text().splitlines()[0] == (SAMPLES / "pmu.csv").read_text().splitlines()[0]
    rows = rows_of(folder)
    records = json.loads((folder / "chip_swimlane_records.json").read_text())["aicore_tasks"]
    assert sorted((int(r["core_id"]), int(r["task_id"], 16)) for r in rows) == sorted((c, t) for c, t, *_ in records)
    for row in rows:
        busy = {k: int(v) for k, v in row.items() if k.endswith("_busy_cycles")}
        assert 0 < max(busy.values()) <= int(row["pmu_total_cycles"])
        # 16 KiB at 32 bytes per cycle each way at least, 64 repeats of 64 lanes at most two cycles each and a start
        assert all(0 < busy[f"{pipe}_busy_cycles"] <= 512 for pipe in ("mte2", "mte3"))
        assert 64 <= busy["vec_busy_cycles"] <= 256
        assert busy["cube_busy_cycles"] == busy["mte1_busy_cycles"] == 0
        assert (row["core_type"], row["event_type"]) == ("1", "2")
    (names,) = folder.glob("name_map_*.json")
    uses = read_pipe_use(folder / "pmu.csv", read_kernel_names(names))
    assert sum(use.tasks for use in uses) == 3 and all(use.kernel.startswith("shift") for use in uses)
    assert all(0 < use.shares["vec"] < 1 for use in uses)


def test_cache_counters_split_the_lines_of_a_task(tmp_path):
    rows = rows_of(launched(tmp_path, enable_pmu=8)[2])
    lines = 64 * 64 * 4 // 512
    for row in rows:
        assert int(row["r0_read_cache_hit"]) + int(row["r0_read_cache_miss_allocate"]) == lines
        assert int(row["write_cache_hit"]) + int(row["write_cache_miss_allocate"]) == lines
    by_task = {row["task_id"]: row for row in rows}
    assert int(by_task["0x0000000000000000"]["r0_read_cache_miss_allocate"]) == lines, "the caches were cold"
    assert int(by_task["0x0000000100000000"]["r0_read_cache_hit"]) == lines, "what a task wrote is in L2"


@pytest.mark.parametrize(
    ("asked", "override", "event"), [(1, None, "1"), (99, None, "2"), (2, "8", "8"), (8, "77", "2")]
)
def test_the_group_of_counters(tmp_path, monkeypatch, capsys, asked, override, event):
    monkeypatch.delenv("SIMPLER_PMU_EVENT_TYPE", raising=False)
    if override is not None:
        monkeypatch.setenv("SIMPLER_PMU_EVENT_TYPE", override)
    rows = rows_of(launched(tmp_path, enable_pmu=asked)[2])
    assert {row["event_type"] for row in rows} == {event}
    assert list(rows[0])[6:-1] == list(COUNTERS["a2a3"][int(event)])
    told = capsys.readouterr().out
    assert all(name in told for name in counters_without_model("a2a3", int(event)))
    wrong = override or str(asked)
    said = f"event {wrong} names no group of counters, 2 is taken; groups: 1 ARITHMETIC, 2"
    assert (said in told) == (wrong in ("99", "77"))


def test_counters_of_the_other_chip(tmp_path):
    rows = rows_of(launched(tmp_path, platform="a5", enable_pmu=2)[2])
    assert list(rows[0])[6:-1] == list(COUNTERS["a5"][2]) and int(rows[0]["pmu_idc_aic_vec_busy_o"]) > 0


# --- scopes -----------------------------------------------------------------------------------------------------------


def scopes_of(folder):
    return [json.loads(line) for line in (folder / "scope_stats" / "scope_stats.jsonl").read_text().splitlines()]


def test_scopes_have_the_keys_and_types_of_a_real_file(tmp_path):
    ours = scopes_of(launched(tmp_path, enable_scope_stats=True)[2])
    theirs = [json.loads(line) for line in (SAMPLES / "scope_stats.jsonl").read_text().splitlines()]
    assert [kinds(line) for line in ours] == [kinds(line) for line in theirs]
    assert ours[0] == {**theirs[0], "total": 4}


def test_scopes_hold_what_was_submitted_in_them(tmp_path):
    _, begin, opened, closed, end = scopes_of(launched(tmp_path, enable_scope_stats=True)[2])
    assert [(e["phase"], e["depth"], e["ring"]) for e in (begin, opened, closed, end)] == [
        ("begin", 0, 0),
        ("begin", 1, 1),
        ("end", 1, 1),
        ("end", 0, 0),
    ]
    assert begin["site"] == end["site"] == "(unknown):0"
    text = Path(__file__).read_text().splitlines()
    file, line = opened["site"].split(":")
    assert file == Path(__file__).name and "with pl.scope():" in text[int(line) - 1]
    assert closed["site"] == opened["site"]
    tensor = 64 * 64 * 4
    assert (opened["task_window_end"], opened["heap_end"], opened["dep_pool_end"]) == (0, 0, 1)
    assert (closed["task_window_start"], closed["task_window_end"]) == (0, 2), "an open scope keeps its tasks"
    assert (closed["heap_start"], closed["heap_end"], closed["dep_pool_end"]) == (0, tensor, 3)
    assert (end["task_window_end"], end["heap_end"], end["dep_pool_end"]) == (1, tensor, 1)
    assert (opened["tensormap"], closed["tensormap"]) == (1, 3)


@pl.jit
def rounds(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    for _ in pl.range(40):
        top = pl.create_tensor([64, 64], dtype=pl.FP32)
        top = shift(x, 1.0, top)
        y = shift(top, 2.0, y)
    return y


def test_closed_scopes_give_back_what_they_held(tmp_path):
    lines = scopes_of(launched(tmp_path, rounds, enable_scope_stats=True)[2])
    ends = [line for line in lines[1:] if line["phase"] == "end" and line["depth"] == 1]
    assert len(ends) == 40 and ends[-1]["task_window_end"] == 80
    starts = [line["task_window_start"] for line in ends]
    assert starts == sorted(starts) and starts[-1] > 0, "positions grow, and earlier rounds are over"
    for line in ends:
        assert line["heap_start"] == 64 * 64 * 4 * ((line["task_window_start"] + 1) // 2)
        assert line["task_window_start"] <= line["task_window_end"] - 2


def test_ring_sizes_of_the_launch_are_told(tmp_path):
    folder = launched(tmp_path, enable_scope_stats=True, ring_heap=[0, 1 << 20, 0, 0], ring_dep_pool=64)[2]
    head = scopes_of(folder)[0]
    assert head["heap_max"] == [1 << 28, 1 << 20, 1 << 28, 1 << 28] and head["dep_pool_max"] == [64] * 4


# --- what the counters and positions add up to ------------------------------------------------------------------------


def test_counters_add_up_to_the_busy_time_of_the_cores(tmp_path):
    """Two accounts of one launch: per task here, per core in the timeline."""
    x, y = torch.randn(64, 64), torch.zeros(64, 64)
    compiled = ir.compile(steps.lower(x, y), platform="a2a3", output_dir=str(tmp_path), dump_passes=False)
    compiled(x, y, config=RunConfig(platform="a2a3", enable_pmu=2))
    program = compiled.chip_callable.program
    arguments = [TensorArgument(n, t.data_ptr(), tuple(t.shape), FP32) for n, t in (("x", x), ("y", y))]
    timeline = program.execute(arguments, record=True, platform="a2a3").recording.time()
    rows = rows_of(tmp_path / "dfx_outputs")
    for pipe, column in (("V", "vec"), ("MTE2", "mte2"), ("MTE3", "mte3"), ("S", "scalar")):
        cycles = sum(int(row[f"{column}_busy_cycles"]) for row in rows)
        assert cycles == pytest.approx(timeline.pipe_busy_us()[pipe] * timeline.clock_mhz, abs=len(rows))
    total = sum(int(row["pmu_total_cycles"]) for row in rows)
    assert total == pytest.approx(sum(timeline.core_busy_us().values()) * timeline.clock_mhz, abs=len(rows))


def test_the_times_of_scopes_end_where_the_orchestrator_ends(tmp_path):
    """Scope times are counted from the events; the engine has the end of the last one."""
    x, y = torch.randn(64, 64), torch.zeros(64, 64)
    compiled = ir.compile(rounds.lower(x, y), platform="a2a3", output_dir=str(tmp_path), dump_passes=False)
    program = compiled.chip_callable.program
    arguments = [TensorArgument(n, t.data_ptr(), tuple(t.shape), FP32) for n, t in (("x", x), ("y", y))]
    recording = program.execute(arguments, record=True, platform="a2a3").recording
    known = Launched(recording, recording.time(), chip("a2a3"))
    start_ns, duration_ns = known.known_timeline.phases["orch"]
    assert _times(known).ended_ps == pytest.approx((start_ns + duration_ns) * 1000, abs=1000)


EXTERNAL_MAIN = """// pypto text 1
orchestration @add {
  file 0 "main.py"
  param %a : tensor<32x256xfp32> in
  param %b : tensor<32x256xfp32> in
  param %out : tensor<32x256xfp32> out
  tensor %tmp : 2 x fp32
  alloc %tmp, [32, 256] {dtype = fp32}  @0:1
  submit %t0, @twice, [%a, %tmp, 2], [], [1, 3, 0]  @0:2
  submit %t1, @add_0, [%tmp, %b, %out], [], [1, 1, 3]  @0:3
  ret
}
"""
EXTERNAL_ENTRY = '{"func_id": 1, "name": "twice", "source": "/src/twice.cpp", "core_type": "aiv", "external": True}]'


def scaled(source, target, factor):
    target[:] = source * factor


def test_a_stand_in_takes_no_core_time(tmp_path):
    """A launch with a hand-written kernel has a clock; its task is in the graph and in the dump, on no core."""
    compiled = add_program(tmp_path, "a2a3")
    manifest_file = tmp_path / "kernel_config.py"
    manifest_file.write_text(manifest_file.read_text().replace("}]", "}, " + EXTERNAL_ENTRY))
    (tmp_path / "orchestration" / "add.orch").write_text(EXTERNAL_MAIN)
    compiled._stand_ins = {"twice": scaled}
    a, b = torch.randn(32, 256), torch.randn(32, 256)
    out = compiled(a, b, config=RunConfig(platform="a2a3", enable_dump_args=2, enable_dep_gen=True, enable_pmu=2))
    torch.testing.assert_close(out, 2 * a + b)
    folder = tmp_path / "dfx_outputs"
    assert [row["task_id"] for row in rows_of(folder)] == ["0x0000000000000001"]
    graph = json.loads((folder / "deps.json").read_text())
    assert [task["kernel_ids"] for task in graph["tasks"]] == [[-1, -1, -1], [-1, 0, -1]]
    assert [(edge["pred"], edge["succ"]) for edge in graph["edges"]] == [("0", "1")]
    written = [e for e in manifest(folder)["args"] if e["role"] == "output"]
    np.testing.assert_array_equal(content(folder, written[0]), 2 * a.numpy())

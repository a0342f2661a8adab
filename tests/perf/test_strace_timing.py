"""The marker tool: tables to the character, overlap proof, traces that check themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto.perf import read_strace
from pypto.perf.host_phases import BindLine, PhasePass, spans_of_lines, spans_of_records
from pypto.perf.host_trace import host_trace
from pypto.perf.strace_timing import main
from pypto.perf.trace_events import (
    Flow,
    FlowEnd,
    Slice,
    TraceCheckError,
    TraceDocument,
    nesting_lanes,
    problems_of,
)  # fmt: skip

from .logs import RUN, record, single_chip, vector_l2
from .properties import examples

ROUNDS = """\
  Round      Host (us)   Device (us)  Effective (us)     Orch (us)    Sched (us)
  ------------------------------------------------------------------------------
  0             1010.0         700.0         590.0         210.0         590.0
  1              840.0         600.0         490.2         180.0         490.2
  2              846.0         604.0         494.8         182.0         494.8
  Avg Host: 898.7 us  |  Avg Device: 634.7 us [3/3]  |  Avg Effective: 525.0 us  |  Avg Orch: 190.7 us  |  \
Avg Sched: 525.0 us  (3 rounds)
"""
TPOT = """\
callable hid=3c9e41d07f — 3 invocation(s)
  chip.run: mean=898.7us min=840.0us max=1010.0us
      chip.run.bind: mean=131.7us (n=3)
        chip.run.bind.args: mean=115.3us (n=3)
      chip.run.runner_run: mean=688.0us (n=3)
        chip.run.runner_run.device_wall: mean=634.7us (n=3)
          chip.run.runner_run.device_wall.graph_build: mean=624.8us (n=3)
          chip.run.runner_run.device_wall.orch: mean=190.7us (n=3)
          chip.run.runner_run.device_wall.sched: mean=525.0us (n=3)
      chip.run.validate: mean=26.7us (n=3)

"""
TREE = """\
callable hid=3c9e41d07f (decode) — median of 3 invocation(s)
run                                  846.0 us
  bind                                 124.0 us
    args                                 104.5 us
  runner_run                           655.0 us
    device_wall            [dev]         604.0 us
      graph_build            [dev]         594.0 us
      Effective              [dev]         494.8 us
        orch 182.0  ∥  sched 494.8   (concurrent)
  validate                              26.0 us

"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_text(vector_l2())
    return path


@pytest.mark.parametrize(("option", "text"), [("--rounds-table", ROUNDS), ("--tree", TREE), (None, TPOT)])
def test_tables(log: Path, capsys: pytest.CaptureFixture[str], option: str | None, text: str) -> None:
    assert main([str(log), *([option] if option else [])]) == 0
    assert capsys.readouterr().out == text


def test_trimmed_average_needs_more_than_twenty_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.log"
    path.write_text("".join(single_chip([1_000 * (i + 1) for i in range(21)])))
    assert main([str(path), "--rounds-table"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert (
        last
        == "  Trimmed Avg Host: 101.0 us  |  Trimmed Avg Device: 11.0 us  (dropped 10 low + 10 high, 1 rounds used)"
    )


def test_log_without_markers_and_torn_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.log"
    path.write_text("nothing\n")
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == "No [STRACE] markers found.\n"
    path.write_text(vector_l2() + "[STRACE] v=1 pid=4\n")
    assert main([str(path)]) == 0
    assert "warning: 1 of 28 [STRACE] records are incomplete" in capsys.readouterr().err


def native(inv: int, bind: tuple[int, int], run: tuple[int, int], release: int, **identity: object) -> str:
    fields = {"run_id": 0, "dispatch_id": 0, "slot_id": inv % 2, "generation": inv, "run_epoch": inv} | identity
    attrs = " ".join(f"{k}={v}" for k, v in fields.items() if v is not None)
    start, end = bind[0] - 1, run[1] + 5
    return (
        record(f"{RUN}.bind", bind[0], bind[1] - bind[0], inv=inv, depth=1)
        + record(f"{RUN}.runner_run", run[0], run[1] - run[0], inv=inv, depth=1)
        + record(f"{RUN}.claim_release", release, 1, inv=inv, depth=1)
        + record(RUN, start, end - start, inv=inv, attrs=attrs)
    )


FIRST = native(1, (100, 200), (300, 900), 880)


@pytest.mark.parametrize(
    ("second", "strict", "reason"),
    [
        (native(2, (400, 500), (950, 990), 980), True, None),
        (native(2, (400, 950), (960, 990), 980), False, None),
        (native(2, (400, 950), (960, 990), 980), True, "was not fully hidden"),
        (native(2, (905, 950), (960, 990), 980), False, "did not overlap"),
        (native(2, (400, 500), (850, 990), 980), False, "reordered before the claim release"),
        (native(2, (400, 500), (950, 990), 980, run_epoch=1), False, "launch order is not monotonic"),
        (native(2, (400, 500), (950, 990), 980, run_epoch=1, slot_id=1, generation=1), False, "duplicate identity"),
        (native(2, (400, 500), (950, 990), 980, slot_id="x"), False, "non-integer identity"),
        (native(2, (400, 500), (950, 990), 980, slot_id=None), False, "missing identity field(s) slot_id"),
        (native(2, (400, 500), (950, 990), 980).replace("claim_release", "other"), False, "missing span(s)"),
        ("", False, "at least two complete native runs"),
    ],
)
def test_overlap_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], second: str, strict: bool, reason: str | None
) -> None:
    path, out = tmp_path / "run.log", tmp_path / "trace.json"
    path.write_text(FIRST + second)
    options = ["--assert-native-overlap", "--trace-out", str(out), *(["--require-hidden-prepare"] if strict else [])]
    code = main([str(path), *options])
    printed = capsys.readouterr()
    if reason is None:
        assert code == 0
        assert printed.out.startswith("Native overlap verified for 1 adjacent dispatch pair(s).\n")
        assert out.exists()
    else:
        assert code == 2
        assert printed.err.startswith("native overlap assertion failed: ")
        assert reason in printed.err
        assert not out.exists()


def test_launch_trace_has_one_lane_per_launch(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    assert main([str(log), "--trace-out", str(out)]) == 0
    document = json.loads(out.read_text())
    assert list(document) == ["traceEvents", "displayTimeUnit"]
    bars = [e for e in document["traceEvents"] if e["ph"] == "X"]
    assert len(bars) == 27
    root = next(e for e in bars if e["pid"] == 2 and e["name"] == RUN)
    assert (root["ts"], root["dur"], root["tid"]) == (100_000.0, 840.0, 0)
    names = [e["args"]["name"] for e in document["traceEvents"] if e["name"] == "process_name"]
    assert names[0] == "decode inv=1 (pid=2207)"


SCHEDULE = "run_id=5 task_slot=2 group_index=0 worker_id=0"
NODE_LOG = (
    record("node.submit", 1600, 100, pid=810, tid=811, inv=5, attrs=f"{SCHEDULE} role=facade")
    + record("node.graph_build", 1500, 900, pid=810, tid=811, inv=5, attrs="run_id=5 role=facade")
    + record("node.dispatch", 1650, 40, pid=810, tid=812, inv=5, attrs=f"{SCHEDULE} dispatch_id=9 role=scheduler")
    + record(RUN, 1700, 500, pid=820)
    + record(f"{RUN}.runner_run.device_wall", 0, 300, pid=820, depth=2, attrs="clk=dev")
)


def test_host_swimlane_vector(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "run.log", tmp_path / "lanes.json"
    path.write_text(NODE_LOG)
    assert main([str(path), "--swimlane", str(out)]) == 0
    assert f"Wrote host swimlane: {out} (4 host spans, 1 unaligned device spans)" in capsys.readouterr().out
    document = json.loads(out.read_text())
    events = document["traceEvents"]
    named = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    assert named == {
        ("process_name", 810, 0): "simpler node (pid=810)",
        ("process_name", 820, 0): "simpler chip child (pid=820)",
        ("thread_name", 810, 811): "orchestrator / facade",
        ("thread_name", 810, 812): "scheduler",
        ("thread_name", 820, 820): "chip child",
    }
    start, finish = (e for e in events if e["ph"] in "sf")
    assert (start["id"], finish["id"], start["ts"], finish["ts"]) == (1, 1, 1.65, 1.65)
    assert (start["tid"], finish["tid"]) == (811, 812)
    assert start["args"]["dispatch_key"] == "dispatch:810:5:2:0:0:9"
    assert [d["name"] for d in document["unalignedDeviceSpans"]] == [f"{RUN}.runner_run.device_wall"]
    assert not any(e["name"].endswith("device_wall") for e in events)


def test_overlapping_launches_of_one_thread_get_a_lane_per_pipeline_slot() -> None:
    log = FIRST + native(2, (400, 500), (950, 990), 980)
    document = host_trace(read_strace(log)).document
    names = [e["args"]["name"] for e in document.metadata if e["name"] == "thread_name"]
    assert names == ["pipeline slot 0 (tid 77)", "pipeline slot 1 (tid 77)"]
    assert {s.args["os_tid"] for s in document.slices} == {77}
    assert min(s.tid for s in document.slices) == 78
    assert document.document()["traceEvents"]


def test_real_group_log_gives_a_trace_that_passes_its_check() -> None:
    trace = host_trace(read_strace(Path(__file__).parent / "samples" / "l3_group.log"))
    document = trace.document.document()
    flows = [e for e in document["traceEvents"] if e["ph"] in "sf"]
    assert len(flows) == 2 * 8
    wall = next(e for e in document["traceEvents"] if e["ph"] == "X")["args"]["wall_time"]
    assert wall.endswith("Z")
    assert len(wall) == len("2026-01-01T00:00:00.000000000Z")


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=25))
@examples()
def test_every_lane_nests(raw: list[tuple[int, int]]) -> None:
    intervals = [(start, start + size) for start, size in raw]
    lanes = nesting_lanes(intervals)
    slices = [Slice("x", 1, lane, start, end - start) for lane, (start, end) in zip(lanes, intervals)]
    assert problems_of(slices, []) == []
    assert len(lanes) == len(intervals)
    if lanes:
        assert set(lanes) == set(range(max(lanes) + 1))


def test_a_trace_with_crossing_slices_or_loose_arrows_is_not_written(tmp_path: Path) -> None:
    slices = [Slice("a", 1, 1, 0, 10), Slice("b", 1, 1, 5, 10), Slice("c", 1, 2, 5, -1)]
    flow = Flow("arrow", "x", FlowEnd(1, 1, 3), FlowEnd(1, 9, 4))
    with pytest.raises(TraceCheckError) as caught:
        TraceDocument(slices=slices, flows=[flow]).write(tmp_path / "t.json")
    for piece in ("'b' overlaps 'a' by 5 ns on track 1/1 at 5 ns", "dur -1 ns", "finish of flow 'arrow' at 4 ns"):
        assert piece in str(caught.value)
    assert not (tmp_path / "t.json").exists()


@given(st.integers(0, 2**52))
@examples()
def test_trace_times_keep_every_nanosecond(ns: int) -> None:
    text = json.dumps(Slice("x", 1, 1, ns, ns).event())
    assert round(json.loads(text)["ts"] * 1000) == ns
    assert json.loads(text)["ts"] == ns / 1000


def test_phase_records_and_lines_become_spans_below_bind() -> None:
    binds = read_strace(record(f"{RUN}.bind", 100, 100, inv=3, depth=1)).spans()
    records = (
        {"phase": "args", "start_ns": 110, "end_ns": 120, "detail": 5, "tid": 77},
        {"phase": "record_node", "start_ns": 130, "end_ns": 140, "detail": 6, "tid": 99},
        {"phase": "graph_submit", "start_ns": 140, "end_ns": 150, "detail": 7, "tid": 0},
    )
    detail = spans_of_records([PhasePass(77, 3, records), PhasePass(1, 1, records)], binds)
    assert detail.unmatched == 1
    assert [(s.name, s.tid, s.depth, s.dur) for s in detail.spans] == [
        (f"{RUN}.bind.args", 77, 2, 10),
        (f"{RUN}.bind.host_orch.record_node", 99, 3, 10),
        (f"{RUN}.bind.host_orch.graph_submit", 77, 3, 10),
    ]
    assert [s.attrs.rpartition("=")[2] for s in detail.spans] == [
        "host_main",
        "graph_record_worker",
        "graph_submit_main",
    ]
    lines = [BindLine("args", 110, 5, "bytes=1", "7f"), BindLine("args", 900, 5, "", "7f")]
    assert [s.attrs for s in spans_of_lines(lines, binds, set()).spans] == ["bytes=1 log_thread=0x7f src=bind_phase"]
    assert spans_of_lines(lines, binds, {(77, 3)}).spans == []


@pytest.mark.parametrize(
    "options", [["missing.log"], ["run.log", "--trace-out", "no/x.json"], ["run.log", "--swimlane", "no/x.json"],
                ["run.log", "--swimlane", "x.json", "--host-phase-records", "missing.jsonl"]]
)  # fmt: skip
def test_files_that_cannot_be_opened_are_named_in_one_line(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.log").write_text(vector_l2())
    assert main(options) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and options[-1] in line

"""The command line: every command on real files, exits and messages on bad ones."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest

from pypto.perf import BenchmarkStats, read_strace
from pypto.perf.cli import build_parser, main
from pypto.perf.device_log import device_log_root, read_device_log
from pypto.perf.device_log_timing import main as device_log_timing
from pypto.perf.export import ExportError, export_run, format_of
from pypto.perf.grouping import launches_of
from pypto.perf.plot import plot_stats
from pypto.perf.runs import RunOptions, is_distributed, launch_count, stats_of

from .logs import ranks, single_chip, vector_l2

SAMPLES = Path(__file__).parent / "samples"
GROUP = str(SAMPLES / "l3_group.log")


@pytest.fixture
def dfx(tmp_path: Path) -> Path:
    for name in ("chip_swimlane_records.json", "deps.json"):
        shutil.copy(SAMPLES / name, tmp_path / name)
    (tmp_path / "name_map_case.json").write_text(
        json.dumps({"level": 2, "orchestrator_name": None, "callable_id_to_name": {"0": "add", "1": "mul_1"}})
    )
    return tmp_path


def test_report_and_tree_of_a_group_log(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", GROUP, "--warmup", "1"]) == 0
    out = capsys.readouterr().out
    assert "rounds=3, warmup=1" in out
    assert "slowest rank" in out
    assert main(["tree", GROUP, "--launch", "0", "--ns"]) == 0
    assert capsys.readouterr().out.startswith("launch[0] (pid=13634 inv=1 hid=0 round=0 slot=0):")
    assert main(["tree", GROUP, "--launch", "99"]) == 1
    assert "launch 99 is out of range" in capsys.readouterr().err


def test_what_is_no_log_is_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = str(tmp_path / "base.json")
    assert main(["export", GROUP, "-o", profile]) == 0
    for command in ("report", "tree", "rounds"):
        assert main([command, profile]) == 1
        assert "is a profile that export wrote" in capsys.readouterr().err
    for arguments in (["report", str(tmp_path)], ["compare", GROUP, str(tmp_path)]):
        assert main(arguments) == 1
        assert "is a directory: give a log in it" in capsys.readouterr().err
    assert main(["compare", str(tmp_path / "none"), GROUP]) == 1
    assert "No such file" in capsys.readouterr().err


def test_a_log_may_come_through_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Looking whether a run is a profile must not take bytes from a pipe."""
    pipe, log = tmp_path / "pipe", Path(GROUP).read_bytes()
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(log,), daemon=True)
    writer.start()
    assert main(["compare", GROUP, str(pipe)]) == 0
    writer.join(60)
    assert not writer.is_alive() and ": same" in capsys.readouterr().out


def test_rounds_prints_one_line_per_dispatch(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rounds", GROUP]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 8


def test_export_formats(tmp_path: Path) -> None:
    stats = BenchmarkStats.from_strace(vector_l2(), rounds=2, warmup=1)
    assert export_run(stats, tmp_path / "run.csv") == "csv"
    assert pd.read_csv(tmp_path / "run.csv")["device_us"].tolist() == [600.0, 604.0]
    assert export_run(stats, tmp_path / "spans.csv", spans=True) == "csv"
    assert len(pd.read_csv(tmp_path / "spans.csv")) == 27
    assert export_run(stats, tmp_path / "run.perfetto.json") == "perfetto"
    assert json.loads((tmp_path / "run.perfetto.json").read_text())["unalignedDeviceSpans"]
    assert export_run(stats, tmp_path / "run.json") == "json"
    with pytest.raises(ExportError, match="which format"):
        format_of(tmp_path / "run.txt", None)
    with pytest.raises(ExportError, match="put together by hand"):
        export_run(BenchmarkStats(), tmp_path / "x.json", "perfetto")


def test_parquet_is_written_or_its_package_is_named(tmp_path: Path) -> None:
    stats = BenchmarkStats.from_strace(vector_l2(), rounds=2, warmup=1)
    path = tmp_path / "run.parquet"
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(ExportError, match="parquet needs pyarrow"):
            export_run(stats, path)
    else:
        export_run(stats, path)
        assert pd.read_parquet(path)["device_us"].tolist() == [600.0, 604.0]


def test_swimlane_command(dfx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["swimlane", str(dfx / "chip_swimlane_records.json"), "--overhead"]) == 0
    out = capsys.readouterr().out
    assert "Total Test Time: 3860.52 us" in out
    events = json.loads((dfx / "merged_swimlane.json").read_text())["traceEvents"]
    assert {"add(t0)", "mul_1(r1t0)", "func_2_c(r1t2)"} <= {e["name"] for e in events}
    counters = {e["name"] for e in events if e["ph"] == "C"}
    assert {"oh_aiv_idle", "oh_has_overhead"} <= counters
    assert "oh_aic_idle" not in counters


def test_swimlane_without_a_graph_stays_anonymous(dfx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (dfx / "deps.json").unlink()
    assert main(["swimlane", str(dfx / "chip_swimlane_records.json"), "-o", str(dfx / "out.json")]) == 0
    printed = capsys.readouterr()
    assert "no arrows" in printed.err
    assert "func_-1_" in printed.out
    events = json.loads((dfx / "out.json").read_text())["traceEvents"]
    assert "task(t0)" in {e["name"] for e in events}
    assert not any(e["name"] == "dependency" for e in events)


def test_critical_path_command(dfx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(SAMPLES / "merged_swimlane.json", dfx / "merged_swimlane.json")
    assert main(["critical-path", str(dfx)]) == 0
    out = capsys.readouterr().out
    assert f"Analyzed 1 rank(s) under {dfx}" in out
    assert f"[{dfx.name}] makespan=3.798ms  CPM=2.53ms(66.6%)  compute=66.6%  stall=33.4% (data-wait 33.4%)" in out
    report = (dfx / "critical_path.md").read_text()
    assert "| mul | 1 | 818.06 | 997.22 |" in report
    names = [e["name"] for e in json.loads((dfx / "CPM_observed.json").read_text())["traceEvents"] if e.get("pid") == 4]
    assert "·(r1t1)" in names
    assert main(["critical-path", str(dfx), "--report", "../x.md"]) == 2
    (dfx / "merged_swimlane.json").write_text("[]")
    assert main(["critical-path", str(dfx)]) == 2
    (dfx / "deps.json").unlink()
    assert main(["critical-path", str(dfx)]) == 2
    assert "no directory at or below" in capsys.readouterr().err


def test_sched_overhead_and_deps_commands(dfx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = str(dfx / "chip_swimlane_records.json")
    assert main(["sched-overhead", "--chip-swimlane-records-json", records]) == 0
    assert "verdict: compute/dependency-bound" in capsys.readouterr().out
    assert main(["deps", str(dfx / "deps.json")]) == 0
    assert "(5 tasks, 6 unique edges, 6 annotated edges, format=text)" in capsys.readouterr().out
    assert "perf_sidecar: yes" in (dfx / "deps_viewer.txt").read_text()
    assert main(["deps", str(dfx / "deps.json"), "--format", "dot", "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("digraph deps {")
    (dfx / "deps.json").write_text("[")
    assert main(["deps", str(dfx / "deps.json")]) == 1
    assert main(["sched-overhead", "--chip-swimlane-records-json", records]) == 1
    assert "not a task graph" in capsys.readouterr().err


def test_html_command(dfx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(SAMPLES / "l2_vector.log", dfx / "run.log")
    assert main(["html", str(dfx), "-o", str(dfx / "report.html"), "--title", "a & b"]) == 0
    assert "<title>a &amp; b</title>" in (dfx / "report.html").read_text()
    assert main(["html", str(dfx / "chip_swimlane_records.json"), "-o", str(dfx / "chip.html")]) == 0
    assert 'id="critical-path"' in (dfx / "chip.html").read_text()


def test_launches_are_counted_from_the_log() -> None:
    for order, launches in ((("aa", "bb"), 4), (("aa",), 6), (("aa", "bb", "aa"), 2)):
        groups = launches_of(read_strace("".join(ranks(launches, order=order))))
        assert is_distributed(groups)
        assert launch_count(groups, distributed=True) == launches
    stats = stats_of(read_strace("".join(single_chip([1_000] * 7))), RunOptions(warmup=2), "x")
    assert (stats.rounds, len(stats.samples), stats.warnings) == (5, 5, [])


def test_a_log_cut_short_keeps_its_rounds() -> None:
    """Ranks that lost a different number of dispatches at the end share no common count of rounds."""
    for lost in (1, 2, 3):
        log = ranks(50, order=("aa",))
        stats = stats_of(read_strace("".join(log[:-lost])), RunOptions(), "x")
        assert (stats.rounds, len(stats.samples)) == (50, 100 - lost)
        assert any("no multiple of 50 launches (pid 502 has" in warning for warning in stats.warnings)
        assert stats.to_pandas()["device_us"].isna().sum() == lost


def test_a_rank_with_more_dispatches_per_round_is_no_loss() -> None:
    log = ranks(4, order=("aa",), pids=(501,)) + ranks(4, order=("aa", "bb"), pids=(502,))
    assert launch_count(launches_of(read_strace("".join(log))), distributed=True) == 4


def test_headline_stays_one_line_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", GROUP]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("BenchmarkStats(rounds=4") and lines[0].endswith("us]")
    assert sum(line.startswith("BenchmarkStats(") for line in lines) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", GROUP, GROUP, "--fail-over", "5"], "'5' would be 500%: write 5% or 0.05"),
        (["compare", GROUP, GROUP, "--fail-over", "nan"], "must not be negative"),
        (["compare", GROUP, GROUP, "--confidence", "95"], "write 95% or 0.95"),
        (["report", GROUP, "--rounds", "0"], "'0': expected a whole number from 1"),
        (["critical-path", ".", "--top", "-1"], "'-1': expected a whole number from 1"),
    ],
)
def test_numbers_that_cannot_be_meant_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_compare_reads_standard_input() -> None:
    command = [sys.executable, "-m", "pypto.perf", "compare", GROUP, "-"]
    with open(GROUP, "rb") as log:
        done = subprocess.run(command, stdin=log, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "+0.0%" in done.stdout


def test_compare_takes_standard_input_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "-", "-"]) == 1
    assert "one of the two runs only" in capsys.readouterr().err


def test_rows_per_span_are_refused_where_there_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", GROUP, "-o", str(tmp_path / "x.json"), "--spans"]) == 1
    assert "csv and parquet only, not as json" in capsys.readouterr().err
    assert not (tmp_path / "x.json").exists()


def test_chip_commands_take_the_directory(dfx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["swimlane", str(dfx)]) == 0
    assert (dfx / "merged_swimlane.json").is_file()
    assert main(["deps", str(dfx)]) == 0
    assert main(["sched-overhead", "--chip-swimlane-records-json", str(dfx)]) == 0
    assert main(["sched-overhead", str(dfx)]) == 0
    assert main(["sched-overhead", str(dfx), "--chip-swimlane-records-json", str(dfx)]) == 1
    (dfx / "name_map_case.json").unlink()
    capsys.readouterr()
    assert main(["critical-path", str(dfx)]) == 2
    assert f"{dfx} lacks name_map*.json" in capsys.readouterr().err


DEVICE_LINES = """\
[WARN] CCECPU(1): [TIMING] Thread 3: orch_start=1000 orch_end=6000 orch_cost=100.000us
[WARN] Thread 0: sched_start=900 sched_end=8000 sched_cost=142.0us
[WARN] Thread 1: sched_start=1100 sched_end(timeout)=9000 sched_cost=158.0us
[WARN] PTO2 total submitted tasks = 5, already executed 5 tasks
[WARN] Thread 3: orch_start=20000 orch_end=25000 orch_cost=100.000us
"""


def test_device_log_timing(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "device-0.log"
    path.write_text(DEVICE_LINES)
    (one,) = read_device_log(DEVICE_LINES.splitlines()).rounds
    assert (one.orch_us, one.sched_us, one.total_us) == (100.0, 162.0, 162.0)
    assert device_log_timing([str(tmp_path)]) == 0
    assert capsys.readouterr().out == (
        f"Device-log timing (from {path})\n"
        "  tasks = 5\n"
        "  Round     Total (us)     Orch (us)    Sched (us)\n"
        "  ------------------------------------------------\n"
        "  0              162.0         100.0         162.0\n"
        "  Avg  Total: 162.0 us  |  Orch: 100.0 us  |  Sched: 162.0 us  (1 rounds)\n"
    )
    assert device_log_timing([str(tmp_path / "none*.log")]) == 1
    monkeypatch.setenv("ASCEND_SLOG_PRINT_TO_STDOUT", "1")
    assert device_log_timing([str(path)]) == 1
    assert "ASCEND_SLOG_PRINT_TO_STDOUT" in capsys.readouterr().err


def test_device_log_root_follows_the_environment(tmp_path: Path) -> None:
    (tmp_path / "debug").mkdir()
    assert device_log_root({"ASCEND_PROCESS_LOG_PATH": str(tmp_path)}) == tmp_path / "debug"
    (tmp_path / "log" / "debug").mkdir(parents=True)
    assert device_log_root({"ASCEND_WORK_PATH": str(tmp_path)}) == tmp_path / "log" / "debug"
    assert device_log_root({}).parts[-3:] == ("ascend", "log", "debug")


def test_plots_show_every_rank() -> None:
    pytest.importorskip("matplotlib")
    stats = BenchmarkStats.from_strace("".join(ranks(4)), rounds=3, warmup=1, distributed=True)
    axes = stats.plot().axes[0]
    assert [line.get_label() for line in axes.get_lines()][:3] == ["rank pid=501", "rank pid=502", "headline"]
    assert list(axes.get_lines()[2].get_ydata()) == stats.device_wall_us
    assert [line.get_label() for line in stats.plot("device_span").axes[0].get_lines()][0] == "headline"
    with pytest.raises(ValueError, match="nothing to plot"):
        plot_stats(BenchmarkStats())


def test_modules_run_as_scripts_and_stay_lazy() -> None:
    for module in ("pypto.perf", "pypto.perf.strace_timing", "pypto.perf.device_log_timing"):
        done = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True)
        assert "usage:" in done.stdout
    code = (
        "import sys; from pypto.perf import BenchmarkStats, compare, read_strace\n"
        "heavy = ('pandas', 'rich', 'numba', 'matplotlib', 'torch', 'pypto.sim', 'pypto.runtime')\n"
        "print([module for module in heavy if module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_command_has_help() -> None:
    text = build_parser().format_help()
    for command in [
        "report",
        "tree",
        "rounds",
        "compare",
        "export",
        "swimlane",
        "critical-path",
        "sched-overhead",
        "deps",
        "html",
    ]:
        assert command in text


@pytest.mark.parametrize(
    ("module", "arguments"),
    [("pypto.perf.cli", ["tree", GROUP, "--launch", "0"]), ("pypto.perf.strace_timing", [GROUP])],
)
def test_a_closed_pipe_ends_quietly(module: str, arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")

"""What one launch writes to descriptor 2, and what its modelled host spans are made of (spec profiling 1.6, 6)."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from pypto.perf import BenchmarkStats, read_strace
from pypto.runtime import ChipWorker, RunConfig, configure_log, markers
from pypto.runtime.host_model import host_model
from pypto.runtime.spans import DEVICE_WALL
from pypto.sim import OutOfBoundsError

from .builds import COLS, ROWS, add_program

CLOCKED = RunConfig(platform="a2a3")
NBYTES = ROWS * COLS * 4


@contextmanager
def markers_of(capfd, config=CLOCKED) -> Iterator[tuple[ChipWorker, list[str]]]:
    """An open worker, and a list that holds the lines written until the block ends."""
    configure_log("timing")
    markers.start_log()
    lines: list[str] = []
    capfd.readouterr()
    with ChipWorker(config) as worker:
        yield worker, lines
    lines += capfd.readouterr().err.splitlines()


def spans(lines):
    """(depth, name) of the span records, in the order written."""
    found = [re.search(r"depth=(\d+) name=(\S+) ts=(\d+) dur=(\d+)", line) for line in lines]
    return [(int(m[1]), m[2], int(m[3]), int(m[4])) for m in found if m]


def test_the_records_of_a_clocked_launch(clocked_add, tensors, capfd):
    with markers_of(capfd) as (worker, lines):
        worker.run(clocked_add, *tensors)
    assert "CLOCK_ANCHOR" in lines[0]
    names = [name for _, name, _, _ in spans(lines)]
    phases = [n for n in names if n.startswith(DEVICE_WALL + ".")]
    assert names == [
        "chip.prewarm.build",
        "chip.run.bind.args",
        "chip.run.bind.prebuilt",
        "chip.run.bind",
        "chip.run.runner_run",
        "chip.run.validate",
        DEVICE_WALL,
        *phases,
        "chip.run.claim_release",
        "chip.run",
    ]
    assert {f"{DEVICE_WALL}.{p}" for p in ("preamble", "graph_build", "orch", "sched", "post_orch")} <= set(phases)
    assert all(depth == name.count(".") - 1 for depth, name, _, _ in spans(lines)[1:])
    hid = re.search(r"hid=(\w+) .*name=chip.run ", "\n".join(lines))[1]
    assert hid == clocked_add.chip_callable.hid
    assert re.search(r"run_id=0 dispatch_id=0 slot_id=0 generation=1 run_epoch=\d+$", lines[-1])


def test_host_spans_nest_and_the_device_fits_in_the_run(clocked_add, tensors, capfd):
    with markers_of(capfd) as (worker, lines):
        worker.run(clocked_add, *tensors)
    at = {name: (start, start + duration) for _, name, start, duration in spans(lines)}
    for child in ("bind.args", "bind.prebuilt", "bind", "runner_run", "validate", "claim_release"):
        child = f"chip.run.{child}"
        parent = child.rpartition(".")[0]
        assert at[parent][0] <= at[child][0] <= at[child][1] <= at[parent][1], (child, parent)
    run_ns = at["chip.run.runner_run"][1] - at["chip.run.runner_run"][0]
    wall_ns = at[DEVICE_WALL][1]
    assert run_ns == wall_ns + host_model("a2a3").enqueue_ns + host_model("a2a3").drain_ns
    phases = {n.rsplit(".", 1)[1]: span for n, span in at.items() if n.startswith(DEVICE_WALL + ".")}
    assert min(start for start, _ in phases.values()) == 0 and max(stop for _, stop in phases.values()) <= wall_ns
    assert phases["sched"][0] < phases["orch"][1], "orchestrator and schedulers work at the same time"


def test_a_values_only_launch_has_no_device_spans(add, tensors, capfd):
    with markers_of(capfd, RunConfig()) as (worker, lines):
        worker.run(add, *tensors)
    assert [name for _, name, _, _ in spans(lines)] == [
        "chip.prewarm.build",
        "chip.run.bind.args",
        "chip.run.bind.prebuilt",
        "chip.run.bind",
        "chip.run.runner_run",
        "chip.run.validate",
        "chip.run",
    ]
    assert all("hid=0 " in line for line in lines[1:]) and "clk=dev" not in "".join(lines)


@pytest.mark.parametrize("level", ["warn", "error", "null"])
def test_a_higher_threshold_hides_the_records(clocked_add, tensors, capfd, level):
    configure_log(level)
    with ChipWorker(CLOCKED) as worker:
        configure_log("timing")  # too late for this worker
        worker.run(clocked_add, *tensors)
    assert capfd.readouterr().err == ""


def test_device_spans_can_be_turned_off(clocked_add, tensors, capfd, monkeypatch):
    monkeypatch.setenv("SIMPLER_DEVICE_STRACE_ENABLE", "0")
    with markers_of(capfd) as (worker, lines):
        worker.run(clocked_add, *tensors)
    assert "clk=dev" not in "".join(lines) and any("name=chip.run " in line for line in lines)


def test_a_failed_launch_is_told_without_device_spans(tmp_path, tensors, capfd):
    outside = add_program(tmp_path, platform="a2a3", row=8)
    with markers_of(capfd) as (worker, lines), pytest.raises(OutOfBoundsError, match="'a'"):
        worker.run(outside, *tensors)
    lines += capfd.readouterr().err.splitlines()
    names = [name for _, name, _, _ in spans(lines)]
    assert names[-2:] == ["chip.run.runner_run", "chip.run"] and DEVICE_WALL not in names


def launches(capfd, worker_of, count):
    """Statistics of ``count`` launches made by ``worker_of(worker)``."""
    with markers_of(capfd) as (worker, lines):
        launch = worker_of(worker)
        for _ in range(count):
            launch()
    return BenchmarkStats.from_strace("\n".join(lines), rounds=count, warmup=0)


def test_a_resident_input_saves_its_allocation_and_upload(clocked_add, tensors, capfd):
    a, b, out = tensors

    def uploading(worker):
        return lambda: worker.run(clocked_add, a, b, out)

    def resident(worker):
        weight = worker.alloc_tensor((ROWS, COLS), torch.float32, init=b)
        return lambda: worker.run(clocked_add, a, weight, out)

    moved, stayed = launches(capfd, uploading, 3), launches(capfd, resident, 3)
    host = host_model("a2a3")
    saved_ns = host.allocation_ns + host.upload_ns(NBYTES)
    assert [round((m - s) * 1000) for m, s in zip(moved.host_wall_us, stayed.host_wall_us)] == [saved_ns] * 3
    assert moved.device_wall_us == stayed.device_wall_us


def test_the_same_launches_take_the_same_nanoseconds(clocked_add, tensors, capfd):
    first = launches(capfd, lambda worker: lambda: worker.run(clocked_add, *tensors), 4)
    again = launches(capfd, lambda worker: lambda: worker.run(clocked_add, *tensors), 4)
    assert first.device_wall_us == again.device_wall_us and first.host_wall_us == again.host_wall_us
    assert first.device_us_min > 0


def test_caches_are_warm_after_the_first_launch_unless_asked_otherwise(tmp_path, capfd):
    program = add_program(tmp_path, "a2a3", rows=2048, summed=2048)
    tensors = [torch.zeros(2048, COLS) for _ in range(3)]
    forgetful = RunConfig(platform="a2a3", cold_start=True)
    warm = launches(capfd, lambda worker: lambda: worker.run(program, *tensors), 3)
    cold = launches(capfd, lambda worker: lambda: worker.run(program, *tensors, config=forgetful), 3)
    assert warm.device_wall_us[1] < warm.device_wall_us[0] == cold.device_wall_us[0]
    assert warm.device_wall_us[1] == warm.device_wall_us[2] and len(set(cold.device_wall_us)) == 1


def test_another_ring_sizing_rebuilds_the_arena_once(clocked_add, tensors, capfd):
    sized = RunConfig(platform="a2a3", ring_task_window=64)
    with markers_of(capfd) as (worker, lines):
        for config in (None, sized, sized, None):
            worker.run(clocked_add, *tensors, config=config)
    built = [duration for _, name, _, duration in spans(lines) if name == "chip.run.bind.prebuilt"]
    assert built[0] == built[2] < built[1] == built[3]


def test_every_record_is_read_back(clocked_add, tensors, capfd):
    with markers_of(capfd) as (worker, lines):
        for _ in range(3):
            worker.run(clocked_add, *tensors)
    table = read_strace("\n".join(lines))
    assert table.heads == table.parsed > 0 and table.torn == table.skipped == 0

"""benchmark: statistics, refusals, what it leaves behind (spec runtime 11)."""

import os
import sys

import pytest
import torch

import pypto.language as pl
from pypto.runtime import BenchmarkStats, ChipWorker, RunConfig, benchmark, configure_log, log_level, task_names
from pypto.runtime.host_model import host_model

from .builds import COLS, add_program


def test_a_clocked_platform(clocked_add, tensors):
    a, b, out = tensors
    stats = benchmark(clocked_add, [a, b, out], rounds=10, warmup=2)
    assert isinstance(stats, BenchmarkStats) and torch.equal(out, a + b)
    assert (stats.rounds, stats.warmup, len(stats.samples), len(stats.invocations)) == (10, 2, 10, 10)
    assert stats.samples == stats.device_wall_us and not stats.all_zero_device
    assert stats.device_us_stdev == 0 and stats.device_us_min > 0
    inv = stats.invocations[0]
    assert 0 < inv.effective_us <= inv.device_wall_us <= inv.host_wall_us
    assert inv.hid == clocked_add.chip_callable.hid and inv.task_name == "add"
    assert len(stats.simulation_wall_us) == 10 and min(stats.simulation_wall_us) > 0
    assert not stats.warnings


def test_a_values_only_platform(add, tensors):
    a, b, out = tensors
    task_names.remember_places({"0": "a program of earlier ranks"})
    stats = benchmark(add, [a, b, out], rounds=5, warmup=1)
    assert stats.all_zero_device and len(stats.samples) == 5 and min(stats.host_wall_us) > 0
    assert stats.invocations[0].task_name == stats.invocations[0].hid == "0"
    assert torch.equal(out, a + b)


def test_return_style_arguments(clocked_add, tensors):
    assert len(benchmark(clocked_add, tensors[:2], rounds=2, warmup=0).samples) == 2


def test_the_host_part_shows_transfers_and_repeats_exactly(tmp_path):
    small, large = add_program(tmp_path / "s", "a2a3"), add_program(tmp_path / "l", "a2a3", rows=4096)

    def host_less_device_ns(program, rows):
        stats = benchmark(program, [torch.zeros(rows, COLS) for _ in range(3)], rounds=2, warmup=1)
        return [round(1000 * (h - d)) for h, d in zip(stats.host_wall_us, stats.device_wall_us)]

    first, again = host_less_device_ns(large, 4096), host_less_device_ns(large, 4096)
    host, more = host_model("a2a3"), [rows * COLS * 4 for rows in (4096, 32)]
    moved_ns = [2 * host.upload_ns(nbytes) + host.download_ns(nbytes) for nbytes in more]
    assert first == again
    assert [f - s for f, s in zip(first, host_less_device_ns(small, 32))] == [moved_ns[0] - moved_ns[1]] * 2


@pytest.mark.parametrize(
    "options, words",
    [
        ({"rounds": 0}, "rounds must be positive"),
        ({"warmup": -1}, "warmup must be non-negative"),
        ({"persistent": True}, "apply only to an L3"),
        ({"reset_persistent_windows": False}, "apply only to an L3"),
        ({"config": RunConfig(), "platform": "a2a3"}, "not both"),
        ({"config": RunConfig(), "device_id": 0}, "not both"),
    ],
)
def test_refused_before_the_logger_is_touched(add, tensors, options, words):
    before = log_level()
    with pytest.raises(ValueError, match=words):
        benchmark(add, tensors, **options)
    assert log_level() == before and torch.equal(tensors[2], torch.ones_like(tensors[2]))


@pytest.mark.parametrize("options", [{"rounds": "3"}, {"rounds": 2.5}, {"warmup": None}])
def test_counts_are_ints(add, tensors, options):
    with pytest.raises(TypeError, match=f"{next(iter(options))} must be an int"):
        benchmark(add, tensors, **options)


def test_an_open_worker_with_the_same_binding_is_in_the_way(add, tensors):
    with ChipWorker(), pytest.raises(ValueError, match="already active"):
        benchmark(add, tensors)
    with ChipWorker(RunConfig(device_id=1)):
        benchmark(add, tensors, rounds=1, warmup=0)


@pytest.mark.parametrize("fails", [False, True])
def test_descriptor_and_log_level_come_back(tmp_path, tensors, capfd, fails):
    configure_log("error")
    program = add_program(tmp_path, row=8 if fails else 0)
    before = os.fstat(2)
    try:
        benchmark(program, tensors, rounds=2, warmup=0)
    except Exception:
        assert fails
    assert log_level() == 40 and os.path.sameopenfile(2, 2) and os.fstat(2).st_ino == before.st_ino
    print("after", file=sys.stderr)
    assert capfd.readouterr().err == "after\n"


def test_what_opening_says_is_passed_on(add, tensors, capfd, monkeypatch):
    register = ChipWorker.register

    def chatty(self, compiled):
        os.write(2, b"loading\n")
        return register(self, compiled)

    monkeypatch.setattr(ChipWorker, "register", chatty)
    benchmark(add, tensors, rounds=1, warmup=0)
    assert capfd.readouterr().err == "loading\n"


def test_a_log_without_markers_is_an_error(add, tensors, monkeypatch):
    monkeypatch.setattr("pypto.runtime.bench.configure_log", lambda level: None)
    with pytest.raises(RuntimeError, match=r"no \[STRACE\] markers captured across 3 launches"):
        benchmark(add, tensors, rounds=2, warmup=1)


@pytest.mark.parametrize("wrong", ["a2a3", {"platform": "a2a3"}])
def test_a_config_that_is_none_is_named(wrong):
    @pl.jit
    def doubled(x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(x, 2.0)
        return y

    x, y = torch.ones(16, 16), torch.zeros(16, 16)
    compiled = doubled.compile(x, y)
    for call in (doubled, compiled, doubled.compile):
        with pytest.raises(TypeError, match=f"config must be a RunConfig, got {type(wrong).__name__}"):
            call(x, y, config=wrong)
    with pytest.raises(TypeError, match="benchmark launches compiled programs, got JITFunction; make one with"):
        benchmark(doubled, [x, y])

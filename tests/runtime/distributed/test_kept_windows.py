"""Checks of windows that are kept from run to run, over three runs and more, on two to four ranks."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

RUNS = 4
ROWS = 32
COUNTS = [2, 3, 4]


@pl.jit.incore
def exchange(
    inp: pl.Tensor[[ROWS, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[ROWS, 64], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
    first: pl.Scalar[pl.INT32],
    expected: pl.Scalar[pl.INT32],
):
    """Publish rows from ``first`` on, take those of the next rank; tell it so, and wait until the own are taken."""
    me, n = pld.rank(pld.get_comm_ctx(data)), pld.nranks(pld.get_comm_ctx(data))
    following, before = (me + 1) % n, (me + n - 1) % n
    data = pl.store(pl.load(inp, [0, 0], [16, 64]), [first, 0], data)
    pld.system.notify(signal, peer=before, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal, offsets=[0, 0], expected=expected, cmp=pld.WaitCmp.Ge)
    out = pl.store(pld.tile.remote_load(data, peer=following, offsets=[0, 0], shape=[ROWS, 64]), [0, 0], out)
    pld.system.notify(signal, peer=following, offsets=[1, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal, offsets=[1, 0], expected=expected, cmp=pld.WaitCmp.Ge)
    return out


@pl.jit
def chip(
    inp: pl.Tensor[[ROWS, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[ROWS, 64], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
    first: pl.Scalar[pl.INT32],
    expected: pl.Scalar[pl.INT32],
):
    out = exchange(inp, out, data, signal, first, expected)
    return out


def once(ranks):
    """A run with one dispatch to every rank."""

    @pl.jit.host
    def host(
        x: pl.Tensor[[ranks, ROWS, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[ranks, ROWS, 64], pl.FP32]],
        first: pl.Scalar[pl.INT32] = pl.RUNTIME,
        expected: pl.Scalar[pl.INT32] = pl.RUNTIME,
    ):
        data_buf = pld.alloc_window_buffer([ROWS, 64], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [ROWS, 64], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
            chip(x[r], y[r], data, signal, first, expected, device=r)

    return host


def three_times(ranks):
    """A run with three dispatches to every rank, whose thresholds rise or stay."""

    @pl.jit.host
    def host(
        x: pl.Tensor[[ranks, ROWS, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[ranks, ROWS, 64], pl.FP32]],
        second: pl.Scalar[pl.INT32] = pl.RUNTIME,
        third: pl.Scalar[pl.INT32] = pl.RUNTIME,
        expected: pl.Scalar[pl.INT32] = pl.RUNTIME,
    ):
        data_buf = pld.alloc_window_buffer([ROWS, 64], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [ROWS, 64], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
            chip(x[r], y[r], data, signal, 0, expected, device=r)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [ROWS, 64], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
            chip(x[r], y[r], data, signal, 0, second, device=r)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [ROWS, 64], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
            chip(x[r], y[r], data, signal, 0, third, device=r)

    return host


def kinds_of_runs(host, ranks, checks, steps, **persistent):
    """The kinds found in every run: each takes the two numbers of a step."""
    config = RunConfig(
        platform="a2a3sim", checks=checks, checks_mode="collect",
        distributed_config=DistributedConfig(list(range(ranks))),
    )  # fmt: skip
    x, y = torch.randn(ranks, ROWS, 64).share_memory_(), torch.zeros(ranks, ROWS, 64).share_memory_()
    compiled = host(ranks).compile(config=config)
    found = []
    with compiled.prepare(config, persistent=True, **persistent) as worker:
        for numbers in steps:
            worker(x, y, *numbers)
            found.append([finding.kind for finding in compiled.last_findings])
            for r in range(ranks):
                at = numbers[0] if host is once else 0
                assert torch.equal(y[r, at : at + 16], x[(r + 1) % ranks, :16])
    return found


ORDER = {"residue", "signal-reuse", "window-race", "publish-order", "signal-misuse"}


@pytest.mark.parametrize("ranks", COUNTS)
def test_credits_of_the_runs_before_are_told_in_every_later_run(ranks):
    found = kinds_of_runs(once, ranks, ORDER, [(0, 1)] * RUNS, reset_persistent_windows=False)
    assert found[0] == [] and all(set(kinds) == {"residue"} for kinds in found[1:])


@pytest.mark.parametrize("ranks", COUNTS)
@pytest.mark.parametrize("resets", [True, False])
def test_windows_that_are_reset_and_thresholds_that_rise_are_silent(ranks, resets):
    steps = [(0, 1 if resets else run + 1) for run in range(RUNS)]
    found = kinds_of_runs(once, ranks, "all", steps, reset_persistent_windows=resets)
    assert found == [[]] * RUNS


@pytest.mark.parametrize("ranks", COUNTS)
def test_a_threshold_that_stays_in_three_dispatches_of_a_run(ranks):
    found = kinds_of_runs(three_times, ranks, ORDER, [(1, 1, 1)] * 3, reset_persistent_windows=True)
    assert all("signal-reuse" in kinds for kinds in found)


@pytest.mark.parametrize("ranks", COUNTS)
@pytest.mark.parametrize("resets", [True, False])
def test_thresholds_that_rise_in_three_dispatches_of_three_runs(ranks, resets):
    steps = [(1 + n, 2 + n, n) for n in ([1] * 3 if resets else [1, 4, 7])]
    found = kinds_of_runs(three_times, ranks, "all", steps, reset_persistent_windows=resets)
    assert found == [[]] * 3


@pytest.mark.parametrize("ranks", COUNTS)
def test_rows_count_as_written_until_the_windows_are_reset(ranks):
    """The first run leaves rows 16..32 out, the second writes them and the third the first ones again."""
    steps = [(first, run + 1) for run, first in enumerate((0, 16, 0, 0))]
    found = kinds_of_runs(once, ranks, {"unpublished"}, steps, reset_persistent_windows=False)
    assert set(found[0]) == {"unpublished"} and found[1:] == [[]] * 3
    found = kinds_of_runs(
        once, ranks, {"unpublished"}, [(first, 1) for first, _ in steps], reset_persistent_windows=True
    )
    assert all(set(kinds) == {"unpublished"} for kinds in found)

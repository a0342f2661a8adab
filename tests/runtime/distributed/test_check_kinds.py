"""Checks of runs on several chips: collectives called unlike, ranks left out, buffers of two runs in flight."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import DistributedWorker, RunConfig
from pypto.sim import CheckError, PlacementError

RANKS = 3
NR = pl.dynamic("NR")
CONFIG = RunConfig(
    platform="a2a3", checks="all",
    distributed_config=DistributedConfig(device_ids=list(range(RANKS)), num_sub_workers=0),
)  # fmt: skip


def reduce_on(body):
    """A host program whose kernel publishes its row and then runs ``body(data, signal, me)``."""

    @pl.jit.incore
    def part(
        inp: pl.Tensor[[1, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
        data: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        me = pld.rank(pld.get_comm_ctx(data))
        data = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], data)
        body(data, signal, me)
        out = pl.store(pl.load(data, [0, 0], [1, 64]), [0, 0], out)
        return out

    @pl.jit
    def chip(
        inp: pl.Tensor[[1, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
        data: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        out = part(inp, out, data, signal)
        return out

    @pl.jit.host
    def host(x: pl.Tensor[[RANKS, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[RANKS, 1, 64], pl.FP32]]):
        data_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, 64], dtype=pl.FP32)
            signal = pld.window(signal_buf, [RANKS, 1], dtype=pl.INT32)
            chip(x[r], y[r], data, signal, device=r)

    return host


@pl.inline
def on_one_rank(data, signal, me):
    if me == 1:
        data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum)


@pl.inline
def other_operation(data, signal, me):
    if me == 2:
        data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Max)
    else:
        data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum)


@pl.inline
def same_in_both_branches(data, signal, me):
    if me == 2:
        data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum)
    else:
        data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum)


@pl.inline
def broadcast_then_reduce(data, signal, me):
    data = pld.tensor.broadcast(data, signal, root=1)
    pld.tensor.barrier(signal)
    data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum)


def run(body):
    x = torch.arange(RANKS * 64.0).reshape(RANKS, 1, 64).share_memory_()
    y = torch.zeros(RANKS, 1, 64).share_memory_()
    reduce_on(body).compile(x, y, config=CONFIG)(x, y)
    return x, y


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_collective_on_one_rank_only():
    with pytest.raises(CheckError, match="rank 1 waits in allreduce") as caught:
        run(on_one_rank)
    [finding] = caught.value.findings
    assert finding.kind == "collective" and finding.tensor == "signal" and "part" in finding.tasks
    assert "allreduce" in finding.locations[0].code and "every rank" in finding.suggestion


def test_ranks_that_reduce_with_different_operations():
    with pytest.raises(CheckError, match="rank 0 calls allreduce.*Sum.*rank 2 calls allreduce.*Max") as caught:
        run(other_operation)
    [finding] = caught.value.findings
    assert finding.kind == "collective" and len(finding.locations) == 2


@pytest.mark.parametrize("body", [same_in_both_branches, broadcast_then_reduce])
def test_equal_collectives_are_silent(body):
    x, y = run(body)
    want = x.sum(0) if body is same_in_both_branches else x[1] * RANKS
    torch.testing.assert_close(y, want.expand(RANKS, 1, 64))


@pl.jit.incore
def twice(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    y = pl.store(pl.mul(pl.load(x, [0, 0], [16, 32]), 2.0), [0, 0], y)
    return y


@pl.jit
def chip_twice(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    y = twice(x, y)
    return y


@pl.jit.host
def on_every_rank(x: pl.Tensor[[RANKS, 16, 32], pl.FP32], y: pl.Out[pl.Tensor[[RANKS, 16, 32], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        chip_twice(x[r], y[r], device=r)


@pl.jit.host
def on_two_ranks(x: pl.Tensor[[RANKS, 16, 32], pl.FP32], y: pl.Out[pl.Tensor[[RANKS, 16, 32], pl.FP32]]):
    for r in pl.range(2):
        chip_twice(x[r], y[r], device=r)


@pl.jit.host
def all_rows_on_one_rank(x: pl.Tensor[[RANKS, 16, 32], pl.FP32], y: pl.Out[pl.Tensor[[RANKS, 16, 32], pl.FP32]]):
    for r in pl.range(3):
        chip_twice(x[r], y[r], device=0)


def rows(*fill: float) -> torch.Tensor:
    return (
        torch.tensor(fill or (0.0,) * RANKS, dtype=torch.float32)
        .reshape(RANKS, 1, 1)
        .expand(RANKS, 16, 32)
        .contiguous()
        .share_memory_()
    )


def test_a_dispatch_loop_that_is_too_short():
    x, y = rows(1, 2, 3), rows()
    with pytest.raises(CheckError, match="ranks: 2 of 3 get no dispatch") as caught:
        on_two_ranks.compile(x, y, config=CONFIG)(x, y)
    [finding] = caught.value.findings
    assert (finding.kind, finding.tensor, finding.index_ranges[0]) == ("placement", "y", (2, 3))
    assert "chip_twice(x[r]" in finding.locations[0].code


def test_idle_ranks_are_silent_when_the_outputs_are_complete():
    x, y = rows(1, 2, 3), rows()
    all_rows_on_one_rank.compile(x, y, config=CONFIG)(x, y)
    assert torch.equal(y, 2 * x)


@pytest.mark.parametrize("waits", [False, True])
def test_two_runs_in_flight_need_their_own_outputs(waits):
    x, y, z = rows(1, 2, 3), rows(), rows()
    compiled = on_every_rank.compile(x, y, config=CONFIG)
    with DistributedWorker(compiled, CONFIG) as worker:
        first = worker.submit(compiled, x, y)
        other = worker.submit(compiled, x, z)
        first.result()
        if waits:
            other.result()
            worker.submit(compiled, y, z).result()
            assert torch.equal(z, 4 * x)
            return
        with pytest.raises(
            PlacementError, match=r"'x' \(In\) of this run is 'y' \(Out\) of a run that is still in flight"
        ):
            worker.submit(compiled, z, y)
        other.result()

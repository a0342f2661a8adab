"""Tasks that wait for each other's cores and for other ranks at once: order within the block, barriers, what is left."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld

from .test_detectors import NR, found


def handed_over(waits: bool):
    """The cube stores a product, the vector function reads it after an event and tells the next rank."""

    @pl.program
    class Handed:
        @pl.function(type=pl.FunctionType.AIC)
        def multiply(
            self,
            a: pl.Tensor[[32, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            mid: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
            y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        ):
            ta = pl.move(pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
            tb = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
            pl.store(pl.matmul(ta, tb), [0, 0], mid)
            pl.system.sync_set(3, pipe=pl.PipeType.FIX)

        @pl.function(type=pl.FunctionType.AIV)
        def finish(
            self,
            a: pl.Tensor[[32, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            mid: pl.Tensor[[32, 32], pl.FP32],
            y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        ) -> pl.Tensor[[32, 32], pl.FP32]:
            if waits:
                pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)
            y = pl.store(pl.add(pl.load(mid, [0, 0], [32, 32]), 1.0), [0, 0], y)
            me = pld.rank(pld.get_comm_ctx(signal))
            pld.system.notify(signal, peer=(me + 1) % 2, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(signal, offsets=[(me + 1) % 2, 0], expected=1, cmp=pld.WaitCmp.Ge)
            return y

        @pl.function(type=pl.FunctionType.Group)
        def pair(
            self,
            a: pl.Tensor[[32, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            mid: pl.InOut[pl.Tensor[[32, 32], pl.FP32]],
            y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        ) -> pl.Tensor[[32, 32], pl.FP32]:
            self.multiply(a, b, mid, y, signal)
            y = self.finish(a, b, mid, y, signal)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            a: pl.Tensor[[32, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
        ) -> pl.Tensor[[32, 32], pl.FP32]:
            mid = pl.create_tensor([32, 32], dtype=pl.FP32)
            y = self.pair(a, b, mid, y, signal)
            return y

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            a: pl.Tensor[[2, 32, 64], pl.FP16],
            b: pl.Tensor[[2, 64, 32], pl.FP16],
            y: pl.Out[pl.Tensor[[2, 32, 32], pl.FP32]],
        ) -> pl.Tensor[[2, 32, 32], pl.FP32]:
            buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                signal = pld.window(buf, [2, 1], dtype=pl.INT32)
                self.chip(a[r], b[r], y[r], signal, device=r)
            return y

    return Handed


class _Compiled:
    """A class program with the face of a jit one."""

    def __init__(self, program):
        self.program = program

    def compile(self, *arguments, config):
        from pypto import ir

        compiled = ir.compile(self.program, platform=config.platform, distributed_config=config.distributed_config)
        return lambda *given: compiled(*given, config=config)


@pytest.mark.parametrize("waits", [True, False])
def test_an_event_orders_the_cores_of_a_task_that_also_signals(waits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a, b, y = torch.randn(2, 32, 64).half(), torch.randn(2, 64, 32).half(), torch.zeros(2, 32, 32)
    findings = found(_Compiled(handed_over(waits)), 2, a, b, y)
    kinds = {finding.kind for finding in findings}
    if waits:
        assert findings == []
        torch.testing.assert_close(y, a.float() @ b.float() + 1, rtol=1e-3, atol=1e-2)
    else:
        assert "fifo" in kinds and kinds & {"raw", "uninit"}, [str(finding) for finding in findings]


def met(blocks: int):
    """Blocks tell the next rank, and meet in a barrier before they read what a neighbour has written."""

    @pl.jit
    def chip(
        x: pl.Tensor[[64, 32], pl.FP32],
        y: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        mid = pl.create_tensor([64, 32], dtype=pl.FP32)
        rows = 64 // blocks
        for b in pl.spmd(blocks, name_hint="meet"):
            me = pld.rank(pld.get_comm_ctx(signal))
            pl.store(pl.exp(pl.load(x, [b * rows, 0], [64 // blocks, 32])), [b * rows, 0], mid)
            pld.system.notify(signal, peer=(me + 1) % 2, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            pl.system.syncall(core_type="aiv_only")
            pl.store(pl.neg(pl.load(mid, [64 - rows - b * rows, 0], [64 // blocks, 32])), [b * rows, 0], y)
            pld.system.wait(signal, offsets=[(me + 1) % 2, 0], expected=blocks, cmp=pld.WaitCmp.Ge)
        return y

    @pl.jit.host
    def host(x: pl.Tensor[[2, 64, 32], pl.FP32], y: pl.Out[pl.Tensor[[2, 64, 32], pl.FP32]]):
        buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            signal = pld.window(buf, [2, 1], dtype=pl.INT32)
            chip(x[r], y[r], signal, device=r)

    return host


@pytest.mark.parametrize("blocks", [1, 4])
def test_blocks_of_a_task_that_signals_meet_in_a_barrier(blocks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = torch.randn(2, 64, 32), torch.zeros(2, 64, 32)
    assert found(met(blocks), 2, x, y) == []
    strips = x.exp().neg().reshape(2, blocks, 64 // blocks, 32).flip(1).reshape(2, 64, 32)
    torch.testing.assert_close(y, strips, rtol=1e-4, atol=1e-4)


def pushed(telling: int, expected: int, waiting: int):
    """Four blocks push a row each and the first ``telling`` of them tell; of four that read, ``waiting`` wait."""

    @pl.jit
    def chip(
        x: pl.Tensor[[4, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[4, 64], pl.FP32]],
        data: pl.InOut[pld.DistributedTensor[[4, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ):
        for b in pl.spmd(4, name_hint="push"):
            peer = (pld.rank(pld.get_comm_ctx(data)) + 1) % 2
            pld.tile.remote_store(pl.load(x, [b, 0], [1, 64]), data, peer=peer, offsets=[b, 0])
            if b < telling:
                pld.system.notify(signal, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        for b in pl.spmd(4, name_hint="pull"):
            if b < waiting:
                pld.system.wait(signal, offsets=[0, 0], expected=expected, cmp=pld.WaitCmp.Ge)
            pl.store(pl.load(data, [b, 0], [1, 64]), [b, 0], y)
        return y

    @pl.jit.host
    def host(x: pl.Tensor[[2, 4, 64], pl.FP32], y: pl.Out[pl.Tensor[[2, 4, 64], pl.FP32]]):
        data_buf = pld.alloc_window_buffer([4, 64], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [4, 64], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
            chip(x[r], y[r], data, signal, device=r)

    return host


APART = "in a block or task that nothing orders with it"


@pytest.mark.parametrize(
    ("telling", "expected", "waiting", "said"),
    [
        (4, 4, 4, ""),
        (4, 3, 4, "satisfied by the credits of other blocks: the cell reaches 4"),
        (1, 1, 4, f"the notify that the reader waited for is sent in 'push', {APART}"),
        (4, 4, 1, f"rank 1 waits for that in 'pull', {APART}"),
    ],
)
def test_every_block_that_writes_tells_and_every_block_that_reads_waits(
    telling, expected, waiting, said, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    x, y = torch.randn(2, 4, 64), torch.zeros(2, 4, 64)
    findings = found(pushed(telling, expected, waiting), 2, x, y)
    assert [finding.kind for finding in findings] == ["window-race"] * bool(said), [str(f) for f in findings]
    assert all(said in finding.message for finding in findings), [str(f) for f in findings]

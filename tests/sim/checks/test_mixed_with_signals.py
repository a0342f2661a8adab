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

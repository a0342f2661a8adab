"""Elements of windows that a gather or a scatter touches: compared between ranks exactly, and by the block of memory."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig
from pypto.sim.checks.rank_order import RunOrder

ROWS, COLS = 32, 64
WIDE = 4 * ROWS * COLS
CHECKS = {"window-race", "publish-order", "signal-reuse"}


@pl.jit.incore
def spread(
    inp: pl.Tensor[[ROWS, COLS], pl.FP32],
    at: pl.Tensor[[ROWS, COLS], pl.INT32],
    out: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, WIDE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
):
    """Rank 0 tells rank 1 and then scatters, rank 1 reads the first eight elements."""
    me = pld.rank(pld.get_comm_ctx(data))
    tile, index = pl.load(inp, [0, 0], [ROWS, COLS]), pl.load(at, [0, 0], [ROWS, COLS])
    part = pl.tile.full([1, 8], dtype=pl.FP32, value=0.0)
    if me == 0:
        pld.system.notify(signal, peer=1, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        pl.mscatter(tile, index, data)
    else:
        pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        part = pld.tile.remote_load(data, peer=0, offsets=[0, 0], shape=[1, 8])
    out = pl.store(part, [0, 0], out)
    return out


@pl.jit
def chip(
    inp: pl.Tensor[[ROWS, COLS], pl.FP32],
    at: pl.Tensor[[ROWS, COLS], pl.INT32],
    out: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, WIDE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
):
    out = spread(inp, at, out, data, signal)
    return out


@pl.jit.host
def host(
    x: pl.Tensor[[2, ROWS, COLS], pl.FP32],
    at: pl.Tensor[[2, ROWS, COLS], pl.INT32],
    y: pl.Out[pl.Tensor[[2, 1, 8], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([1, WIDE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, WIDE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
        chip(x[r], at[r], y[r], data, signal, device=r)


@pytest.mark.parametrize("clash", [None, 5])
def test_elements_between_those_of_another_rank(clash, monkeypatch):
    events = []
    gather = RunOrder.__init__

    def note(self, *args):
        gather(self, *args)
        events.append(len(self.events))

    monkeypatch.setattr(RunOrder, "__init__", note)
    config = RunConfig(
        platform="a2a3sim", checks=CHECKS, checks_mode="collect", distributed_config=DistributedConfig([0, 1])
    )
    at = 8 + 3 * torch.randperm(ROWS * COLS, generator=torch.Generator().manual_seed(0)).int().reshape(ROWS, COLS)
    if clash is not None:
        at[7, 9] = clash
    args = torch.randn(2, ROWS, COLS), at.expand(2, ROWS, COLS).contiguous(), torch.zeros(2, 1, 8)
    args = tuple(tensor.share_memory_() for tensor in args)
    compiled = host.compile(*args, config=config)
    compiled(*args, config=config)
    if clash is None:
        assert compiled.last_findings == []
    else:
        (finding,) = compiled.last_findings
        assert finding.kind == "publish-order" and finding.index_ranges == ((0, 1), (clash, clash + 1))
    assert events and events[0] <= 3 * ROWS * COLS // 256 + 8

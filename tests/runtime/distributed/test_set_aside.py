"""Kernels that wait while later tasks of the chip go on (spec distributed 2.11, 5.1)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld

from .programs import config

VECTOR_CORES = 48  # of the chip


def waiting_program(waiters: int, deferred: bool):
    """``waiters`` tasks wait for a credit that a task submitted last sends to the own rank."""

    @pl.jit.incore
    def publish(signal: pl.InOut[pld.DistributedTensor[[64, 1], pl.INT32]]):
        me = pld.rank(pld.get_comm_ctx(signal))
        for cell in pl.range(waiters):
            pld.system.notify(signal, peer=me, offsets=[cell, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        return signal

    @pl.jit.incore
    def blocking(
        signal: pld.DistributedTensor[[64, 1], pl.INT32],
        inp: pl.Tensor[[1, 64], pl.FP32],
        cell: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ):
        pld.system.wait(signal, offsets=[cell, 0], expected=1, cmp=pld.WaitCmp.Ge)
        out = pl.store(pl.load(inp, [0, 0], [1, 64]), [cell, 0], out)
        return out

    @pl.jit
    def chip(
        inp: pl.Tensor[[1, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[64, 1], pl.INT32]],
    ):
        for cell in pl.parallel(waiters):
            out = blocking(signal, inp, cell, out)
        signal = publish(signal)
        return out

    @pl.jit
    def chip_deferred(
        inp: pl.Tensor[[1, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[64, 1], pl.INT32]],
    ):
        for cell in pl.parallel(waiters):
            with pl.at(level=pl.Level.CORE_GROUP) as tid:
                pld.system.defer_wait(signal, offsets=[cell, 0], expected=1, cmp=pld.WaitCmp.Ge)
            with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]):
                out = pl.store(pl.load(inp, [0, 0], [1, 64]), [cell, 0], out)
        signal = publish(signal)
        return out

    if deferred:

        @pl.jit.host
        def host(x: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
            buf = pld.alloc_window_buffer([64, 1], dtype=pl.INT32)
            signal = pld.window(buf, [64, 1], dtype=pl.INT32)
            chip_deferred(x, y, signal, device=0)
    else:

        @pl.jit.host
        def host(x: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
            buf = pld.alloc_window_buffer([64, 1], dtype=pl.INT32)
            signal = pld.window(buf, [64, 1], dtype=pl.INT32)
            chip(x, y, signal, device=0)

    return host


def run(waiters, deferred, platform="a2a3sim"):
    x, y = torch.randn(1, 64).share_memory_(), torch.zeros(64, 64).share_memory_()
    waiting_program(waiters, deferred).compile(x, y, config=config(1, platform))(x, y)
    torch.testing.assert_close(y[:waiters], x.expand(waiters, 64))


@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim"])
def test_a_publisher_submitted_last_answers_earlier_waits(platform):
    run(3, False, platform)


def test_blocking_waits_on_every_core_starve_the_publisher():
    with pytest.raises(
        RuntimeError,
        match=r"(?s)wait of blocking.*publish cannot start: blocked waits hold every core; use pld.system.defer_wait",
    ):
        run(VECTOR_CORES, False)


def test_deferred_waits_hold_no_core():
    run(VECTOR_CORES, True)


@pytest.mark.parametrize("checks", ["none", "all"])
def test_a_stand_in_that_waits_gets_the_arguments_it_was_submitted_with(checks, tmp_path, monkeypatch):
    """The orchestration has gone round its loop by the time that the functions run."""
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "shift.cpp"
    source.write_text("// runs on the card only\n")

    @pl.jit.extern(core_type="aiv", source=str(source))
    def shift(src: pl.Tensor[[1, 64], pl.FP32], dst: pl.Out[pl.Tensor[[1, 64], pl.FP32]], by: pl.Scalar[pl.INT32]): ...

    @pl.jit.incore
    def late(
        signal: pld.DistributedTensor[[1, 1], pl.INT32],
        inp: pl.Tensor[[1, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    ):
        pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        out = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], out)
        return out

    @pl.jit.incore
    def publish(signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]):
        me = pld.rank(pld.get_comm_ctx(signal))
        pld.system.notify(signal, peer=me, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        return signal

    @pl.jit
    def chip(
        inp: pl.Tensor[[1, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[4, 64], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
    ):
        middle = pl.create_tensor([1, 64], dtype=pl.FP32)
        middle = late(signal, inp, middle)
        for k in pl.range(4):
            row = pl.slice(out, [1, 64], [k, 0])
            row = shift(middle, row, pl.cast(k, pl.INT32))
        signal = publish(signal)
        return out

    @pl.jit.host
    def host(x: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[4, 64], pl.FP32]]):
        buf = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
        signal = pld.window(buf, [1, 1], dtype=pl.INT32)
        chip(x, y, signal, device=0)

    def stand_in(src, dst, by):
        dst[:] = src + by

    x, y = torch.randn(1, 64).share_memory_(), torch.zeros(4, 64).share_memory_()
    asked = replace(config(1, "a2a3"), checks=checks)
    compiled = host.compile(x, y, config=asked)
    compiled.bind_external("shift", stand_in)
    compiled(x, y, config=asked)
    torch.testing.assert_close(y, x + torch.arange(4.0)[:, None])

"""Collectives as statements of a HOST orchestrator: every one against torch, and what they refuse (spec distributed 2.13)."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.errors import CompileError

from .programs import config

SIZE = 304  # more than one 256-element tile


def moving_program(ranks, rows_in, rows_out, collective, times=1):
    """Rank r's rows go into window ``source``, ``collective(source, target, signal, send, recv)`` fills ``target``."""

    @pl.jit.incore
    def fill_kernel(
        inp: pl.Tensor[[rows_in, SIZE], pl.FP32],
        counts: pl.Tensor[[ranks, 1], pl.INT32],
        source: pl.InOut[pld.DistributedTensor[[rows_in, SIZE], pl.FP32]],
        send: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
    ):
        source = pl.store(pl.load(inp, [0, 0], [rows_in, SIZE]), [0, 0], source)
        for peer in pl.range(ranks):
            pl.write(send, [peer, 0], pl.read(counts, [peer, 0]))
        return source

    @pl.jit
    def fill(
        inp: pl.Tensor[[rows_in, SIZE], pl.FP32],
        counts: pl.Tensor[[ranks, 1], pl.INT32],
        source: pl.InOut[pld.DistributedTensor[[rows_in, SIZE], pl.FP32]],
        send: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
    ):
        return fill_kernel(inp, counts, source, send)

    @pl.jit.incore
    def take_kernel(
        target: pld.DistributedTensor[[rows_out, SIZE], pl.FP32],
        recv: pld.DistributedTensor[[ranks, 1], pl.INT32],
        out: pl.Out[pl.Tensor[[rows_out, SIZE], pl.FP32]],
        got: pl.Out[pl.Tensor[[ranks, 1], pl.INT32]],
    ):
        out = pl.store(pl.load(target, [0, 0], [rows_out, SIZE]), [0, 0], out)
        for peer in pl.range(ranks):
            pl.write(got, [peer, 0], pl.read(recv, [peer, 0]))
        return out

    @pl.jit
    def take(
        target: pld.DistributedTensor[[rows_out, SIZE], pl.FP32],
        recv: pld.DistributedTensor[[ranks, 1], pl.INT32],
        out: pl.Out[pl.Tensor[[rows_out, SIZE], pl.FP32]],
        got: pl.Out[pl.Tensor[[ranks, 1], pl.INT32]],
    ):
        return take_kernel(target, recv, out, got)

    @pl.jit.host
    def host(
        x: pl.Tensor[[ranks, rows_in, SIZE], pl.FP32],
        counts: pl.Tensor[[ranks, ranks, 1], pl.INT32],
        y: pl.Out[pl.Tensor[[ranks, rows_out, SIZE], pl.FP32]],
        got: pl.Out[pl.Tensor[[ranks, ranks, 1], pl.INT32]],
    ):
        source_buf = pld.alloc_window_buffer([rows_in, SIZE], dtype=pl.FP32)
        target_buf = pld.alloc_window_buffer([rows_out, SIZE], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
        send_buf = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
        recv_buf = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            source = pld.window(source_buf, [rows_in, SIZE], dtype=pl.FP32)
            send = pld.window(send_buf, [ranks, 1], dtype=pl.INT32)
            fill(x[r], counts[r], source, send, device=r)
        from_ = pld.window(source_buf, [rows_in, SIZE], dtype=pl.FP32)
        to = pld.window(target_buf, [rows_out, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [ranks, 1], dtype=pl.INT32)
        sent = pld.window(send_buf, [ranks, 1], dtype=pl.INT32)
        received = pld.window(recv_buf, [ranks, 1], dtype=pl.INT32)
        collective(from_, to, signal, sent, received)
        for r in pl.range(pld.world_size()):
            target = pld.window(target_buf, [rows_out, SIZE], dtype=pl.FP32)
            recv = pld.window(recv_buf, [ranks, 1], dtype=pl.INT32)
            take(target, recv, y[r], got[r], device=r)

    return host


def run(program, x, rows_out, counts=None, platform="a2a3sim"):
    ranks = len(x)
    x = x.share_memory_()
    counts = (torch.zeros(ranks, ranks, 1) if counts is None else counts).to(torch.int32).share_memory_()
    y, got = (
        torch.zeros(ranks, rows_out, SIZE).share_memory_(),
        torch.zeros(ranks, ranks, 1, dtype=torch.int32).share_memory_(),
    )
    with program.compile(x, counts, y, got, config=config(ranks, platform)).prepare() as rt:
        for _ in range(2):  # a second run finds fresh windows
            y.zero_()
            rt(x, counts, y, got)
    return y, got[..., 0]


@pytest.mark.parametrize("platform", ["a2a3sim", "a2a3"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_allgather(ranks, platform):
    @pl.inline
    def collective(source, target, signal, send, recv):
        target = pld.tensor.allgather(source, target, signal)
        recv = pld.tensor.barrier(recv)

    x = torch.randn(ranks, 1, SIZE)
    y, _ = run(moving_program(ranks, 1, ranks, collective), x, ranks, platform=platform)
    assert torch.equal(y, x[:, 0].expand(ranks, ranks, SIZE))


@pytest.mark.parametrize("platform", ["a2a3sim", "a2a3"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_all_to_all(ranks, platform):
    @pl.inline
    def collective(source, target, signal, send, recv):
        target = pld.tensor.all_to_all(source, target, signal)
        recv = pld.tensor.barrier(recv)

    x = torch.randn(ranks, ranks, SIZE)
    y, _ = run(moving_program(ranks, ranks, ranks, collective), x, ranks, platform=platform)
    assert torch.equal(y, x.transpose(0, 1))


@pytest.mark.parametrize("platform", ["a2a3sim", "a2a3"])
@pytest.mark.parametrize(("ranks", "most"), [(2, 3), (3, 2)])
def test_all_to_all_v(ranks, most, platform):
    """Whole blocks move; the counts say how many rows of each are meant."""

    @pl.inline
    def collective(source, target, signal, send, recv):
        target = pld.tensor.all_to_all_v(source, target, signal, send, recv)

    x = torch.randn(ranks, ranks * most, SIZE)
    counts = torch.randint(0, most + 1, (ranks, ranks, 1))
    y, got = run(moving_program(ranks, ranks * most, ranks * most, collective), x, ranks * most, counts, platform)
    assert torch.equal(got, counts[..., 0].T.to(torch.int32))
    for me in range(ranks):
        for src in range(ranks):
            rows = int(counts[src, me])
            assert torch.equal(y[me, src * most : src * most + rows], x[src, me * most : me * most + rows])


@pytest.mark.parametrize("ranks", [2, 3])
def test_barriers_between_two_calls_on_one_target(ranks):
    """A push has no leading barrier: the second call may start when everybody has read the first (2.13.7)."""

    @pl.inline
    def collective(source, target, signal, send, recv):
        target = pld.tensor.allgather(source, target, signal)
        recv = pld.tensor.barrier(recv)

    x = torch.randn(ranks, 1, SIZE)
    program = moving_program(ranks, 1, ranks, collective)
    for k in range(3):
        y, got = run(program, x + k, ranks)
        assert torch.equal(y, (x + k)[:, 0].expand(ranks, ranks, SIZE)) and not got.any()


@pytest.mark.parametrize("op", list(pld.ReduceOp))
@pytest.mark.parametrize("dtype", [pl.FP32, pl.FP16])
def test_allreduce_operators_in_a_loop_on_one_signal(op, dtype):
    """The second round's result depends on the second round's inputs alone (A12); target and signal views are its own."""
    ranks, rounds = 3, 2

    @pl.jit.incore
    def store_kernel(inp: pl.Tensor[[1, SIZE], dtype], data: pl.InOut[pld.DistributedTensor[[1, SIZE], dtype]]):
        data = pl.store(pl.load(inp, [0, 0], [1, SIZE]), [0, 0], data)
        return data

    @pl.jit
    def store(inp: pl.Tensor[[1, SIZE], dtype], data: pl.InOut[pld.DistributedTensor[[1, SIZE], dtype]]):
        return store_kernel(inp, data)

    @pl.jit.incore
    def load_kernel(data: pld.DistributedTensor[[1, SIZE], dtype], out: pl.Out[pl.Tensor[[1, SIZE], dtype]]):
        out = pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], out)
        return out

    @pl.jit
    def load(data: pld.DistributedTensor[[1, SIZE], dtype], out: pl.Out[pl.Tensor[[1, SIZE], dtype]]):
        return load_kernel(data, out)

    @pl.jit.host
    def host(x: pl.Tensor[[rounds * ranks, 1, SIZE], dtype], y: pl.Out[pl.Tensor[[rounds * ranks, 1, SIZE], dtype]]):
        data_buf = pld.alloc_window_buffer([1, SIZE], dtype=dtype)
        signal_buf = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
        for k in pl.range(rounds):
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, SIZE], dtype=dtype)
                store(x[k * ranks + r], data, device=r)
            window = pld.window(data_buf, [1, SIZE], dtype=dtype)
            signal = pld.window(signal_buf, [ranks, 1], dtype=pl.INT32)
            window = pld.tensor.allreduce(window, signal, op=op)
            for r in pl.range(pld.world_size()):
                after = pld.window(data_buf, [1, SIZE], dtype=dtype)
                load(after, y[k * ranks + r], device=r)

    element = {pl.FP32: torch.float32, pl.FP16: torch.float16}[dtype]
    x = torch.randn(rounds * ranks, 1, SIZE).to(element).share_memory_()
    y = torch.zeros(rounds * ranks, 1, SIZE, dtype=element).share_memory_()
    host.compile(x, y, config=config(ranks))(x, y)
    rows = x.view(rounds, ranks, 1, SIZE)
    reduced = {
        pld.ReduceOp.Sum: rows.sum(1),
        pld.ReduceOp.Max: rows.amax(1),
        pld.ReduceOp.Min: rows.amin(1),
        pld.ReduceOp.Prod: rows.prod(1),
    }[op]
    torch.testing.assert_close(y.view(rows.shape), reduced.unsqueeze(1).expand(rows.shape), rtol=3e-3, atol=3e-3)


BAD = {
    "mesh signal of a ring": ("pld.tensor.allreduce(to, signal, mode='ring')", "signal"),
    "mode": ("pld.tensor.allreduce(to, signal, mode='tree')", "mode"),
    "core_num": ("pld.tensor.allreduce(to, signal, core_num=0)", "core_num"),
    "more cores than lanes": ("pld.tensor.allreduce(to, signal, core_num=2)", r"signal must be \[ranks, 2\]"),
    "one buffer twice": ("pld.tensor.all_to_all(to, to, signal)", "different"),
    "a root outside the domain": (
        "pld.tensor.broadcast(to, signal, root=7)",
        "peer 7 is outside the domain, whose ranks are 0..1",
    ),
    "negative root": ("pld.tensor.broadcast(to, signal, root=-1)", "root"),
    "reduce_scatter of Max": (
        "pld.tensor.reduce_scatter(to, signal, op=pld.ReduceOp.Max)",
        "op is Max; reduce_scatter sums",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_a_collective_refuses(name, tmp_path):
    """Each message names the place and what is legal."""
    import importlib.util

    call, text = BAD[name]
    source = f"""
import pypto.language as pl
import pypto.language.distributed as pld

@pl.inline
def collective(from_, to, signal, sent, received):
    to = {call}
"""
    (tmp_path / "bad.py").write_text(source)
    spec = importlib.util.spec_from_file_location("bad", tmp_path / "bad.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = torch.randn(2, 2, SIZE)
    with pytest.raises((CompileError, ValueError, RuntimeError), match=text) as caught:
        run(moving_program(2, 2, 2, module.collective), x, 2)
    assert "bad.py:7" in str(caught.value)
    if not isinstance(caught.value, RuntimeError):
        assert "host_collectives.py" not in str(caught.value)

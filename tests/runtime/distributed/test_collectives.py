"""Collectives in kernels and in HOST orchestrators against torch (spec distributed 2.13)."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld

from .programs import config, matrix_program, row_program

REDUCE = {
    pld.ReduceOp.Sum: lambda x: x.sum(0),
    pld.ReduceOp.Max: lambda x: x.amax(0),
    pld.ReduceOp.Min: lambda x: x.amin(0),
    pld.ReduceOp.Prod: lambda x: x.prod(0),
}


def run(program, x, out_shape, ranks, platform="a2a3sim"):
    x, y = x.share_memory_(), torch.zeros(out_shape, dtype=x.dtype).share_memory_()
    program.compile(x, y, config=config(ranks, platform))(x, y)
    return y


def allreduce(ranks, size, dtype, mode, op, times=1):
    """The collective ``times`` times on one signal: credits must be back at zero each time (A12)."""
    shape = [ranks, 1] if mode == "mesh" else [2 * (ranks - 1), ranks]

    @pl.inline
    def body(inp, out, data, signal):
        for step in pl.range(times):
            data = pl.store(pl.load(inp, [0, 0], [1, size]), [0, 0], data)
            data = pld.tensor.allreduce(data, signal, op=op, mode=mode)
            out = pl.store(pl.load(data, [0, 0], [1, size]), [0, 0], out)

    return row_program(ranks, size, dtype, shape, body)


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("mode", ["mesh", "ring"])
@pytest.mark.parametrize("op", REDUCE)
def test_allreduce_operators(ranks, mode, op):
    x = torch.randn(ranks, 1, 96)
    y = run(allreduce(ranks, 96, pl.FP32, mode, op, times=2), x, x.shape, ranks)
    torch.testing.assert_close(y, REDUCE[op](x).expand(ranks, 1, 96))


@pytest.mark.parametrize("mode", ["mesh", "ring"])
@pytest.mark.parametrize(("ranks", "size"), [(3, 104), (3, 8), (2, 5008), (4, 4104)])
def test_allreduce_sizes_that_no_chunk_divides(mode, ranks, size):
    x = torch.randn(ranks, 1, size)
    y = run(allreduce(ranks, size, pl.FP32, mode, pld.ReduceOp.Sum), x, x.shape, ranks)
    torch.testing.assert_close(y, x.sum(0).expand(ranks, 1, size), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["mesh", "ring"])
def test_allreduce_half_precision(mode):
    x = torch.randn(2, 1, 160).to(torch.float16)
    y = run(allreduce(2, 160, pl.FP16, mode, pld.ReduceOp.Sum), x, x.shape, 2)
    torch.testing.assert_close(y, x.sum(0).expand(2, 1, 160), rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("root", [0, 2])
def test_broadcast(root):
    @pl.inline
    def body(inp, out, data, signal):
        data = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], data)
        data = pld.tensor.broadcast(data, signal, root=root)
        out = pl.store(pl.load(data, [0, 0], [1, 64]), [0, 0], out)

    x = torch.randn(3, 1, 64)
    y = run(row_program(3, 64, pl.FP32, [3, 1], body), x, x.shape, 3)
    torch.testing.assert_close(y, x[root].expand(3, 1, 64))


@pytest.mark.parametrize("ranks", [2, 3])
def test_allgather(ranks):
    @pl.inline
    def body(inp, out, data, signal):
        data = pld.tensor.allgather(inp, data, signal)
        out = pl.store(pl.load(data, [0, 0], [ranks, 64]), [0, 0], out)

    x = torch.randn(ranks, 1, 64)
    program = matrix_program(ranks, 64, body, in_rows=1, data_rows=ranks, out_rows=ranks)
    y = run(program, x, (ranks, ranks, 64), ranks)
    torch.testing.assert_close(y, x[:, 0].expand(ranks, ranks, 64))


@pytest.mark.parametrize("ranks", [2, 3])
def test_reduce_scatter(ranks):
    @pl.inline
    def body(inp, out, data, signal):
        data = pl.store(pl.load(inp, [0, 0], [ranks, 64]), [0, 0], data)
        data = pld.tensor.reduce_scatter(data, signal)
        me = pld.rank(pld.get_comm_ctx(data))
        out = pl.store(pl.load(data, [me, 0], [1, 64]), [0, 0], out)

    x = torch.randn(ranks, ranks, 64)
    y = run(matrix_program(ranks, 64, body, in_rows=ranks, data_rows=ranks, out_rows=1), x, (ranks, 1, 64), ranks)
    torch.testing.assert_close(y[:, 0], x.sum(0))


@pytest.mark.parametrize("ranks", [2, 3])
def test_all_to_all(ranks):
    @pl.inline
    def body(inp, out, data, signal):
        data = pld.tensor.all_to_all(inp, data, signal)
        out = pl.store(pl.load(data, [0, 0], [ranks, 64]), [0, 0], out)

    x = torch.randn(ranks, ranks, 64)
    y = run(
        matrix_program(ranks, 64, body, in_rows=ranks, data_rows=ranks, out_rows=ranks), x, (ranks, ranks, 64), ranks
    )
    torch.testing.assert_close(y, x.transpose(0, 1))


def test_values_are_those_of_the_clocked_platform():
    x = torch.randn(3, 1, 200)
    program = allreduce(3, 200, pl.FP32, "mesh", pld.ReduceOp.Sum)
    assert torch.equal(run(program, x, x.shape, 3, "a2a3sim"), run(program, x, x.shape, 3, "a2a3"))


# --- HOST forms ---------------------------------------------------------------------------------------------------------


def host_program(ranks, size, collective, rows=1, signal_shape=None):
    """Fill a window on every rank, run ``collective(window, signal)``, read the windows back."""
    shape = [ranks, 1] if signal_shape is None else signal_shape

    @pl.jit.incore
    def store_kernel(
        inp: pl.Tensor[[rows, size], pl.FP32], data: pl.InOut[pld.DistributedTensor[[rows, size], pl.FP32]]
    ):
        data = pl.store(pl.load(inp, [0, 0], [rows, size]), [0, 0], data)
        return data

    @pl.jit
    def store(inp: pl.Tensor[[rows, size], pl.FP32], data: pl.InOut[pld.DistributedTensor[[rows, size], pl.FP32]]):
        return store_kernel(inp, data)

    @pl.jit.incore
    def load_kernel(data: pld.DistributedTensor[[rows, size], pl.FP32], out: pl.Out[pl.Tensor[[rows, size], pl.FP32]]):
        out = pl.store(pl.load(data, [0, 0], [rows, size]), [0, 0], out)
        return out

    @pl.jit
    def load(data: pld.DistributedTensor[[rows, size], pl.FP32], out: pl.Out[pl.Tensor[[rows, size], pl.FP32]]):
        return load_kernel(data, out)

    @pl.jit.host
    def host(x: pl.Tensor[[ranks, rows, size], pl.FP32], y: pl.Out[pl.Tensor[[ranks, rows, size], pl.FP32]]):
        data_buf = pld.alloc_window_buffer([rows, size], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer(shape, dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [rows, size], dtype=pl.FP32)
            store(x[r], data, device=r)
        window = pld.window(data_buf, [rows, size], dtype=pl.FP32)
        signal = pld.window(signal_buf, shape, dtype=pl.INT32)
        collective(window, signal)
        for r in pl.range(pld.world_size()):
            after = pld.window(data_buf, [rows, size], dtype=pl.FP32)
            load(after, y[r], device=r)

    return host


@pytest.mark.parametrize(
    ("mode", "core_num", "shape"),
    [
        ("mesh", 1, [2]),
        ("mesh", 1, [2, 1]),
        ("mesh", 2, [2, 2]),
        ("mesh", 4, [2, 6]),
        ("ring", 1, [3, 2]),
    ],
)
@pytest.mark.parametrize("size", [512, 1000])
def test_host_allreduce(mode, core_num, shape, size):
    @pl.inline
    def collective(window, signal):
        window = pld.tensor.allreduce(window, signal, mode=mode, core_num=core_num)

    x = torch.randn(2, 1, size)
    y = run(host_program(2, size, collective, signal_shape=shape), x, x.shape, 2)
    torch.testing.assert_close(y, x.sum(0).expand(2, 1, size))


def test_host_broadcast_and_barrier():
    @pl.inline
    def collective(window, signal):
        window = pld.tensor.broadcast(window, signal, root=1)

    x = torch.randn(3, 1, 304)
    y = run(host_program(3, 304, collective), x, x.shape, 3)
    torch.testing.assert_close(y, x[1].expand(3, 1, 304))


def test_host_reduce_scatter_leaves_the_other_rows():
    @pl.inline
    def collective(window, signal):
        window = pld.tensor.reduce_scatter(window, signal)

    x = torch.randn(2, 2, 304)
    y = run(host_program(2, 304, collective, rows=2), x, x.shape, 2)
    expected = x.clone()
    for r in range(2):
        expected[r, r] = x[:, r].sum(0)
    torch.testing.assert_close(y, expected)


def test_host_allreduce_makes_its_own_signal():

    size = 256
    ranks = 2

    @pl.jit.incore
    def store_kernel(inp: pl.Tensor[[1, size], pl.FP32], data: pl.InOut[pld.DistributedTensor[[1, size], pl.FP32]]):
        data = pl.store(pl.load(inp, [0, 0], [1, size]), [0, 0], data)
        return data

    @pl.jit
    def store(inp: pl.Tensor[[1, size], pl.FP32], data: pl.InOut[pld.DistributedTensor[[1, size], pl.FP32]]):
        return store_kernel(inp, data)

    @pl.jit.incore
    def load_kernel(data: pld.DistributedTensor[[1, size], pl.FP32], out: pl.Out[pl.Tensor[[1, size], pl.FP32]]):
        out = pl.store(pl.load(data, [0, 0], [1, size]), [0, 0], out)
        return out

    @pl.jit
    def load(data: pld.DistributedTensor[[1, size], pl.FP32], out: pl.Out[pl.Tensor[[1, size], pl.FP32]]):
        return load_kernel(data, out)

    @pl.jit.host
    def host(x: pl.Tensor[[ranks, 1, size], pl.FP32], y: pl.Out[pl.Tensor[[ranks, 1, size], pl.FP32]]):
        data_buf = pld.alloc_window_buffer([1, size], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, size], dtype=pl.FP32)
            store(x[r], data, device=r)
        window = pld.window(data_buf, [1, size], dtype=pl.FP32)
        window = pld.tensor.allreduce(window)
        for r in pl.range(pld.world_size()):
            after = pld.window(data_buf, [1, size], dtype=pl.FP32)
            load(after, y[r], device=r)

    x = torch.randn(ranks, 1, size)
    torch.testing.assert_close(run(host, x, x.shape, ranks), x.sum(0).expand(ranks, 1, size))

"""One-sided transfers against torch: put, get, remote loads and stores, atomic additions (spec distributed 2.6, 2.7)."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld

from .programs import config, matrix_program

RANKS = 2


def run(program, x, rows, platform="a2a3sim", ranks=RANKS):
    x, y = x.share_memory_(), torch.zeros(ranks, rows, x.shape[2], dtype=x.dtype).share_memory_()
    program.compile(x, y, config=config(ranks, platform))(x, y)
    return y


@pl.inline
def notify_left_wait_right(data, signal):
    """Tell the rank that reads our window, or that we wrote to; wait for our own."""
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for peer in pl.range(nranks):
        if peer != me:
            pld.system.notify(signal, peer=peer, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    for src in pl.range(nranks):
        if src != me:
            pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)


@pytest.mark.parametrize(
    ("rows", "cols", "options"),
    [
        (8, 64, {}),
        (8, 64, {"chunk_rows": 3, "chunk_cols": 24}),
        (40, 1000, {}),
        (8, 64, {"chunk_rows": 2, "chunk_cols": 32, "pipeline": True}),
    ],
)
def test_put_whole(rows, cols, options):
    chunk_rows, chunk_cols = options.get("chunk_rows", 0), options.get("chunk_cols", 0)
    pipeline = options.get("pipeline", False)

    @pl.inline
    def body(inp, out, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        pld.tensor.put(data, (me + 1) % RANKS, inp, chunk_rows=chunk_rows, chunk_cols=chunk_cols, pipeline=pipeline)
        notify_left_wait_right(data, signal)
        pld.tensor.get(out, me, data)

    x = torch.randn(RANKS, rows, cols)
    y = run(matrix_program(RANKS, cols, body, in_rows=rows, data_rows=rows, out_rows=rows), x, rows)
    torch.testing.assert_close(y, x.flip(0), rtol=0, atol=0)


def test_get_a_region():
    @pl.inline
    def body(inp, out, data, signal):
        data = pl.store(pl.load(inp, [0, 0], [8, 64]), [0, 0], data)
        notify_left_wait_right(data, signal)
        me = pld.rank(pld.get_comm_ctx(data))
        out = pl.store(pl.tile.full([8, 64], dtype=pl.FP32, value=0.0), [0, 0], out)
        pld.tensor.get(out, (me + 1) % RANKS, data, dst_offsets=[1, 8], src_offsets=[2, 16], shape=[3, 40])

    x = torch.randn(RANKS, 8, 64)
    y = run(matrix_program(RANKS, 64, body, in_rows=8, data_rows=8, out_rows=8), x, 8)
    expected = torch.zeros(RANKS, 8, 64)
    expected[:, 1:4, 8:48] = x.flip(0)[:, 2:5, 16:56]
    torch.testing.assert_close(y, expected, rtol=0, atol=0)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("dtype", [pl.FP32, pl.INT32, pl.FP16])
def test_atomic_additions_of_all_ranks(ranks, dtype):
    """Every rank adds to rank 0; the sum is the same every time because the ranks take turns."""

    @pl.inline
    def body(inp, out, data, signal):
        tile = pl.load(inp, [0, 0], [1, 64])
        pld.tile.remote_store(tile, data, peer=0, offsets=[0, 0], atomic=pld.AtomicType.Add)
        notify_left_wait_right(data, signal)
        out = pl.store(pld.tile.remote_load(data, peer=0, offsets=[0, 0], shape=[1, 64]), [0, 0], out)

    torch_dtype = {pl.FP32: torch.float32, pl.INT32: torch.int32, pl.FP16: torch.float16}[dtype]
    x = (torch.randn(ranks, 1, 64) * 8).to(torch_dtype)
    program = matrix_program(ranks, 64, body, in_rows=1, data_rows=1, out_rows=1, dtype=dtype)
    y = run(program, x, 1, ranks=ranks)
    torch.testing.assert_close(y[0, 0], x.sum(0, dtype=torch_dtype)[0], rtol=1e-3, atol=1e-2)
    assert torch.equal(y, run(program, x, 1, ranks=ranks))


def test_remote_store_of_a_tensor_and_a_partial_tile():
    @pl.inline
    def body(inp, out, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        other = (me + 1) % RANKS
        pld.tensor.remote_store(inp[0:2, 0:64], data, peer=other, offsets=[0, 0])
        tile = pl.load(inp, [2, 0], [2, 64], valid_shape=[1, 40])
        pld.remote_store(tile, data, peer=other, offsets=[2, 8])
        notify_left_wait_right(data, signal)
        out = pl.store(pl.load(data, [0, 0], [4, 64]), [0, 0], out)

    x = torch.randn(RANKS, 4, 64)
    y = run(matrix_program(RANKS, 64, body, in_rows=4, data_rows=4, out_rows=4), x, 4)
    expected = torch.zeros(RANKS, 4, 64)
    expected[:, 0:2] = x.flip(0)[:, 0:2]
    expected[:, 2, 8:48] = x.flip(0)[:, 2, 0:40]
    torch.testing.assert_close(y, expected, rtol=0, atol=0)


def test_a_window_is_an_ordinary_tensor_for_its_own_rank():
    @pl.inline
    def body(inp, out, data, signal):
        data[0:2, 0:32] = inp[0:2, 0:32]
        data[0:2, 32:64] = inp[2:4, 0:32]
        out[0:2, 0:64] = pl.add(data[0:2, 0:64], 1.0)

    x = torch.randn(RANKS, 4, 64)
    y = run(matrix_program(RANKS, 64, body, in_rows=4, data_rows=2, out_rows=2), x, 2)
    torch.testing.assert_close(y, torch.cat([x[:, 0:2, 0:32], x[:, 2:4, 0:32]], 2) + 1.0)


def test_credits_can_be_taken_back_by_a_self_notify():
    """After consuming K credits the cell is zero again, so the second round waits for new ones (A9)."""

    @pl.inline
    def body(inp, out, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        other = (me + 1) % RANKS
        for step in pl.range(3):
            tile = pl.add(pl.load(inp, [0, 0], [1, 64]), pl.cast(step, pl.FP32))
            pld.tile.remote_store(tile, data, peer=other, offsets=[0, 0])
            pld.system.notify(signal, peer=other, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(signal, offsets=[other, 0], expected=1, cmp=pld.WaitCmp.Ge)
            pld.system.notify(signal, peer=me, offsets=[other, 0], value=-1, op=pld.NotifyOp.AtomicAdd)
            out = pl.store(pl.load(data, [0, 0], [1, 64]), [step, 0], out)
            pld.system.notify(signal, peer=other, offsets=[me, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(signal, offsets=[other, 0], expected=1, cmp=pld.WaitCmp.Ge)
            pld.system.notify(signal, peer=me, offsets=[other, 0], value=-1, op=pld.NotifyOp.AtomicAdd)

    x = torch.randn(RANKS, 1, 64)
    y = run(matrix_program(RANKS, 64, body, in_rows=1, data_rows=1, out_rows=3), x, 3)
    for step in range(3):
        torch.testing.assert_close(y[:, step], x.flip(0)[:, 0] + step)


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize(
    ("rows", "cols", "band", "chunk"), [(8, 64, 8, 64), (7, 64, 2, 32), (5, 48, 2, 32), (1, 64, 1, 16)]
)
def test_transfers_with_two_staging_tiles(writes, rows, cols, band, chunk):
    """``pipeline=True``: one tile is filled while the other is sent; ragged pieces included."""

    @pl.inline
    def body(inp, out, data, signal):
        other = (pld.rank(pld.get_comm_ctx(data)) + 1) % RANKS
        if writes:
            pld.tensor.put(data, other, inp, chunk_rows=band, chunk_cols=chunk, pipeline=True)
            notify_left_wait_right(data, signal)
            pld.tensor.get(out, other, data)
        else:
            data[0:rows, 0:cols] = inp[0:rows, 0:cols]
            notify_left_wait_right(data, signal)
            pld.tensor.get(out, other, data, chunk_rows=band, chunk_cols=chunk, pipeline=True)

    x = torch.randn(RANKS, rows, cols)
    y = run(matrix_program(RANKS, cols, body, in_rows=rows, data_rows=rows, out_rows=rows), x, rows)
    torch.testing.assert_close(y, x if writes else x.flip(0), rtol=0, atol=0)

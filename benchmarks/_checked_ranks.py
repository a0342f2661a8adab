"""Programs over several ranks that are timed with and without checks, and the processor time of all their processes."""

from __future__ import annotations

import os
import time
from typing import Any

import torch

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
ROWS, INNER, COLS, CHUNK, SIZE = 64, 128, 128, 16, 1024


@pl.jit.incore
def reduce_row(
    src: pl.Tensor[[1, SIZE], pl.FP32],
    dst: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[6, 4], pl.INT32]],
):
    data = pl.store(pl.load(src, [0, 0], [1, SIZE]), [0, 0], data)
    data = pld.tensor.allreduce(data, signal, mode="ring")
    dst = pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], dst)
    return dst


@pl.jit
def reduce_on_chip(
    src: pl.Tensor[[1, SIZE], pl.FP32],
    dst: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[6, 4], pl.INT32]],
):
    return reduce_row(src, dst, data, signal)


@pl.jit.host
def ring_of_four(x: pl.Tensor[[4, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[4, 1, SIZE], pl.FP32]]):
    data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([6, 4], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [6, 4], dtype=pl.INT32)
        reduce_on_chip(x[r], y[r], data, signal, device=r)


@pl.jit.incore
def product(
    x: pl.Tensor[[ROWS, INNER], pl.FP16],
    w: pl.Tensor[[INNER, COLS], pl.FP16],
    part: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    first: pl.Scalar[pl.INDEX],
):
    part[first : first + CHUNK, :] = pl.matmul(x[first : first + CHUNK, :], w, out_dtype=pl.FP32)
    return part


@pl.jit.incore
def add_up(
    part: pl.Tensor[[ROWS, COLS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[CHUNK, COLS], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
    first: pl.Scalar[pl.INDEX],
):
    data = pl.store(pl.load(part, [first, 0], [CHUNK, COLS]), [0, 0], data)
    data = pld.tensor.allreduce(data, signal)
    y = pl.store(pl.load(data, [0, 0], [CHUNK, COLS]), [first, 0], y)
    return y


@pl.jit
def split_on_chip(
    x: pl.Tensor[[ROWS, INNER], pl.FP16],
    w: pl.Tensor[[INNER, COLS], pl.FP16],
    y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[CHUNK, COLS], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
):
    part = pl.create_tensor([ROWS, COLS], dtype=pl.FP32)
    for k in pl.range(ROWS // CHUNK):
        part = product(x, w, part, k * CHUNK)
        y = add_up(part, y, data, signal, k * CHUNK)
    return y


@pl.jit.host
def split_product(
    x: pl.Tensor[[2, ROWS, INNER], pl.FP16],
    w: pl.Tensor[[2, INNER, COLS], pl.FP16],
    y: pl.Out[pl.Tensor[[2, ROWS, COLS], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([CHUNK, COLS], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [CHUNK, COLS], dtype=pl.FP32)
        signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
        split_on_chip(x[r], w[r], y[r], data, signal, device=r)


TURNS, WIDE = 1000, 256


@pl.jit
def turns_on_chip(
    x: pl.Tensor[[1, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    data: pld.DistributedTensor[[1, 64], pl.FP32],
    signal: pld.DistributedTensor[[8, 1], pl.INT32],
    rank: pl.Scalar[pl.INT32],
):
    other = 1 - rank
    with pl.at(level=pl.Level.CORE_GROUP):
        for step in pl.range(TURNS):
            pld.tile.remote_store(pl.load(x, [0, 0], [1, 64]), data, peer=other, offsets=[0, 0])
            pld.system.notify(signal, peer=other, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(signal, offsets=[0, 0], expected=step + 1, cmp=pld.WaitCmp.Ge)
            y = pl.store(pl.load(data, [0, 0], [1, 64]), [0, 0], y)
            pld.system.notify(signal, peer=other, offsets=[1, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(signal, offsets=[1, 0], expected=step + 1, cmp=pld.WaitCmp.Ge)
    return y


@pl.jit.host
def turns_of_two(x: pl.Tensor[[2, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, 64], pl.FP32]]):
    data_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([8, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, 64], dtype=pl.FP32)
        signal = pld.window(signal_buf, [8, 1], dtype=pl.INT32)
        turns_on_chip(x[r], y[r], data, signal, r, device=r)


@pl.jit
def rows_on_chip(
    x: pl.Tensor[[WIDE, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[WIDE, 64], pl.FP32]],
    data: pld.DistributedTensor[[WIDE, 64], pl.FP32],
    signal: pld.DistributedTensor[[8, 1], pl.INT32],
    rank: pl.Scalar[pl.INT32],
):
    for i in pl.parallel(WIDE):
        with pl.at(level=pl.Level.CORE_GROUP):
            pld.tile.remote_store(pl.load(x, [i, 0], [1, 64]), data, peer=1 - rank, offsets=[i, 0])
            pld.system.notify(signal, peer=1 - rank, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.wait(signal, offsets=[0, 0], expected=WIDE, cmp=pld.WaitCmp.Ge)
        for i in pl.range(WIDE):
            y = pl.store(pl.load(data, [i, 0], [1, 64]), [i, 0], y)
    return y


@pl.jit.host
def rows_of_two(x: pl.Tensor[[2, WIDE, 64], pl.FP32], y: pl.Out[pl.Tensor[[2, WIDE, 64], pl.FP32]]):
    data_buf = pld.alloc_window_buffer([WIDE, 64], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([8, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [WIDE, 64], dtype=pl.FP32)
        signal = pld.window(signal_buf, [8, 1], dtype=pl.INT32)
        rows_on_chip(x[r], y[r], data, signal, r, device=r)


def programs() -> list[tuple[str, Any, int, list[torch.Tensor]]]:
    """(what it is, program, ranks, arguments)."""
    from benchmarks.ranks import copies

    found = [
        ("copy of a row", copies, 2, [torch.randn(2, 1, 64), torch.zeros(2, 1, 64)]),
        ("allreduce of 4 KB in a ring", ring_of_four, 4, [torch.randn(4, 1, SIZE), torch.zeros(4, 1, SIZE)]),
        (
            "product split over the ranks", split_product, 2,
            [torch.randn(2, ROWS, INNER).half(), torch.randn(2, INNER, COLS).half(), torch.zeros(2, ROWS, COLS)],
        ),
        (f"{TURNS} turns of two ranks", turns_of_two, 2, [torch.randn(2, 1, 64), torch.zeros(2, 1, 64)]),
        (
            f"{WIDE} tasks that tell the other rank", rows_of_two, 2,
            [torch.randn(2, WIDE, 64), torch.zeros(2, WIDE, 64)],
        ),
    ]  # fmt: skip
    return [
        (title, program, ranks, [tensor.share_memory_() for tensor in args]) for title, program, ranks, args in found
    ]


def processor_seconds() -> float:
    """Processor time of this process and of those it has started; wall time where the system does not tell."""
    try:
        return sum(_nanoseconds(pid) for pid in _tree(os.getpid())) / 1e9
    except OSError:
        return time.perf_counter()


def _tree(pid: int) -> list[int]:
    found = [pid]
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children") as children:
            for child in children.read().split():
                found += _tree(int(child))
    return found


def _nanoseconds(pid: int) -> int:
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat") as statistics:
            total += int(statistics.read().split()[0])
    with open(f"/proc/{pid}/stat") as status:  # of children that have ended, as of a compiler
        ended = sum(map(int, status.read().rpartition(")")[2].split()[13:15]))
    return total + ended * 1_000_000_000 // os.sysconf("SC_CLK_TCK")

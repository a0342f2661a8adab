"""Every collective inside a kernel, each against torch, and the ring against the mesh for a larger row."""

import torch
from rank_report import check_and_time, shared

import pypto.language as pl
import pypto.language.distributed as pld

RANKS, SIZE = 4, 256


def program(name, body, in_rows, data_rows, out_rows, size=SIZE, signal_shape=(RANKS, 1)):
    """A program that runs ``body(src, dst, data, signal)`` on every rank."""
    cells = list(signal_shape)

    @pl.jit.incore
    def kernel(
        src: pl.Tensor[[in_rows, size], pl.FP32],
        dst: pl.Out[pl.Tensor[[out_rows, size], pl.FP32]],
        data: pl.InOut[pld.DistributedTensor[[data_rows, size], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[cells, pl.INT32]],
    ):
        body(src, dst, data, signal)
        return dst

    @pl.jit
    def chip(
        src: pl.Tensor[[in_rows, size], pl.FP32],
        dst: pl.Out[pl.Tensor[[out_rows, size], pl.FP32]],
        data: pl.InOut[pld.DistributedTensor[[data_rows, size], pl.FP32]],
        signal: pl.InOut[pld.DistributedTensor[cells, pl.INT32]],
    ):
        return kernel(src, dst, data, signal)

    @pl.jit.host
    def host(x: pl.Tensor[[RANKS, in_rows, size], pl.FP32], y: pl.Out[pl.Tensor[[RANKS, out_rows, size], pl.FP32]]):
        data_buf = pld.alloc_window_buffer([data_rows, size], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer(cells, dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [data_rows, size], dtype=pl.FP32)
            signal = pld.window(signal_buf, cells, dtype=pl.INT32)
            chip(x[r], y[r], data, signal, device=r)

    host.__name__ = name
    return host


@pl.inline
def broadcast(src, dst, data, signal):
    data = pl.store(pl.load(src, [0, 0], [1, SIZE]), [0, 0], data)
    data = pld.tensor.broadcast(data, signal, root=2)
    dst = pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], dst)


@pl.inline
def allgather(src, dst, data, signal):
    data = pld.tensor.allgather(src, data, signal)
    dst = pl.store(pl.load(data, [0, 0], [RANKS, SIZE]), [0, 0], dst)


@pl.inline
def reduce_scatter(src, dst, data, signal):
    data = pl.store(pl.load(src, [0, 0], [RANKS, SIZE]), [0, 0], data)
    data = pld.tensor.reduce_scatter(data, signal)
    me = pld.rank(pld.get_comm_ctx(data))
    dst = pl.store(pl.load(data, [me, 0], [1, SIZE]), [0, 0], dst)


@pl.inline
def all_to_all(src, dst, data, signal):
    data = pld.tensor.all_to_all(src, data, signal)
    dst = pl.store(pl.load(data, [0, 0], [RANKS, SIZE]), [0, 0], dst)


def allreduce(size, mode):
    @pl.inline
    def body(src, dst, data, signal):
        data = pl.store(pl.load(src, [0, 0], [1, size]), [0, 0], data)
        data = pld.tensor.allreduce(data, signal, mode=mode)
        dst = pl.store(pl.load(data, [0, 0], [1, size]), [0, 0], dst)

    return body


def main() -> None:
    torch.manual_seed(0)
    row, matrix = torch.randn(RANKS, 1, SIZE), torch.randn(RANKS, RANKS, SIZE)
    cases = (
        (program("broadcast", broadcast, 1, 1, 1), row, row[2].expand(RANKS, 1, SIZE)),
        (program("allgather", allgather, 1, RANKS, RANKS), row, row[:, 0].expand(RANKS, RANKS, SIZE)),
        (program("reduce_scatter", reduce_scatter, RANKS, RANKS, 1), matrix, matrix.sum(0)[:, None]),
        (program("all_to_all", all_to_all, RANKS, RANKS, RANKS), matrix, matrix.transpose(0, 1)),
    )
    for host, x, expected in cases:
        check_and_time(host, [x.share_memory_(), shared(*expected.shape)], {1: expected}, RANKS)
    ring = (2 * (RANKS - 1), RANKS)
    for size in (SIZE, 16 * 1024):
        x = torch.randn(RANKS, 1, size)
        for mode, cells in (("mesh", (RANKS, 1)), ("ring", ring)):
            host = program(f"allreduce {mode} of {4 * size} bytes", allreduce(size, mode), 1, 1, 1, size, cells)
            args = [x.share_memory_(), shared(RANKS, 1, size)]
            check_and_time(host, args, {1: x.sum(0).expand(RANKS, 1, size)}, RANKS, tolerance=1e-4)


if __name__ == "__main__":
    main()

"""Bulk transfers: put a matrix into the next rank's window in chunks, then get a region of it back."""

import torch
from rank_report import check_and_time, shared

import pypto.language as pl
import pypto.language.distributed as pld

RANKS, ROWS, COLS = 2, 64, 1024
PART_ROWS, PART_COLS = 16, 256


@pl.jit.incore
def exchange_kernel(
    src: pl.Tensor[[ROWS, COLS], pl.FP32],
    part: pl.Out[pl.Tensor[[PART_ROWS, PART_COLS], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[ROWS, COLS], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[RANKS, 1], pl.INT32]],
):
    me = pld.rank(pld.get_comm_ctx(data))
    other = 1 - me
    pld.tensor.put(data, other, src, chunk_rows=8, chunk_cols=512, pipeline=True)
    pld.tensor.barrier(signal)
    pld.tensor.get(part, other, data, dst_offsets=[0, 0], src_offsets=[32, 512], shape=[PART_ROWS, PART_COLS])
    return part


@pl.jit
def exchange(
    src: pl.Tensor[[ROWS, COLS], pl.FP32],
    part: pl.Out[pl.Tensor[[PART_ROWS, PART_COLS], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[ROWS, COLS], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[RANKS, 1], pl.INT32]],
):
    return exchange_kernel(src, part, data, signal)


@pl.jit.host
def put_and_get(
    x: pl.Tensor[[RANKS, ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[RANKS, PART_ROWS, PART_COLS], pl.FP32]]
):
    data_buf = pld.alloc_window_buffer([ROWS, COLS], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [ROWS, COLS], dtype=pl.FP32)
        signal = pld.window(signal_buf, [RANKS, 1], dtype=pl.INT32)
        exchange(x[r], y[r], data, signal, device=r)


def main() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(RANKS, ROWS, COLS).share_memory_(), shared(RANKS, PART_ROWS, PART_COLS)
    # What a rank gets back from its peer is what it put there.
    check_and_time(put_and_get, [x, y], {1: x[:, 32:48, 512:768]}, RANKS)


if __name__ == "__main__":
    main()

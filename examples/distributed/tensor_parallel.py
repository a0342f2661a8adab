"""A feed-forward product split over the ranks: each multiplies its slice of the inner axis, then all add up.

The rows are cut into chunks: while one chunk is reduced, the product of the next is already under way, because the two
kernels of a chunk depend on each other only.
"""

import torch
from rank_report import check_and_time, shared

import pypto.language as pl
import pypto.language.distributed as pld

RANKS, ROWS, INNER, COLS, CHUNK = 2, 128, 256, 128, 32
CHUNKS = ROWS // CHUNK


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
def reduce(
    part: pl.Tensor[[ROWS, COLS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[CHUNK, COLS], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[RANKS, 1], pl.INT32]],
    first: pl.Scalar[pl.INDEX],
):
    data = pl.store(pl.load(part, [first, 0], [CHUNK, COLS]), [0, 0], data)
    data = pld.tensor.allreduce(data, signal)
    y = pl.store(pl.load(data, [0, 0], [CHUNK, COLS]), [first, 0], y)
    return y


@pl.jit
def feed_forward(
    x: pl.Tensor[[ROWS, INNER], pl.FP16],
    w: pl.Tensor[[INNER, COLS], pl.FP16],
    y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[CHUNK, COLS], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[RANKS, 1], pl.INT32]],
):
    part = pl.create_tensor([ROWS, COLS], dtype=pl.FP32)
    for k in pl.range(CHUNKS):
        part = product(x, w, part, k * CHUNK)
        y = reduce(part, y, data, signal, k * CHUNK)
    return y


@pl.jit.host
def tensor_parallel(
    x: pl.Tensor[[RANKS, ROWS, INNER], pl.FP16],
    w: pl.Tensor[[RANKS, INNER, COLS], pl.FP16],
    y: pl.Out[pl.Tensor[[RANKS, ROWS, COLS], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([CHUNK, COLS], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [CHUNK, COLS], dtype=pl.FP32)
        signal = pld.window(signal_buf, [RANKS, 1], dtype=pl.INT32)
        feed_forward(x[r], w[r], y[r], data, signal, device=r)


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(RANKS, ROWS, INNER).half().share_memory_()
    w = torch.randn(RANKS, INNER, COLS).half().share_memory_()
    y = shared(RANKS, ROWS, COLS)
    whole = (x.float() @ w.float()).sum(0)
    check_and_time(tensor_parallel, [x, w, y], {2: whole.expand(RANKS, ROWS, COLS)}, RANKS, tolerance=1e-2)


if __name__ == "__main__":
    main()

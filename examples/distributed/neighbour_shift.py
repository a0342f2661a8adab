"""Windows and signals: each rank stores its row in a window, tells its right neighbour, and reads its left one."""

import torch
from rank_report import check_and_time, shared

import pypto.language as pl
import pypto.language.distributed as pld

RANKS, WIDTH = 4, 512


@pl.jit.incore
def shift_kernel(
    src: pl.Tensor[[1, WIDTH], pl.FP32],
    dst: pl.Out[pl.Tensor[[1, WIDTH], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, WIDTH], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[RANKS, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    right = (me + 1) % nranks
    left = (me - 1 + nranks) % nranks
    data = pl.store(pl.load(src, [0, 0], [1, WIDTH]), [0, 0], data)
    pld.system.notify(signal, peer=right, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
    pld.system.wait(signal, offsets=[left, 0], expected=1, cmp=pld.WaitCmp.Ge)
    dst = pl.store(pld.tile.remote_load(data, peer=left, offsets=[0, 0], shape=[1, WIDTH]), [0, 0], dst)
    return dst


@pl.jit
def shift(
    src: pl.Tensor[[1, WIDTH], pl.FP32],
    dst: pl.Out[pl.Tensor[[1, WIDTH], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, WIDTH], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[RANKS, 1], pl.INT32]],
):
    return shift_kernel(src, dst, data, signal)


@pl.jit.host
def neighbour_shift(x: pl.Tensor[[RANKS, 1, WIDTH], pl.FP32], y: pl.Out[pl.Tensor[[RANKS, 1, WIDTH], pl.FP32]]):
    data_buf = pld.alloc_window_buffer([1, WIDTH], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, WIDTH], dtype=pl.FP32)
        signal = pld.window(signal_buf, [RANKS, 1], dtype=pl.INT32)
        shift(x[r], y[r], data, signal, device=r)


def main() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(RANKS, 1, WIDTH).share_memory_(), shared(RANKS, 1, WIDTH)
    check_and_time(neighbour_shift, [x, y], {1: x.roll(1, 0)}, RANKS)


if __name__ == "__main__":
    main()

"""Expert parallelism: tokens go to the rank of their expert, are transformed there, and come back.

Every rank holds one expert and ``TOKENS`` rows; row i of a rank belongs to expert ``route[rank, i]``. A token is stored
into slot (source rank, row) of its expert's window, so that the way back needs no bookkeeping; slots that no token
takes stay zero. Arrivals are counted with atomic additions.
"""

import torch
from rank_report import check_and_time, shared

import pypto.language as pl
import pypto.language.distributed as pld

RANKS, TOKENS, WIDTH = 4, 8, 128
SLOTS = RANKS * TOKENS


@pl.jit.incore
def dispatch(
    x: pl.Tensor[[TOKENS, WIDTH], pl.FP32],
    route: pl.Tensor[[1, TOKENS], pl.INT32],
    inbox: pl.InOut[pld.DistributedTensor[[SLOTS, WIDTH], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[RANKS, 1], pl.INT32]],
):
    me = pld.rank(pld.get_comm_ctx(inbox))
    for i in pl.range(TOKENS):
        expert = pl.read(route, [0, i])
        row = pl.load(x, [i, 0], [1, WIDTH])
        pld.tile.remote_store(row, inbox, peer=expert, offsets=[me * TOKENS + i, 0])
    pld.tensor.barrier(signal)
    return inbox


@pl.jit.incore
def expert_and_combine(
    scale: pl.Tensor[[1, WIDTH], pl.FP32],
    route: pl.Tensor[[1, TOKENS], pl.INT32],
    y: pl.Out[pl.Tensor[[TOKENS, WIDTH], pl.FP32]],
    inbox: pl.InOut[pld.DistributedTensor[[SLOTS, WIDTH], pl.FP32]],
    outbox: pl.InOut[pld.DistributedTensor[[SLOTS, WIDTH], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[RANKS, 1], pl.INT32]],
):
    me = pld.rank(pld.get_comm_ctx(outbox))
    tokens = pl.load(inbox, [0, 0], [SLOTS, WIDTH])
    outbox = pl.store(pl.col_expand_mul(tokens, pl.load(scale, [0, 0], [1, WIDTH])), [0, 0], outbox)
    pld.tensor.barrier(signal)
    for i in pl.range(TOKENS):
        expert = pl.read(route, [0, i])
        row = pld.tile.remote_load(outbox, peer=expert, offsets=[me * TOKENS + i, 0], shape=[1, WIDTH])
        y = pl.store(row, [i, 0], y)
    return y


@pl.jit
def layer(
    x: pl.Tensor[[TOKENS, WIDTH], pl.FP32],
    route: pl.Tensor[[1, TOKENS], pl.INT32],
    scale: pl.Tensor[[1, WIDTH], pl.FP32],
    y: pl.Out[pl.Tensor[[TOKENS, WIDTH], pl.FP32]],
    inbox: pl.InOut[pld.DistributedTensor[[SLOTS, WIDTH], pl.FP32]],
    outbox: pl.InOut[pld.DistributedTensor[[SLOTS, WIDTH], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[RANKS, 1], pl.INT32]],
):
    inbox = dispatch(x, route, inbox, signal)
    return expert_and_combine(scale, route, y, inbox, outbox, signal)


@pl.jit.host
def expert_parallel(
    x: pl.Tensor[[RANKS, TOKENS, WIDTH], pl.FP32],
    route: pl.Tensor[[RANKS, 1, TOKENS], pl.INT32],
    scale: pl.Tensor[[RANKS, 1, WIDTH], pl.FP32],
    y: pl.Out[pl.Tensor[[RANKS, TOKENS, WIDTH], pl.FP32]],
):
    in_buf = pld.alloc_window_buffer([SLOTS, WIDTH], dtype=pl.FP32)
    out_buf = pld.alloc_window_buffer([SLOTS, WIDTH], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        inbox = pld.window(in_buf, [SLOTS, WIDTH], dtype=pl.FP32)
        outbox = pld.window(out_buf, [SLOTS, WIDTH], dtype=pl.FP32)
        signal = pld.window(signal_buf, [RANKS, 1], dtype=pl.INT32)
        layer(x[r], route[r], scale[r], y[r], inbox, outbox, signal, device=r)


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(RANKS, TOKENS, WIDTH).share_memory_()
    route = torch.randint(0, RANKS, (RANKS, 1, TOKENS), dtype=torch.int32).share_memory_()
    scale = torch.randn(RANKS, 1, WIDTH).share_memory_()
    y = shared(RANKS, TOKENS, WIDTH)
    expected = x * scale[:, 0][route[:, 0].long()]
    check_and_time(expert_parallel, [x, route, scale, y], {3: expected}, RANKS)


if __name__ == "__main__":
    main()

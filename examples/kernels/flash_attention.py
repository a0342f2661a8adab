"""Attention with online softmax: keys and values stream through, no score matrix is ever stored."""

import math

import torch
from show import check_and_time

import pypto.language as pl

Q, S, D, BLOCK = 64, 512, 64, 128
SCALE = 1.0 / math.sqrt(D)


@pl.jit
def flash_attention(
    q: pl.Tensor[[Q, D], pl.FP16],
    k: pl.Tensor[[S, D], pl.FP16],
    v: pl.Tensor[[S, D], pl.FP16],
    o: pl.Out[pl.Tensor[[Q, D], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="attention"):
        top = pl.full([Q, 1], dtype=pl.FP32, value=-30000.0)
        total = pl.full([Q, 1], dtype=pl.FP32, value=0.0)
        acc = pl.full([Q, D], dtype=pl.FP32, value=0.0)
        for s in pl.range(0, S, BLOCK):
            score = pl.mul(pl.matmul(q, k[s : s + BLOCK, :], out_dtype=pl.FP32, b_trans=True), SCALE)
            higher = pl.maximum(top, pl.row_max(score))
            p = pl.exp(pl.row_expand_sub(score, higher))
            shrink = pl.exp(pl.sub(top, higher))
            total = pl.add(pl.mul(total, shrink), pl.row_sum(p))
            part = pl.matmul(pl.cast(p, pl.FP16, mode="rint"), v[s : s + BLOCK, :], out_dtype=pl.FP32)
            acc = pl.add(pl.row_expand_mul(acc, shrink), part)
            top = higher
        o[:] = pl.row_expand_div(acc, total)
    return o


if __name__ == "__main__":
    torch.manual_seed(0)
    q, k, v = (torch.randn(n, D).half() for n in (Q, S, S))
    expected = torch.softmax(q.float() @ k.float().T * SCALE, -1) @ v.float()
    check_and_time(flash_attention, [q, k, v, torch.zeros(Q, D)], {3: expected}, 2e-3, 2e-3)

"""Paged attention for decoding: keys and values live in pages that a block table names; lengths differ per request."""

import math

import torch
from show import check_and_time

import pypto.language as pl

BATCH, HEADS, D, PAGE, PAGES, MAX_PAGES = 4, 16, 64, 32, 24, 5
SCALE = 1.0 / math.sqrt(D)


@pl.jit
def paged_attention(
    q: pl.Tensor[[BATCH * HEADS, D], pl.BF16],
    k_pages: pl.Tensor[[PAGES * PAGE, D], pl.BF16],
    v_pages: pl.Tensor[[PAGES * PAGE, D], pl.BF16],
    table: pl.Tensor[[BATCH, MAX_PAGES], pl.INT32],
    lengths: pl.Tensor[[1, BATCH], pl.INT32],
    o: pl.Out[pl.Tensor[[BATCH * HEADS, D], pl.FP32]],
):
    for b in pl.spmd(BATCH, name_hint="request"):
        heads = q[b * HEADS : b * HEADS + HEADS, :]
        top = pl.full([HEADS, 1], dtype=pl.FP32, value=-30000.0)
        total = pl.full([HEADS, 1], dtype=pl.FP32, value=0.0)
        acc = pl.full([HEADS, D], dtype=pl.FP32, value=0.0)
        length = pl.cast(pl.read(lengths, [0, b]), pl.INDEX)
        for page in pl.range((length + PAGE - 1) // PAGE):
            at = pl.cast(pl.read(table, [b, page]), pl.INDEX) * PAGE
            keys = k_pages[at : at + PAGE, :]
            score = pl.mul(pl.matmul(heads, keys, out_dtype=pl.FP32, b_trans=True), SCALE)
            seen = pl.min(length - page * PAGE, PAGE)
            score = pl.fillpad(pl.set_validshape(score, HEADS, seen), pad_value=pl.PadValue.min)
            higher = pl.maximum(top, pl.row_max(score))
            p = pl.exp(pl.row_expand_sub(score, higher))
            shrink = pl.exp(pl.sub(top, higher))
            total = pl.add(pl.mul(total, shrink), pl.row_sum(p))
            part = pl.matmul(pl.cast(p, pl.BF16, mode="rint"), v_pages[at : at + PAGE, :], out_dtype=pl.FP32)
            acc = pl.add(pl.row_expand_mul(acc, shrink), part)
            top = higher
        o[b * HEADS : b * HEADS + HEADS, :] = pl.row_expand_div(acc, total)
    return o


def reference(q, k_pages, v_pages, table, lengths):
    """Gather each request's pages, then plain attention."""
    rows = []
    for b in range(BATCH):
        n = int(lengths[0, b])
        at = torch.cat([torch.arange(PAGE) + int(p) * PAGE for p in table[b]])[:n]
        k, v = k_pages[at].float(), v_pages[at].float()
        rows.append(torch.softmax(q[b * HEADS : (b + 1) * HEADS].float() @ k.T * SCALE, -1) @ v)
    return torch.cat(rows)


if __name__ == "__main__":
    torch.manual_seed(0)
    q = torch.randn(BATCH * HEADS, D).bfloat16()
    k, v = (torch.randn(PAGES * PAGE, D).bfloat16() for _ in range(2))
    table = torch.randperm(PAGES)[: BATCH * MAX_PAGES].reshape(BATCH, MAX_PAGES).int()
    lengths = torch.tensor([[17, 64, 100, 160]], dtype=torch.int32)
    args = [q, k, v, table, lengths, torch.zeros(BATCH * HEADS, D)]
    check_and_time(paged_attention, args, {5: reference(*args[:5])}, 2e-2, 2e-2)

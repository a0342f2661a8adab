"""Mixture-of-experts gating: softmax over the experts, the two best of each token, their weights made to sum to 1."""

import torch
from show import check_and_time

import pypto.language as pl

TOKENS, EXPERTS = 64, 32


@pl.jit
def gate(
    logits: pl.Tensor[[TOKENS, EXPERTS], pl.FP32],
    experts: pl.Out[pl.Tensor[[TOKENS, 2], pl.INT32]],
    weights: pl.Out[pl.Tensor[[TOKENS, 2], pl.FP32]],
):
    for r in pl.parallel(0, TOKENS, 32):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate"):
            x = logits[r : r + 32, :]
            e = pl.exp(pl.row_expand_sub(x, pl.row_max(x)))
            p = pl.row_expand_div(e, pl.row_sum(e))
            best = pl.row_max(p)
            first = pl.row_argmax(p)
            # take the winner out of the race: entries equal to the maximum become -1
            rest = pl.sub(p, pl.mul(pl.cmp(p, pl.row_expand(p, best), cmp_type=5), 2.0))
            runner_up = pl.row_max(rest)
            second = pl.row_argmax(rest)
            norm = pl.recip(pl.add(best, runner_up))
            experts[r : r + 32, 0:1] = first
            experts[r : r + 32, 1:2] = second
            weights[r : r + 32, 0:1] = pl.mul(best, norm)
            weights[r : r + 32, 1:2] = pl.mul(runner_up, norm)
    return experts, weights


if __name__ == "__main__":
    torch.manual_seed(0)
    logits = torch.randn(TOKENS, EXPERTS)
    top = torch.softmax(logits, -1).topk(2)
    args = [logits, torch.zeros(TOKENS, 2, dtype=torch.int32), torch.zeros(TOKENS, 2)]
    expected = {1: top.indices.int(), 2: top.values / top.values.sum(-1, keepdim=True)}
    check_and_time(gate, args, expected, 1e-5, 1e-6)

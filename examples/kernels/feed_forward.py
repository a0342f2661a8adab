"""A gated feed-forward block: two projections and SiLU gate in one kernel per block of rows, then the way down."""

import torch
from show import check_and_time

import pypto.language as pl

TOKENS, HIDDEN, INNER, BLOCK = 64, 256, 512, 128


@pl.jit
def feed_forward(
    x: pl.Tensor[[TOKENS, HIDDEN], pl.BF16],
    w_gate: pl.Tensor[[HIDDEN, INNER], pl.BF16],
    w_up: pl.Tensor[[HIDDEN, INNER], pl.BF16],
    w_down: pl.Tensor[[INNER, HIDDEN], pl.BF16],
    y: pl.Out[pl.Tensor[[TOKENS, HIDDEN], pl.FP32]],
):
    inner = pl.create_tensor([TOKENS, INNER], dtype=pl.BF16)
    for c in pl.parallel(0, INNER, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate_and_up"):
            gate = pl.matmul(x, w_gate[:, c : c + BLOCK], out_dtype=pl.FP32)
            up = pl.matmul(x, w_up[:, c : c + BLOCK], out_dtype=pl.FP32)
            silu = pl.div(gate, pl.add(pl.exp(pl.neg(gate)), 1.0))
            inner[:, c : c + BLOCK] = pl.cast(pl.mul(silu, up), pl.BF16, mode="rint")
    for c in pl.parallel(0, HIDDEN, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="down"):
            y[:, c : c + BLOCK] = pl.matmul(inner, w_down[:, c : c + BLOCK], out_dtype=pl.FP32)
    return y


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(TOKENS, HIDDEN).bfloat16()
    gate, up = ((torch.randn(HIDDEN, INNER) / 16).bfloat16() for _ in range(2))
    down = (torch.randn(INNER, HIDDEN) / 16).bfloat16()
    f = x.float()
    inner = (torch.nn.functional.silu(f @ gate.float()) * (f @ up.float())).bfloat16()
    expected = inner.float() @ down.float()
    check_and_time(feed_forward, [x, gate, up, down, torch.zeros(TOKENS, HIDDEN)], {4: expected}, 2e-2, 2e-2)

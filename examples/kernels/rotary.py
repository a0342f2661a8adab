"""Rotary position embedding: the halves of every head are rotated by position-dependent angles."""

import torch
from show import check_and_time

import pypto.language as pl

TOKENS, HEADS, D = 64, 8, 128
HALF = D // 2


@pl.jit
def rotary(
    x: pl.Tensor[[TOKENS, HEADS * D], pl.FP32],
    cos: pl.Tensor[[TOKENS, HALF], pl.FP32],
    sin: pl.Tensor[[TOKENS, HALF], pl.FP32],
    y: pl.Out[pl.Tensor[[TOKENS, HEADS * D], pl.FP32]],
):
    for h in pl.parallel(HEADS):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="rotate"):
            first = x[:, h * D : h * D + HALF]
            second = x[:, h * D + HALF : h * D + D]
            y[:, h * D : h * D + HALF] = pl.sub(pl.mul(first, cos), pl.mul(second, sin))
            y[:, h * D + HALF : h * D + D] = pl.add(pl.mul(second, cos), pl.mul(first, sin))
    return y


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(TOKENS, HEADS * D)
    angle = torch.arange(TOKENS)[:, None] * 10000 ** (-torch.arange(HALF) / HALF)
    cos, sin = angle.cos(), angle.sin()
    a, b = x.view(TOKENS, HEADS, 2, HALF).unbind(2)
    c, s = cos[:, None], sin[:, None]
    expected = torch.stack([a * c - b * s, b * c + a * s], 2).view(TOKENS, HEADS * D)
    check_and_time(rotary, [x, cos, sin, torch.zeros_like(x)], {3: expected}, 1e-5, 1e-5)

"""Layer norm and RMS norm over rows, in FP32, with BF16 input and output."""

import torch
from show import check_and_time

import pypto.language as pl

ROWS, COLS, BLOCK, EPS = 256, 512, 16, 1e-6


@pl.jit
def norms(
    x: pl.Tensor[[ROWS, COLS], pl.BF16],
    weight: pl.Tensor[[1, COLS], pl.FP32],
    bias: pl.Tensor[[1, COLS], pl.FP32],
    layer: pl.Out[pl.Tensor[[ROWS, COLS], pl.BF16]],
    rms: pl.Out[pl.Tensor[[ROWS, COLS], pl.BF16]],
):
    for r in pl.parallel(0, ROWS, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="norm"):
            t = pl.cast(x[r : r + BLOCK, :], pl.FP32)
            mean = pl.mul(pl.row_sum(t), 1.0 / COLS)
            centred = pl.row_expand_sub(t, mean)
            variance = pl.mul(pl.row_sum(pl.mul(centred, centred)), 1.0 / COLS)
            unit = pl.row_expand_mul(centred, pl.rsqrt(pl.add(variance, EPS)))
            scaled = pl.col_expand_add(pl.col_expand_mul(unit, weight), bias)
            layer[r : r + BLOCK, :] = pl.cast(scaled, pl.BF16, mode="rint")
            square = pl.mul(pl.row_sum(pl.mul(t, t)), 1.0 / COLS)
            root = pl.row_expand_mul(t, pl.rsqrt(pl.add(square, EPS)))
            rms[r : r + BLOCK, :] = pl.cast(pl.col_expand_mul(root, weight), pl.BF16, mode="rint")
    return layer, rms


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(ROWS, COLS).bfloat16()
    w, b = torch.randn(1, COLS), torch.randn(1, COLS)
    f = x.float()
    layer = torch.nn.functional.layer_norm(f, (COLS,), w[0], b[0], EPS).bfloat16()
    rms = (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + EPS) * w).bfloat16()
    args = [x, w, b, torch.zeros_like(x), torch.zeros_like(x)]
    check_and_time(norms, args, {3: layer, 4: rms}, 1e-2, 1e-2)

"""Element-wise code and activations: SiLU and GELU over a tall tensor, one task per block of rows."""

import torch
from show import check_and_time

import pypto.language as pl

ROWS, COLS, BLOCK = 512, 256, 64


@pl.jit
def silu_and_gelu(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    silu: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    gelu: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    for r in pl.parallel(0, ROWS, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="activate"):
            t = x[r : r + BLOCK, :]
            silu[r : r + BLOCK, :] = pl.div(t, pl.add(pl.exp(pl.neg(t)), 1.0))
            # the sigmoid form of GELU: x * sigmoid(1.702 x)
            gate = pl.recip(pl.add(pl.exp(pl.mul(t, -1.702)), 1.0))
            gelu[r : r + BLOCK, :] = pl.mul(t, gate)
    return silu, gelu


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(ROWS, COLS)
    args = [x, torch.zeros(ROWS, COLS), torch.zeros(ROWS, COLS)]
    expected = {1: torch.nn.functional.silu(x), 2: x * torch.sigmoid(1.702 * x)}
    check_and_time(silu_and_gelu, args, expected, 1e-5, 1e-5)

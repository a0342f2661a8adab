"""A fused linear layer: the product on the cube, bias and ReLU on the vector cores, one kernel."""

import torch
from show import check_and_time

import pypto.language as pl

M, K, N, BLOCK = 256, 256, 128, 64


@pl.jit
def linear_relu(
    x: pl.Tensor[[M, K], pl.FP16],
    w: pl.Tensor[[K, N], pl.FP16],
    bias: pl.Tensor[[1, N], pl.FP32],
    y: pl.Out[pl.Tensor[[M, N], pl.FP32]],
):
    for r in pl.parallel(0, M, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="linear"):
            h = pl.matmul(x[r : r + BLOCK, :], w, out_dtype=pl.FP32)
            y[r : r + BLOCK, :] = pl.maximum(pl.col_expand_add(h, bias), 0.0)
    return y


if __name__ == "__main__":
    torch.manual_seed(0)
    x, w, bias = torch.randn(M, K).half(), torch.randn(K, N).half(), torch.randn(1, N)
    expected = torch.relu(x.float() @ w.float() + bias)
    check_and_time(linear_relu, [x, w, bias, torch.zeros(M, N)], {3: expected}, 1e-3, 1e-2)

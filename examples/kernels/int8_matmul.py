"""INT8 quantised matrix multiplication: INT32 on the cube, scales per row and per column on the vector cores."""

import torch
from show import check_and_time

import pypto.language as pl

M, K, N = 128, 256, 128


@pl.jit
def int8_matmul(
    a: pl.Tensor[[M, K], pl.INT8],
    b: pl.Tensor[[K, N], pl.INT8],
    row_scale: pl.Tensor[[M, 1], pl.FP32],
    col_scale: pl.Tensor[[1, N], pl.FP32],
    y: pl.Out[pl.Tensor[[M, N], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="quantised"):
        whole = pl.cast(pl.matmul(a, b, out_dtype=pl.INT32), pl.FP32)
        y[:] = pl.col_expand_mul(pl.row_expand_mul(whole, row_scale), col_scale)
    return y


if __name__ == "__main__":
    g = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-128, 128, s, generator=g, dtype=torch.int8) for s in ((M, K), (K, N)))
    rows, cols = torch.rand(M, 1, generator=g) / 100, torch.rand(1, N, generator=g) / 100
    expected = (a.int() @ b.int()).float() * rows * cols
    check_and_time(int8_matmul, [a, b, rows, cols, torch.zeros(M, N)], {4: expected}, 1e-6, 1e-6)

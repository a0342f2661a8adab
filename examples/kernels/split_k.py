"""Split-K matrix multiplication: every task multiplies a slice of K and adds its part atomically."""

import torch
from show import check_and_time

import pypto.language as pl

M, K, N, SLICE = 64, 2048, 64, 256


@pl.jit.incore
def clear(c: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    c = pl.store(pl.tile.full([M, N], dtype=pl.FP32, value=0.0), [0, 0], c)
    return c


@pl.jit
def split_k(
    a: pl.Tensor[[M, K], pl.BF16],
    b: pl.Tensor[[K, N], pl.BF16],
    c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
):
    c = clear(c)
    for k in pl.range(0, K, SLICE):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="slice_of_k"):
            part = pl.matmul(a[:, k : k + SLICE], b[k : k + SLICE, :], out_dtype=pl.FP32)
            c = pl.assemble(c, part, [0, 0], atomic=pl.AtomicType.Add)
    return c


if __name__ == "__main__":
    torch.manual_seed(0)
    a, b = torch.randn(M, K).bfloat16(), torch.randn(K, N).bfloat16()
    check_and_time(split_k, [a, b, torch.zeros(M, N)], {2: a.float() @ b.float()}, 1e-4, 1e-2)

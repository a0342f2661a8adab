"""A mixed kernel written by hand: the cube multiplies, both vector cores of the cluster take half of the rows each."""

import torch
from show import check_and_time

import pypto.language as pl

M, K, N = 64, 128, 64


@pl.jit
def product_and_softmax(
    a: pl.Tensor[[M, K], pl.FP16],
    b: pl.Tensor[[K, N], pl.FP16],
    y: pl.Out[pl.Tensor[[M, N], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="mixed"):
        score = pl.matmul(a, b, out_dtype=pl.FP32)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            mine = pl.aiv_shard(score)
            e = pl.exp(pl.row_expand_sub(mine, pl.row_max(mine)))
            y[lane * (M // 2) : lane * (M // 2) + M // 2, :] = pl.row_expand_div(e, pl.row_sum(e))
    return y


if __name__ == "__main__":
    torch.manual_seed(0)
    a, b = torch.randn(M, K).half() / 4, torch.randn(K, N).half() / 4
    expected = torch.softmax(a.float() @ b.float(), -1)
    check_and_time(product_and_softmax, [a, b, torch.zeros(M, N)], {2: expected}, 1e-3, 1e-4)

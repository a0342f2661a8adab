"""Row softmax, pipelined inside each task so that loads run beside the arithmetic."""

import torch
from show import check_and_time

import pypto.language as pl

ROWS, COLS = 1024, 256


@pl.jit
def softmax(x: pl.Tensor[[ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]):
    for block in pl.parallel(0, ROWS, 128):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows"):
            for r in pl.pipeline(0, 128, 32, stage=2):
                t = x[block + r : block + r + 32, :]
                e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
                y[block + r : block + r + 32, :] = pl.row_expand_div(e, pl.row_sum(e))
    return y


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(ROWS, COLS) * 3
    check_and_time(softmax, [x, torch.zeros(ROWS, COLS)], {1: torch.softmax(x, -1)}, 1e-5, 1e-6)

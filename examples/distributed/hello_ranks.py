"""Every rank scales its own row. The number of ranks is known at run time only: one source serves any of them."""

import torch
from rank_report import check_and_time, shared

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
ROWS, COLS = 32, 96


@pl.jit.incore
def scale_rows(src: pl.Tensor[[ROWS, COLS], pl.FP32], dst: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]):
    dst = pl.store(pl.mul(pl.load(src, [0, 0], [ROWS, COLS]), 2.0), [0, 0], dst)
    return dst


@pl.jit
def scale(src: pl.Tensor[[ROWS, COLS], pl.FP32], dst: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]):
    return scale_rows(src, dst)


@pl.jit.host
def hello(x: pl.Tensor[[NR, ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[NR, ROWS, COLS], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        scale(x[r], y[r], device=r)


def main() -> None:
    torch.manual_seed(0)
    for count in (1, 2, 4):
        x, y = torch.randn(count, ROWS, COLS).share_memory_(), shared(count, ROWS, COLS)
        check_and_time(hello, [x, y], {1: 2 * x}, count)


if __name__ == "__main__":
    main()

"""Compile from the signature alone: shapes from annotations, a dynamic extent, a scalar given at the call."""

import torch

import pypto.language as pl
from pypto.runtime import ChipWorker, RunConfig, configure_log

CONFIG = RunConfig(platform="a2a3")
COLS, STEP = 64, 16
M = pl.dynamic("M")


@pl.jit
def scale_rows(
    x: pl.Tensor[[M, COLS], pl.FP32],
    y: pl.Out[pl.Tensor[[M, COLS], pl.FP32]],
    times: pl.Scalar[pl.INT32],
):
    rows = pl.tensor.dim(x, 0)
    for r in pl.range(0, rows, STEP):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [STEP, COLS])
            f = pl.cast(times, target_type=pl.FP32)
            pl.store(pl.mul(t, f), [r, 0], y)
    return y


def main() -> None:
    configure_log("error")  # no markers of the launches below
    torch.manual_seed(0)
    any_times = scale_rows.compile(times=pl.RUNTIME, config=CONFIG)
    assert scale_rows.compile(times=pl.RUNTIME, config=CONFIG) is any_times, "compiled once"
    with ChipWorker(config=CONFIG) as worker:
        handle = worker.register(any_times)
        for rows, times in ((16, 3), (160, -2), (1024, 7)):
            x, y = torch.randn(rows, COLS), torch.zeros(rows, COLS)
            handle(x, y, times)
            torch.testing.assert_close(y, x * times, rtol=0, atol=0)

    # A literal is compiled in: still a parameter of the artifact, but its value is no longer read.
    fivefold = scale_rows.compile(times=5, config=CONFIG)
    assert fivefold is not any_times
    x, y = torch.randn(32, COLS), torch.zeros(32, COLS)
    fivefold(x, y, 5)
    torch.testing.assert_close(y, x * 5, rtol=0, atol=0)
    print("one artifact served three sizes and three factors; a second one has its factor compiled in")


if __name__ == "__main__":
    main()

"""Which of two kernels to keep, and why: one buffer against two, and a task per block against blocks of one task."""

import torch
from show import PLATFORM

import pypto.language as pl
from pypto.runtime import RunConfig
from pypto.sim import compare, explain, record

ROWS, COLS, BLOCK = 1024, 256, 128


def softmax(stage):
    @pl.jit
    def rows_in_tasks(x: pl.Tensor[[ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]):
        for block in pl.parallel(0, ROWS, BLOCK):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows"):
                for r in pl.pipeline(0, BLOCK, 32, stage=stage):
                    t = x[block + r : block + r + 32, :]
                    e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
                    y[block + r : block + r + 32, :] = pl.row_expand_div(e, pl.row_sum(e))
        return y

    return rows_in_tasks


@pl.jit
def rows_in_blocks(x: pl.Tensor[[ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]):
    for i in pl.spmd(ROWS // BLOCK, name_hint="rows"):
        for r in pl.pipeline(0, BLOCK, 32, stage=2):
            t = x[i * BLOCK + r : i * BLOCK + r + 32, :]
            e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
            y[i * BLOCK + r : i * BLOCK + r + 32, :] = pl.row_expand_div(e, pl.row_sum(e))
    return y


if __name__ == "__main__":
    x = torch.randn(ROWS, COLS, generator=torch.Generator().manual_seed(0)) * 3
    recordings = []
    for kernel in (softmax(1), softmax(2), rows_in_blocks):
        y = torch.zeros(ROWS, COLS)
        compiled = kernel.compile(x, y, config=RunConfig(platform=PLATFORM))
        compiled(x, y)
        torch.testing.assert_close(y, torch.softmax(x, -1), rtol=1e-5, atol=1e-6)
        recordings.append(record(compiled, [x, y]))
    single, double, blocks = recordings

    print(explain(single), end="\n\n")
    buffers = compare(single, double)
    print(f"a second buffer:\n{buffers}", end="\n\n")
    hidden = {change.name: -change.change_us for change in buffers.classes()}
    assert hidden["GM->UB"] + hidden["UB->GM"] > 0.8 * -buffers.effective.change_us, "transfers run beside arithmetic"

    tasks = compare(double, blocks)
    print(f"one task for all blocks:\n{tasks}")
    assert tasks.classes()[0].name in ("orchestrator", "scheduler")

"""A task graph by hand: leaves in any order, a fence over their task ids, and a join that waits for it."""

import torch
from show import PLATFORM

import pypto.language as pl
from pypto import ir
from pypto.runtime import benchmark

LEAVES, ROWS, COLS = 8, 32, 128


@pl.program
class ColumnSum:
    @pl.function(type=pl.FunctionType.InCore)
    def leaf(
        self,
        x: pl.Tensor[[LEAVES * ROWS, COLS], pl.FP32],
        parts: pl.Out[pl.Tensor[[LEAVES, COLS], pl.FP32]],
        i: pl.Scalar[pl.INDEX],
    ) -> pl.Tensor[[LEAVES, COLS], pl.FP32]:
        block = pl.load(x, [i * ROWS, 0], [ROWS, COLS])
        return pl.store(pl.col_sum(block), [i, 0], parts)

    @pl.function(type=pl.FunctionType.InCore)
    def join(
        self,
        parts: pl.Tensor[[LEAVES, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[1, COLS], pl.FP32]],
    ) -> pl.Tensor[[1, COLS], pl.FP32]:
        return pl.store(pl.col_sum(pl.load(parts, [0, 0], [LEAVES, COLS])), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[LEAVES * ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[1, COLS], pl.FP32]],
    ) -> pl.Tensor[[1, COLS], pl.FP32]:
        parts = pl.create_tensor([LEAVES, COLS], dtype=pl.FP32)
        with pl.manual_scope():
            ids = pl.array.create(LEAVES, pl.TASK_ID)
            for i in pl.range(LEAVES):
                parts, tid = pl.submit(self.leaf, x, parts, i)
                ids[i] = tid
            gate = pl.system.task_dummy(deps=[ids])
            out, _ = pl.submit(self.join, parts, out, deps=[gate])
        return out


if __name__ == "__main__":
    x = torch.randn(LEAVES * ROWS, COLS, generator=torch.Generator().manual_seed(0))
    compiled = ir.compile(ColumnSum, platform=PLATFORM, dump_passes=False)
    torch.testing.assert_close(compiled(x), x.sum(0, keepdim=True), rtol=1e-4, atol=1e-4)
    stats = benchmark(compiled, [x, torch.zeros(1, COLS)], rounds=20, warmup=3)
    print(f"column sum over {LEAVES} leaves: equal to torch; device {stats.device_us_median:.1f} us")
    stats.print_mean_tree(spread="none")

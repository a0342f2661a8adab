"""Stores to what a kernel declares as its input: one report per store, over all tasks that make it."""

from __future__ import annotations

import torch

import pypto.language as pl

from .programs.case import Program, rnd, zeros


@pl.program
class StripsOfAnInput:
    @pl.function(type=pl.FunctionType.InCore)
    def strip(
        self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Tensor[[64, 64], pl.FP32], i: pl.Scalar[pl.INDEX]
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        y = pl.store(pl.exp(pl.load(x, [i * 16, 0], [16, 64])), [i * 16, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        for i in pl.range(4):
            y = self.strip(x, y, i)
        return y


def test_tasks_of_one_kernel_that_store_to_its_input_are_one_finding(findings):
    x, y = rnd(64, 64), zeros(64, 64)
    (finding,) = findings(Program(StripsOfAnInput), x, y)
    assert (finding.kind, finding.tensor, finding.tasks, finding.count) == ("direction", "y", ("strip",), 4)
    assert finding.bytes == (0, 64 * 64 * 4) and finding.index_ranges == ((0, 64), (0, 64))
    assert len(finding.locations) == 1 and "declare 'y' as pl.Out[...]" in finding.suggestion
    torch.testing.assert_close(y, x.exp())

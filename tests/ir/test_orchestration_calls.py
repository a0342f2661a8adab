"""A chip orchestration that calls another one: an ordinary call, no task (spec distributed 1.3)."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
from pypto import ir
from pypto.ir.errors import CompileError

Data = pl.Tensor[[2, 16, 32], pl.FP32]
Row = pl.Tensor[[16, 32], pl.FP32]


@pl.program
class Nested:
    @pl.function(type=pl.FunctionType.InCore)
    def twice(self, src: Row, dst: pl.Out[Row]) -> Row:
        tile = pl.load(src, [0, 0], [16, 32])
        dst = pl.store(pl.add(tile, tile), [0, 0], dst)
        return dst

    @pl.function(type=pl.FunctionType.Orchestration)
    def inner(self, src: Row, dst: pl.Out[Row]) -> Row:
        middle = pl.create_tensor([16, 32], dtype=pl.FP32)
        middle = self.twice(src, middle)
        dst = self.twice(middle, dst)
        return dst

    @pl.function(type=pl.FunctionType.Orchestration)
    def outer(self, src: Data, dst: pl.Out[Data]) -> Data:
        for i in pl.range(2):
            out = dst[i]
            out = self.inner(src[i], out)
        return dst

    @pl.function(type=pl.FunctionType.Orchestration)
    def chain(self, src: Row, dst: pl.Out[Row]) -> Row:
        middle = pl.create_tensor([16, 32], dtype=pl.FP32)
        middle = self.inner(src, middle)
        dst = self.inner(middle, dst)
        return dst


@pytest.mark.parametrize(("name", "shape", "factor"), [("inner", (16, 32), 4), ("chain", (16, 32), 16)])
def test_bodies_are_merged(name, shape, factor, tmp_path):
    compiled = ir.compile(Nested, tmp_path, platform="a2a3sim")
    x, y = torch.randn(*shape), torch.zeros(*shape)
    compiled[name](x, y)
    torch.testing.assert_close(y, factor * x, rtol=0, atol=0)


def test_slices_as_arguments(tmp_path):
    compiled = ir.compile(Nested, tmp_path, platform="a2a3sim")
    x, y = torch.randn(2, 16, 32), torch.zeros(2, 16, 32)
    compiled["outer"](x, y)
    torch.testing.assert_close(y, 4 * x, rtol=0, atol=0)


def test_recursion_is_refused(tmp_path):
    with pytest.raises(Exception, match="calls itself"):

        @pl.program
        class Endless:
            @pl.function(type=pl.FunctionType.Orchestration)
            def chip(self, src: Row, dst: pl.Out[Row]) -> Row:
                dst = self.chip(src, dst)
                return dst

        ir.compile(Endless, tmp_path, platform="a2a3sim")


def test_an_early_return_is_refused(tmp_path):
    @pl.program
    class Early:
        @pl.function(type=pl.FunctionType.InCore)
        def copy(self, src: Row, dst: pl.Out[Row]) -> Row:
            dst = pl.store(pl.load(src, [0, 0], [16, 32]), [0, 0], dst)
            return dst

        @pl.function(type=pl.FunctionType.Orchestration)
        def inner(self, src: Row, dst: pl.Out[Row], n: pl.Scalar[pl.INT32]) -> Row:
            if n > 0:
                return dst
            dst = self.copy(src, dst)
            return dst

        @pl.function(type=pl.FunctionType.Orchestration)
        def outer(self, src: Row, dst: pl.Out[Row], n: pl.Scalar[pl.INT32]) -> Row:
            dst = self.inner(src, dst, n)
            return dst

    with pytest.raises(CompileError, match="returns before its end"):
        ir.compile(Early, tmp_path, platform="a2a3sim")

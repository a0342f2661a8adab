"""Task ids that a parallel loop of a manual scope rebinds (spec language 6.3)."""

import torch
from round_trip import assert_round_trips, random

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")


def test_phases():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.InOut[pl.Tensor[[64, 64], pl.FP32]], i: pl.Scalar[pl.INDEX]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            y = pl.store(pl.add(pl.load(x, [i * 16, 0], [16, 64]), 1.0), [i * 16, 0], y)
            return y

        @pl.function(type=pl.FunctionType.InCore)
        def d(
            self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            y = pl.store(pl.mul(pl.load(x, [0, 0], [64, 64]), 2.0), [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
            t = pl.create_tensor([64, 64], dtype=pl.FP32)
            with pl.manual_scope():
                last = None
                for p in pl.range(3):
                    for i in pl.parallel(2, 6):
                        t, last = pl.submit(self.k, x, t, i - 2, deps=[last])
                y, _ = pl.submit(self.d, t, y, deps=[last])
            return y

    assert_round_trips(P)
    x, y = random(64, 64), torch.zeros(64, 64)
    c = ir.compile(P, platform="a2a3sim")
    c(x, y)
    torch.testing.assert_close(y, (x + 1) * 2)


@pl.jit
def fan(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    t = pl.create_tensor([64, 64], dtype=pl.FP32)
    with pl.manual_scope():
        last = None
        for i in pl.parallel(4):
            with pl.at(level=pl.Level.CORE_GROUP) as tid:
                t[i * 16 : i * 16 + 16, :] = pl.add(x[i * 16 : i * 16 + 16, :], 1.0)
            last = tid
        with pl.at(level=pl.Level.CORE_GROUP, deps=[last]):
            y[:] = pl.mul(t[:], 2.0)
    return y


def test_fan_at():
    x, y = random(64, 64), torch.zeros(64, 64)
    fan(x, y, config=SIM)
    torch.testing.assert_close(y, (x + 1) * 2)

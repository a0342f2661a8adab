"""Functions, their attributes and how they are called (spec language 3.6 to 3.8, 5.2, 6)."""

import torch
from round_trip import random

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")


def test_func_attr():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
            """doc"""
            pl.func_attr({"split": pl.SplitMode.UP_DOWN, "dual_aiv_dispatch": True})
            t = pl.load(x, [0, 0], [32, 64])
            y = pl.store(pl.add(t, 1.0), [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
            y = self.k(x, y)
            return y

    assert pl.parse(P.as_python()) == P, P.as_python()
    x, y = random(32, 64), torch.zeros(32, 64)
    ir.compile(P, platform="a2a3sim")(x, y)
    torch.testing.assert_close(y, x + 1)


def test_inline_closure():
    W = 3.0
    shape = [16, 16]

    @pl.inline
    def f(t):
        return pl.mul(t, W)

    @pl.inline
    def pair(t, u):
        s = pl.add(t, u)
        d = pl.sub(t, u)
        return s, d

    @pl.function(type=pl.FunctionType.InCore)
    def k(x: pl.Tensor[shape, pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        t = pl.load(x, [0, 0], shape)
        s, d = pair(f(t), t)
        pl.store(pl.mul(s, d), [0, 0], y)
        return y

    @pl.program
    class P:
        @pl.function
        def main(self, x: pl.Tensor[shape, pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], shape)
                s, d = pair(f(t), t)
                pl.store(pl.mul(s, d), [0, 0], y)
            return y

    x, y = random(16, 16), torch.zeros(16, 16)
    ir.compile(P, platform="a2a3sim")(x, y)
    torch.testing.assert_close(y, (3 * x + x) * (3 * x - x))


def test_func_by_name():
    @pl.function(type=pl.FunctionType.InCore)
    def k(x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
        y = pl.store(pl.exp(pl.load(x, [0, 0], [16, 16])), [0, 0], y)
        return y

    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
            y = k(x, y)
            return y

    x, y = random(16, 16), torch.zeros(16, 16)
    ir.compile(P, platform="a2a3sim")(x, y)
    torch.testing.assert_close(y, x.exp())
    assert pl.parse(P.as_python()) == P
    y2 = torch.zeros(16, 16)
    ir.compile(pl.parse(P.as_python()), platform="a2a3sim")(x, y2)
    torch.testing.assert_close(y2, x.exp())


@pl.jit.opaque
def opq(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="inner_scope"):
        y[:] = pl.mul(x[:], 2.0)
    return y


@pl.jit
def use_opq(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    t = pl.create_tensor([32, 64], dtype=pl.FP32)
    t = opq(x, t)
    y = opq(t, y)
    return y


def test_opaque():
    x, y = random(32, 64), torch.zeros(32, 64)
    use_opq(x, y, config=SIM)
    torch.testing.assert_close(y, 4 * x)


@pl.jit
def wz(x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    for i in pl.range(4):
        with pl.at(level=pl.Level.CORE_GROUP, windowize=True, name_hint="w"):
            o[i * 16 : i * 16 + 16, :] = pl.add(x[i * 16 : i * 16 + 16, :], 1.0)
    return o


def test_windowize():
    x, o = random(64, 64), torch.zeros(64, 64)
    wz(x, o, config=SIM)
    torch.testing.assert_close(o, x + 1)


@pl.jit(auto_scope=False)
def nodep(x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    with pl.scope():
        t = pl.create_tensor([64, 64], dtype=pl.FP32, manual_dep=True)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="a") as ta:
            t[:] = pl.add(x[:], 1.0)
        with pl.at(
            level=pl.Level.CORE_GROUP, name_hint="b", deps=[ta], no_dep_args=[t], dumps=[t], allow_early_resolve=True
        ):
            o[:] = pl.mul(t[:], 2.0)
    return o


def test_no_dep_args():
    x, o = random(64, 64), torch.zeros(64, 64)
    nodep(x, o, config=SIM)
    torch.testing.assert_close(o, (x + 1) * 2)


def test_submit_all():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
        ) -> pl.Tensor[[32, 64], pl.FP32]:
            y = pl.store(pl.add(pl.load(x, [0, 0], [32, 64]), 1.0), [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.InCore)
        def two(
            self,
            x: pl.Tensor[[32, 64], pl.FP32],
            y: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
            z: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
        ) -> tuple[pl.Tensor[[32, 64], pl.FP32], pl.Tensor[[32, 64], pl.FP32]]:
            t = pl.load(x, [0, 0], [32, 64])
            y = pl.store(pl.add(t, 1.0), [0, 0], y)
            z = pl.store(pl.mul(t, 2.0), [0, 0], z)
            return y, z

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[32, 64], pl.FP32],
            y: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
            z: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
        ):
            flag = pl.create_tensor([1, 1], dtype=pl.INT32, init_value=1)
            with pl.manual_scope():
                a, ta = pl.submit(self.k, pl.no_dep(x), dumps=[x])
                (y, z), tb = pl.submit(self.two, a, y, z, deps=[ta], allow_early_resolve=True, predicate=flag[0, 0] > 0)
                r = pl.submit(self.k, x)
            return y, z

    assert pl.parse(P.as_python()) == P, P.as_python()
    x, y, z = random(32, 64), torch.zeros(32, 64), torch.zeros(32, 64)
    ir.compile(P, platform="a2a3sim")(x, y, z)
    torch.testing.assert_close(y, x + 2)
    torch.testing.assert_close(z, (x + 1) * 2)


def test_arg_directions(tmp_path):
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
        ) -> pl.Tensor[[32, 64], pl.FP32]:
            y = pl.store(pl.add(pl.load(x, [0, 0], [32, 64]), 1.0), [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
            y = self.k(x, y, attrs={"arg_directions": [pl.adir.input, pl.adir.inout]})
            return y

    assert pl.parse(P.as_python()) == P, P.as_python()
    x, y = random(32, 64), torch.zeros(32, 64)
    c = ir.compile(P, platform="a2a3sim", output_dir=tmp_path)
    c(x, y)
    torch.testing.assert_close(y, x + 1)
    assert "[1, 4]" in (tmp_path / "orchestration/main.orch").read_text()


def test_dump_tag():
    @pl.program
    class P:
        @pl.function
        def main(self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
            pl.dump_tag(x)
            with pl.at(level=pl.Level.CORE_GROUP):
                y[:] = pl.add(x[:], 1.0)
            return y

    assert pl.parse(P.as_python()) == P, P.as_python()
    x, y = random(32, 64), torch.zeros(32, 64)
    ir.compile(P, platform="a2a3sim")(x, y)
    torch.testing.assert_close(y, x + 1)

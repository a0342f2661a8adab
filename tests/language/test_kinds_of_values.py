"""Arrays, tuples, yields, subscripts and views in kernels (spec language 2.3 to 2.6, 4.5 to 4.7)."""

import torch
from round_trip import random, run_everywhere

import pypto.language as pl


@pl.program
class Arrays:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[8, 64], pl.FP32], y: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
        a = pl.array.create(8, pl.INT32)
        for i in pl.range(8):
            a[i] = 7 - i
        b = pl.array.create(4, pl.BOOL)
        for i in pl.range(4):
            b[i] = i > 1
        for i in pl.range(8):
            j = a[i]
            t = pl.load(x, [j, 0], [1, 64])
            if b[i % 4]:
                t = pl.neg(t)
            pl.store(t, [i, 0], y)
        c = pl.array.update_element(a, 0, 3)
        d = pl.array.get_element(c, 0)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 64], pl.FP32], y: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
        y = self.k(x, y)
        return y


def test_arrays():
    x = random(8, 64)
    r = run_everywhere(Arrays, x, torch.zeros(8, 64))[1]
    w = x.flip(0).clone()
    for i in range(8):
        if i % 4 > 1:
            w[i] = -w[i]
    torch.testing.assert_close(r, w)


@pl.program
class YieldIf:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[8, 64], pl.FP32], n: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [8, 64])
        if n > 3:
            r: pl.Tile[[8, 64], pl.FP32] = pl.yield_(pl.add(t, 1.0))
        else:
            r: pl.Tile[[8, 64], pl.FP32] = pl.yield_(pl.mul(t, 2.0))
        if n == 3:
            u, m = pl.yield_(pl.exp(r), 5)
        elif n == 4:
            u, m = pl.yield_(pl.neg(r), 6)
        else:
            u, m = pl.yield_(r, 7)
        pl.store(pl.mul(u, pl.cast(m, pl.FP32)), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 64], pl.FP32], n: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
        y = self.k(x, n, y)
        return y


def test_yield_if():
    x = random(8, 64)
    for n in (2, 3, 4):
        r = run_everywhere(YieldIf, x, n, torch.zeros(8, 64))[2]
        w = x + 1 if n > 3 else 2 * x
        w = {3: w.exp() * 5, 4: -w * 6}.get(n, w * 7)
        torch.testing.assert_close(r, w)


@pl.program
class WhileT:
    @pl.function
    def main(self, x: pl.Tensor[[8, 64], pl.FP32], n: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = x[:]
            i = 0
            while i < n:
                acc = pl.mul(acc, 2.0)
                i = i + 1
            y[:] = acc
        return y


def test_while_tensor():
    x = random(8, 64)
    r = run_everywhere(WhileT, x, 3, torch.zeros(8, 64))[2]
    torch.testing.assert_close(r, x * 8)


@pl.program
class Rank1:
    @pl.function
    def main(
        self,
        x: pl.Tensor[[256], pl.FP32],
        s: pl.Tensor[[4, 8, 32], pl.FP32],
        y: pl.Out[pl.Tensor[[256], pl.FP32]],
        z: pl.Out[pl.Tensor[[4, 8, 32], pl.FP32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(pl.exp(x[:]), 1.0)
        with pl.at(level=pl.Level.CORE_GROUP):
            z[:] = pl.mul(s[:], 2.0)
        return y, z


def test_rank1_3():
    x, s = random(256), random(4, 8, 32)
    r = run_everywhere(Rank1, x, s, torch.zeros(256), torch.zeros(4, 8, 32))
    torch.testing.assert_close(r[2], x.exp() + 1)
    torch.testing.assert_close(r[3], 2 * s)


@pl.program
class Rank3t:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        s: pl.Tensor[[4, 8, 32], pl.FP32],
        z: pl.Out[pl.Tensor[[4, 8, 32], pl.FP32]],
        w: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
    ):
        for i in pl.range(4):
            t = pl.load(s, [i, 0, 0], [1, 8, 32])
            pl.store(pl.add(t, 1.0), [i, 0, 0], z)
        u = pl.load(s, [0, 0, 0], [4, 8, 32])
        v = pl.load(s, [2, 0, 0], [1, 8, 32])
        v2 = pl.reshape(v, [8, 32])
        pl.store(v2, [0, 0], w)
        return z, w

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        s: pl.Tensor[[4, 8, 32], pl.FP32],
        z: pl.Out[pl.Tensor[[4, 8, 32], pl.FP32]],
        w: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
    ):
        z, w = self.k(s, z, w)
        return z, w


def test_rank3tiles():
    s = random(4, 8, 32)
    r = run_everywhere(Rank3t, s, torch.zeros(4, 8, 32), torch.zeros(8, 32))
    torch.testing.assert_close(r[1], s + 1)
    torch.testing.assert_close(r[2], s[2])


@pl.program
class TileSub:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, s: pl.Tensor[[16, 64], pl.FP32], z: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        t = pl.load(s, [0, 0], [16, 64])
        a = t[0:8, 0:32]
        b = t[8:16, 32:64]
        c = pl.tile.create([16, 64], dtype=pl.FP32)
        c[0:8, 0:32] = b
        c[8:16, 32:64] = a
        c[0:8, 32:64] = pl.neg(a)
        c[8:16, 0:32] = pl.neg(b)
        v = t[1, 2]
        pl.write(c, [0, 0], v)
        pl.store(c, [0, 0], z)
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, s: pl.Tensor[[16, 64], pl.FP32], z: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        z = self.k(s, z)
        return z


def test_tile_subscripts():
    s = random(16, 64)
    r = run_everywhere(TileSub, s, torch.zeros(16, 64))[1]
    a, b = s[:8, :32], s[8:, 32:]
    w = torch.empty(16, 64)
    w[:8, :32] = b
    w[8:, 32:] = a
    w[:8, 32:] = -a
    w[8:, :32] = -b
    w[0, 0] = s[1, 2]
    torch.testing.assert_close(r, w)


@pl.program
class Views:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        s: pl.Tensor[[32, 16], pl.FP32, pl.TensorView(stride=[1, 32], layout=pl.TensorLayout.DN)],
        z: pl.Out[pl.Tensor[[32, 16], pl.FP32]],
    ):
        t = pl.load(s, [0, 0], [32, 16])
        pl.store(t, [0, 0], z)
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, s: pl.Tensor[[16, 32], pl.FP32], z: pl.Out[pl.Tensor[[32, 16], pl.FP32]]):
        st = pl.transpose(s, -2, -1)
        z = self.k(st, z)
        return z


def test_dn_views():
    s = random(16, 32)
    r = run_everywhere(Views, s, torch.zeros(32, 16))[1]
    torch.testing.assert_close(r, s.T)


@pl.program
class Strides:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        s: pl.Tensor[[16, 16], pl.FP32, pl.TensorView(stride=[64, 1], layout=pl.TensorLayout.ND)],
        z: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ):
        t = pl.load(s, [0, 0], [16, 16])
        pl.store(t, [0, 0], z)
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, s: pl.Tensor[[16, 64], pl.FP32], z: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        z = self.k(s[:, 16:32], z)
        return z


def test_strides():
    s = random(16, 64)
    r = run_everywhere(Strides, s, torch.zeros(16, 16))[1]
    torch.testing.assert_close(r, s[:, 16:32])


@pl.program
class Reint:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, s: pl.Tensor[[16, 64], pl.INT32], z: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        t = pl.load(s, [0, 0], [16, 64])
        f = pl.reinterpret_view(t, dtype=pl.FP32)
        pl.store(f, [0, 0], z)
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, s: pl.Tensor[[16, 64], pl.FP32], z: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        q = pl.reinterpret_view(s, dtype=pl.INT32)
        z = self.k(q, z)
        return z


def test_reinterpret():
    s = random(16, 64)
    r = run_everywhere(Reint, s, torch.zeros(16, 64))[1]
    torch.testing.assert_close(r, s)


buf = pl.MemRef()


@pl.program
class MemRefs:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, s: pl.Tensor[[16, 64], pl.FP32], z: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        t: pl.Tile[[16, 64], pl.FP32, pl.MemRef("mine", slots=2), pl.Mem.Vec] = pl.load(s, [0, 0], [16, 64])
        u: pl.Tile[[16, 64], pl.FP32, buf, pl.Mem.Vec] = pl.add(t, 1.0)
        v: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, pl.MemRef("named")] = pl.mul(u, 2.0)
        pl.store(v, [0, 0], z)
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, s: pl.Tensor[[16, 64], pl.FP32], z: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        z = self.k(s, z)
        return z


def test_memrefs():
    s = random(16, 64)
    r = run_everywhere(MemRefs, s, torch.zeros(16, 64))[1]
    torch.testing.assert_close(r, (s + 1) * 2)


@pl.program
class Tup:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, s: pl.Tensor[[16, 32], pl.FP32], z: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        t = pl.load(s, [0, 0], [16, 32])
        pair = (t, pl.add(t, 1.0))
        nest = (pair, (3, 4))
        a, b = pair
        c = nest[0][1]
        d = nest[1][0] + nest[1][1]
        pl.store(pl.mul(pl.sub(c, a), pl.cast(d, pl.FP32)), [0, 0], z)
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, s: pl.Tensor[[16, 32], pl.FP32], z: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        z = self.k(s, z)
        return z


def test_tuples():
    s = random(16, 32)
    r = run_everywhere(Tup, s, torch.zeros(16, 32))[1]
    torch.testing.assert_close(r, torch.full((16, 32), 7.0))

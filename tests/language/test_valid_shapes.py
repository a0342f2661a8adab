"""Valid shapes that change in loops and branches (spec language 7.4)."""

import torch
from round_trip import random, run_everywhere

import pypto.language as pl


@pl.program
class ValidLoop:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, s: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX], z: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        t = pl.load(s, [0, 0], [16, 32])
        for i in pl.range(4):
            pl.store(t, [i * 16, 0], z)
            t = pl.load(s, [i * 16, 0], [16, 32], valid_shape=[n - i, 32])
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, s: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX], z: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        z = self.k(s, n, z)
        return z


def test_valid_changes_in_loop():
    s = random(64, 32)
    r = run_everywhere(ValidLoop, s, 9, torch.zeros(64, 32))[2]
    w = torch.zeros(64, 32)
    w[:16] = s[:16]
    for i in range(1, 4):
        w[i * 16 : i * 16 + 9 - (i - 1)] = s[(i - 1) * 16 : (i - 1) * 16 + 9 - (i - 1)]
    torch.testing.assert_close(r, w)


@pl.program
class ValidIf:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, s: pl.Tensor[[16, 32], pl.FP32], n: pl.Scalar[pl.INDEX], z: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        t = pl.load(s, [0, 0], [16, 32])
        if n > 5:
            t = pl.set_validshape(t, n, 32)
        u = pl.add(t, 1.0)
        pl.store(u, [0, 0], z)
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, s: pl.Tensor[[16, 32], pl.FP32], n: pl.Scalar[pl.INDEX], z: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        z = self.k(s, n, z)
        return z


def test_valid_changes_in_if():
    s = random(16, 32)
    for n in (4, 7):
        r = run_everywhere(ValidIf, s, n, torch.zeros(16, 32))[2]
        w = torch.zeros(16, 32)
        m = n if n > 5 else 16
        w[:m] = s[:m] + 1
        torch.testing.assert_close(r, w)


@pl.program
class Swap:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, s: pl.Tensor[[2, 32], pl.FP32], n: pl.Scalar[pl.INDEX], z: pl.Out[pl.Tensor[[2, 32], pl.FP32]]):
        a = pl.load(s, [0, 0], [1, 32])
        b = pl.load(s, [1, 0], [1, 32])
        for i in pl.range(n):
            a, b = b, a
        pl.store(a, [0, 0], z)
        pl.store(b, [1, 0], z)
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, s: pl.Tensor[[2, 32], pl.FP32], n: pl.Scalar[pl.INDEX], z: pl.Out[pl.Tensor[[2, 32], pl.FP32]]):
        z = self.k(s, n, z)
        return z


def test_swap():
    s = random(2, 32)
    torch.testing.assert_close(run_everywhere(Swap, s, 3, torch.zeros(2, 32))[2], s.flip(0))
    torch.testing.assert_close(run_everywhere(Swap, s, 2, torch.zeros(2, 32))[2], s)


@pl.program
class ValidChain:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, s: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX], z: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        t = pl.load(s, [0, 0], [16, 32])
        u = t
        m = n
        for i in pl.range(4):
            pl.store(u, [i * 16, 0], z)
            u = pl.add(t, 1.0)
            t = pl.load(s, [i * 16, 0], [16, 32], valid_shape=[m, 32])
            m = m - 1
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, s: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX], z: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        z = self.k(s, n, z)
        return z


def test_valid_chain():
    s = random(64, 32)
    r = run_everywhere(ValidChain, s, 9, torch.zeros(64, 32))[2]
    w = torch.zeros(64, 32)
    w[:16] = s[:16]
    w[16:32] = s[:16] + 1
    w[32:41] = s[:9] + 1
    w[48:56] = s[16:24] + 1
    torch.testing.assert_close(r, w)

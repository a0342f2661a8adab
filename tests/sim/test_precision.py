"""``compare_precision`` names the first operation that loses digits."""

from __future__ import annotations

import torch

import pypto.language as pl
from pypto.runtime import RunConfig
from pypto.sim import compare_precision

CONFIG = RunConfig(platform="a2a3")


@pl.jit
def cancels(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="drop"):
        t = pl.add(pl.load(x, [0, 0], [16, 32]), 10000000.0)
        t = pl.sub(t, 10000000.0)
        pl.store(pl.mul(t, 3.0), [0, 0], y)
    return y


@pl.jit
def product(a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], c: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gemm"):
        c[:, :] = pl.matmul(a[:, :], b[:, :])
    return c


def test_the_operation_that_cancels_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = torch.full((16, 32), 2.0), torch.zeros(16, 32)
    x[3, 5] = 0.3
    report = compare_precision(cancels.compile(x, y, config=CONFIG), [x, y])
    assert report.first is not None and report.first.operation == "subs"
    assert report.first.task == "drop" and report.first.element == (3, 5)
    assert abs(report.first.reference - 0.3) < 1e-6 and report.first.value == 0.0
    assert torch.equal(y, torch.zeros(16, 32))


def test_a_product_stays_within_its_bound(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = torch.Generator().manual_seed(1)
    a, b = torch.randn(32, 64, generator=generator).half(), torch.randn(64, 32, generator=generator).half()
    c = torch.zeros(32, 32)
    report = compare_precision(product.compile(a, b, c, config=CONFIG), [a, b, c])
    assert report.first is None and report.compared >= 1
    assert report.worst is not None and report.worst.error < 1e-5

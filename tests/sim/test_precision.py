"""``compare_precision`` names the first operation that loses digits."""

from __future__ import annotations

import pytest
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


@pl.jit
def wide_softmax(x: pl.Tensor[[512, 1024], pl.FP32], y: pl.Out[pl.Tensor[[512, 1024], pl.FP32]]):
    for b in pl.parallel(0, 512, 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows"):
            t = x[b : b + 16, :]
            e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
            y[b : b + 16, :] = pl.row_expand_div(e, pl.row_sum(e))
    return y


@pl.jit
def tiled_product(
    a: pl.Tensor[[256, 512], pl.FP16], b: pl.Tensor[[512, 256], pl.FP16], c: pl.Out[pl.Tensor[[256, 256], pl.FP32]]
):
    for i in pl.parallel(0, 256, 128):
        for j in pl.parallel(0, 256, 128):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="tile"):
                acc = pl.matmul(a[i : i + 128, 0:64], b[0:64, j : j + 128], out_dtype=pl.FP32)
                for k in pl.range(64, 512, 64):
                    acc = pl.matmul_acc(acc, a[i : i + 128, k : k + 64], b[k : k + 64, j : j + 128])
                c[i : i + 128, j : j + 128] = acc
    return c


@pl.jit
def handed_over(
    a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="mixed"):
        s = pl.matmul(a[:, :], b[:, :])
        s = pl.mul(s, 0.125)
        y[:, :] = pl.row_expand_sub(s, pl.row_max(s))
    return y


@pl.jit
def moved_about(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="turn"):
        t = pl.add(pl.load(x, [0, 0], [16, 32]), 100000.0)
        t = pl.transpose(t, 0, 1)
        pl.store(pl.sub(t, 100000.0), [0, 0], y)
    return y


def test_real_sizes_stay_within_their_bounds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(512, 1024, generator=generator)
    a, b = torch.randn(256, 512, generator=generator).half(), torch.randn(512, 256, generator=generator).half()
    for kernel, arguments in ((wide_softmax, [x, torch.zeros_like(x)]), (tiled_product, [a, b, torch.zeros(256, 256)])):
        report = compare_precision(kernel.compile(*arguments, config=CONFIG), arguments)
        assert report.first is None and report.taken == 0 and report.compared >= 32, str(report)
        assert report.worst is not None and 0 < report.worst.error < 1e-5


def test_tiles_of_another_core_start_again_from_what_the_program_holds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = torch.Generator().manual_seed(3)
    a, b = torch.randn(32, 64, generator=generator), torch.randn(64, 32, generator=generator)
    arguments = [a, b, torch.zeros(32, 32)]
    report = compare_precision(handed_over.compile(*arguments, config=CONFIG), arguments)
    assert report.first is None and report.compared >= 4, str(report)


def test_the_error_is_followed_through_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = torch.rand(16, 32, generator=torch.Generator().manual_seed(4))
    arguments = [x, torch.zeros(32, 16)]
    report = compare_precision(moved_about.compile(*arguments, config=CONFIG), arguments)
    assert report.first is not None and report.first.operation == "subs" and report.taken == 0
    row, col = report.first.element
    assert abs(report.first.reference - float(x[col, row].double())) < 1e-9


@pl.jit
def squared(x: pl.Tensor[[512, 1024], pl.FP32], y: pl.Out[pl.Tensor[[512, 1024], pl.FP32]]):
    for b in pl.spmd(32, name_hint="grow"):
        grown = pl.exp(pl.load(x, [b * 16, 0], [16, 1024]))
        pl.store(pl.mul(grown, grown), [b * 16, 0], y)
    return y


@pytest.mark.parametrize(("row", "col"), [(0, 0), (300, 78), (511, 1023)])
def test_the_worst_element_among_many_is_named_with_its_block(row, col, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = torch.zeros(512, 1024), torch.zeros(512, 1024)
    x[row, col] = 300.0  # exp(300) has no FP32
    compiled = squared.compile(x, y, config=RunConfig(platform="a2a3"))
    first = compare_precision(compiled, (x, y)).first
    assert first is not None and (first.operation, first.tile) == ("exp", "grown")
    assert (first.block, first.element) == (row // 16, (row % 16, col))
    assert f"element [{row % 16}, {col}] of 'grown' in block {row // 16} is inf" in str(first)


@pl.jit
def shifted_there_and_back(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="shift"):
        raised = pl.add(pl.load(x, [0, 0], [16, 64]), 1000.0)
        pl.store(pl.sub(raised, 1000.0), [0, 0], y)
    return y


def test_a_small_row_is_compared_with_its_own_scale(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = 1e4 * torch.ones(16, 64), torch.zeros(16, 64)
    x[5] = 1e-5
    compiled = shifted_there_and_back.compile(x, y, config=RunConfig(platform="a2a3"))
    report = compare_precision(compiled, [x, y])
    assert report.first is not None
    assert (report.first.operation, report.first.element[0]) == ("subs", 5)


@pl.jit
def layer_norm(
    x: pl.Tensor[[16, 96], pl.FP32], gain: pl.Tensor[[1, 96], pl.FP32], y: pl.Out[pl.Tensor[[16, 96], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="norm"):
        t = x[:, :]
        centred = pl.row_expand_sub(t, pl.mul(pl.row_sum(t), 1.0 / 96))
        variance = pl.mul(pl.row_sum(pl.mul(centred, centred)), 1.0 / 96)
        scaled = pl.row_expand_mul(centred, pl.rsqrt(pl.add(variance, 1e-5)))
        y[:, :] = pl.col_expand_mul(scaled, gain[:, :])
    return y


@pl.jit
def centred_softmax(x: pl.Tensor[[16, 96], pl.FP32], y: pl.Out[pl.Tensor[[16, 96], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="soft"):
        t = x[:, :]
        e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
        p = pl.row_expand_div(e, pl.row_sum(e))
        y[:, :] = pl.add(p, -1.0 / 96)
    return y


@pl.jit
def attention(
    q: pl.Tensor[[32, 64], pl.FP16],
    k: pl.Tensor[[64, 64], pl.FP16],
    v: pl.Tensor[[64, 64], pl.FP16],
    o: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="attend"):
        s = pl.mul(pl.matmul(q[:, :], k[:, :], b_trans=True, out_dtype=pl.FP32), 0.125)
        e = pl.exp(pl.row_expand_sub(s, pl.row_max(s)))
        p = pl.cast(pl.row_expand_div(e, pl.row_sum(e)), target_type=pl.FP16)
        o[:, :] = pl.matmul(p, v[:, :], out_dtype=pl.FP32)
    return o


def rows(height: int, width: int, seed: int) -> torch.Tensor:
    """Ordinary rows, then rows of zeros, of one value, of one value each way, and of tiny and huge ones."""
    x = torch.randn(height, width, generator=torch.Generator().manual_seed(seed))
    x[1], x[2], x[3] = 0.0, 0.1, -7.3
    x[4] = torch.where(torch.arange(width) % 2 == 0, 0.3, -0.3)
    x[5], x[6] = x[5] * 1e-6, x[6] * 1e4
    return x


def test_rows_that_are_zero_by_rights_are_no_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, like = rows(16, 96, 5), torch.zeros(16, 96)
    gain = torch.rand(1, 96, generator=torch.Generator().manual_seed(6))
    q, k, v = (rows(n, 64, seed).clamp(-8, 8).half() for n, seed in ((32, 7), (64, 8), (64, 9)))
    v = v - v.mean(0, keepdim=True)  # equal weights give zero
    programs = (layer_norm, [x, gain, like]), (centred_softmax, [x, like]), (attention, [q, k, v, torch.zeros(32, 64)])
    for kernel, arguments in programs:
        report = compare_precision(kernel.compile(*arguments, config=CONFIG), arguments)
        assert report.first is None and report.compared >= 5, str(report)

"""Undefined values: where they come from, where they may go, and where not."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
from pypto.runtime import ChipWorker, RunConfig
from pypto.sim import CheckError, UndefinedValueError


@pl.jit
def narrow_operand(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="sum"):
        a = pl.load(x, [0, 0], [16, 32])
        b = pl.load(x, [0, 0], [16, 32], valid_shape=[16, 8])
        pl.store(pl.mul(pl.add(a, b), 2.0), [0, 0], y)
    return y


@pl.jit
def padding_along(x: pl.Tensor[[16, 32], pl.FP32], y: pl.InOut[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):
        a = pl.load(x, [0, 0], [16, 32], valid_shape=[16, 8])
        pl.store(pl.exp(pl.mul(a, 2.0)), [0, 0], y)
    return y


@pl.jit
def half(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="top"):
        pl.store(pl.load(x, [0, 0], [8, 32]), [0, 0], y)
    return y


@pl.jit
def sigmoid(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate"):
        t = pl.load(x, [0, 0], [16, 32])
        pl.store(pl.recip(pl.add(pl.exp(pl.neg(t)), 1.0)), [0, 0], y)
    return y


@pl.jit
def raw_exp(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="grow"):
        pl.store(pl.exp(pl.load(x, [0, 0], [16, 32])), [0, 0], y)
    return y


def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(16, 32), torch.zeros(16, 32)


def test_the_operation_that_used_the_padding_is_named_and_not_the_store(findings):
    (found,) = findings(narrow_operand, *tensors())
    assert found.kind == "out-of-valid" and found.tasks == ("sum",) and "'add'" in found.message
    assert "16 x 8 of 16 x 32" in found.message and "columns 8..32 of 'y'" in found.message


def test_padding_that_is_only_carried_along_is_silent(findings):
    assert findings(padding_along, *tensors()) == []


def test_rows_of_an_output_that_nobody_writes(findings):
    (found,) = findings(half, *tensors())
    assert (found.kind, found.tensor, found.bytes, found.index_ranges[0]) == ("uninit", "y", (1024, 2048), (8, 16))


@pytest.mark.parametrize(("poison", "held"), [("nan", None), ("zero", 0.0)])
def test_poison_decides_what_nobody_wrote(tmp_path, monkeypatch, poison, held):
    monkeypatch.chdir(tmp_path)
    x, y = tensors()
    half(x, y, config=RunConfig(platform="a2a3", checks="all", checks_mode="collect", poison=poison))
    assert torch.isnan(y[8:]).all() if held is None else torch.equal(y[8:], torch.full((8, 32), held))
    assert torch.equal(y[:8], x[:8])


def test_an_infinity_that_vanishes_is_no_overflow(findings):
    assert findings(sigmoid, torch.full((16, 32), -200.0), torch.zeros(16, 32)) == []


def test_an_overflow_that_reaches_the_host(findings):
    x, y = tensors()
    x[3, 5] = 200.0
    (found,) = findings(raw_exp, x, y)
    assert found.kind == "precision" and found.bytes == (4 * (3 * 32 + 5), 4 * (3 * 32 + 6))


def test_an_infinity_that_comes_in_is_meant(findings):
    x, y = tensors()
    x[0, 0] = float("inf")
    assert findings(raw_exp, x, y) == []


def test_raising_leaves_the_callers_tensors_and_the_findings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = tensors()
    config = RunConfig(platform="a2a3", checks="all")
    compiled = half.compile(x, y, config=config)
    with pytest.raises(UndefinedValueError, match="never written") as caught:
        compiled(x, y, config=config)
    assert isinstance(caught.value, CheckError) and compiled.last_findings == list(caught.value.findings)
    assert torch.equal(y, torch.zeros(16, 32))


@pl.jit
def padded_maximum(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 1], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="peak"):
        t = pl.fillpad(pl.load(x, [0, 0], [16, 32], valid_shape=[16, 20]), pad_value=pl.PadValue.zero)
        tmp = pl.create_tile([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        pl.store(pl.row_max(t, tmp), [0, 0], y)
    return y


def test_zeros_that_win_a_maximum(findings):
    x, y = -torch.ones(16, 32), torch.zeros(16, 1)
    x[:5, 3] = 1.0
    (found,) = findings(padded_maximum, x, y)
    assert found.kind == "out-of-valid" and "row 5" in found.message and "16 x 20 of 16 x 32" in found.message
    assert "PadValue.min" in found.suggestion
    x[:, 3] = 1.0
    assert findings(padded_maximum, x, y) == []
    x[:, 3] = 0.0
    assert findings(padded_maximum, x, y) == []


@pl.jit
def grows(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="twice"):
        pl.store(pl.exp(pl.exp(pl.load(x, [0, 0], [16, 32]))), [0, 0], y)
    return y


def test_the_exponential_of_what_has_overflowed_is_infinite_in_every_format(findings):
    assert findings(grows, torch.full((16, 32), 100.0), torch.zeros(16, 32)) == []
    assert [f.kind for f in findings(grows, torch.full((16, 32), 6.0), torch.zeros(16, 32))] == ["precision"]
    (found,) = findings(grows, torch.full((16, 32), 100.0), torch.zeros(16, 32), checks={"overflow"})
    assert found.kind == "overflow" and "'exp' in 'twice'" in found.message and found.locations[0].line


@pl.jit
def sums(x: pl.Tensor[[16, 32], pl.INT32], w: pl.Tensor[[16, 32], pl.INT32], y: pl.Out[pl.Tensor[[16, 32], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="total"):
        t = pl.load(x, [0, 0], [16, 32])
        pl.store(pl.add(pl.mul(t, 3), pl.load(w, [0, 0], [16, 32])), [0, 0], y)
    return y


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        (7, 5, []),
        (2**30, 5, ["'muls' in 'total' wraps around at [2, 9]: 3221225472 does not fit int32 and becomes -1073741824"]),
        (-(2**29), -(2**30), ["'add' in 'total' wraps around at [2, 9]: -2684354560 does not fit int32 and becomes 1610612736"]),
    ],
)  # fmt: skip
def test_integers_that_wrap_when_asked_for(findings, a, b, found):
    x, w, y = (torch.zeros(16, 32, dtype=torch.int32) for _ in range(3))
    x[2, 9], w[2, 9] = a, b
    assert [f.message for f in findings(sums, x, w, y, checks={"wrap"})] == found
    assert findings(sums, x, w, y) == []


@pl.jit
def product_in_fp16(
    a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 16], pl.FP16], y: pl.Out[pl.Tensor[[16, 16], pl.FP16]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="product"):
        y[:, :] = pl.matmul(a, b, out_dtype=pl.FP16)
    return y


def test_a_store_that_converts_may_leave_the_range(findings):
    a, b = torch.ones(16, 64).half(), torch.ones(64, 16).half()
    arguments = a, b, torch.zeros(16, 16).half()
    assert findings(product_in_fp16, *arguments) == []
    a[3], b[:, 5] = 200, 200  # one element of the product is 2560000
    (found,) = findings(product_in_fp16, *arguments)
    assert (found.kind, found.tensor, found.index_ranges) == ("precision", "y", ((3, 4), (5, 6)))
    assert "store" in found.message and "65504" in found.message


@pl.jit
def shifted_or_best(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="masked"):
        t = x[:, :]
        m = pl.row_max(t)
        y[:, :] = pl.maximum(pl.sub(t, 1.0), pl.row_expand(t, m))
    return y


def test_infinities_that_came_in_may_be_copied_and_compared(findings):
    x = torch.zeros(16, 32)
    x[:, 7:] = float("-inf")
    assert findings(shifted_or_best, x, torch.zeros(16, 32)) == []


def test_a_resident_output_keeps_what_is_not_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = tensors()
    config = RunConfig(platform="a2a3", checks="all")
    compiled = half.compile(x, y, config=config)
    with ChipWorker(config) as worker:
        resident = worker.alloc_tensor((16, 32), torch.float32, init=torch.full((16, 32), 7.0))
        worker.run(compiled, x, resident, config=config)
        worker.run(compiled, resident, resident, config=config)
        worker.copy_from(y.data_ptr(), resident.data_ptr, resident.nbytes)
    assert torch.equal(y, torch.cat([x[:8], torch.full((8, 32), 7.0)]))

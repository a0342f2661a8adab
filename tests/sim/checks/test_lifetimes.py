"""Tensors used behind the runtime scope they were allocated in, and what merely looks like it."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl

from .programs.case import Program, rnd, zeros


@pl.program
class OwnScopes:
    @pl.function(type=pl.FunctionType.InCore)
    def triple(
        self, x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        y = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 3.0), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
    def main(
        self, x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        with pl.scope():
            with pl.scope():
                inner = pl.create_tensor([16, 64], dtype=pl.FP32)
                inner = self.triple(x, inner)
            y = self.triple(inner, y)
        return y


@pl.jit
def behind_a_manual_scope(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    for i in pl.range(2):
        with pl.manual_scope():
            inner = pl.create_tensor([16, 64], dtype=pl.FP32)
            half = inner[0:8, :]
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill") as filled:
                half = pl.store(pl.exp(pl.load(x, [i * 8, 0], [8, 64])), [0, 0], half)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[filled], name_hint="use"):
            y = pl.store(pl.load(half, [0, 0], [8, 64]), [i * 8, 0], y)
    return y


@pl.jit
def element_behind_a_scope(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.manual_scope():
        inner = pl.create_tensor([1, 16], dtype=pl.INT32, init_value=8)
    rows = pl.cast(pl.read(inner, [0, 3]), pl.INDEX)
    for i in pl.range(0, 16, rows):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):
            y = pl.store(pl.load(x, [i, 0], [8, 64]), [i, 0], y)
    return y


@pl.jit
def around_a_manual_scope(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    outer = pl.create_tensor([16, 64], dtype=pl.FP32)
    with pl.manual_scope():  # noqa: SIM117 - one manager per with
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill") as filled:
            outer = pl.store(pl.exp(pl.load(x, [0, 0], [16, 64])), [0, 0], outer)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[filled], name_hint="use"):
        y = pl.store(pl.load(outer, [0, 0], [16, 64]), [0, 0], y)
    return y


@pl.jit
def carried_round_a_loop(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="first"):
        total = pl.mul(x, 1.0)
    for i in pl.range(3):
        following = pl.create_tensor([16, 64], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="fold"):
            following[:, :] = pl.add(total, x)
        total = following
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="emit"):
        y[:] = pl.mul(total, 2.0)
    return y


@pytest.mark.parametrize(
    ("kernel", "name", "user", "times"),
    [
        (Program(OwnScopes), "inner", ("triple",), 1),
        (behind_a_manual_scope, "inner", ("use",), 2),
        (element_behind_a_scope, "inner", (), 1),
    ],
)
def test_what_a_scope_holds_is_not_used_behind_it(findings, kernel, name, user, times):
    (finding,) = findings(kernel, rnd(16, 64), zeros(16, 64))
    assert (finding.kind, finding.tensor, finding.tasks, finding.count) == ("uninit", name, user, times)
    assert "after the runtime scope that it was allocated in has ended" in finding.message
    lines = [place.code for place in finding.locations]
    assert "pl.create_tensor" in lines[0] and "scope()" in lines[1] and len(lines) == 3
    assert "in the scope that holds all its uses" in finding.suggestion


@pytest.mark.parametrize("kernel", [around_a_manual_scope, carried_round_a_loop])
def test_a_tensor_of_an_outer_scope_and_one_that_a_loop_hands_on_are_fine(findings, kernel):
    y = zeros(16, 64)
    assert findings(kernel, x := rnd(16, 64), y) == []
    torch.testing.assert_close(y, x.exp() if kernel is around_a_manual_scope else 8 * x)

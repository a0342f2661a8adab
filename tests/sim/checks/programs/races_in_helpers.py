"""Races between kernels that are called, and between tasks of which a helper submits one or both."""

from __future__ import annotations

import pypto.language as pl

from .case import Program
from .races_to_repair import Race


@pl.jit.incore
def fill(x: pl.Tensor[[16, 64], pl.FP32], box: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    box = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), 0.25), [0, 0], box)
    return box


@pl.jit.incore
def use(box: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    y = pl.store(pl.neg(pl.load(box, [0, 0], [16, 64])), [0, 0], y)
    return y


@pl.jit.incore
def use_rows(box: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]], i: pl.Scalar[pl.INT64]):
    y = pl.store(pl.neg(pl.load(box, [0, 0], [16, 64])), [i * 16, 0], y)
    return y


@pl.jit
def calls_by_hand(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    box = pl.create_tensor([16, 64], dtype=pl.FP32)
    with pl.manual_scope():
        box = fill(x, box)
        y = use(
            box,
            y,
        )
    return y


@pl.jit
def calls_round_a_loop(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    box = pl.create_tensor([16, 64], dtype=pl.FP32)
    for i in pl.range(4):
        box = fill(x, box)
        y = use_rows(box, y, i)
    return y


@pl.jit
def calls_behind_a_loop(
    x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]], z: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    box = pl.create_tensor([16, 64], dtype=pl.FP32)
    box = fill(x, box)
    for i in pl.parallel(4):
        y = use_rows(box, y, i)
    box = fill(x, box)
    z = use(box, z)
    return y, z


@pl.jit
def elements_of_an_array_awaited(
    x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]], z: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    box = pl.create_tensor([16, 64], dtype=pl.FP32)
    box = fill(x, box)
    ids = pl.array.create(4, pl.TASK_ID)
    for i in pl.parallel(4):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="look") as one:
            pl.store(pl.neg(pl.load(box, [0, 0], [16, 64])), [i * 16, 0], y)
        ids[i] = one
    with pl.at(level=pl.Level.CORE_GROUP, deps=[ids[1], ids[2]], name_hint="refill"):
        pl.store(pl.abs(pl.load(x, [0, 0], [16, 64])), [0, 0], box)
    z = use(box, z)
    return y, z


@pl.program
class Called:
    @pl.function(type=pl.FunctionType.InCore)
    def fill(self, x: pl.Tensor[[16, 64], pl.FP32], box: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        box = pl.store(pl.exp(pl.load(x, [0, 0], [16, 64])), [0, 0], box)
        return box

    @pl.function(type=pl.FunctionType.InCore)
    def use(self, box: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        y = pl.store(pl.neg(pl.load(box, [0, 0], [16, 64])), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Inline)
    def both(self, x: pl.Tensor[[16, 64], pl.FP32], y: pl.Tensor[[16, 64], pl.FP32], box: pl.Tensor[[16, 64], pl.FP32]):
        box = self.fill(x, box)
        y = self.use(box, y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[16, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        z: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ):
        box = pl.create_tensor([16, 64], dtype=pl.FP32)
        y = self.both(x, y, box)
        z = self.both(x, z, box)
        return y, z


called = Program(Called)


@pl.jit.inline
def stage(x: pl.Tensor[[16, 64], pl.FP32], box: pl.Tensor[[16, 64], pl.FP32], y: pl.Tensor[[16, 64], pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="pour"):
        pl.store(pl.exp(pl.load(x, [0, 0], [16, 64])), [0, 0], box)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="drink"):
        pl.store(pl.neg(pl.load(box, [0, 0], [16, 64])), [0, 0], y)
    return y


@pl.jit
def one_helper_twice(
    x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]], z: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    box = pl.create_tensor([16, 64], dtype=pl.FP32)
    y = stage(x, box, y)
    z = stage(x, box, z)
    return y, z


@pl.jit.inline
def look_at(box: pl.Tensor[[16, 64], pl.FP32], y: pl.Tensor[[64, 64], pl.FP32], i: pl.Scalar[pl.INT64]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="look"):
        pl.store(pl.neg(pl.load(box, [0, 0], [16, 64])), [i * 16, 0], y)


@pl.jit.inline
def clear(box: pl.Tensor[[16, 64], pl.FP32], x: pl.Tensor[[16, 64], pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="wipe"):
        pl.store(pl.abs(pl.load(x, [0, 0], [16, 64])), [0, 0], box)
    return box


@pl.jit
def two_helpers_and_a_loop(
    x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]], z: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    box = pl.create_tensor([16, 64], dtype=pl.FP32)
    box = fill(x, box)
    for i in pl.parallel(4):
        look_at(box, y, i)
    box = clear(box, x)
    z = use(box, z)
    return y, z


@pl.jit
def reader_before_a_helper(
    x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]], z: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    box = pl.create_tensor([16, 64], dtype=pl.FP32)
    box = fill(x, box)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="see"):
        pl.store(pl.neg(pl.load(box, [0, 0], [16, 64])), [0, 0], y)
    box = clear(box, x)
    z = use(box, z)
    return y, z


_TILE, _TALL = (16, 64), (64, 64)
CASES = [
    Race("calls_by_hand", "raw", (_TILE,) * 2),
    Race("calls_round_a_loop", "war", (_TILE, _TALL)),
    Race("calls_behind_a_loop", "war", (_TILE, _TALL, _TILE)),
    Race("elements_of_an_array_awaited", "war", (_TILE, _TALL, _TILE)),
    Race("called", "war", (_TILE,) * 3),
    Race("one_helper_twice", "war", (_TILE,) * 3),
    Race("two_helpers_and_a_loop", "war", (_TILE, _TALL, _TILE)),
    Race("reader_before_a_helper", "war", (_TILE,) * 3),
]

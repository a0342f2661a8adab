"""Races in every form in which tasks are submitted: in line, in loops, behind loops, in branches, by blocks, in classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

import pypto.language as pl

from .case import Program, rnd, zeros

M = pl.dynamic("M")


@pl.jit
def in_line(
    x: pl.Tensor[[32, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]], z: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    box = pl.create_tensor([32, 32], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill"):
        pl.store(pl.exp(pl.load(x, [0, 0], [32, 32])), [0, 0], box)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="use"):
        pl.store(pl.neg(pl.load(box, [0, 0], [32, 32])), [0, 0], y)
    with pl.at(
        level=pl.Level.CORE_GROUP,
        name_hint="refill",
    ):
        pl.store(pl.abs(pl.load(x, [0, 0], [32, 32])), [0, 0], box)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="again"):
        pl.store(pl.neg(pl.load(box, [0, 0], [32, 32])), [0, 0], z)
    return y, z


@pl.jit
def round_a_loop(x: pl.Tensor[[96, 32], pl.FP32], y: pl.Out[pl.Tensor[[96, 32], pl.FP32]]):
    box = pl.create_tensor([32, 32], dtype=pl.FP32)
    for i in pl.range(3):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill"):
            pl.store(pl.add(pl.load(x, [i * 32, 0], [32, 32]), 1.0), [0, 0], box)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="drain") as drained:
            pl.store(pl.mul(pl.load(box, [0, 0], [32, 32]), 2.0), [i * 32, 0], y)
    return y


@pl.jit
def behind_a_loop(
    x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]], z: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
):
    box = pl.create_tensor([64, 32], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill"):
        pl.store(pl.exp(pl.load(x, [0, 0], [64, 32])), [0, 0], box)
    for r in pl.parallel(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="probe"):
            pl.store(pl.neg(pl.load(box, [r, 0], [16, 32])), [r, 0], y)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="refill"):
        pl.store(pl.abs(pl.load(x, [0, 0], [64, 32])), [0, 0], box)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="again"):
        pl.store(pl.neg(pl.load(box, [0, 0], [64, 32])), [0, 0], z)
    return y, z


@pl.jit
def behind_a_loop_of_some_trips(
    x: pl.Tensor[[M, 32], pl.FP32], y: pl.Out[pl.Tensor[[M, 32], pl.FP32]], z: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
):
    rows = x.shape[0]
    box = pl.create_tensor([16, 32], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill"):
        pl.store(pl.exp(pl.load(x, [0, 0], [16, 32])), [0, 0], box)
    for r in pl.range(0, rows, 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="probe"):
            pl.store(pl.add(pl.load(x, [r, 0], [16, 32]), pl.load(box, [0, 0], [16, 32])), [r, 0], y)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="refill"):
        pl.store(pl.abs(pl.load(x, [0, 0], [16, 32])), [0, 0], box)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="again"):
        pl.store(pl.neg(pl.load(box, [0, 0], [16, 32])), [0, 0], z)
    return y, z


@pl.jit
def collected_in_part(
    x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]], z: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
):
    box = pl.create_tensor([64, 32], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill"):
        pl.store(pl.exp(pl.load(x, [0, 0], [64, 32])), [0, 0], box)
    ids = pl.array.create(4, pl.TASK_ID)
    for i in pl.range(4):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="probe") as one:
            pl.store(pl.neg(pl.load(box, [i * 16, 0], [16, 32])), [i * 16, 0], y)
        ids[i] = one
    gate = pl.system.task_dummy(deps=[ids[k] for k in range(3)])
    with pl.at(level=pl.Level.CORE_GROUP, deps=[gate], name_hint="refill"):
        pl.store(pl.abs(pl.load(x, [0, 0], [64, 32])), [0, 0], box)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="again"):
        pl.store(pl.neg(pl.load(box, [0, 0], [64, 32])), [0, 0], z)
    return y, z


@pl.jit
def blocks_read(
    x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]], z: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
):
    box = pl.create_tensor([64, 32], dtype=pl.FP32)
    for b in pl.spmd(4, name_hint="fill"):
        pl.store(pl.exp(pl.load(x, [b * 16, 0], [16, 32])), [b * 16, 0], box)
    for b in pl.spmd(4, name_hint="use"):
        pl.store(pl.neg(pl.load(box, [b * 16, 0], [16, 32])), [b * 16, 0], y)
    for b in pl.spmd(4, name_hint="refill"):
        pl.store(pl.abs(pl.load(x, [b * 16, 0], [16, 32])), [b * 16, 0], box)
    for b in pl.spmd(4, name_hint="again"):
        pl.store(pl.neg(pl.load(box, [b * 16, 0], [16, 32])), [b * 16, 0], z)
    return y, z


@pl.jit
def one_destination(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    for r in pl.parallel(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="stamp"):
            pl.store(pl.mul(pl.load(x, [r, 0], [16, 32]), 2.0), [0, 0], y)
    return y


@pl.jit
def writers_by_hand(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
    mid = pl.create_tensor([64, 32], dtype=pl.FP32)
    with pl.manual_scope():
        for i in pl.range(3):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="draft"):
                pl.store(pl.mul(pl.load(x, [0, 0], [64, 32]), 2.0), [0, 0], mid)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="emit"):
            pl.store(pl.add(pl.load(mid, [0, 0], [64, 32]), 1.0), [0, 0], y)
    return y


@pl.jit
def in_a_branch(
    x: pl.Tensor[[32, 32], pl.FP32],
    n: pl.Tensor[[1, 8], pl.INT32],
    y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    z: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
):
    box = pl.create_tensor([32, 32], dtype=pl.FP32, init_value=0.0)
    many = pl.read(n, [0, 0])
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="start"):
        pl.store(pl.neg(pl.load(x, [0, 0], [32, 32])), [0, 0], y)
    if many > 2:
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="use"):
            pl.store(pl.neg(pl.load(box, [0, 0], [32, 32])), [0, 0], y)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="refill"):
        pl.store(pl.abs(pl.load(x, [0, 0], [32, 32])), [0, 0], box)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="again"):
        pl.store(pl.neg(pl.load(box, [0, 0], [32, 32])), [0, 0], z)
    return y, z


@pl.program
class Submitted:
    @pl.function(type=pl.FunctionType.InCore)
    def fill(
        self, x: pl.Tensor[[32, 32], pl.FP32], box: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        box = pl.store(pl.exp(pl.load(x, [0, 0], [32, 32])), [0, 0], box)
        return box

    @pl.function(type=pl.FunctionType.InCore)
    def use(
        self, box: pl.Tensor[[32, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        y = pl.store(pl.neg(pl.load(box, [0, 0], [32, 32])), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[32, 32], pl.FP32],
        y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        z: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ):
        box = pl.create_tensor([32, 32], dtype=pl.FP32)
        box, filled = pl.submit(self.fill, x, box)
        y, used = pl.submit(self.use, box, y)
        box, refilled = pl.submit(self.fill, x, box)
        z, again = pl.submit(self.use, box, z)
        return y, z


submitted = Program(Submitted)


@pl.jit
def blocks_too_near(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
    for b in pl.spmd(4, name_hint="strip"):
        pl.store(pl.exp(pl.load(x, [b * 16, 0], [16, 32])), [b * 12, 0], y)
    return y


@pl.jit
def blocks_of_slices(x: pl.Tensor[[16, 96], pl.FP32], y: pl.Out[pl.Tensor[[16, 96], pl.FP32]]):
    for b in pl.spmd(3, name_hint="strip"):
        y[:, 24 * b : 24 * b + 32] = pl.exp(x[:, b * 32 : b * 32 + 32])
    return y


@pl.jit
def blocks_too_large(x: pl.Tensor[[40, 64], pl.FP32], y: pl.InOut[pl.Tensor[[40, 64], pl.FP32]]):
    for b in pl.spmd(4, name_hint="strip"):
        y[b * 8 : b * 8 + 16, :] = pl.exp(x[b * 8 : b * 8 + 16, :])
    return y


@pl.jit
def lanes_on_one_place(
    a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], y: pl.InOut[pl.Tensor[[32, 64], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="mixed"):
        score = pl.matmul(a[:, :], b[:, :])
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            s = pl.aiv_shard(score)
            if lane == 0:
                s = pl.add(s, 2.0)
            else:
                s = pl.add(s, 3.0)
            y[:, 0:32] = s
    return y


@pl.jit.incore
def add_the_row_above(src: pl.Tensor[[32, 64], pl.FP32], dst: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
    for i in pl.range(1, 4):
        dst = pl.store(pl.add(pl.load(src, [i * 8 - 8, 0], [8, 64]), 1.0), [i * 8, 0], dst)
    return dst


@pl.jit
def two_names(x: pl.InOut[pl.Tensor[[32, 64], pl.FP32]]):
    x = add_the_row_above(x, x)
    return x


@pl.program
class TwoNames:
    @pl.function(type=pl.FunctionType.InCore)
    def shift(
        self,
        gain: pl.Scalar[pl.FP32],
        dst: pl.InOut[pl.Tensor[[32, 64], pl.FP32]],
        src: pl.Tensor[[32, 64], pl.FP32],
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        for i in pl.range(1, 4):
            dst = pl.store(pl.mul(pl.load(src, [i * 8 - 8, 0], [8, 64]), gain), [i * 8, 0], dst)
        return dst

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[32, 64], pl.FP32]]):
        x, _ = pl.submit(self.shift, 3.0, x, x)
        return x


two_names_in_a_class = Program(TwoNames)


@dataclass(frozen=True)
class Race:
    """A kernel of this module with a race; only its report matters."""

    name: str
    kind: str
    shapes: tuple[tuple[int, ...], ...]

    @property
    def faulty_name(self) -> str:
        return self.name

    def arguments(self) -> list[torch.Tensor]:
        """Fresh arguments; one of eight columns is the number 3, as INT32."""
        made: list[Any] = []
        for number, shape in enumerate(self.shapes):
            if shape == (1, 8):
                made.append(torch.full(shape, 3, dtype=torch.int32))
            else:
                made.append(zeros(*shape) if number else rnd(*shape))
        return made


_SQUARE, _TALL = (32, 32), (64, 32)
CASES = [
    Race("in_line", "war", (_SQUARE,) * 3),
    Race("round_a_loop", "war", ((96, 32),) * 2),
    Race("behind_a_loop", "war", (_TALL,) * 3),
    Race("behind_a_loop_of_some_trips", "war", (_TALL, _TALL, (16, 32))),
    Race("collected_in_part", "war", (_TALL,) * 3),
    Race("blocks_read", "war", (_TALL,) * 3),
    Race("one_destination", "parallel-overlap", (_TALL, (16, 32))),
    Race("writers_by_hand", "parallel-overlap", (_TALL,) * 2),
    Race("in_a_branch", "war", (_SQUARE, (1, 8), _SQUARE, _SQUARE)),
    Race("submitted", "war", (_SQUARE,) * 3),
    Race("two_names", "alias-view", ((32, 64),)),
    Race("two_names_in_a_class", "alias-view", ((32, 64),)),
    Race("blocks_too_near", "parallel-overlap", (_TALL, _TALL)),
    Race("blocks_too_large", "parallel-overlap", ((40, 64),) * 2),
    Race("blocks_of_slices", "parallel-overlap", ((16, 96),) * 2),
    Race("lanes_on_one_place", "parallel-overlap", ((32, 64), (64, 32), (32, 64))),
]

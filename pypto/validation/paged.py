"""Programs of many tasks: a paged attention of four tasks per group of pages, a producer with a consumer."""

# Annotations in here are tensor types of the language, not of Python.
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pypto.language as pl
from pypto.sim.recording import Recording

from .programs import recorded, tensor

_HEADS, _DEPTH, _PAGE, _CHUNK = 16, 128, 128, 1024


@dataclass(frozen=True)
class Paged:
    """``batch`` requests, each of ``groups`` groups of ``pages`` pages of 128 keys; 16 query heads of width 128, bf16.

    The pages of a request follow each other in memory. Tasks: one per request, four per group.
    """

    batch: int
    groups: int
    pages: int


def paged_attention(p: Paged) -> Recording:
    """Scores, softmax, product with the values, update of the running result: a chain per request."""
    batch, groups, pages = p.batch, p.groups, p.pages
    heads, depth, page = _HEADS, _DEPTH, _PAGE
    span = pages * page
    chunk = min(_CHUNK, span)
    keys = batch * groups * span

    @pl.jit
    def attention(
        q: pl.Tensor[[batch * heads, depth], pl.BF16],
        k: pl.Tensor[[keys, depth], pl.BF16],
        v: pl.Tensor[[keys, depth], pl.BF16],
        out: pl.Out[pl.Tensor[[batch * heads, depth], pl.FP32]],
    ):
        turned = pl.transpose(k, 0, 1)
        for b in pl.range(batch):
            tops = pl.create_tensor([heads, 16], dtype=pl.FP32)
            sums = pl.create_tensor([heads, 16], dtype=pl.FP32)
            acc = pl.create_tensor([heads, depth], dtype=pl.FP32)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="begin"):
                tops = pl.store(pl.tile.full([heads, 16], dtype=pl.FP32, value=-30000.0), [0, 0], tops)
                sums = pl.store(pl.tile.full([heads, 16], dtype=pl.FP32, value=0.0), [0, 0], sums)
                acc = pl.store(pl.tile.full([heads, depth], dtype=pl.FP32, value=0.0), [0, 0], acc)
            for g in pl.range(groups):
                first = (b * groups + g) * span
                scores = pl.create_tensor([heads, span], dtype=pl.FP32)
                weights = pl.create_tensor([heads, span], dtype=pl.BF16)
                part_tops = pl.create_tensor([heads, 16], dtype=pl.FP32)
                part_sums = pl.create_tensor([heads, 16], dtype=pl.FP32)
                part = pl.create_tensor([heads, depth], dtype=pl.FP32)
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="scores"):
                    lq = pl.load(q, [b * heads, 0], [heads, depth], target_memory=pl.Mem.Mat)
                    left = pl.move(lq, target_memory=pl.Mem.Left)
                    for at in pl.pipeline(0, span, page, stage=2):
                        lk = pl.load(turned, [0, first + at], [depth, page], target_memory=pl.Mem.Mat)
                        score = pl.matmul(left, pl.move(lk, target_memory=pl.Mem.Right))
                        scores = pl.store(score, [0, at], scores)
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="softmax"):
                    scratch = pl.create_tile([heads, chunk], dtype=pl.FP32)
                    top = pl.tile.full([heads, 1], dtype=pl.FP32, value=-30000.0)
                    for at in pl.range(0, span, chunk):
                        top = pl.maximum(top, pl.row_max(pl.load(scores, [0, at], [heads, chunk]), scratch))
                    total = pl.tile.full([heads, 1], dtype=pl.FP32, value=0.0)
                    for at in pl.range(0, span, chunk):
                        e = pl.exp(pl.row_expand_sub(pl.load(scores, [0, at], [heads, chunk]), top))
                        total = pl.add(total, pl.row_sum(e, scratch))
                        weights = pl.store(pl.cast(e, pl.BF16, mode="rint"), [0, at], weights)
                    wide = pl.tile.full([heads, 16], dtype=pl.FP32, value=1.0)
                    part_tops = pl.store(pl.row_expand_mul(wide, top), [0, 0], part_tops)
                    part_sums = pl.store(pl.row_expand_mul(wide, total), [0, 0], part_sums)
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="values"):
                    result = pl.create_tile([heads, depth], dtype=pl.FP32, target_memory=pl.Mem.Acc)
                    for at in pl.pipeline(0, span, page, stage=2):
                        lw = pl.load(weights, [0, at], [heads, page], target_memory=pl.Mem.Mat)
                        lv = pl.load(v, [first + at, 0], [page, depth], target_memory=pl.Mem.Mat)
                        lp, rv = pl.move(lw, target_memory=pl.Mem.Left), pl.move(lv, target_memory=pl.Mem.Right)
                        if at == 0:
                            result = pl.matmul(lp, rv)
                        else:
                            result = pl.matmul_acc(result, lp, rv)
                    part = pl.store(result, [0, 0], part)
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="update"):
                    old_top, new_top = pl.load(tops, [0, 0], [heads, 16]), pl.load(part_tops, [0, 0], [heads, 16])
                    higher = pl.maximum(old_top, new_top)
                    old, new = pl.exp(pl.sub(old_top, higher)), pl.exp(pl.sub(new_top, higher))
                    kept = pl.mul(pl.load(sums, [0, 0], [heads, 16]), old)
                    more = pl.add(kept, pl.mul(pl.load(part_sums, [0, 0], [heads, 16]), new))
                    before = pl.row_expand_mul(pl.load(acc, [0, 0], [heads, depth]), old[:, 0:1])
                    grown = pl.add(before, pl.row_expand_mul(pl.load(part, [0, 0], [heads, depth]), new[:, 0:1]))
                    tops = pl.store(higher, [0, 0], tops)
                    sums = pl.store(more, [0, 0], sums)
                    acc = pl.store(grown, [0, 0], acc)
                    out = pl.store(pl.row_expand_div(grown, more[:, 0:1]), [b * heads, 0], out)
        return out

    operands = (
        tensor(batch * heads, depth, dtype="bfloat16"), tensor(keys, depth, dtype="bfloat16"),
        tensor(keys, depth, dtype="bfloat16"), tensor(batch * heads, depth, dtype="float32"),
    )  # fmt: skip
    return recorded(attention, *operands)


_SIDE = 64


_WORK = 8


@pl.inline
def _produce(x, y):
    b = pl.get_block_idx()
    t = pl.load(x, [b * _SIDE, 0], [_SIDE, _SIDE])
    for _ in pl.range(_WORK):
        t = pl.exp(t)
    y = pl.store(t, [b * _SIDE, 0], y)
    return y


@pl.inline
def _consume(y, z):
    r = pl.get_block_idx()
    z = pl.store(pl.neg(pl.load(y, [r * _SIDE, 0], [_SIDE, _SIDE])), [r * _SIDE, 0], z)
    return z


Link = Literal["plain", "early", "together"]


def producer_and_consumer(blocks: int, readers: int, link: Link) -> Recording:
    """A vector task of ``blocks`` blocks and one of ``readers`` blocks that needs all of them.

    ``early``: the consumer may be staged before the producer ends. ``together``: its blocks start at once.
    """
    rows, read = blocks * _SIDE, readers * _SIDE

    @pl.jit
    def plain(
        x: pl.Tensor[[rows, _SIDE], pl.FP32],
        y: pl.Out[pl.Tensor[[rows, _SIDE], pl.FP32]],
        z: pl.Out[pl.Tensor[[read, _SIDE], pl.FP32]],
    ):
        with pl.spmd(blocks, name_hint="produce"):
            y = _produce(x, y)
        with pl.spmd(readers, name_hint="consume"):
            z = _consume(y, z)
        return y, z

    @pl.jit
    def early(
        x: pl.Tensor[[rows, _SIDE], pl.FP32],
        y: pl.Out[pl.Tensor[[rows, _SIDE], pl.FP32]],
        z: pl.Out[pl.Tensor[[read, _SIDE], pl.FP32]],
    ):
        with pl.spmd(blocks, name_hint="produce", allow_early_resolve=True):
            y = _produce(x, y)
        with pl.spmd(readers, name_hint="consume"):
            z = _consume(y, z)
        return y, z

    @pl.jit
    def together(
        x: pl.Tensor[[rows, _SIDE], pl.FP32],
        y: pl.Out[pl.Tensor[[rows, _SIDE], pl.FP32]],
        z: pl.Out[pl.Tensor[[read, _SIDE], pl.FP32]],
    ):
        with pl.spmd(blocks, name_hint="produce"):
            y = _produce(x, y)
        with pl.spmd(readers, name_hint="consume", sync_start=True):
            z = _consume(y, z)
        return y, z

    kernel = {"plain": plain, "early": early, "together": together}[link]
    return recorded(kernel, *(tensor(n, _SIDE, dtype="float32") for n in (rows, rows, read)))


def many_small_tasks(waves: int) -> Recording:
    """72 tasks without work at a time, on every core of the chip: 48 vector blocks and 24 cube blocks."""

    @pl.jit
    def waves_of_tasks(
        x: pl.Tensor[[48 * 16, 16], pl.FP16],
        y: pl.InOut[pl.Tensor[[48 * 16, 16], pl.FP16]],
        z: pl.InOut[pl.Tensor[[24 * 16, 16], pl.FP32]],
    ):
        for _ in pl.range(waves):
            with pl.spmd(48, name_hint="vector"):
                b = pl.get_block_idx()
                y = pl.store(pl.load(x, [b * 16, 0], [16, 16]), [b * 16, 0], y)
            with pl.spmd(24, name_hint="cube"):
                n = pl.get_block_idx()
                t = pl.load(x, [n * 16, 0], [16, 16], target_memory=pl.Mem.Mat)
                left, right = pl.move(t, target_memory=pl.Mem.Left), pl.move(t, target_memory=pl.Mem.Right)
                z = pl.store(pl.matmul(left, right), [n * 16, 0], z)
        return y, z

    operands = tensor(48 * 16, 16), tensor(48 * 16, 16), tensor(24 * 16, 16, dtype="float32")
    return recorded(waves_of_tasks, *operands)

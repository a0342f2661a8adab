"""Missing order between tasks, blocks, iterations and lanes."""

from __future__ import annotations

import torch

import pypto.language as pl

from .case import Case, rnd, zeros

M = pl.dynamic("M")

# --- a reader of columns and a refill of rows, kernels of their own


@pl.jit.incore
def fill_rows(x: pl.Tensor[[48, 64], pl.FP32], box: pl.Out[pl.Tensor[[48, 64], pl.FP32]]):
    box = pl.store(pl.mul(pl.load(x, [0, 0], [48, 64]), 2.0), [0, 0], box)
    return box


@pl.jit.incore
def take_columns(box: pl.Tensor[[48, 64], pl.FP32], y: pl.Out[pl.Tensor[[48, 16], pl.FP32]]):
    y = pl.store(pl.add(pl.load(box, [0, 16], [48, 16]), 1.0), [0, 0], y)
    return y


@pl.jit.incore
def refill_rows(x: pl.Tensor[[48, 64], pl.FP32], box: pl.InOut[pl.Tensor[[48, 64], pl.FP32]]):
    box = pl.store(pl.neg(pl.load(x, [8, 0], [8, 64])), [8, 0], box)
    return box


@pl.jit
def columns_then_rows(
    x: pl.Tensor[[48, 64], pl.FP32], y: pl.Out[pl.Tensor[[48, 16], pl.FP32]], z: pl.Out[pl.Tensor[[48, 64], pl.FP32]]
):
    box = pl.create_tensor([48, 64], dtype=pl.FP32)
    box = fill_rows(x, box)
    y = take_columns(box, y)
    box = refill_rows(x, box)
    z = fill_rows(box, z)
    return y, z


@pl.jit
def columns_then_rows_fixed(
    x: pl.Tensor[[48, 64], pl.FP32], y: pl.Out[pl.Tensor[[48, 16], pl.FP32]], z: pl.Out[pl.Tensor[[48, 64], pl.FP32]]
):
    box = pl.create_tensor([48, 64], dtype=pl.FP32)
    box = fill_rows(x, box)
    y = take_columns(box, y)
    again = pl.create_tensor([48, 64], dtype=pl.FP32)
    again = fill_rows(x, again)
    again = refill_rows(x, again)
    z = fill_rows(again, z)
    return y, z


def _columns_then_rows(x, y, z):
    box = x * 2
    want = box[:, 16:32] + 1
    box[8:16] = -x[8:16]
    return {1: want, 2: box * 2}


# --- blocks read, one task refills


@pl.jit
def blocks_then_refill(
    x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]], z: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
):
    box = pl.create_tensor([64, 32], dtype=pl.FP32)
    for b in pl.spmd(4, name_hint="spread"):
        pl.store(pl.exp(pl.load(x, [b * 16, 0], [16, 32])), [b * 16, 0], box)
    for b in pl.spmd(4, name_hint="gather"):
        pl.store(pl.neg(pl.load(box, [b * 16, 0], [16, 32])), [b * 16, 0], y)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="again"):
        pl.store(pl.mul(pl.load(x, [20, 0], [24, 32]), 3.0), [20, 0], box)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="out"):
        pl.store(pl.add(pl.load(box, [0, 0], [64, 32]), 0.0), [0, 0], z)
    return y, z


@pl.jit
def blocks_then_refill_fixed(
    x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]], z: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
):
    box = pl.create_tensor([64, 32], dtype=pl.FP32)
    for b in pl.spmd(4, name_hint="spread"):
        pl.store(pl.exp(pl.load(x, [b * 16, 0], [16, 32])), [b * 16, 0], box)
    with pl.spmd(4, name_hint="gather") as read:
        c = pl.get_block_idx()
        pl.store(pl.neg(pl.load(box, [c * 16, 0], [16, 32])), [c * 16, 0], y)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[read], name_hint="again"):
        pl.store(pl.mul(pl.load(x, [20, 0], [24, 32]), 3.0), [20, 0], box)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="out"):
        pl.store(pl.add(pl.load(box, [0, 0], [64, 32]), 0.0), [0, 0], z)
    return y, z


def _blocks_then_refill(x, y, z):
    box = x.exp()
    want = -box
    box = box.clone()
    box[20:44] = 3 * x[20:44]
    return {1: want, 2: box}


# --- columns of parallel iterations overlap


@pl.jit
def overlapping_columns(x: pl.Tensor[[16, 56], pl.FP32], y: pl.Out[pl.Tensor[[16, 56], pl.FP32]]):
    for c in pl.parallel(0, 48, 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="paint"):
            pl.store(pl.add(pl.load(x, [0, c], [16, 24]), 1.0), [0, c], y)
    return y


@pl.jit
def overlapping_columns_fixed(x: pl.Tensor[[16, 56], pl.FP32], y: pl.Out[pl.Tensor[[16, 56], pl.FP32]]):
    for c in pl.parallel(0, 56, 8):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="paint"):
            pl.store(pl.add(pl.load(x, [0, c], [16, 8]), 1.0), [0, c], y)
    return y


# --- one block clears what the others add to


@pl.jit
def cleared_in_the_launch(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    for b in pl.spmd(4, name_hint="total"):
        if b == 0:
            pl.store(pl.tile.full([16, 32], dtype=pl.FP32, value=0.0), [0, 0], y)
        pl.store(pl.load(x, [b * 16, 0], [16, 32]), [0, 0], y, atomic=pl.AtomicType.Add)
    return y


@pl.jit
def cleared_in_the_launch_fixed(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="clear"):
        pl.store(pl.tile.full([16, 32], dtype=pl.FP32, value=0.0), [0, 0], y)
    for b in pl.spmd(4, name_hint="total"):
        pl.store(pl.load(x, [b * 16, 0], [16, 32]), [0, 0], y, atomic=pl.AtomicType.Add)
    return y


# --- manual scope: the middle of three is not awaited


@pl.jit
def middle_forgotten(x: pl.Tensor[[M, 32], pl.FP32], y: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    rows = x.shape[0]
    mid = pl.create_tensor([rows, 32], dtype=pl.FP32)
    with pl.manual_scope():
        for r in pl.range(0, rows, 32):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="first"):
                pl.store(pl.exp(pl.load(x, [r, 0], [32, 32])), [r, 0], mid)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="second"):
                pl.store(pl.neg(pl.load(mid, [r, 0], [32, 32])), [r, 0], y)
    return y


@pl.jit
def middle_forgotten_fixed(x: pl.Tensor[[M, 32], pl.FP32], y: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    rows = x.shape[0]
    mid = pl.create_tensor([rows, 32], dtype=pl.FP32)
    with pl.manual_scope():
        for r in pl.range(0, rows, 32):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="first") as done:
                pl.store(pl.exp(pl.load(x, [r, 0], [32, 32])), [r, 0], mid)
            with pl.at(level=pl.Level.CORE_GROUP, deps=[done], name_hint="second"):
                pl.store(pl.neg(pl.load(mid, [r, 0], [32, 32])), [r, 0], y)
    return y


# --- ping-pong buffer with one buffer


@pl.jit
def one_buffer_for_two(x: pl.Tensor[[96, 32], pl.FP32], y: pl.Out[pl.Tensor[[96, 32], pl.FP32]]):
    box = pl.create_tensor([32, 32], dtype=pl.FP32)
    for i in pl.range(6):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="produce"):
            pl.store(pl.add(pl.load(x, [i * 16, 0], [16, 32]), 1.0), [i % 2 * 16, 0], box)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="consume"):
            pl.store(pl.mul(pl.load(box, [i % 2 * 16, 0], [16, 32]), 2.0), [i * 16, 0], y)
    return y


@pl.jit
def one_buffer_for_two_fixed(x: pl.Tensor[[96, 32], pl.FP32], y: pl.Out[pl.Tensor[[96, 32], pl.FP32]]):
    box = pl.create_tensor([32, 32], dtype=pl.FP32)
    used = pl.array.create(2, pl.TASK_ID)
    for i in pl.range(6):
        with pl.at(level=pl.Level.CORE_GROUP, deps=[used[i % 2]], name_hint="produce"):
            pl.store(pl.add(pl.load(x, [i * 16, 0], [16, 32]), 1.0), [i % 2 * 16, 0], box)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="consume") as tid:
            pl.store(pl.mul(pl.load(box, [i % 2 * 16, 0], [16, 32]), 2.0), [i * 16, 0], y)
        used[i % 2] = tid
    return y


# --- writers without inference, rows of a view


@pl.jit
def two_writers_of_a_view(x: pl.Tensor[[32, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    mid = pl.create_tensor([16, 64], dtype=pl.FP32, manual_dep=True)
    tall = pl.reshape(mid, [32, 32])
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="whole") as a:
        pl.store(pl.exp(pl.load(x, [0, 0], [32, 32])), [0, 0], tall)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="corner") as b:
        pl.store(pl.neg(pl.load(x, [0, 0], [4, 32])), [4, 32], mid)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[a, b], name_hint="emit"):
        pl.store(pl.add(pl.load(mid, [0, 0], [16, 64]), 1.0), [0, 0], y)
    return y


@pl.jit
def two_writers_of_a_view_fixed(x: pl.Tensor[[32, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    mid = pl.create_tensor([16, 64], dtype=pl.FP32, manual_dep=True)
    tall = pl.reshape(mid, [32, 32])
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="whole") as a:
        pl.store(pl.exp(pl.load(x, [0, 0], [32, 32])), [0, 0], tall)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[a], name_hint="corner") as b:
        pl.store(pl.neg(pl.load(x, [0, 0], [4, 32])), [4, 32], mid)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[b], name_hint="emit"):
        pl.store(pl.add(pl.load(mid, [0, 0], [16, 64]), 1.0), [0, 0], y)
    return y


def _two_writers_of_a_view(x, y):
    mid = x.exp().reshape(16, 64).clone()
    mid[4:8, 32:] = -x[:4]
    return {1: mid + 1}


# --- words of one cache line from blocks


@pl.jit
def counters_side_by_side(x: pl.Tensor[[64, 32], pl.FP32], n: pl.Out[pl.Tensor[[1, 4], pl.INT32]]):
    for b in pl.spmd(4, name_hint="count"):
        pl.write(n, [0, b], pl.cast(b, pl.INT32))
    return n


@pl.jit
def counters_side_by_side_fixed(x: pl.Tensor[[64, 32], pl.FP32], n: pl.Out[pl.Tensor[[1, 4], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="count"):
        for b in pl.range(4):
            pl.write(n, [0, b], pl.cast(b, pl.INT32))
    return n


# --- one buffer under two names, loop carried


@pl.jit.incore
def running_sum(src: pl.Tensor[[8, 64], pl.FP32], dst: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
    for i in pl.range(1, 8):
        a = pl.load(src, [i - 1, 0], [1, 64])
        b = pl.load(src, [i, 0], [1, 64])
        dst = pl.store(pl.add(a, b), [i, 0], dst)
    return dst


@pl.jit
def summed_in_place(x: pl.InOut[pl.Tensor[[8, 64], pl.FP32]]):
    x = running_sum(x, x)
    return x


@pl.jit.incore
def running_sum_fixed(x: pl.InOut[pl.Tensor[[8, 64], pl.FP32]]):
    for i in pl.range(1, 8):
        a = pl.load(x, [i - 1, 0], [1, 64])
        b = pl.load(x, [i, 0], [1, 64])
        x = pl.store(pl.add(a, b), [i, 0], x)
    return x


@pl.jit
def summed_in_place_fixed(x: pl.InOut[pl.Tensor[[8, 64], pl.FP32]]):
    x = running_sum_fixed(x)
    return x


_IDS = torch.tensor([[0, 3, 5, 7, 1, 2, 4, 6]], dtype=torch.int32)

# --- rows gathered


@pl.jit
def gathered_too_early(
    x: pl.Tensor[[32, 32], pl.FP32], ids: pl.Tensor[[1, 8], pl.INT32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]]
):
    mid = pl.create_tensor([32, 32], dtype=pl.FP32)
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="make"):
            pl.store(pl.exp(pl.load(x, [0, 0], [32, 32])), [0, 0], mid)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="pick"):
            pl.store(pl.mgather(mid, pl.load(ids, [0, 0], [1, 8])), [0, 0], y)
    return y


@pl.jit
def gathered_too_early_fixed(
    x: pl.Tensor[[32, 32], pl.FP32], ids: pl.Tensor[[1, 8], pl.INT32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]]
):
    mid = pl.create_tensor([32, 32], dtype=pl.FP32)
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="make") as made:
            pl.store(pl.exp(pl.load(x, [0, 0], [32, 32])), [0, 0], mid)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[made], name_hint="pick"):
            pl.store(pl.mgather(mid, pl.load(ids, [0, 0], [1, 8])), [0, 0], y)
    return y


CASES = [
    Case("columns_then_rows", "war", columns_then_rows, columns_then_rows_fixed,
         lambda: [rnd(48, 64), zeros(48, 16), zeros(48, 64)], _columns_then_rows, "box",
         ("take_columns", "refill_rows"), ((8, 16), (16, 32)), "deps=", ("pl.load(box", "pl.neg")),
    Case("blocks_then_refill", "war", blocks_then_refill, blocks_then_refill_fixed,
         lambda: [rnd(64, 32), zeros(64, 32), zeros(64, 32)], _blocks_then_refill, "box", ("gather", "again"),
         (), "deps=", ("pl.neg(pl.load(box", "pl.mul")),
    Case("overlapping_columns", "parallel-overlap", overlapping_columns, overlapping_columns_fixed,
         lambda: [rnd(16, 56), zeros(16, 56)], lambda x, y: {1: x + 1}, "y", ("paint",), ((0, 16), (16, 24)),
         "disjoint", ("pl.store(pl.add",)),
    Case("cleared_in_the_launch", "parallel-overlap", cleared_in_the_launch, cleared_in_the_launch_fixed,
         lambda: [rnd(64, 32), zeros(16, 32)], lambda x, y: {1: x.reshape(4, 16, 32).sum(0)}, "y", ("total",),
         (), "", ("pl.tile.full", "atomic=")),
    Case("middle_forgotten", "raw", middle_forgotten, middle_forgotten_fixed,
         lambda: [rnd(96, 32), zeros(96, 32)], lambda x, y: {1: -x.exp()}, "mid", ("first", "second"), (), "deps=",
         ("pl.exp", "pl.neg")),
    Case("one_buffer_for_two", "war", one_buffer_for_two, one_buffer_for_two_fixed,
         lambda: [rnd(96, 32), zeros(96, 32)], lambda x, y: {1: (x + 1) * 2}, "box", ("consume", "produce"), (),
         "deps=", ("pl.load(box", "pl.add")),
    Case("two_writers_of_a_view", "waw", two_writers_of_a_view, two_writers_of_a_view_fixed,
         lambda: [rnd(32, 32), zeros(16, 64)], _two_writers_of_a_view, "mid", ("whole", "corner"),
         ((4, 8), (32, 64)), "deps=", ("pl.exp", "pl.neg")),
    Case("counters_side_by_side", "false-sharing", counters_side_by_side, counters_side_by_side_fixed,
         lambda: [rnd(64, 32), zeros(1, 4, dtype=rnd(1).int().dtype)],
         lambda x, n: {1: n + rnd(1).new_tensor([[0, 1, 2, 3]]).int()}, "n", ("count",), (), "64 bytes apart",
         ("pl.write",)),
    Case("gathered_too_early", "raw", gathered_too_early, gathered_too_early_fixed,
         lambda: [rnd(32, 32), _IDS.clone(), zeros(8, 32)],
         lambda x, ids, y: {2: x[_IDS[0].long()].exp()}, "mid", ("make", "pick"), (), "deps=", ("pl.mgather",)),
    Case("summed_in_place", "alias-view", summed_in_place, summed_in_place_fixed,
         lambda: [rnd(8, 64)], lambda x: {0: x.cumsum(0)}, "x", ("running_sum",), (), "InOut",
         ("pl.store(pl.add(a, b)",)),
]  # fmt: skip

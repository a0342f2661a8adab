"""Programs that a simple detector accuses and that are right."""

from __future__ import annotations

import torch

import pypto.language as pl

from .case import Case, Program, rnd, zeros

M = pl.dynamic("M")
INFINITY = float("inf")


@pl.jit
def even_and_odd_rows(x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
    wide = pl.reshape(y, [16, 128])
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="even"):
        pl.store(pl.exp(pl.reshape(pl.load(x, [0, 0], [16, 64]), [16, 64])), [0, 0], wide)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="odd"):
        pl.store(pl.neg(pl.load(x, [16, 0], [16, 64])), [0, 64], wide)
    return y


def _even_and_odd_rows(x, y):
    return {1: torch.cat([x[:16].exp(), -x[16:]], 1).reshape(32, 64)}


@pl.jit
def ping_pong(x: pl.Tensor[[96, 32], pl.FP32], y: pl.Out[pl.Tensor[[96, 32], pl.FP32]]):
    box = pl.create_tensor([32, 32], dtype=pl.FP32)
    for i in pl.range(6):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="both"):
            pl.store(pl.add(pl.load(x, [i * 16, 0], [16, 32]), 1.0), [i % 2 * 16, 0], box)
            pl.store(pl.mul(pl.load(box, [i % 2 * 16, 0], [16, 32]), 2.0), [i * 16, 0], y)
    return y


@pl.jit
def read_before_and_after(
    x: pl.Tensor[[32, 32], pl.FP32],
    state: pl.InOut[pl.Tensor[[32, 32], pl.FP32]],
    y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="before") as seen:
        pl.store(pl.exp(pl.load(state, [0, 0], [32, 32])), [0, 0], y)
    gate = pl.system.task_dummy(deps=[seen])
    with pl.at(level=pl.Level.CORE_GROUP, deps=[gate], name_hint="update"):
        pl.store(pl.add(pl.load(state, [0, 0], [32, 32]), pl.load(x, [0, 0], [32, 32])), [0, 0], state)
    return state, y


@pl.jit
def padded_to_the_edge(x: pl.Tensor[[M, 32], pl.FP32], y: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    for r in pl.range(0, x.shape[0], 32):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="strip"):
            rows = pl.min(x.shape[0] - r, 32)
            t = pl.load(x, [r, 0], [32, 32], valid_shape=[rows, 32])
            pl.store(pl.mul(pl.exp(t), pl.add(t, 1.0)), [r, 0], y)
    return y


@pl.jit
def padding_selected_away(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="mask"):
        t = pl.load(x, [0, 0], [16, 64])
        e = pl.recip(t)
        m = pl.cmps(pl.abs(t), 0.5, cmp_type=4)
        tmp = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        pl.store(pl.sel(m, e, pl.tile.full([16, 64], dtype=pl.FP32, value=0.0), tmp), [0, 0], y)
    return y


def _some_zeros() -> torch.Tensor:
    x = rnd(16, 64)
    x[3] = 0
    return x


@pl.jit
def partial_sums_by_atomics(x: pl.Tensor[[128, 32], pl.FP32], y: pl.Out[pl.Tensor[[1, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="clear"):
        pl.store(pl.tile.full([1, 32], dtype=pl.FP32, value=0.0), [0, 0], y)
    for r in pl.parallel(0, 128, 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="part"):
            tmp = pl.create_tile([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            pl.store(pl.col_sum(pl.load(x, [r, 0], [16, 32]), tmp), [0, 0], y, atomic=pl.AtomicType.Add)
    return y


@pl.jit
def online_softmax(x: pl.Tensor[[16, 128], pl.FP32], y: pl.Out[pl.Tensor[[16, 128], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="soft"):
        tmp = pl.create_tile([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        best = pl.tile.full([16, 1], dtype=pl.FP32, value=-3.0e38)
        total = pl.tile.full([16, 1], dtype=pl.FP32, value=0.0)
        for c in pl.range(0, 128, 32):
            t = pl.load(x, [0, c], [16, 32])
            top = pl.maximum(best, pl.row_max(t, tmp))
            total = pl.add(pl.mul(total, pl.exp(pl.sub(best, top))), pl.row_sum(pl.exp(pl.row_expand_sub(t, top)), tmp))
            best = top
        for c in pl.range(0, 128, 32):
            e = pl.exp(pl.row_expand_sub(pl.load(x, [0, c], [16, 32]), best))
            pl.store(pl.row_expand_div(e, total), [0, c], y)
    return y


@pl.jit
def same_values_from_both_lanes(
    a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="mixed"):
        score = pl.matmul(a[:, :], b[:, :])
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            s = pl.aiv_shard(score)
            y[0:32, :] = pl.mul(s, 2.0)
    return y


@pl.jit
def gather_of_permuted_rows(
    x: pl.Tensor[[32, 32], pl.FP32], ids: pl.Tensor[[1, 32], pl.INT32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    for b in pl.spmd(4, name_hint="pick"):
        pl.store(pl.mgather(x, pl.load(ids, [0, b * 8], [1, 8])), [b * 8, 0], y)
    return y


@pl.jit
def counters_a_line_apart(x: pl.Tensor[[64, 32], pl.FP32], n: pl.InOut[pl.Tensor[[4, 16], pl.INT32]]):
    for b in pl.spmd(4, name_hint="count"):
        pl.write(n, [b, 0], pl.cast(b, pl.INT32))
    return n


@pl.jit
def fresh_buffer_each_time(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
    for i in pl.range(4):
        box = pl.create_tensor([16, 32], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill"):
            pl.store(pl.exp(pl.load(x, [i * 16, 0], [16, 32])), [0, 0], box)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="use"):
            pl.store(pl.neg(pl.load(box, [0, 0], [16, 32])), [i * 16, 0], y)
    return y


@pl.jit
def scalar_loop_within_a_task(x: pl.Tensor[[1, 64], pl.INT32], y: pl.Out[pl.Tensor[[1, 64], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="scan"):
        total = pl.array.create(1, pl.INT32)
        total[0] = 0
        for i in pl.range(64):
            total[0] = total[0] + pl.read(x, [0, i])
            pl.write(y, [0, i], total[0])
    return y


@pl.jit
def infinity_as_a_start(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 1], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="lowest"):
        tmp = pl.create_tile([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        best = pl.tile.full([16, 1], dtype=pl.FP32, value=INFINITY)
        for c in pl.range(0, 64, 32):
            best = pl.minimum(best, pl.row_min(pl.load(x, [0, c], [16, 32]), tmp))
        pl.store(best, [0, 0], y)
    return y


@pl.jit
def grid_of_tiles(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    for b in pl.spmd(16, name_hint="tile"):
        pl.store(pl.transpose(pl.load(x, [b // 4 * 16, b % 4 * 16], [16, 16]), 0, 1), [b % 4 * 16, b // 4 * 16], y)
    return y


@pl.jit
def halo_in_two_launches(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
    mid = pl.create_tensor([64, 32], dtype=pl.FP32)
    for b in pl.spmd(4, name_hint="inner"):
        pl.store(pl.exp(pl.load(x, [b * 16, 0], [16, 32])), [b * 16, 0], mid)
    for b in pl.spmd(4, name_hint="halo"):
        pl.store(pl.neg(pl.load(mid, [(b + 1) % 4 * 16, 0], [16, 32])), [b * 16, 0], y)
    return y


@pl.program
class ReadersOfOneInput:
    @pl.function(type=pl.FunctionType.InCore)
    def part(
        self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]], c: pl.Scalar[pl.INT32]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        y = pl.store(pl.exp(pl.load(x, [0, c], [32, 32])), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[32, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        z: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ):
        y = self.part(x, y, 0)
        z = self.part(x, z, 32)
        return y, z


@pl.jit
def mask_beside_the_padding(x: pl.Tensor[[16, 50], pl.FP32], y: pl.Out[pl.Tensor[[16, 50], pl.FP32]]):
    wide = pl.create_tensor([16, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="widen"):
        pl.store(pl.load(x, [0, 0], [16, 64], valid_shape=[16, 50]), [0, 0], wide)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="mask"):
        t = pl.load(wide, [0, 0], [16, 64])
        tmp = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        r = pl.sel(pl.cmps(t, 0.0, cmp_type=4), t, pl.neg(t), tmp)
        pl.store(pl.tile.set_validshape(r, 16, 50), [0, 0], y)
    return y


def _int_row(n: int) -> torch.Tensor:
    return torch.arange(n, dtype=torch.int32)[None]


def harmless(name, kernel, arguments, expected) -> Case:
    return Case(name, "", kernel, kernel, arguments, expected)


CASES = [
    harmless("even_and_odd_rows", even_and_odd_rows, lambda: [rnd(32, 64), zeros(32, 64)], _even_and_odd_rows),
    harmless("ping_pong", ping_pong, lambda: [rnd(96, 32), zeros(96, 32)], lambda x, y: {1: (x + 1) * 2}),
    harmless("read_before_and_after", read_before_and_after,
             lambda: [rnd(32, 32), rnd(32, 32, seed=1), zeros(32, 32)],
             lambda x, state, y: {1: state + x, 2: state.exp()}),
    harmless("padded_to_the_edge", padded_to_the_edge, lambda: [rnd(72, 32), zeros(72, 32)],
             lambda x, y: {1: x.exp() * (x + 1)}),
    harmless("padding_selected_away", padding_selected_away, lambda: [_some_zeros(), zeros(16, 64)],
             lambda x, y: {1: torch.where(x.abs() > 0.5, 1 / x, torch.zeros(()))}),
    harmless("partial_sums_by_atomics", partial_sums_by_atomics, lambda: [rnd(128, 32).round(), zeros(1, 32)],
             lambda x, y: {1: x.sum(0, keepdim=True)}),
    harmless("online_softmax", online_softmax, lambda: [3 * rnd(16, 128), zeros(16, 128)],
             lambda x, y: {1: torch.softmax(x, 1)}),
    harmless("same_values_from_both_lanes", same_values_from_both_lanes,
             lambda: [rnd(32, 64), rnd(64, 32, seed=1), zeros(32, 32)], lambda a, b, y: {2: 2 * (a @ b)}),
    harmless("gather_of_permuted_rows", gather_of_permuted_rows,
             lambda: [rnd(32, 32), _int_row(32).flip(1).contiguous(), zeros(32, 32)],
             lambda x, ids, y: {2: x.flip(0)}),
    harmless("counters_a_line_apart", counters_a_line_apart,
             lambda: [rnd(64, 32), zeros(4, 16, dtype=torch.int32)],
             lambda x, n: {1: torch.cat([_int_row(4).T.int(), n[:, 1:]], 1)}),
    harmless("fresh_buffer_each_time", fresh_buffer_each_time, lambda: [rnd(64, 32), zeros(64, 32)],
             lambda x, y: {1: -x.exp()}),
    harmless("scalar_loop_within_a_task", scalar_loop_within_a_task,
             lambda: [_int_row(64), zeros(1, 64, dtype=torch.int32)], lambda x, y: {1: x.cumsum(1).int()}),
    harmless("infinity_as_a_start", infinity_as_a_start, lambda: [rnd(16, 64), zeros(16, 1)],
             lambda x, y: {1: x.min(1, keepdim=True).values}),
    harmless("mask_beside_the_padding", mask_beside_the_padding, lambda: [rnd(16, 50), zeros(16, 50)],
             lambda x, y: {1: x.abs()}),
    harmless("grid_of_tiles", grid_of_tiles, lambda: [rnd(64, 64), zeros(64, 64)], lambda x, y: {1: x.T}),
    harmless("halo_in_two_launches", halo_in_two_launches, lambda: [rnd(64, 32), zeros(64, 32)],
             lambda x, y: {1: -torch.roll(x.exp(), -16, 0)}),
    harmless("readers_of_one_input", Program(ReadersOfOneInput), lambda: [rnd(32, 64), zeros(32, 32), zeros(32, 32)],
             lambda x, y, z: {1: x[:, :32].exp(), 2: x[:, 32:].exp()}),
]  # fmt: skip

"""Memory never written, padding that is used, outputs that are left out, directions that are wrong."""

from __future__ import annotations

import torch

import pypto.language as pl

from .case import Case, Program, rnd, zeros

M = pl.dynamic("M")


def ints(*values: int) -> torch.Tensor:
    return torch.tensor([values], dtype=torch.int32)


# --- a strip of an intermediate tensor that its reader takes as written


@pl.jit
def gap_between_halves(x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
    mid = pl.create_tensor([32, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="left"):
        pl.store(pl.exp(pl.load(x, [0, 0], [32, 24])), [0, 0], mid)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="right"):
        pl.store(pl.neg(pl.load(x, [0, 32], [32, 32])), [0, 32], mid)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="join"):
        pl.store(pl.mul(pl.load(mid, [0, 0], [32, 64]), 2.0), [0, 0], y)
    return y


@pl.jit
def gap_between_halves_fixed(x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
    mid = pl.create_tensor([32, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="left"):
        pl.store(pl.exp(pl.load(x, [0, 0], [32, 32])), [0, 0], mid)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="right"):
        pl.store(pl.neg(pl.load(x, [0, 32], [32, 32])), [0, 32], mid)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="join"):
        pl.store(pl.mul(pl.load(mid, [0, 0], [32, 64]), 2.0), [0, 0], y)
    return y


# --- one branch forgets the output


@pl.jit
def one_branch_writes(
    x: pl.Tensor[[16, 32], pl.FP32], flag: pl.Tensor[[1, 8], pl.INT32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="choose"):
        chosen = pl.read(flag, [0, 0])
        if chosen > 0:
            pl.store(pl.exp(pl.load(x, [0, 0], [16, 32])), [0, 0], y)
    return y


@pl.jit
def one_branch_writes_fixed(
    x: pl.Tensor[[16, 32], pl.FP32], flag: pl.Tensor[[1, 8], pl.INT32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="choose"):
        chosen = pl.read(flag, [0, 0])
        if chosen > 0:
            pl.store(pl.exp(pl.load(x, [0, 0], [16, 32])), [0, 0], y)
        else:
            pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], y)
    return y


# --- the second output is declared and forgotten


@pl.jit
def second_output_forgotten(
    x: pl.Tensor[[M, 32], pl.FP32], y: pl.Out[pl.Tensor[[M, 32], pl.FP32]], z: pl.Out[pl.Tensor[[M, 32], pl.FP32]]
):
    for r in pl.range(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="both"):
            t = pl.load(x, [r, 0], [16, 32])
            pl.store(pl.exp(t), [r, 0], y)
            pl.store(pl.neg(t), [r, 0], y)
    return y, z


@pl.jit
def second_output_forgotten_fixed(
    x: pl.Tensor[[M, 32], pl.FP32], y: pl.Out[pl.Tensor[[M, 32], pl.FP32]], z: pl.Out[pl.Tensor[[M, 32], pl.FP32]]
):
    for r in pl.range(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="both"):
            t = pl.load(x, [r, 0], [16, 32])
            pl.store(pl.exp(t), [r, 0], y)
            pl.store(pl.neg(t), [r, 0], z)
    return y, z


# --- a loop bound taken from memory nobody wrote


@pl.jit
def count_never_written(x: pl.Tensor[[64, 32], pl.FP32], y: pl.InOut[pl.Tensor[[64, 32], pl.FP32]]):
    count = pl.create_tensor([1, 8], dtype=pl.INT32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="repeat"):
        n = pl.read(count, [0, 0])
        for i in pl.range(pl.min(n, 4)):
            pl.store(pl.exp(pl.load(x, [i * 16, 0], [16, 32])), [i * 16, 0], y)
    return y


@pl.jit
def count_never_written_fixed(x: pl.Tensor[[64, 32], pl.FP32], y: pl.InOut[pl.Tensor[[64, 32], pl.FP32]]):
    count = pl.create_tensor([1, 8], dtype=pl.INT32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="decide"):
        pl.write(count, [0, 0], pl.const(4, pl.INT32))
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="repeat"):
        n = pl.read(count, [0, 0])
        for i in pl.range(pl.min(n, 4)):
            pl.store(pl.exp(pl.load(x, [i * 16, 0], [16, 32])), [i * 16, 0], y)
    return y


# --- a running maximum without a start, in rows


@pl.jit
def maximum_without_start(x: pl.Tensor[[16, 128], pl.FP32], y: pl.Out[pl.Tensor[[16, 1], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="peak"):
        best = pl.create_tile([16, 1], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        tmp = pl.create_tile([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        for c in pl.range(0, 128, 32):
            best = pl.maximum(best, pl.row_max(pl.load(x, [0, c], [16, 32]), tmp))
        pl.store(best, [0, 0], y)
    return y


@pl.jit
def maximum_without_start_fixed(x: pl.Tensor[[16, 128], pl.FP32], y: pl.Out[pl.Tensor[[16, 1], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="peak"):
        tmp = pl.create_tile([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        best = pl.row_max(pl.load(x, [0, 0], [16, 32]), tmp)
        for c in pl.range(32, 128, 32):
            best = pl.maximum(best, pl.row_max(pl.load(x, [0, c], [16, 32]), tmp))
        pl.store(best, [0, 0], y)
    return y


# --- the tail of a bias is padding


@pl.jit
def short_bias(
    x: pl.Tensor[[16, 64], pl.FP32], bias: pl.Tensor[[1, 48], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="shift"):
        row = pl.load(bias, [0, 0], [1, 64], valid_shape=[1, 48])
        pl.store(pl.col_expand_mul(pl.load(x, [0, 0], [16, 64]), row), [0, 0], y)
    return y


@pl.jit
def short_bias_fixed(
    x: pl.Tensor[[16, 64], pl.FP32], bias: pl.Tensor[[1, 48], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="shift"):
        row = pl.load(bias, [0, 0], [1, 64], valid_shape=[1, 48])
        row = pl.fillpad(row, pad_value=pl.PadValue.zero)
        pl.store(pl.col_expand_mul(pl.load(x, [0, 0], [16, 64]), row), [0, 0], y)
    return y


def _short_bias(x, bias, y):
    row = torch.zeros(1, 64)
    row[:, :48] = bias
    return {2: x * row}


# --- the product takes the padding of its right operand


@pl.jit
def short_product(
    a: pl.Tensor[[32, 64], pl.FP16],
    b: pl.Tensor[[64, 32], pl.FP16],
    n: pl.Tensor[[1, 8], pl.INT32],
    c: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gemm"):
        ka = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        rows = pl.read(n, [0, 0])
        kb = pl.load(b, [0, 0], [64, 32], valid_shape=[rows, 32], target_memory=pl.Mem.Mat)
        pl.store(pl.matmul(pl.move(ka, target_memory=pl.Mem.Left), pl.move(kb, target_memory=pl.Mem.Right)), [0, 0], c)
    return c


@pl.jit
def short_product_fixed(
    a: pl.Tensor[[32, 64], pl.FP16],
    b: pl.Tensor[[64, 32], pl.FP16],
    n: pl.Tensor[[1, 8], pl.INT32],
    c: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="gemm"):
        ka = pl.load(a, [0, 0], [32, 48], target_memory=pl.Mem.Mat)
        kb = pl.load(b, [0, 0], [48, 32], target_memory=pl.Mem.Mat)
        pl.store(pl.matmul(pl.move(ka, target_memory=pl.Mem.Left), pl.move(kb, target_memory=pl.Mem.Right)), [0, 0], c)
    return c


# --- an input is updated by a kernel that declares it as its output


@pl.jit.incore
def decay(x: pl.Tensor[[32, 32], pl.FP32], state: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
    state = pl.store(pl.mul(pl.load(x, [0, 0], [32, 32]), 0.5), [0, 0], state)
    return state


@pl.jit.incore
def show(state: pl.Tensor[[32, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
    y = pl.store(pl.exp(pl.load(state, [0, 0], [32, 32])), [0, 0], y)
    return y


@pl.jit
def state_is_an_input(
    x: pl.Tensor[[32, 32], pl.FP32], state: pl.Tensor[[32, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    state = decay(x, state)
    y = show(state, y)
    return y


@pl.jit
def state_is_an_input_fixed(
    x: pl.Tensor[[32, 32], pl.FP32],
    state: pl.InOut[pl.Tensor[[32, 32], pl.FP32]],
    y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
):
    state = decay(x, state)
    y = show(state, y)
    return state, y


# --- columns of an output that should keep what the host gave


@pl.jit
def some_columns(x: pl.Tensor[[M, 16], pl.FP32], y: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    for r in pl.range(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="insert"):
            pl.store(pl.load(x, [r, 0], [8, 16]), [r, 32], y)
    return y


@pl.jit
def some_columns_fixed(x: pl.Tensor[[M, 16], pl.FP32], y: pl.InOut[pl.Tensor[[M, 64], pl.FP32]]):
    for r in pl.range(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="insert"):
            pl.store(pl.load(x, [r, 0], [8, 16]), [r, 32], y)
    return y


def _some_columns(x, y):
    want = y.clone()
    want[:, 32:48] = x
    return {1: want}


# --- an accumulator in memory that block adds meet before it is cleared


@pl.jit
def histogram(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
    total = pl.create_tensor([16, 32], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="clear"):
        pl.store(pl.tile.full([8, 32], dtype=pl.FP32, value=0.0), [8, 0], total)
    for b in pl.spmd(8, name_hint="bin"):
        pl.store(pl.load(x, [b * 8, 0], [8, 32]), [0, 0], total, atomic=pl.AtomicType.Add)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="emit"):
        pl.store(pl.mul(pl.load(total, [0, 0], [8, 32]), 0.125), [0, 0], y)
    return y


@pl.jit
def histogram_fixed(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
    total = pl.create_tensor([16, 32], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="clear"):
        pl.store(pl.tile.full([8, 32], dtype=pl.FP32, value=0.0), [0, 0], total)
    for b in pl.spmd(8, name_hint="bin"):
        pl.store(pl.load(x, [b * 8, 0], [8, 32]), [0, 0], total, atomic=pl.AtomicType.Add)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="emit"):
        pl.store(pl.mul(pl.load(total, [0, 0], [8, 32]), 0.125), [0, 0], y)
    return y


# --- a kernel writes its input, and no later reader waits for it


@pl.program
class StatisticsThroughAnInput:
    @pl.function(type=pl.FunctionType.InCore)
    def norm(
        self,
        x: pl.Tensor[[32, 32], pl.FP32],
        stat: pl.Tensor[[32, 32], pl.FP32],
        y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        t = pl.exp(pl.load(x, [0, 0], [32, 32]))
        pl.store(t, [0, 0], stat)
        y = pl.store(pl.neg(t), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[32, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        scratch = pl.create_tensor([32, 32], dtype=pl.FP32)
        y = self.norm(x, scratch, y)
        return y


@pl.program
class StatisticsThroughAnOutput:
    @pl.function(type=pl.FunctionType.InCore)
    def norm(
        self,
        x: pl.Tensor[[32, 32], pl.FP32],
        stat: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ):
        t = pl.exp(pl.load(x, [0, 0], [32, 32]))
        stat = pl.store(t, [0, 0], stat)
        y = pl.store(pl.neg(t), [0, 0], y)
        return stat, y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[32, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        scratch = pl.create_tensor([32, 32], dtype=pl.FP32)
        scratch, y = self.norm(x, scratch, y)
        return y


# --- an output that is read as if it held what the host gave


@pl.jit
def running_total(x: pl.Tensor[[16, 32], pl.FP32], total: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    for b in pl.spmd(2, name_hint="grow"):
        old = pl.load(total, [b * 8, 0], [8, 32])
        pl.store(pl.add(old, pl.load(x, [b * 8, 0], [8, 32])), [b * 8, 0], total)
    return total


@pl.jit
def running_total_fixed(x: pl.Tensor[[16, 32], pl.FP32], total: pl.InOut[pl.Tensor[[16, 32], pl.FP32]]):
    for b in pl.spmd(2, name_hint="grow"):
        old = pl.load(total, [b * 8, 0], [8, 32])
        pl.store(pl.add(old, pl.load(x, [b * 8, 0], [8, 32])), [b * 8, 0], total)
    return total


# --- predicates of elements that nobody wrote select constants


@pl.jit
def chosen_by_nobody(x: pl.Tensor[[16, 50], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    wide = pl.create_tensor([16, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="widen"):
        pl.store(pl.load(x, [0, 0], [16, 64], valid_shape=[16, 50]), [0, 0], wide)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="choose"):
        m = pl.cmps(pl.load(wide, [0, 0], [16, 64]), 0.0, cmp_type=4)
        tmp = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        one, two = pl.tile.full([16, 64], dtype=pl.FP32, value=1.0), pl.tile.full([16, 64], dtype=pl.FP32, value=2.0)
        pl.store(pl.sel(m, one, two, tmp), [0, 0], y)
    return y


@pl.jit
def chosen_by_nobody_fixed(x: pl.Tensor[[16, 50], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    wide = pl.create_tensor([16, 64], dtype=pl.FP32, init_value=0.0)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="widen"):
        pl.store(pl.load(x, [0, 0], [16, 64], valid_shape=[16, 50]), [0, 0], wide)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="choose"):
        m = pl.cmps(pl.load(wide, [0, 0], [16, 64]), 0.0, cmp_type=4)
        tmp = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        one, two = pl.tile.full([16, 64], dtype=pl.FP32, value=1.0), pl.tile.full([16, 64], dtype=pl.FP32, value=2.0)
        pl.store(pl.sel(m, one, two, tmp), [0, 0], y)
    return y


def _chosen(x, y):
    want = torch.full((16, 64), 2.0)
    want[:, :50] = torch.where(x > 0, 1.0, 2.0)
    return {1: want}


CASES = [
    Case("chosen_by_nobody", "uninit", chosen_by_nobody, chosen_by_nobody_fixed,
         lambda: [rnd(16, 50), zeros(16, 64)], _chosen, "wide", ("choose",), ((0, 16), (50, 64)), "init_value",
         ("pl.load(wide", "columns 50..64 of 'y'")),
    Case("statistics_through_an_input", "direction", Program(StatisticsThroughAnInput),
         Program(StatisticsThroughAnOutput), lambda: [rnd(32, 32), zeros(32, 32)], lambda x, y: {1: -x.exp()}, "stat",
         ("norm",), (), "pl.Out[...]", ("pl.store(t, [0, 0], stat)", "'scratch'")),
    Case("running_total", "uninit", running_total, running_total_fixed,
         lambda: [rnd(16, 32), rnd(16, 32, seed=1)], lambda x, total: {1: total + x}, "total", ("grow",),
         (), "pl.InOut", ("pl.load(total",)),
    Case("gap_between_halves", "uninit", gap_between_halves, gap_between_halves_fixed,
         lambda: [rnd(32, 64), zeros(32, 64)],
         lambda x, y: {1: 2 * torch.cat([x[:, :32].exp(), -x[:, 32:]], 1)}, "mid", ("join",), ((0, 32), (24, 32)), "init_value",
         ("pl.load(mid",)),
    Case("one_branch_writes", "uninit", one_branch_writes, one_branch_writes_fixed,
         lambda: [rnd(16, 32), ints(*[0] * 8), zeros(16, 32)], lambda x, flag, y: {2: x}, "y", (), ((0, 16), (0, 32)),
         "write all of"),
    Case("second_output_forgotten", "uninit", second_output_forgotten, second_output_forgotten_fixed,
         lambda: [rnd(48, 32), zeros(48, 32), zeros(48, 32)], lambda x, y, z: {1: x.exp(), 2: -x}, "z", (),
         ((0, 48), (0, 32)), "write all of"),
    Case("count_never_written", "uninit", count_never_written, count_never_written_fixed,
         lambda: [rnd(64, 32), rnd(64, 32, seed=1)], lambda x, y: {1: x.exp()}, "count", ("repeat",), (), "write 'count'",
         ("pl.read(count",)),
    Case("maximum_without_start", "uninit", maximum_without_start, maximum_without_start_fixed,
         lambda: [rnd(16, 128), zeros(16, 1)], lambda x, y: {1: x.max(1, keepdim=True).values}, "", ("peak",), (),
         "start value", ("pl.maximum",)),
    Case("short_bias", "out-of-valid", short_bias, short_bias_fixed,
         lambda: [rnd(16, 64), rnd(1, 48, seed=1), zeros(16, 64)], _short_bias, "", ("shift",), (), "pl.fillpad",
         ("pl.col_expand_mul",)),
    Case("short_product", "out-of-valid", short_product, short_product_fixed,
         lambda: [rnd(32, 64, dtype=torch.float16), rnd(64, 32, seed=1, dtype=torch.float16), ints(*[48] * 8), zeros(32, 32)],
         lambda a, b, n, c: {3: a[:, :48].float() @ b[:48].float()}, "", ("gemm",), (), "pl.fillpad", ("pl.matmul",)),
    Case("state_is_an_input", "direction", state_is_an_input, state_is_an_input_fixed,
         lambda: [rnd(32, 32), rnd(32, 32, seed=1), zeros(32, 32)],
         lambda x, state, y: {1: x * 0.5, 2: (x * 0.5).exp()}, "state", ("decay",), (), "pl.InOut", ("pl.mul",)),
    Case("some_columns", "uninit", some_columns, some_columns_fixed,
         lambda: [rnd(24, 16), rnd(24, 64, seed=1)], _some_columns, "y", ("insert",), (), "pl.InOut", ("pl.store",)),
    Case("histogram", "uninit", histogram, histogram_fixed,
         lambda: [rnd(64, 32), zeros(8, 32)], lambda x, y: {1: x.reshape(8, 8, 32).mean(0)}, "total", ("bin",),
         ((0, 8), (0, 32)), "init_value", ("atomic=",)),
]  # fmt: skip

"""Windows and indices outside what they address, and shapes and numbers the hardware cannot hold."""

from __future__ import annotations

import torch

import pypto.language as pl

from .case import Case, rnd, zeros

M = pl.dynamic("M")


def ints(*values: int) -> torch.Tensor:
    return torch.tensor([values], dtype=torch.int32)


@pl.jit
def last_tile_overhangs(x: pl.Tensor[[M, 32], pl.FP32], y: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    for r in pl.range(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="strip"):
            pl.store(pl.exp(pl.load(x, [r, 0], [16, 32])), [r, 0], y)
    return y


@pl.jit
def last_tile_overhangs_fixed(x: pl.Tensor[[M, 32], pl.FP32], y: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    for r in pl.range(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="strip"):
            rows = pl.min(x.shape[0] - r, 16)
            pl.store(pl.exp(pl.load(x, [r, 0], [16, 32], valid_shape=[rows, 32])), [r, 0], y)
    return y


@pl.jit
def row_before_the_first(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
    for b in pl.spmd(8, name_hint="stencil"):
        above = pl.load(x, [b * 8 - 1, 0], [8, 32])
        pl.store(pl.add(pl.load(x, [b * 8, 0], [8, 32]), above), [b * 8, 0], y)
    return y


@pl.jit
def row_before_the_first_fixed(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
    for b in pl.spmd(8, name_hint="stencil"):
        above = pl.load(x, [pl.max(b * 8 - 1, 0), 0], [8, 32])
        pl.store(pl.add(pl.load(x, [b * 8, 0], [8, 32]), above), [b * 8, 0], y)
    return y


def _stencil(x, y):
    above = torch.cat([x[:8]] + [x[b * 8 - 1 : b * 8 + 7] for b in range(1, 8)])
    return {1: x + above}


@pl.jit
def scalar_past_the_end(
    x: pl.Tensor[[16, 32], pl.FP32], scale: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows"):
        for i in pl.range(16):
            s = pl.read(scale, [0, i])
            pl.store(pl.mul(pl.load(x, [i, 0], [1, 32]), s), [i, 0], y)
    return y


@pl.jit
def scalar_past_the_end_fixed(
    x: pl.Tensor[[16, 32], pl.FP32], scale: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows"):
        for i in pl.range(16):
            s = pl.read(scale, [0, i // 2])
            pl.store(pl.mul(pl.load(x, [i, 0], [1, 32]), s), [i, 0], y)
    return y


@pl.jit
def slot_of_a_ring(
    x: pl.Tensor[[64, 32], pl.FP32], slots: pl.Tensor[[1, 8], pl.INT32], ring: pl.InOut[pl.Tensor[[32, 32], pl.FP32]]
):
    for i in pl.range(4):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="keep"):
            s = pl.read(slots, [0, i])
            pl.store(pl.load(x, [i * 16, 0], [8, 32]), [s * 8, 0], ring)
    return ring


@pl.jit
def slot_of_a_ring_fixed(
    x: pl.Tensor[[64, 32], pl.FP32], slots: pl.Tensor[[1, 8], pl.INT32], ring: pl.InOut[pl.Tensor[[32, 32], pl.FP32]]
):
    for i in pl.range(4):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="keep"):
            s = pl.read(slots, [0, i]) % 4
            pl.store(pl.load(x, [i * 16, 0], [8, 32]), [s * 8, 0], ring)
    return ring


def _ring(x, slots, ring):
    want = ring.clone()
    for i, s in enumerate(slots[0, :4].tolist()):
        want[s % 4 * 8 : s % 4 * 8 + 8] = x[i * 16 : i * 16 + 8]
    return {2: want}


@pl.jit
def bins_of_an_array(keys: pl.Tensor[[1, 16], pl.INT32], y: pl.Out[pl.Tensor[[1, 8], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="tally"):
        seen = pl.array.create(8, pl.INT32)
        for i in pl.range(16):
            k = pl.read(keys, [0, i])
            seen[k - 1] = seen[k - 1] + 1
        for j in pl.range(8):
            pl.write(y, [0, j], seen[j])
    return y


@pl.jit
def bins_of_an_array_fixed(keys: pl.Tensor[[1, 16], pl.INT32], y: pl.Out[pl.Tensor[[1, 8], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="tally"):
        seen = pl.array.create(8, pl.INT32)
        for i in pl.range(16):
            k = pl.read(keys, [0, i])
            seen[k] = seen[k] + 1
        for j in pl.range(8):
            pl.write(y, [0, j], seen[j])
    return y


@pl.jit
def token_of_another_table(
    table: pl.Tensor[[40, 64], pl.FP16], ids: pl.Tensor[[1, 16], pl.INT32], y: pl.Out[pl.Tensor[[32, 64], pl.FP16]]
):
    for b in pl.spmd(2, name_hint="embed"):
        i = pl.load(ids, [0, b * 8], [1, 8])
        pl.store(pl.mgather(table, i), [b * 8, 0], y)
        pl.store(pl.mgather(table, i), [16 + b * 8, 0], y)
    return y


@pl.jit
def token_of_another_table_fixed(
    table: pl.Tensor[[40, 64], pl.FP16], ids: pl.Tensor[[1, 16], pl.INT32], y: pl.Out[pl.Tensor[[32, 64], pl.FP16]]
):
    for b in pl.spmd(2, name_hint="embed"):
        i = pl.minimum(pl.load(ids, [0, b * 8], [1, 8]), 39)
        pl.store(pl.mgather(table, i), [b * 8, 0], y)
        pl.store(pl.mgather(table, i), [16 + b * 8, 0], y)
    return y


def _tokens(table, ids, y):
    rows = table[ids[0].clamp(max=39).long()]
    return {2: torch.cat([rows, rows])}


# --- numbers


@pl.jit
def square_in_half(x: pl.Tensor[[32, 64], pl.FP16], y: pl.Out[pl.Tensor[[32, 64], pl.FP16]]):
    for b in pl.spmd(2, name_hint="energy"):
        t = pl.load(x, [b * 16, 0], [16, 64])
        pl.store(pl.mul(t, t), [b * 16, 0], y)
    return y


@pl.jit
def square_in_half_fixed(x: pl.Tensor[[32, 64], pl.FP16], y: pl.Out[pl.Tensor[[32, 64], pl.FP16]]):
    for b in pl.spmd(2, name_hint="energy"):
        t = pl.mul(pl.load(x, [b * 16, 0], [16, 64]), 0.015625)
        pl.store(pl.mul(t, t), [b * 16, 0], y)
    return y


def _large(*shape: int) -> torch.Tensor:
    x = rnd(*shape)
    x[2, 7] = 1000.0
    return x.half()


@pl.jit
def log_of_a_negative(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="logs"):
        pl.store(pl.mul(pl.log(pl.load(x, [0, 0], [16, 32])), 2.0), [0, 0], y)
    return y


@pl.jit
def log_of_a_negative_fixed(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="logs"):
        pl.store(pl.mul(pl.log(pl.add(pl.abs(pl.load(x, [0, 0], [16, 32])), 0.5)), 2.0), [0, 0], y)
    return y


@pl.jit
def mean_of_nothing(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="norm"):
        t = pl.load(x, [0, 0], [16, 64])
        tmp = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        pl.store(pl.row_expand_div(t, pl.row_sum(t, tmp)), [0, 0], y)
    return y


@pl.jit
def mean_of_nothing_fixed(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="norm"):
        t = pl.load(x, [0, 0], [16, 64])
        tmp = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        pl.store(pl.row_expand_div(t, pl.maximum(pl.row_sum(t, tmp), 1.0)), [0, 0], y)
    return y


def _one_row_empty() -> torch.Tensor:
    x = rnd(16, 64).abs()
    x[5] = 0
    return x


@pl.jit
def ids_greater(
    x: pl.Tensor[[16, 64], pl.INT32], a: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="keep"):
        m = pl.cmps(pl.load(x, [0, 0], [16, 64]), 100, cmp_type=4)
        tmp = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        v = pl.load(a, [0, 0], [16, 64])
        pl.store(pl.sel(m, v, pl.neg(v), tmp), [0, 0], y)
    return y


@pl.jit
def ids_greater_fixed(
    x: pl.Tensor[[16, 64], pl.INT32], a: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="keep"):
        m = pl.cmps(pl.cast(pl.load(x, [0, 0], [16, 64]), target_type=pl.FP32), 100.0, cmp_type=4)
        tmp = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        v = pl.load(a, [0, 0], [16, 64])
        pl.store(pl.sel(m, v, pl.neg(v), tmp), [0, 0], y)
    return y


@pl.jit
def narrow_halves(x: pl.Tensor[[32, 32], pl.FP16], y: pl.InOut[pl.Tensor[[32, 32], pl.FP16]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="corner"):
        pl.store(pl.load(x, [0, 0], [32, 8]), [0, 8], y)
    return y


@pl.jit
def narrow_halves_fixed(x: pl.Tensor[[32, 32], pl.FP16], y: pl.InOut[pl.Tensor[[32, 32], pl.FP16]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="corner"):
        pl.store(pl.load(x, [0, 0], [32, 16], valid_shape=[32, 8]), [0, 8], y)
    return y


def _corner(x, y):
    want = y.clone()
    want[:, 8:16] = x[:, :8]
    return {1: want}


@pl.jit
def flag_and_block(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    for b in pl.spmd(2, name_hint="mark"):
        for i in pl.range(8):
            pl.write(y, [b * 8 + i, 0], pl.const(1.0, pl.FP32))
        pl.store(pl.neg(pl.load(x, [b * 8, 0], [8, 32])), [b * 8, 0], y)
    return y


@pl.jit
def flag_and_block_fixed(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    for b in pl.spmd(2, name_hint="mark"):
        for i in pl.range(8):
            pl.write(y, [b * 8 + i, 0], pl.const(1.0, pl.FP32))
        pl.system.fence()
        pl.store(pl.neg(pl.load(x, [b * 8, 0], [8, 32])), [b * 8, 0], y)
    return y


CASES = [
    Case("last_tile_overhangs", "bounds", last_tile_overhangs, last_tile_overhangs_fixed,
         lambda: [rnd(40, 32), zeros(40, 32)], lambda x, y: {1: x.exp()}, "x", ("strip",), (), "valid_shape",
         ("pl.load(x", "32..48", "extent 40")),
    Case("row_before_the_first", "bounds", row_before_the_first, row_before_the_first_fixed,
         lambda: [rnd(64, 32), zeros(64, 32)], _stencil, "x", ("stencil",), (), "", ("above = pl.load(x", "-1")),
    Case("scalar_past_the_end", "bounds", scalar_past_the_end, scalar_past_the_end_fixed,
         lambda: [rnd(16, 32), rnd(1, 8, seed=1), zeros(16, 32)],
         lambda x, scale, y: {2: x * scale[0].repeat_interleave(2)[:, None]}, "scale", ("rows",), (), "below",
         ("pl.read(scale", "index 8", "extent 8", "axis 1")),
    Case("slot_of_a_ring", "bounds", slot_of_a_ring, slot_of_a_ring_fixed,
         lambda: [rnd(64, 32), ints(1, 2, 4, 3, 0, 0, 0, 0), rnd(32, 32, seed=1)], _ring, "ring", ("keep",), (),
         "", ("ring)", "32..40", "extent 32")),
    Case("bins_of_an_array", "bounds", bins_of_an_array, bins_of_an_array_fixed,
         lambda: [ints(*[0, 1, 2, 3, 4, 5, 6, 7] * 2), zeros(1, 8, dtype=torch.int32)],
         lambda keys, y: {1: y + 2}, "", ("tally",), (), "", ("index -1", "8 elements")),
    Case("token_of_another_table", "bounds", token_of_another_table, token_of_another_table_fixed,
         lambda: [rnd(40, 64, dtype=torch.float16), ints(*range(12), 44, 1, 2, 3), zeros(32, 64, dtype=torch.float16)],
         _tokens, "table", ("embed",), (), "gather_oob", ("pl.mgather", "44", "40 rows")),
    Case("square_in_half", "precision", square_in_half, square_in_half_fixed,
         lambda: [_large(32, 64), zeros(32, 64, dtype=torch.float16)], lambda x, y: {1: (x * 0.015625) ** 2}, "y",
         ("energy",), ((2, 3), (7, 8)), "BF16 or FP32", ("pl.mul(t, t)", "65504")),
    Case("log_of_a_negative", "precision", log_of_a_negative, log_of_a_negative_fixed,
         lambda: [rnd(16, 32), zeros(16, 32)], lambda x, y: {1: (x.abs() + 0.5).log() * 2}, "y", ("logs",), (), "",
         ("pl.log", "NaN")),
    Case("mean_of_nothing", "precision", mean_of_nothing, mean_of_nothing_fixed,
         lambda: [_one_row_empty(), zeros(16, 64)],
         lambda x, y: {1: x / x.sum(1, keepdim=True).clamp(min=1)}, "y", ("norm",), ((5, 6), (0, 64)), "",
         ("pl.row_expand_div", "NaN")),
    Case("ids_greater", "precision", ids_greater, ids_greater_fixed,
         lambda: [torch.arange(1024, dtype=torch.int32).reshape(16, 64), rnd(16, 64), zeros(16, 64)],
         lambda x, a, y: {2: torch.where(x > 100, a, -a)}, "", ("keep",), (), "FP32", ("pl.cmps",)),
    Case("narrow_halves", "shape-contract", narrow_halves, narrow_halves_fixed,
         lambda: [rnd(32, 32, dtype=torch.float16), rnd(32, 32, seed=1, dtype=torch.float16)], _corner, "", ("corner",),
         (), "16 columns", ("pl.load(x", "16 bytes")),
    Case("flag_and_block", "coherence", flag_and_block, flag_and_block_fixed,
         lambda: [rnd(16, 32), zeros(16, 32)], lambda x, y: {1: -x}, "y", ("mark",), (), "fence",
         ("pl.write", "pl.store")),
]  # fmt: skip

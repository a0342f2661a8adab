"""Indices and offsets that mean nothing: gathers, scatters and windows go where nobody has said."""

from __future__ import annotations

import torch

import pypto.language as pl

from .case import Case, rnd, zeros


@pl.jit
def half_of_the_indices(
    x: pl.Tensor[[32, 64], pl.FP32], ids: pl.Tensor[[1, 8], pl.INT32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    both = pl.create_tensor([1, 16], dtype=pl.INT32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="collect"):
        pl.store(pl.load(ids, [0, 0], [1, 8]), [0, 0], both)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="fetch"):
        pl.store(pl.mgather(x, pl.load(both, [0, 0], [1, 16]), gather_oob="wrap"), [0, 0], y)
    return y


@pl.jit
def half_of_the_indices_fixed(
    x: pl.Tensor[[32, 64], pl.FP32], ids: pl.Tensor[[1, 8], pl.INT32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    both = pl.create_tensor([1, 16], dtype=pl.INT32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="collect"):
        pl.store(pl.load(ids, [0, 0], [1, 8]), [0, 0], both)
        pl.store(pl.load(ids, [0, 0], [1, 8]), [0, 8], both)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="fetch"):
        pl.store(pl.mgather(x, pl.load(both, [0, 0], [1, 16]), gather_oob="wrap"), [0, 0], y)
    return y


@pl.jit
def index_tile_with_a_gap(
    x: pl.Tensor[[32, 64], pl.FP32], ids: pl.Tensor[[1, 8], pl.INT32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="pick"):
        i = pl.load(ids, [0, 0], [1, 8])
        both = pl.create_tile([1, 16], dtype=pl.INT32, target_memory=pl.Mem.Vec)
        both = pl.tile.assemble(both, i, (0, 0))
        pl.store(pl.mgather(x, both), [0, 0], y)
    return y


@pl.jit
def index_tile_with_a_gap_fixed(
    x: pl.Tensor[[32, 64], pl.FP32], ids: pl.Tensor[[1, 8], pl.INT32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="pick"):
        i = pl.load(ids, [0, 0], [1, 8])
        both = pl.create_tile([1, 16], dtype=pl.INT32, target_memory=pl.Mem.Vec)
        both = pl.tile.assemble(both, i, (0, 0))
        both = pl.tile.assemble(both, i, (0, 8))
        pl.store(pl.mgather(x, both), [0, 0], y)
    return y


def _twice(x, ids, y):
    return {2: x[ids[0].long()].repeat(2, 1)}


@pl.jit
def scattered_anywhere(
    x: pl.Tensor[[4, 8], pl.FP32], ids: pl.Tensor[[4, 8], pl.INT32], y: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="drop"):
        i = pl.create_tile([4, 8], dtype=pl.INT32, target_memory=pl.Mem.Vec)
        i = pl.tile.assemble(i, pl.load(ids, [0, 0], [2, 8]), (0, 0))
        pl.mscatter(pl.load(x, [0, 0], [4, 8]), pl.tile.ands(i, 63), y)
    return y


@pl.jit
def scattered_anywhere_fixed(
    x: pl.Tensor[[4, 8], pl.FP32], ids: pl.Tensor[[4, 8], pl.INT32], y: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="drop"):
        i = pl.load(ids, [0, 0], [4, 8])
        pl.mscatter(pl.load(x, [0, 0], [4, 8]), pl.tile.ands(i, 63), y)
    return y


def _scattered(x, ids, y):
    want = y.clone().flatten()
    want[ids.flatten().long()] = x.flatten()
    return {2: want.reshape(8, 8)}


@pl.jit
def more_data_than_indices(
    x: pl.Tensor[[4, 8], pl.FP32], ids: pl.Tensor[[4, 8], pl.INT32], y: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="drop"):
        i = pl.load(ids, [0, 0], [4, 8], valid_shape=[3, 8])
        pl.mscatter(pl.load(x, [0, 0], [4, 8]), i, y)
    return y


@pl.jit
def more_data_than_indices_fixed(
    x: pl.Tensor[[4, 8], pl.FP32], ids: pl.Tensor[[4, 8], pl.INT32], y: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="drop"):
        i = pl.load(ids, [0, 0], [4, 8], valid_shape=[3, 8])
        pl.mscatter(pl.load(x, [0, 0], [4, 8], valid_shape=[3, 8]), i, y)
    return y


@pl.jit
def outside_of_a_tile_with_a_rest(
    x: pl.Tensor[[16, 32], pl.FP32], ids: pl.Tensor[[4, 32], pl.INT32], y: pl.Out[pl.Tensor[[4, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="pick"):
        i = pl.load(ids, [0, 0], [4, 32])
        tmp = pl.create_tile([4, 32], dtype=pl.INT32, target_memory=pl.Mem.Vec)
        pl.store(pl.tile.gather(pl.load(x, [0, 0], [16, 32], valid_shape=[8, 32]), i, tmp), [0, 0], y)
    return y


@pl.jit
def outside_of_a_tile_with_a_rest_fixed(
    x: pl.Tensor[[16, 32], pl.FP32], ids: pl.Tensor[[4, 32], pl.INT32], y: pl.Out[pl.Tensor[[4, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="pick"):
        i = pl.minimum(pl.load(ids, [0, 0], [4, 32]), 255)
        tmp = pl.create_tile([4, 32], dtype=pl.INT32, target_memory=pl.Mem.Vec)
        pl.store(pl.tile.gather(pl.load(x, [0, 0], [16, 32], valid_shape=[8, 32]), i, tmp), [0, 0], y)
    return y


@pl.jit
def row_that_nobody_chose(x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
    offset = pl.create_tensor([1, 8], dtype=pl.INT32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="aim"):
        pl.write(offset, [0, 0], pl.const(16, pl.INT32))
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="jump"):
        k = pl.read(offset, [0, 7])
        pl.store(pl.load(x, [k, 0], [8, 64]), [0, 0], y)
    return y


@pl.jit
def row_that_nobody_chose_fixed(x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
    offset = pl.create_tensor([1, 8], dtype=pl.INT32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="aim"):
        pl.write(offset, [0, 7], pl.const(16, pl.INT32))
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="jump"):
        k = pl.read(offset, [0, 7])
        pl.store(pl.load(x, [k, 0], [8, 64]), [0, 0], y)
    return y


def _ids(*shape: int, last: int = 0) -> torch.Tensor:
    ids = torch.arange(shape[0] * shape[1], dtype=torch.int32).reshape(shape)
    ids[-1, -1] += last
    return ids


_ROWS = (((0, 1), (8, 16)), ("pl.load(both", "rows 8..16"))
CASES = [
    Case("half_of_the_indices", "uninit", half_of_the_indices, half_of_the_indices_fixed,
         lambda: [rnd(32, 64), _ids(1, 8), zeros(16, 64)], _twice, "both", ("fetch",), _ROWS[0], "write 'both'", _ROWS[1]),
    Case("index_tile_with_a_gap", "uninit", index_tile_with_a_gap, index_tile_with_a_gap_fixed,
         lambda: [rnd(32, 64), _ids(1, 8), zeros(16, 64)], _twice, "both", ("pick",), ((0, 1), (8, 9)), "all indices",
         ("pl.mgather",)),
    Case("scattered_anywhere", "uninit", scattered_anywhere, scattered_anywhere_fixed,
         lambda: [rnd(4, 8), _ids(4, 8), zeros(8, 8)], _scattered, "i", ("drop",), ((2, 3), (0, 1)), "start value",
         ("tile.ands",)),
    Case("more_data_than_indices", "out-of-valid", more_data_than_indices, more_data_than_indices_fixed,
         lambda: [rnd(4, 8), _ids(4, 8), zeros(8, 8)], lambda x, ids, y: {2: torch.cat([x[:3], y[3:]])}, "i", ("drop",),
         ((3, 4), (0, 1)), "valid_shape", ("pl.mscatter",)),
    Case("outside_of_a_tile_with_a_rest", "bounds", outside_of_a_tile_with_a_rest, outside_of_a_tile_with_a_rest_fixed,
         lambda: [rnd(16, 32), _ids(4, 32, last=500), zeros(4, 32)],
         lambda x, ids, y: {2: x.flatten()[ids.clamp(max=255).long()]}, "i", ("pick",), ((3, 4), (31, 32)),
         "pl.minimum(index, 511)", ("pl.tile.gather", "index 627")),
    Case("row_that_nobody_chose", "uninit", row_that_nobody_chose, row_that_nobody_chose_fixed,
         lambda: [rnd(32, 64), zeros(8, 64)], lambda x, y: {1: x[16:24]}, "offset", ("jump",), ((0, 1), (7, 8)),
         "write 'offset'", ("pl.read(offset",)),
]  # fmt: skip

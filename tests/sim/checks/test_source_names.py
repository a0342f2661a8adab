"""Findings about values on chip carry the name that the author gave them, however the compiler places them."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl


@pl.jit.inline
def shifted(values):
    bias = pl.create_tile([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
    moved = pl.add(bias, values)
    return moved


@pl.jit
def inlined(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        bias = pl.load(x, [0, 0], [16, 32])
        moved = pl.mul(bias, 2.0)
        pl.store(shifted(moved), [0, 0], y)
    return y


@pl.jit
def in_a_loop(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        total = pl.create_tile([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        for i in pl.range(4):
            total = pl.add(total, pl.load(x, [0, 0], [16, 32]))
        pl.store(total, [0, 0], y)
    return y


@pl.jit
def unrolled(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        whole = pl.load(x, [0, 0], [16, 32])
        for i in pl.unroll(2):
            scratch = pl.create_tile([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            grown = pl.mul(whole, scratch)
            pl.store(grown, [0, 0], y)
    return y


@pl.jit
def tensor_level(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        state = pl.create_tensor([16, 32], dtype=pl.FP32)
        for i in pl.range(2):
            step = pl.add(state, x)
            state = pl.mul(step, 2.0)
        y[:, :] = state
    return y


@pl.jit
def in_a_branch(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    for b in pl.spmd(1, name_hint="branch"):
        chosen = pl.create_tile([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        if b > 0:
            chosen = pl.load(x, [0, 0], [16, 32])
        pl.store(pl.neg(chosen), [0, 0], y)
    return y


@pl.jit
def valid_part(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        narrow = pl.load(x, [0, 0], [16, 32], valid_shape=[16, 8])
        pl.store(pl.add(pl.load(x, [0, 0], [16, 32]), narrow), [0, 0], y)
    return y


@pl.jit
def on_the_cube(x: pl.Tensor[[32, 32], pl.FP16], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        left = pl.create_tile([32, 32], dtype=pl.FP16, target_memory=pl.Mem.Mat)
        right = pl.load(x, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        moved = pl.move(left, target_memory=pl.Mem.Left)
        product = pl.matmul(moved, pl.move(right, target_memory=pl.Mem.Right))
        pl.store(product, [0, 0], y)
    return y


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (inlined, "bias"),
        (in_a_loop, "total"),
        (unrolled, "scratch"),
        (tensor_level, "state"),
        (in_a_branch, "chosen"),
        (valid_part, "narrow"),
        (on_the_cube, "moved"),
    ],
)
def test_the_name_of_the_source(findings, kernel, name):
    shape, dtype = ((32, 32), torch.float16) if kernel is on_the_cube else ((16, 32), torch.float32)
    found = findings(kernel, torch.ones(*shape, dtype=dtype), torch.zeros(*shape))
    assert found and {finding.tensor for finding in found} == {name}
    assert all(f"of '{name}'" in finding.message for finding in found)


@pl.jit
def wide_index(
    x: pl.Tensor[[16, 32], pl.FP32], where: pl.Tensor[[16, 32], pl.INT32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        table = pl.load(x, [0, 0], [16, 32])
        picks = pl.load(where, [0, 0], [16, 32])
        space = pl.create_tile([16, 32], dtype=pl.INT32, target_memory=pl.Mem.Vec)
        pl.store(pl.tile.gather(table, picks, space), [0, 0], y)
    return y


@pytest.mark.parametrize("checks", ["all", "cheap"])
def test_the_tile_of_an_index(findings, checks):
    where = torch.zeros(16, 32, dtype=torch.int32)
    where[3, 5] = 600
    (found,) = findings(wide_index, torch.ones(16, 32), where, torch.zeros(16, 32), checks=checks)
    assert found.kind == "bounds" and found.tensor == "picks" and found.index_ranges == ((3, 4), (5, 6))
    assert found.bytes == (4 * (3 * 32 + 5), 4 * (3 * 32 + 6))


@pl.jit.inline
def through_memory(values, result):
    middle = pl.create_tensor([16, 32], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="first"):
        pl.store(pl.exp(pl.load(values, [0, 0], [8, 32])), [0, 0], middle)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="second"):
        pl.store(pl.exp(pl.load(middle, [0, 0], [16, 32])), [0, 0], result)
    return result


@pl.jit
def two_buffers(
    x: pl.Tensor[[16, 32], pl.FP32],
    y: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    z: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
):
    y = through_memory(x, y)
    z = through_memory(x, z)
    return y, z


def test_tensors_of_an_inlined_function(findings):
    found = findings(two_buffers, torch.ones(16, 32), torch.zeros(16, 32), torch.zeros(16, 32))
    assert len(found) == 2 and {finding.tensor for finding in found} == {"middle"}

"""A program taken out of the passes, as an object or as text, compiles and gives the bits of the whole way (3.9)."""

import copy

import pytest
import torch
from round_trip import random

import pypto
import pypto.language as pl
from pypto import ir
from pypto.ir.passes.pipeline import lowering_passes
from pypto.runtime import RunConfig

PLATFORM = "a2a3sim"
SIM = RunConfig(platform=PLATFORM)


@pl.jit
def by_rows(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="mix"):
        c = pl.matmul(a, b, out_dtype=pl.FP32)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            half = pl.mul(pl.aiv_shard(c), 0.5)
            o[lane * 16 : lane * 16 + 16, :] = half
    return o


@pl.jit
def by_columns(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c = pl.matmul(a, b, out_dtype=pl.FP32)
        for _lane in pl.split_aiv(2, mode=pl.SplitMode.LEFT_RIGHT):
            whole = pl.aic_gather(pl.cast(pl.aiv_shard(c), pl.FP16))
        o[:] = pl.matmul(whole, whole, out_dtype=pl.FP32)
    return o


@pl.jit
def halved(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(
        level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=3)]
    ):
        o[:] = pl.exp(pl.matmul(a, b, out_dtype=pl.FP32))
    return o


@pl.jit
def blocks(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    for block in pl.spmd(2, name_hint="rows", allow_early_resolve=True):
        c = pl.matmul(a[block * 16 : block * 16 + 16, :], b, out_dtype=pl.FP32)
        o[block * 16 : block * 16 + 16, :] = pl.abs(c)
    return o


KERNELS = (by_rows, by_columns, halved, blocks)


def arguments():
    return random(32, 32, dtype=torch.float16), random(32, 32, seed=1, dtype=torch.float16), torch.zeros(32, 32)


def result_of(program):
    own = arguments()
    ir.compile(program, platform=PLATFORM, dump_passes=False)(*own)
    return own[2]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_every_stage_of_the_lowering_compiles(kernel):
    whole = arguments()
    kernel(*whole, config=SIM)
    assert whole[2].any()
    assert torch.equal(result_of(kernel.lower(*arguments())), whole[2])
    program = copy.deepcopy(kernel.lower(*arguments()))
    for step in lowering_passes():
        program = step.run(copy.deepcopy(program))
        assert torch.equal(result_of(pl.parse(program.as_python())), whole[2]), step.name


def test_an_outlined_region_is_still_checked():
    text = by_rows.lower(*arguments()).as_python()
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if "split_aiv(" in line)
    indent = lines[head][: len(lines[head]) - len(lines[head].lstrip())]
    vector = [*lines[:head], f"{indent}stray = pl.tensor.exp(a)", *lines[head:]]
    with pytest.raises(pypto.Error, match="AivSplitValid: pl.exp computes on a vector core outside"):
        ir.compile(pl.parse("\n".join(vector)), platform=PLATFORM)

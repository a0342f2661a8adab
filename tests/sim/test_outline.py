"""Recordings without values: the same as with them, and refused where values decide what is done."""

import numpy as np
import pytest
import torch

import pypto.language as pl
from pypto import ir
from pypto.sim import record


def compiled(kernel, *args):
    return ir.compile(kernel.lower(*args), platform="a2a3")


def same(first, second):
    columns = ("trace", "deps", "subtask_trace_start", "subtask_trace_stop", "events")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in columns)


@pl.jit
def mixed(
    a: pl.Tensor[[64, 96], pl.BF16],
    b: pl.Tensor[[96, 64], pl.BF16],
    y: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
        score = pl.matmul(a, b, out_dtype=pl.FP32)
        y[:] = pl.exp(pl.row_expand_sub(score, pl.row_max(score)))
    return y


@pl.jit
def shifted(
    x: pl.Tensor[[3, 70, 48], pl.FP16],
    d: pl.Tensor[[48, 48], pl.INT8],
    y: pl.InOut[pl.Tensor[[3, 70, 48], pl.FP16]],
    e: pl.Out[pl.Tensor[[48, 48], pl.INT8]],
):
    for b in pl.parallel(3):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [b, 3, 0], [1, 64, 48], valid_shape=[1, 61, 40])
            y = pl.store(pl.add(t, t), [b, 2, 8], y)
    with pl.at(level=pl.Level.CORE_GROUP):
        e = pl.store(pl.transpose(pl.load(d, [0, 0], [48, 48]), 0, 1), [0, 0], e)
    return y, e


@pl.jit
def counted(n: pl.Tensor[[1, 8], pl.INT32], y: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(pl.cast(pl.read(n, [0, 0]), pl.INDEX)):
            y = pl.store(pl.tile.full([1, 64], dtype=pl.FP32, value=1.0), [i, 0], y)
    return y


def test_a_mixed_kernel_is_recorded_alike_with_and_without_values():
    args = [torch.randn(64, 96).bfloat16(), torch.randn(96, 64).bfloat16(), torch.zeros(64, 64)]
    program = compiled(mixed, *args)
    bare = record(program, args, values=False)
    assert same(record(program, args), bare) and not args[2].any()
    assert bare.time().device_wall_us == record(program, args).time().device_wall_us


def test_windows_of_several_ranks_widths_and_valid_extents_are_recorded_alike():
    x = torch.randn(3, 70, 48).half()
    d = torch.ones(48, 48, dtype=torch.int8)
    args = [x, d, torch.zeros_like(x), torch.zeros_like(d)]
    program = compiled(shifted, *args)
    assert same(record(program, args), record(program, args, values=False))


def test_what_is_outside_a_tensor_is_an_error_without_values_too():
    @pl.jit
    def beyond(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for r in pl.range(0, 96, 32):
                y = pl.store(pl.load(x, [r, 0], [32, 64]), [r, 0], y)
        return y

    args = [torch.zeros(64, 64), torch.zeros(64, 64)]
    with pytest.raises(IndexError, match="outside its extent 64"):
        record(compiled(beyond, *args), args, values=False)


def test_a_program_that_reads_a_count_from_memory_needs_its_values():
    args = [torch.full((1, 8), 3, dtype=torch.int32), torch.zeros(8, 64)]
    program = compiled(counted, *args)
    with pytest.raises(ValueError, match="record with values=True"):
        record(program, args, values=False)
    assert len(record(program, args).trace) > 3

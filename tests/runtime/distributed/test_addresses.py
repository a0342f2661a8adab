"""What launches of ranks leave in the caches of their chips goes by the buffers they used, not by position."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
from pypto.runtime import DistributedWorker

from .programs import config

RANKS, SIZE = 2, 64
BYTES = SIZE * SIZE * 4
Square = pl.Tensor[[SIZE, SIZE], pl.FP32]
Squares = pl.Tensor[[RANKS, SIZE, SIZE], pl.FP32]


@pl.jit.incore
def add_kernel(a: Square, b: Square, y: pl.Out[Square]):
    y = pl.store(pl.add(pl.load(a, [0, 0], [SIZE, SIZE]), pl.load(b, [0, 0], [SIZE, SIZE])), [0, 0], y)
    return y


@pl.jit
def add(a: Square, b: Square, y: pl.Out[Square]):
    return add_kernel(a, b, y)


@pl.jit.host
def weight_last(x: Squares, w: Squares, y: pl.Out[Squares]):
    for r in pl.range(RANKS):
        add(x[r], w[r], y[r], device=r)


@pl.jit.host
def weight_first(w: Squares, x: Squares, y: pl.Out[Squares]):
    for r in pl.range(RANKS):
        add(w[r], x[r], y[r], device=r)


@pytest.fixture(scope="module")
def programs():
    tensors = [torch.zeros(RANKS, SIZE, SIZE).share_memory_() for _ in range(3)]
    compiled = [p.compile(*tensors, config=config(RANKS, "a2a3")) for p in (weight_last, weight_first)]
    return compiled, tensors[0], tensors[2]


def from_memory(explanation):
    """Bytes that every launch fetched from memory because its cache did not hold them."""
    records = [launch.explanation.timeline.records() for launch in explanation.launches]
    return [sum(record.hbm_bytes for record in each) for each in records]


def test_a_weight_is_warm_in_whatever_place_it_is_passed(programs):
    (last, first), x, y = programs
    with DistributedWorker([last, first]) as worker:
        other = worker.alloc_stacked_tensor(torch.zeros(RANKS, SIZE, SIZE))
        weight = worker.alloc_stacked_tensor(torch.ones(RANKS, SIZE, SIZE))
        assert from_memory(worker.explain(last, x, weight, y)) == [2 * BYTES] * RANKS, "cold"
        assert from_memory(worker.explain(first, weight, x, y)) == [0] * RANKS, "the same weight, another position"
        assert from_memory(worker.explain(first, other, x, y)) == [BYTES] * RANKS, "another weight, the same position"
        torch.testing.assert_close(y, x)


def test_fresh_memory_is_cold_although_something_lay_there_before(programs):
    (last, _), x, y = programs
    with DistributedWorker(last) as worker:
        for _ in range(2):
            weight = worker.alloc_stacked_tensor(torch.ones(RANKS, SIZE, SIZE))
            missed = from_memory(worker.explain(last, x, weight, y))
            assert [m >= BYTES for m in missed] == [True] * RANKS
            assert from_memory(worker.explain(last, x, weight, y)) == [0] * RANKS
            worker.free_stacked_tensor(weight)

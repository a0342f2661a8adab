"""Compiled programs as values: copied and pickled after a launch."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

import pypto.language as pl
from pypto.runtime import RunConfig


def _copied(program):
    return copy.deepcopy(program)


def _pickled(program):
    return pickle.loads(pickle.dumps(program))


@pytest.mark.parametrize("duplicate", [_copied, _pickled])
def test_a_duplicate_of_a_launched_program_runs(duplicate, tmp_path):
    @pl.jit
    def double(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(a, [0, 0], [16, 64])
            out = pl.store(pl.add(t, t), [0, 0], out)
        return out

    a, out = torch.randn(16, 64), torch.zeros(16, 64)
    program = double.compile(a, out, config=RunConfig(save_kernels_dir=str(tmp_path)))
    program(a, out)
    out.zero_()
    duplicate(program)(a, out)
    assert torch.equal(out, a + a)


def test_the_text_of_benchmark_stats_is_short(tmp_path):
    from pypto.perf import BenchmarkStats

    stats = BenchmarkStats(device_wall_us=[1.0], rounds=1)
    assert "invocations" not in repr(stats)
    with pytest.raises(ValueError, match="device, host, effective, union, device_span"):
        stats.per_round("slowest")

"""Programs over several chips timed without their values: the same clock, and tensors nobody touches."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.runtime.distributed_bench import benchmark_ranks
from pypto.runtime.distributed_worker import DistributedWorker
from pypto.runtime.run_config import RunConfig
from pypto.validation.rank_programs import Split, in_sequence, overlapped, pulled_sum

from .programs import config


def walls(host, arguments, platform, ranks, values):
    compiled = host.compile(*arguments, config=config(ranks, platform))
    stats = benchmark_ranks(
        compiled, arguments, 1, 0, RunConfig(platform=platform, checks="none"), False, None, values=values
    )
    return sorted((slot, *us) for (_, slot), us in stats.per_dispatch("device").items())


@pytest.mark.parametrize("make", [in_sequence, overlapped])
@pytest.mark.parametrize(("platform", "ranks"), [("a2a3", 2), ("a5", 3)])
def test_products_and_sums_take_the_same_time(make, platform, ranks):
    s = Split(ranks, 1024, 256, 384, blocks=4)
    shapes = [(s.m, s.k), (s.k, s.n), (s.m, s.n), (s.m, s.n)]
    arguments = [torch.full((ranks, *shape), 0.5).half().share_memory_() for shape in shapes]
    without = walls(make(s), arguments, platform, ranks, values=False)
    assert all(bool((t == 0.5).all()) for t in arguments), "a tensor was written"
    assert without == walls(make(s), arguments, platform, ranks, values=True)


def test_reads_of_peers_take_the_same_time():
    arguments = [torch.ones(3, 12, 64).half().share_memory_() for _ in range(2)]
    found = [walls(pulled_sum(3, 12, 64, 2), arguments, "a2a3", 3, values) for values in (False, True)]
    assert found[0] == found[1]


def test_a_program_that_reads_a_scalar_needs_its_values():
    @pl.jit.incore
    def shifted(x: pl.Tensor[[4, 64], pl.FP32], at: pl.Tensor[[1], pl.INT32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
        row = pl.cast(pl.read(at, [0]), pl.INDEX)
        return pl.store(pl.load(x, [row, 0], [1, 64]), [0, 0], y)

    @pl.jit
    def one(x: pl.Tensor[[4, 64], pl.FP32], at: pl.Tensor[[1], pl.INT32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
        return shifted(x, at, y)

    @pl.jit.host
    def every(
        x: pl.Tensor[[2, 4, 64], pl.FP32], at: pl.Tensor[[2, 1], pl.INT32], y: pl.Out[pl.Tensor[[2, 1, 64], pl.FP32]]
    ):
        for r in pl.range(pld.world_size()):
            one(x[r], at[r], y[r], device=r)

    arguments = torch.zeros(2, 4, 64), torch.zeros(2, 1, dtype=torch.int32), torch.zeros(2, 1, 64)
    compiled = every.compile(*arguments, config=config(2, "a2a3"))
    with pytest.raises(ValueError, match="reads scalars from memory"):
        DistributedWorker(compiled, values=False)

"""Many ranks on few processors: everybody who waits sleeps (spec distributed 2.4: a domain has at most 64 ranks)."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld

from .programs import config, row_program


@pl.inline
def sum_of_all(inp, out, data, signal):
    data = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], data)
    data = pld.tensor.allreduce(data, signal)
    out = pl.store(pl.load(data, [0, 0], [1, 64]), [0, 0], out)


@pytest.mark.parametrize(("ranks", "platform"), [(16, "a2a3"), (64, "a2a3sim")])
def test_allreduce_of_many_ranks(ranks, platform):
    x, y = torch.randn(ranks, 1, 64).share_memory_(), torch.zeros(ranks, 1, 64).share_memory_()
    program = row_program(ranks, 64, pl.FP32, [ranks, 1], sum_of_all).compile(x, y, config=config(ranks, platform))
    with program.prepare() as rt:
        for _ in range(2):
            rt(x, y)
    torch.testing.assert_close(y, x.sum(0).expand(ranks, 1, 64), rtol=1e-5, atol=1e-4)


def test_more_ranks_than_a_context_holds():
    ranks = 65
    x, y = torch.zeros(ranks, 1, 64).share_memory_(), torch.zeros(ranks, 1, 64).share_memory_()
    program = row_program(ranks, 64, pl.FP32, [ranks, 1], sum_of_all).compile(x, y, config=config(ranks))
    with program.prepare() as rt, pytest.raises(ValueError, match="65 ranks; a domain has at most 64"):
        rt(x, y)

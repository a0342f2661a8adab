"""The programs of the benchmarks have no finding."""

from __future__ import annotations

import pytest
import torch

from benchmarks import _checked_programs, _checked_ranks, _checked_shapes
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

PROGRAMS = [
    pytest.param(kernel, arguments, id=title)
    for title, kernel, arguments in (*_checked_programs.programs(), *_checked_shapes.programs())
]


@pytest.mark.parametrize(("kernel", "arguments"), PROGRAMS)
def test_a_program_that_is_timed_has_no_finding(kernel, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = RunConfig(platform="a2a3", checks="all", checks_mode="collect")
    compiled = kernel.compile(*arguments, config=config)
    compiled(*arguments, config=config)
    assert compiled.last_findings == []


RANKS = _checked_ranks.programs()


@pytest.mark.parametrize(("title", "program", "ranks", "arguments"), RANKS, ids=[title for title, *_ in RANKS])
def test_ranks_that_are_timed_have_no_finding(title, program, ranks, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    distributed = DistributedConfig(list(range(ranks)))
    config = RunConfig(platform="a2a3", checks="all", checks_mode="collect", distributed_config=distributed)
    compiled = program.compile(*arguments, config=config)
    with compiled.prepare(config) as worker:
        for _ in range(3):
            worker(*arguments)
            assert compiled.last_findings == []
    wanted = {
        "copy of a row": lambda x, y: x,
        "allreduce of 4 KB in a ring": lambda x, y: x.sum(0).expand_as(y),
        "product split over the ranks": lambda x, w, y: (x.float() @ w.float()).sum(0).expand_as(y),
        f"{_checked_ranks.TURNS} turns of two ranks": lambda x, y: x.flip(0),
        f"{_checked_ranks.WIDE} tasks that tell the other rank": lambda x, y: x.flip(0),
    }
    torch.testing.assert_close(arguments[-1], wanted[title](*arguments), rtol=1e-3, atol=1e-3)

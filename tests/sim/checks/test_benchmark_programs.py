"""The programs of the benchmarks have no finding."""

from __future__ import annotations

import pytest
import torch

from benchmarks import _checked_programs, _checked_shapes
from benchmarks.ranks import copies
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


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_that_are_timed_have_no_finding(ranks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    distributed = DistributedConfig(list(range(ranks)))
    config = RunConfig(platform="a2a3", checks="all", checks_mode="collect", distributed_config=distributed)
    x, y = torch.randn(ranks, 1, 64).share_memory_(), torch.zeros(ranks, 1, 64).share_memory_()
    compiled = copies.compile(x, y, config=config)
    with compiled.prepare(config) as worker:
        for _ in range(3):
            worker(x, y)
            assert compiled.last_findings == []
    assert torch.equal(x, y)

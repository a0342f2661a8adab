"""Why a program over several ranks takes as long as it does."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.runtime import benchmark, explain_ranks
from pypto.sim import explain, record

from .programs import config, row_program

RANKS, SIZE = 3, 64


@pl.inline
def from_the_first(inp, out, data, signal):
    """Rank 0 has work to do before it has something to tell; the others wait for it."""
    t = pl.load(inp, [0, 0], [1, SIZE])
    if pld.rank(pld.get_comm_ctx(signal)) == 0:
        for _ in pl.range(4000):
            t = pl.exp(t)
    data = pl.store(t, [0, 0], data)
    data = pld.tensor.broadcast(data, signal, root=0)
    out = pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], out)


@pytest.fixture(scope="module")
def program():
    x, y = (torch.zeros(RANKS, 1, SIZE).share_memory_() for _ in range(2))
    compiled = row_program(RANKS, SIZE, pl.FP32, [RANKS, 1], from_the_first).compile(x, y, config=config(RANKS, "a2a3"))
    return compiled, [x, y]


def test_every_rank_is_explained_and_says_whom_it_waited_for(program):
    explanation = explain_ranks(*program)
    assert [launch.rank for launch in explanation.launches] == [0, 1, 2]
    for launch in explanation.launches:
        timeline = launch.explanation.timeline
        classes = launch.explanation.class_us()
        assert sum(classes.values()) == pytest.approx(timeline.effective_us, abs=0.002)
        assert sum(launch.waited_us.values()) == pytest.approx(classes.get("ranks", 0.0))
        assert sum(launch.moved_us.values()) == pytest.approx(classes.get("link", 0.0))
        assert launch.end_us - launch.start_us == pytest.approx(timeline.device_wall_us)
    first, *others = explanation.launches
    assert first.explanation.instruction_us("vector")["texp"] > 50
    for launch in others:
        assert max(launch.waited_us, key=launch.waited_us.__getitem__) == 0, launch.waited_us
        assert launch.waited_us[0] > 5 and set(launch.explanation.instruction_us("ranks")) == {"signal_wait"}


def test_the_table_and_the_benchmark_agree(program):
    compiled, args = program
    explanation = explain_ranks(compiled, args)
    stats = benchmark(compiled, args, rounds=1, warmup=0)
    walls = sorted(series[0] for series in stats.per_rank("device").values())
    assert sorted(launch.explanation.timeline.device_wall_us for launch in explanation.launches) == pytest.approx(walls)
    table = explanation.to_pandas()
    assert table.filter(like="critical.").sum(axis=1).tolist() == pytest.approx(table.effective_us.tolist(), abs=0.002)
    text = str(explanation)
    assert f"3 launches on {RANKS} ranks" in text and "waits for rank 0" in text
    assert f"rank {explanation.last.rank}: chip on a2a3" in text


def test_what_cannot_be_explained_says_what_can(program):
    compiled, args = program
    with pytest.raises(TypeError, match="explain_ranks takes a compiled program over several ranks, got str"):
        explain_ranks("a2a3", args)
    with pytest.raises(TypeError, match="pypto.runtime.explain_ranks explains a program over several ranks"):
        explain(compiled)
    with pytest.raises(TypeError, match="compiled program of one chip"):
        record(compiled, args)
    x, y = (torch.zeros(RANKS, 1, SIZE).share_memory_() for _ in range(2))
    values = row_program(RANKS, SIZE, pl.FP32, [RANKS, 1], from_the_first).compile(x, y, config=config(RANKS))
    with pytest.raises(ValueError, match="a2a3sim has no device clock to explain; compile for a2a3"):
        explain_ranks(values, [x, y])

"""Values and simulated times of every collective: the same on every platform and in every run, for any number of ranks."""

from __future__ import annotations

import functools

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.runtime import benchmark

from .programs import config, matrix_program

SIZE = 40


def bodies(ranks: int):
    """Name -> (body, rows in, rows of the window, rows out)."""

    def reducing(op):
        @pl.inline
        def body(inp, out, data, signal):
            data = pl.store(pl.load(inp, [0, 0], [ranks, SIZE]), [0, 0], data)
            data = pld.tensor.allreduce(data, signal, op=op)
            out = pl.store(pl.load(data, [0, 0], [ranks, SIZE]), [0, 0], out)

        return body

    @pl.inline
    def broadcast(inp, out, data, signal):
        data = pl.store(pl.load(inp, [0, 0], [ranks, SIZE]), [0, 0], data)
        data = pld.tensor.broadcast(data, signal, root=ranks - 1)
        out = pl.store(pl.load(data, [0, 0], [ranks, SIZE]), [0, 0], out)

    @pl.inline
    def allgather(inp, out, data, signal):
        data = pld.tensor.allgather(inp, data, signal)
        out = pl.store(pl.load(data, [0, 0], [ranks, SIZE]), [0, 0], out)

    @pl.inline
    def reduce_scatter(inp, out, data, signal):
        data = pl.store(pl.load(inp, [0, 0], [ranks, SIZE]), [0, 0], data)
        data = pld.tensor.reduce_scatter(data, signal)
        out = pl.store(pl.load(data, [0, 0], [ranks, SIZE]), [0, 0], out)

    @pl.inline
    def all_to_all(inp, out, data, signal):
        data = pld.tensor.all_to_all(inp, data, signal)
        out = pl.store(pl.load(data, [0, 0], [ranks, SIZE]), [0, 0], out)

    @pl.inline
    def barrier(inp, out, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        data = pl.store(pl.load(inp, [0, 0], [ranks, SIZE]), [0, 0], data)
        signal = pld.tensor.barrier(signal)
        out = pl.store(
            pld.tile.remote_load(data, peer=(me + 1) % ranks, offsets=[0, 0], shape=[ranks, SIZE]), [0, 0], out
        )

    @pl.inline
    def add_to_all(inp, out, data, signal):
        for peer in pl.range(ranks):
            tile = pl.load(inp, [peer, 0], [1, SIZE])
            pld.tile.remote_store(tile, data, peer=peer, offsets=[0, 0], atomic=pld.AtomicType.Add)
        signal = pld.tensor.barrier(signal)
        out = pl.store(pl.load(data, [0, 0], [ranks, SIZE]), [0, 0], out)

    square = (ranks, ranks, ranks)
    return {
        "sum": (reducing(pld.ReduceOp.Sum), *square),
        "max": (reducing(pld.ReduceOp.Max), *square),
        "prod": (reducing(pld.ReduceOp.Prod), *square),
        "broadcast": (broadcast, *square),
        "allgather": (allgather, 1, ranks, ranks),
        "reduce_scatter": (reduce_scatter, *square),
        "all_to_all": (all_to_all, *square),
        "barrier": (barrier, *square),
        "add_to_all": (add_to_all, *square),
    }


NAMES = tuple(bodies(2))


@functools.cache
def compiled(name: str, ranks: int, platform: str):
    body, rows_in, rows, rows_out = bodies(ranks)[name]
    program = matrix_program(ranks, SIZE, body, in_rows=rows_in, data_rows=rows, out_rows=rows_out)
    torch.manual_seed(ranks)
    x, y = torch.randn(ranks, rows_in, SIZE).share_memory_(), torch.zeros(ranks, rows_out, SIZE).share_memory_()
    return program.compile(x, y, config=config(ranks, platform)), x, y


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize("name", NAMES)
def test_values_are_the_same_bits_on_both_platforms_and_in_every_run(name, ranks):
    found = []
    for platform, workers in (("a2a3sim", 2), ("a2a3", 1)):
        program, x, y = compiled(name, ranks, platform)
        for _ in range(workers):
            with program.prepare() as rt:
                for _ in range(2):
                    y.zero_()
                    rt(x, y)
                    found.append(y.clone())
    assert all(torch.equal(found[0], other) for other in found)
    assert found[0].abs().sum() > 0


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize("name", NAMES)
def test_times_are_the_same_in_every_run(name, ranks):
    program, x, y = compiled(name, ranks, "a2a3")
    runs = []
    for _ in range(2):
        stats = benchmark(program, [x, y], rounds=2, warmup=1)
        walls = [series for _, series in sorted(stats.per_rank("device").items())]
        runs.append((walls, stats.per_round("device_span"), stats.per_round("union"), stats.per_round("effective")))
    assert runs[0] == runs[1]
    for series in (*runs[0][0], *runs[0][1:]):
        assert len(set(series)) == 1 and series[0] > 0

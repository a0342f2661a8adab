"""Addresses of the simulated chip: what a launch finds in the cache follows from where its buffers lie."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto.language as pl
from pypto import ir
from pypto.runtime import ChipWorker, RunConfig
from pypto.runtime.address_space import AddressSpace
from pypto.runtime.chip_device import ChipDevice

ROWS, COLS = 256, 256
READ = ROWS * COLS * 4


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 4000)), max_size=40))
@settings(max_examples=50, deadline=None)
def test_allocations_never_share_a_byte(requests):
    space, live = AddressSpace(), []
    for frees, size in requests:
        if frees and live:
            space.free(live.pop(size % len(live))[0])
        else:
            live.append((space.allocate(size), size))
    live.sort()
    assert all(a + size <= b for (a, size), (b, _) in zip(live, live[1:]))
    assert all(a % 512 == 0 and a + size <= space.behind for a, size in live)


def test_a_gap_is_used_again_and_counts_as_new():
    space = AddressSpace()
    first, second = space.allocate(1000), space.allocate(1000)
    assert space.take_fresh() == [(first, 1024), (second, 1024)] and space.take_fresh() == []
    space.free(first)
    assert space.allocate(512) == first and space.take_fresh() == [(first, 512)]


@pytest.fixture
def reads(monkeypatch):
    """Bytes each launch reads from HBM, as they happen."""
    found = []
    time = ChipDevice.time

    def spy(self, *arguments):
        timed = time(self, *arguments)
        found.append(sum(record.hbm_bytes for record in timed.timeline.records()))
        return timed

    monkeypatch.setattr(ChipDevice, "time", spy)
    return found


def copy_kernel():
    @pl.jit
    def k(x: pl.Tensor[[ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for r in pl.range(0, ROWS, 32):
                y = pl.store(pl.load(x, [r, 0], [32, COLS]), [r, 0], y)
        return y

    x = torch.zeros(ROWS, COLS)
    return ir.compile(k.lower(x, x.clone()), platform="a2a3")


def test_a_tensor_that_stays_is_warm_and_a_new_one_is_cold(reads):
    compiled = copy_kernel()
    with ChipWorker(RunConfig(platform="a2a3")) as worker:
        a, b, c, d = (worker.alloc_tensor((ROWS, COLS), torch.float32, init=torch.ones(ROWS, COLS)) for _ in range(4))
        for x, y in ((a, b), (a, b), (b, c), (d, a)):
            worker.run(compiled, x, y)
        assert reads == [READ, 0, 0, READ], "read again; written before; never seen"
        worker.run(compiled, a, d, config=RunConfig(platform="a2a3", cold_start=True))
        assert reads[-1] == READ
        worker.free_tensor(a)
        e = worker.alloc_tensor((ROWS, COLS), torch.float32, init=torch.ones(ROWS, COLS))
        worker.run(compiled, e, d)
        assert reads[-1] == READ, "new memory, though at the address of what was freed"


def test_host_tensors_do_not_disturb_what_stays(reads):
    compiled = copy_kernel()
    with ChipWorker(RunConfig(platform="a2a3")) as worker:
        a, b = (worker.alloc_tensor((ROWS, COLS), torch.float32, init=torch.ones(ROWS, COLS)) for _ in range(2))
        worker.run(compiled, a, b)
        worker.run(compiled, torch.ones(ROWS, COLS), torch.zeros(ROWS, COLS))
        worker.run(compiled, a, b)
    assert reads == [READ, READ, 0]

"""What the checks keep is bounded by the buffers, not by the accesses to them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch

import pypto.language as pl
from pypto.runtime import RunConfig
from pypto.sim.checks import conflicts as c
from pypto.sim.checks import words as w
from pypto.sim.checks.order import AccessTable, OrderGraph, seat_of
from pypto.sim.checks.rank_accesses import RankAccesses
from pypto.sim.checks.watch import LaunchWatch


def records(kind: int, low: int, size: int, instruction: int = 0, fences: int = 0) -> np.ndarray:
    record = np.zeros((1, w.ACCESS_WORDS), np.int64)
    record[0, w.ACCESS_KIND], record[0, w.ACCESS_INSTRUCTION], record[0, w.ACCESS_FENCES] = kind, instruction, fences
    record[0, w.ACCESS_SNAPSHOT] = record[0, w.ACCESS_ROOT] = -1
    record[0, w.ACCESS_BOX : w.ACCESS_BOX + 2] = low, size
    record[0, w.ACCESS_BOX + 2 :: 2] = 1
    return record


def test_a_chain_of_12000_tasks_over_64_strips_keeps_64_accesses():
    graph = OrderGraph()
    table = AccessTable(graph)
    table.add_allocation(0, 1 << 16)
    for trip in range(12_000):
        node = graph.add([trip - 1] if trip else [])
        table.take(records(w.WRITES, 1024 * (trip * 7 % 64), 1024), seat_of(node, node, 0))
    assert table.entries <= 65 and len(table.findings) == 0 and table.nbytes < 1 << 18


def test_the_table_finds_the_one_race_among_12000_strips():
    graph = OrderGraph()
    table = AccessTable(graph)
    table.add_allocation(0, 12_000 * 256)
    for task in range(12_000):
        graph.add([])
        table.take(records(w.WRITES, 256 * task, 256), seat_of(task, task, 0))
    assert len(table.findings) == 0
    graph.add([5000, 5002])
    table.take(records(w.WRITES, 256 * 5000, 256 * 3), seat_of(12_000, 12_000, 0))
    (found,) = table.findings
    assert int(found[1]) == 1 and int(found[2 + c.E_NODE]) == 5001


def test_readers_without_order_are_all_remembered_by_a_later_writer():
    graph = OrderGraph()
    table = AccessTable(graph)
    table.add_allocation(0, 1024)
    for task in range(3000):
        graph.add([])
        table.take(records(0, 0, 1024, task), seat_of(task, task, 0))
    graph.add(range(1, 3000))
    table.take(records(w.WRITES, 0, 1024, 1), seat_of(3000, 3000, 1))
    (found,) = table.findings
    assert int(found[2 + c.E_NODE]) == 0


def test_window_accesses_between_two_signals_are_kept_once():
    log, allocations = RankAccesses(), np.zeros((1, w.ALLOCATION_WORDS), np.int64)
    seats = seat_of(0, 0, 0)
    for round_ in range(3):
        for trip in range(4000):
            row = records(w.WRITES if trip % 2 else 0, 64 * (trip % 8), 64)
            assert len(log.without_signals(row, seats, allocations, {0})) == 1
        signal = records(w.NOTIFIES, 4096, 0, instruction=round_)
        assert len(log.without_signals(signal, seats, allocations, {0})) == 0
    events = log.events().plain()
    assert len(events) == 3 * (8 + 1)
    kinds = events[:, 0].tolist()
    assert [kinds.index(w.NOTIFIES), kinds[8], kinds[17], kinds[26]] == [8, w.NOTIFIES, w.NOTIFIES, w.NOTIFIES]


@pl.jit
def walk(x: pl.InOut[pl.Tensor[[64, 64], pl.FP32]], steps: pl.Scalar[pl.INDEX]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="walk"):
        for i in pl.range(steps):
            r = i % 4 * 16
            pl.store(pl.add(pl.load(x, [r, 0], [16, 64]), 1.0), [r, 0], x)
            n = pl.read(x, [r, 3])
            pl.write(x, [r + 1, 5], n)
    return x


@pytest.fixture
def kept(monkeypatch):
    """Bytes of tables and graphs, and accesses kept, of every launch."""
    found: list[tuple[int, int]] = []
    close = LaunchWatch.close

    def note(self: LaunchWatch) -> None:
        found.append((self.table.nbytes + self.graph.nbytes, self.table.entries))
        close(self)

    monkeypatch.setattr(LaunchWatch, "close", note)
    return found


def test_thousands_of_accesses_and_launches_leave_no_more_than_one(kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = torch.zeros(64, 64)
    config = RunConfig(platform="a2a3sim", checks={"war", "uninit", "window-race"}, checks_mode="collect")
    compiled = walk.compile(x, 8, config=config)
    for steps in (8, 20_000, *[8] * 20):
        compiled(x, steps, config=config)
    assert kept[1] == kept[0]
    tracemalloc.start()
    for _ in range(50):
        compiled(x, 8, config=config)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(200):
        compiled(x, 8, config=config)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 1 << 18 and max(kept) == kept[0]


@pl.jit
def fresh_each_trip(x: pl.InOut[pl.Tensor[[64, 64], pl.FP32]], trips: pl.Scalar[pl.INDEX]):
    for i in pl.range(trips):
        a = pl.create_tensor([64, 64], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="out"):
            pl.store(pl.add(pl.load(x, [0, 0], [64, 64]), 1.0), [0, 0], a)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="back"):
            pl.store(pl.load(a, [0, 0], [64, 64]), [0, 0], x)
    return x


def test_tensors_of_ended_scopes_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    held: list[tuple[int, int, int]] = []
    close = LaunchWatch.close

    def note(self: LaunchWatch) -> None:
        shadows = sum(shadow.size for shadow in self.shadows if shadow is not None)
        held.append((shadows, self.table.entries, self.table.buckets))
        close(self)

    monkeypatch.setattr(LaunchWatch, "close", note)
    x = torch.zeros(64, 64)
    config = RunConfig(platform="a2a3sim", checks={"war", "waw", "raw", "uninit"}, checks_mode="collect")
    compiled = fresh_each_trip.compile(x, 700, config=config)
    for trips in (700, 7000):
        compiled(x, trips, config=config)
        assert compiled.last_findings == []
    few, many = held
    assert many == few and few[0] <= (2 * 256 + 1) * 64 * 64 * 4 + x.nbytes

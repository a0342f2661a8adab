"""The order graph, the table of accesses, and schedules."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto.language as pl
from pypto.sim.checks import words as w
from pypto.sim.checks.order import AccessTable, OrderGraph, seat_of

READ, WRITE, ADD = 0, w.WRITES, w.WRITES | w.ATOMIC


def access(kind: int, low: int, size: int, instruction: int = 0) -> np.ndarray:
    record = np.zeros((1, w.ACCESS_WORDS), np.int64)
    record[0, w.ACCESS_KIND], record[0, w.ACCESS_INSTRUCTION] = kind, instruction
    record[0, w.ACCESS_SNAPSHOT] = record[0, w.ACCESS_ROOT] = -1
    record[0, w.ACCESS_BOX : w.ACCESS_BOX + 2] = low, size
    record[0, w.ACCESS_BOX + 2 :: 2] = 1
    return record


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_reachability_agrees_with_a_search(seed):
    rng = random.Random(seed)
    graph, before = OrderGraph(), []
    for node in range(90):
        before.append(rng.sample(range(node), min(node, rng.randint(0, 3))))
        assert graph.add(before[-1]) == node
    for second in range(90):
        seen, stack = set(), list(before[second])
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack += before[node]
        assert {first for first in range(90) if graph.reaches(first, second)} == seen


def verdict(accesses, edges, schedule) -> bool:
    """Whether the table finds a race when the tasks' accesses arrive in the order of ``schedule``."""
    graph = OrderGraph()
    for node in range(len(accesses)):
        graph.add(edges[node])
    table = AccessTable(graph)
    table.add_allocation(0, 4096)
    for node in schedule:
        for number, one in enumerate(accesses[node]):
            table.take(access(*one, 100 * node + number), seat_of(node, node, 0))
    return len(table.findings) > 0


def random_schedule(rng: random.Random, edges: list[list[int]]) -> list[int]:
    left, done = set(range(len(edges))), []
    while left:
        ready = [node for node in left if all(other in done for other in edges[node])]
        done.append(rng.choice(sorted(ready)))
        left.remove(done[-1])
    return done


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_any_legal_schedule_has_the_verdict_of_all_pairs(seed):
    rng = random.Random(seed)
    count = rng.randint(2, 9)
    edges = [rng.sample(range(node), min(node, rng.randint(0, 2))) for node in range(count)]
    accesses = [
        [(rng.choice((READ, WRITE, ADD)), rng.randint(0, 12), rng.randint(1, 6)) for _ in range(rng.randint(1, 3))]
        for _ in range(count)
    ]
    graph = OrderGraph()
    for before in edges:
        graph.add(before)
    racy = any(
        (a[0] | b[0]) & w.WRITES
        and not a[0] & b[0] & w.ATOMIC
        and a[1] < b[1] + b[2]
        and b[1] < a[1] + a[2]
        and not graph.reaches(first, second)
        for second in range(count)
        for first in range(second)
        for a in accesses[first]
        for b in accesses[second]
    )
    for _ in range(10):
        assert verdict(accesses, edges, random_schedule(rng, edges)) == racy


def test_the_verdict_on_a_refilled_buffer_is_the_same_for_1000_schedules():
    accesses = [[(WRITE, 0, 64)], [(READ, 0, 64)], [(WRITE, 0, 64)], [(READ, 0, 64)]]
    rng = random.Random(1)
    racy, ordered = [[], [0], [0], [2]], [[], [0], [0, 1], [2]]
    for _ in range(1000):
        assert verdict(accesses, racy, random_schedule(rng, racy))
        assert not verdict(accesses, ordered, random_schedule(rng, ordered))


def test_the_table_is_bounded_by_the_buffer_and_not_by_its_uses():
    graph = OrderGraph()
    table = AccessTable(graph)
    table.add_allocation(0, 4096)
    for trip in range(2000):
        node = graph.add([trip - 1] if trip else [])
        table.take(access(WRITE if trip % 2 else READ, 64 * (trip // 2 % 4), 64), seat_of(node, node, 0))
    assert table.entries <= 16 and len(table.findings) == 0


@pl.jit
def refill(
    x: pl.Tensor[[32, 32], pl.FP32], p: pl.Out[pl.Tensor[[32, 32], pl.FP32]], q: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    box = pl.create_tensor([32, 32], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="one"):
        pl.store(pl.load(x, [0, 0], [32, 32]), [0, 0], box)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="take"):
        pl.store(pl.load(box, [0, 0], [32, 32]), [0, 0], p)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="two"):
        pl.store(pl.load(x, [0, 0], [16, 32]), [16, 0], box)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="end"):
        pl.store(pl.load(box, [0, 0], [32, 32]), [0, 0], q)
    return p, q


def test_a_writer_that_does_not_wait_for_a_reader(findings):
    (found,) = findings(refill, torch.ones(32, 32), torch.zeros(32, 32), torch.zeros(32, 32))
    assert (found.kind, found.tensor, found.tasks) == ("war", "box", ("take", "two"))
    assert found.bytes == (2048, 4096) and found.index_ranges == ((16, 32), (0, 32))
    assert "deps=[" in found.suggestion and [place.line for place in found.locations] == sorted(
        place.line for place in found.locations
    )


@pl.jit
def strips(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
    for b in pl.spmd(4, name_hint="strip"):
        pl.store(pl.load(x, [b * 16, 0], [16, 32]), [b * 16, 0], y)
    return y


@pl.jit
def columns(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    for b in pl.spmd(4, name_hint="strip"):
        pl.store(pl.load(x, [0, b * 16], [64, 24]), [0, b * 14], y)
    return y


def test_disjoint_strips_of_blocks_are_silent(findings):
    assert findings(strips, torch.ones(64, 32), torch.zeros(64, 32)) == []


@pytest.mark.parametrize("checks", ["none", "cheap", {"uninit"}])
def test_only_what_is_asked_for_is_looked_for(findings, checks):
    args = torch.ones(32, 32), torch.zeros(32, 32), torch.zeros(32, 32)
    assert findings(refill, *args, checks=checks) == []

"""Tasks that matter no more are left out of the order graph, and no verdict changes."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto.language as pl
from pypto.runtime import RunConfig
from pypto.sim.checks import conflicts as c
from pypto.sim.checks import nodes
from pypto.sim.checks import words as w
from pypto.sim.checks.nodes import FEW, Node, Nodes
from pypto.sim.checks.order import AccessTable, OrderGraph, seat_of
from pypto.sim.checks.reduction import reduced
from pypto.sim.checks.watch import LaunchWatch
from tests.sim.checks.test_order import ADD, READ, WRITE, access


def ancestors(before: dict[int, set[int]]) -> dict[int, set[int]]:
    """All nodes before each, which have lower numbers."""
    found: dict[int, set[int]] = {}
    for node, direct in sorted(before.items()):
        found[node] = set(direct).union(*(found[other] for other in direct))
    return found


@st.composite
def graphs(draw, most: int = 60):
    """Nodes directly before each node; narrow and wide, with chains, joins and layers in which all follow all."""
    rng = random.Random(draw(st.integers(0, 2**32 - 1)))
    count, reach, degree = rng.randint(1, most), rng.choice((3, 8, most)), rng.randint(1, 5)
    layers = rng.choice((0, 0, 3, 8))
    before = []
    for node in range(count):
        near = range(max(0, node - reach), node)
        chosen = rng.sample(near, min(len(near), rng.randint(0, degree)))
        before.append(list(range(max(0, node // layers - 1) * layers, node // layers * layers)) if layers else chosen)
    return rng, before


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_the_order_of_kept_nodes_and_of_those_to_come_stays(drawn):
    rng, before = drawn
    asked = set(rng.sample(range(len(before)), rng.randint(0, len(before))))
    named = set(rng.sample(range(len(before)), rng.randint(0, min(4, len(before)))))
    left = reduced(before, asked, named)
    assert asked <= set(left.before) and list(left.before) == sorted(left.before)
    whole = {node: set(direct) for node, direct in enumerate(before)}
    small = {node: set(direct) for node, direct in left.before.items()}
    for new, behind in enumerate(named, len(before)):
        whole[new] = {behind}
        small[new] = {left.stands_for[behind]} - {-1}
    for node, earlier in ancestors(whole).items():
        if node in asked or node >= len(before):
            assert ancestors(small)[node] & asked == earlier & asked


@settings(max_examples=100, deadline=None)
@given(graphs(400), st.integers(0, 6))
def test_relays_do_not_outnumber_what_they_order(drawn, many):
    rng, before = drawn
    asked = set(rng.sample(range(len(before)), min(len(before), many)))
    left = reduced(before, asked, ())
    assert len(left.before) <= 2 * len(asked) + 64


def run(steps, forgets: bool):
    """(pairs found, most nodes kept) when ``steps`` run in order; each is (waits for, accesses, tasks named later)."""
    graph = OrderGraph()
    table, known = AccessTable(graph), Nodes(graph)
    table.add_allocation(0, 4096)
    found, most = [], 0
    for task, (producers, accesses, later) in enumerate(steps):
        node = known.add(producers, Node("task", task, 0), -1)
        for number, one in enumerate(accesses):
            table.take(access(*one, 100 * task + number), seat_of(node, node, 0))
            instructions = 2 + w.ACCESS_INSTRUCTION, 2 + c.ENTRY_WORDS + w.ACCESS_INSTRUCTION
            found += [tuple(row[list(instructions)].tolist()) for row in table.findings]
            table._request[c.Q_FOUND] = 0  # room for those to come
        if forgets:
            known.keep(table.nodes().tolist(), later, (), set())
            table.reindex()
        most = max(most, graph.size)
    return found, most


@st.composite
def programs(draw):
    rng = random.Random(draw(st.integers(0, 2**32 - 1)))
    count, ids = rng.randint(2, 40), rng.randint(1, 6)
    holds: list[int] = []  # tasks that the orchestration can name
    producers, accesses = [], []
    for task in range(count):
        producers.append(rng.sample(holds, min(len(holds), rng.randint(0, 3))))
        size = rng.choice((4, 4, 12))
        accesses.append(
            [
                (rng.choice((READ, READ, WRITE, WRITE, ADD)), rng.randint(0, 20 - size), rng.randint(1, size))
                for _ in range(rng.randint(0, 2))
            ]
        )
        holds = [*rng.sample(holds, min(len(holds), ids)), task]
    later: list[set[int]] = [set() for _ in range(count)]
    for task in reversed(range(1, count)):
        later[task - 1] = {other for other in later[task] | set(producers[task]) if other < task}
    return list(zip(producers, accesses, later))


@settings(max_examples=300, deadline=None)
@given(programs())
def test_verdicts_are_those_of_all_pairs_whether_or_not_tasks_are_left_out(steps):
    order = ancestors({task: set(before) for task, (before, _, _) in enumerate(steps)})
    rows = [(task, one) for task, (_, made, _) in enumerate(steps) for one in made]
    racy = {
        second
        for (first, a), (second, b) in combinations(rows, 2)
        if first != second and first not in order[second] and (a[0] | b[0]) & w.WRITES and not a[0] & b[0] & w.ATOMIC
        if a[1] < b[1] + b[2] and b[1] < a[1] + a[2]
    }  # fmt: skip
    whole, _ = run(steps, forgets=False)
    small, _ = run(steps, forgets=True)
    assert small == whole
    assert {late // 100 for _, late in whole} == racy


def test_a_node_that_was_left_out_is_not_taken_for_another():
    graph = OrderGraph()
    for node in range(4):
        graph.add([node - 1] if node else [])
    assert graph.keep([1, 3], [2]) == {2: 1}
    assert graph.index(3) == 1 and graph.add([3]) == 4 and graph.reaches(1, 4)
    with pytest.raises(LookupError, match="node 2"):
        graph.index(2)


@pl.jit
def back_and_forth(
    x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]], trips: pl.Scalar[pl.INDEX]
):
    a = pl.create_tensor([16, 64], dtype=pl.FP32)
    b = pl.create_tensor([16, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="start"):
        a[:, :] = pl.add(x[:, :], 0.0)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="begin"):
        b[:, :] = pl.add(a[:, :], 0.0)
    for _ in pl.range(trips):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="there"):
            b[:, :] = pl.mul(pl.add(b[:, :], a[:, :]), 0.25)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="back"):
            a[:, :] = pl.mul(pl.add(a[:, :], b[:, :]), 0.25)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="end"):
        y[:, :] = pl.add(a[:, :], 0.0)
    return y


@pl.jit
def keeps_an_early_reader(
    x: pl.Tensor[[16, 64], pl.FP32], y: pl.InOut[pl.Tensor[[16, 64], pl.FP32]], trips: pl.Scalar[pl.INDEX]
):
    held = pl.create_tensor([16, 64], dtype=pl.FP32)
    out = pl.create_tensor([16, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill"):
        held[:, :] = pl.add(x[:, :], 0.0)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="early"):
        out[:, :] = pl.add(held[:, :], 0.0)
    for _ in pl.range(trips):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="step"):
            y[:, :] = pl.mul(pl.add(y[:, :], x[:, :]), 0.5)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="late"):
        held[:, :] = pl.add(x[:, :], 1.0)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="end"):
        y[:, :] = pl.add(y[:, :], pl.add(held[:, :], out[:, :]))
    return y


def test_thousands_of_tasks_leave_no_more_nodes_than_hundreds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    held: list[tuple[int, int, int, int]] = []
    close = LaunchWatch.close

    def note(self: LaunchWatch) -> None:
        held.append((self.graph.count, self.graph.size, len(self.nodes), len(self.nodes.of_task)))
        close(self)

    monkeypatch.setattr(LaunchWatch, "close", note)
    x, y = torch.ones(16, 64), torch.zeros(16, 64)
    config = RunConfig(platform="a2a3sim", checks={"war", "waw", "raw"})
    compiled = back_and_forth.compile(x, y, 5000, config=config)
    compiled(x, y, 5000, config=config)
    ((tasks, *kept),) = held
    assert tasks == 10_003 and max(kept) <= 2 * FEW


@pytest.mark.parametrize("few", [FEW, 0])
def test_a_reader_thousands_of_tasks_ago_is_named(few, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nodes, "FEW", few)
    x, y = torch.ones(16, 64), torch.zeros(16, 64)
    config = RunConfig(platform="a2a3sim", checks={"war", "waw", "raw"}, checks_mode="collect")
    compiled = keeps_an_early_reader.compile(x, y, 2000, config=config)
    compiled(x, y, 2000, config=config)
    assert {(f.kind, f.tasks) for f in compiled.last_findings} == {("war", ("early", "late"))}
    assert "deps=[" in compiled.last_findings[0].suggestion

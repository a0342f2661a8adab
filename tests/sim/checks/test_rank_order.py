"""What waits prove, against the definition written out; thousands of rounds are no more work each than ten."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto.sim.checks.rank_order import NOTIFIES, WAITED, Event, RunOrder
from pypto.sim.checks.ranks import rank_findings
from pypto.sim.checks.signal_cells import SET
from tests.sim.checks.test_ranks import log


def defined_order(order: RunOrder) -> set[tuple[int, int]]:
    """Pairs (a, b), a before b: program order, and what waits prove, repeated until nothing follows any more."""
    events, numbers = order.events, range(len(order.events))
    before = np.zeros((len(events), len(events)), bool)
    for a, b in itertools.combinations(events, 2):
        before[a.number, b.number] = a.thread == b.thread
    while True:
        for k in numbers:
            before |= np.outer(before[:, k], before[k])
        proved = [
            (n.number, wait.number)
            for wait in events if wait.kind == WAITED
            for n in events if n.kind == NOTIFIES and n.cell == wait.cell and needs(events, before, wait, n)
        ]  # fmt: skip
        new = [pair for pair in proved if not before[pair]]
        if not new:
            return {(a, b) for a, b in itertools.product(numbers, numbers) if before[a, b]}
        for pair in new:
            before[pair] = True


def needs(events: list[Event], before: np.ndarray, wait: Event, notify: Event) -> bool:
    """Whether the cell cannot reach what ``wait`` expects without ``notify`` (spec distributed 2.9, 2.10)."""
    if before[wait.number, notify.number]:
        return False
    value, largest = 0, 0
    for other in events:
        if other.kind != NOTIFIES or other.cell != wait.cell or other is notify:
            continue
        if before[wait.number, other.number] or before[notify.number, other.number]:
            continue
        amount = int(other.words[2])
        if int(other.words[3]) == SET:
            largest = max(largest, amount)
        elif amount > 0 or before[other.number, wait.number]:
            value += amount
    return max(value, largest) < int(wait.words[2])


def steps(ranks: int) -> st.SearchStrategy:
    cell = st.sampled_from([0, 8])
    notify = st.tuples(
        st.just("notify"),
        st.integers(0, ranks - 1),
        cell,
        st.sampled_from([1, 1, 1, 2, -1]),
        st.sampled_from([0, 0, 0, 1]),
    )
    wait = st.tuples(st.just("wait"), cell, st.integers(1, 3))
    return st.lists(st.one_of(notify, notify, wait), max_size=7)


def that_runs(programs: list[list[tuple]]) -> list[list[tuple]]:
    """The part of every rank's program that is reached when the ranks go on as far as they can."""
    cells: dict[tuple[int, int], int] = {}
    done = [0] * len(programs)
    moved = True
    while moved:
        moved = False
        for rank, program in enumerate(programs):
            while done[rank] < len(program):
                step = program[done[rank]]
                if step[0] == "wait" and cells.get((step[1], rank), 0) < step[2]:
                    break
                if step[0] == "notify":
                    place = step[2], step[1]
                    cells[place] = step[3] if step[4] == SET else cells.get(place, 0) + step[3]
                done[rank] += 1
                moved = True
    return [program[:count] for program, count in zip(programs, done)]


@settings(max_examples=300, deadline=None)
@given(st.integers(2, 3).flatmap(lambda n: st.lists(steps(n), min_size=n, max_size=n)))
def test_the_order_is_the_one_the_definition_gives(programs):
    logs = [log(rank, *program) for rank, program in enumerate(that_runs(programs))]
    order = RunOrder({n: (n, each) for n, each in enumerate(logs)}, {}, {})
    wanted = defined_order(order)
    found = {(a.number, b.number) for a in order.events for b in order.events if order.reaches(a, b)}
    assert found == wanted


ROUNDS = 3000


def test_thousands_of_rounds_in_order():
    writer, reader = [], []
    for round_ in range(1, ROUNDS + 1):
        writer += [("write", 0), ("notify", 1, 0, 1), ("wait", 8, round_)]
        reader += [("wait", 0, round_), ("read", 0), ("notify", 0, 8, 1)]
    order = RunOrder({0: (0, log(0, *writer)), 1: (1, log(1, *reader))}, {}, {})
    assert not list(rank_findings(order))
    assert order.clocks.nbytes == 4 * 2 * len(order.events)


def test_hundreds_of_races_are_a_few_findings():
    writer, reader = [], []
    for _ in range(500):
        writer += [("write", 0), ("notify", 1, 0, 1)]
        reader += [("wait", 0, 1), ("read", 0)]
    found = list(rank_findings(RunOrder({0: (0, log(0, *writer)), 1: (1, log(1, *reader))}, {}, {})))
    assert "signal-reuse" in {f.kind for f in found} and len(found) <= 4


def test_the_one_race_behind_thousands_of_rounds():
    writer, reader = [], []
    for round_ in range(1, ROUNDS + 1):
        writer += [("write", 0), ("notify", 1, 0, 1), ("wait", 8, round_ if round_ < ROUNDS else ROUNDS - 1)]
        reader += [("wait", 0, round_), ("read", 0), ("notify", 0, 8, 1)]
    logs = [log(0, *writer, ("write", 0)), log(1, *reader)]
    (found,) = rank_findings(RunOrder({n: (n, each) for n, each in enumerate(logs)}, {}, {}))
    assert found.kind in ("signal-reuse", "window-race")


def test_credits_taken_back_in_thousands_of_rounds():
    writer, reader = [], []
    for _ in range(ROUNDS):
        writer += [("write", 0), ("notify", 1, 0, 1), ("wait", 8, 1), ("notify", 0, 8, -1)]
        reader += [("wait", 0, 1), ("notify", 1, 0, -1), ("read", 0), ("notify", 0, 8, 1)]
    order = RunOrder({0: (0, log(0, *writer)), 1: (1, log(1, *reader))}, {}, {})
    assert not list(rank_findings(order))

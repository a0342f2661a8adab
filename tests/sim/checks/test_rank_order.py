"""What waits prove, against the definition written out; thousands of rounds are no more work each than ten."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto.sim.checks.rank_order import RunOrder
from pypto.sim.checks.ranks import rank_findings
from pypto.sim.checks.signal_cells import SET
from tests.sim.checks.test_ranks import log


def order_of_all_runs(programs: list[list[tuple]]) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """Pairs ((rank, step), (rank, step)) that happen in this order in every run, from all states of all runs."""
    start = (0,) * len(programs), ()
    states, pending = {start}, [start]
    never_before = set()
    while pending:
        done, cells = pending.pop()
        for rank, program in enumerate(programs):
            if done[rank] == len(program):
                continue
            step, now = program[done[rank]], dict(cells)
            if step[0] == "wait" and now.get((step[1], rank), 0) < step[2]:
                continue
            for other, count in enumerate(done):
                if other != rank:
                    never_before |= {((other, n), (rank, done[rank])) for n in range(count, len(programs[other]))}
            if step[0] == "notify":
                cell = step[2], step[1]
                now[cell] = step[3] if step[4] == SET else now.get(cell, 0) + step[3]
            following = tuple(n + (r == rank) for r, n in enumerate(done)), tuple(sorted(now.items()))
            if following not in states:
                states.add(following)
                pending.append(following)
    every = [(rank, n) for rank, program in enumerate(programs) for n in range(len(program))]
    return {
        (a, b)
        for a, b in itertools.permutations(every, 2)
        if (a[1] < b[1] if a[0] == b[0] else (a, b) not in never_before)
    }


def found_order(programs: list[list[tuple]]) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    order = RunOrder({rank: (rank, log(rank, *program)) for rank, program in enumerate(programs)}, {}, {})
    place, counts = {}, [0] * len(programs)
    for event in order.events:
        place[event.number] = event.rank, counts[event.rank]
        counts[event.rank] += 1
    return {(place[a.number], place[b.number]) for a in order.events for b in order.events if order.reaches(a, b)}


def steps(ranks: int, amounts: list[int], operations: list[int]) -> st.SearchStrategy:
    cell = st.sampled_from([0, 8])
    notify = st.tuples(
        st.just("notify"),
        st.integers(0, ranks - 1),
        cell,
        st.sampled_from(amounts),
        st.sampled_from(operations),
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


def of_ranks(amounts: list[int], operations: list[int]) -> st.SearchStrategy:
    return st.integers(2, 3).flatmap(lambda n: st.lists(steps(n, amounts, operations), min_size=n, max_size=n))


@settings(max_examples=400, deadline=None)
@given(of_ranks([1, 1, 2], [0]))
def test_counters_that_grow_give_the_order_of_all_runs(programs):
    programs = that_runs(programs)
    assert found_order(programs) == order_of_all_runs(programs)


@settings(max_examples=400, deadline=None)
@given(of_ranks([1, 1, 1, 2, -1], [0, 0, 0, 1]))
def test_no_order_is_claimed_that_some_run_does_not_have(programs):
    programs = that_runs(programs)
    assert found_order(programs) <= order_of_all_runs(programs)


def rounds_on_one_counter(ranks: int, rounds: int) -> list[list[tuple]]:
    """Every rank tells all others, through one counter each, before and after its reads of what rank 0 has written."""
    programs = []
    for me in range(ranks):
        tell = [("notify", peer, 0, 1) for peer in range(ranks) if peer != me]
        program = []
        for count in range(0, 2 * rounds, 2):
            mine, theirs = ([("write", 0)], []) if me == 0 else ([], [("read", 0)])
            program += [*mine, *tell, ("wait", 0, (count + 1) * (ranks - 1))]
            program += [*theirs, *tell, ("wait", 0, (count + 2) * (ranks - 1))]
        programs.append(program)
    return programs


def races(programs: list[list[tuple]]) -> list[str]:
    order = RunOrder({rank: (rank, log(rank, *program)) for rank, program in enumerate(programs)}, {}, {})
    return [finding.kind for finding in rank_findings(order)]


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_a_counter_that_all_ranks_share_is_a_barrier(ranks, rounds):
    programs = rounds_on_one_counter(ranks, rounds)
    assert races(programs) == []
    last = max(n for n, step in enumerate(programs[1]) if step[0] == "read") - 1
    weaker = [("wait", 0, step[2] - 1) if n == last else step for n, step in enumerate(programs[1])]
    assert races([programs[0], weaker, *programs[2:]])


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

"""The screen of runs on several chips: never quiet where the whole order shows something, in little memory."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto.sim.checks import rank_screen
from pypto.sim.checks import words as w
from pypto.sim.checks.event_rows import EventRows
from pypto.sim.checks.rank_chains import chains_of
from pypto.sim.checks.rank_order import RunOrder
from pypto.sim.checks.rank_patterns import patterns_of
from pypto.sim.checks.rank_run import findings_of_run
from pypto.sim.checks.rank_screen import RankScreen, is_in_order
from pypto.sim.checks.ranks import rank_findings
from pypto.sim.checks.signal_use import cells_after
from tests.sim.checks.random_runs import RandomRun
from tests.sim.checks.test_rank_order import rounds_on_one_counter
from tests.sim.checks.test_ranks import log

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.booleans(), st.integers(0, 4))
def test_a_screen_is_quiet_only_where_nothing_is_wrong(seed, takes_back, sets):
    run = RandomRun(seed, takes_back, sets == 0)
    logs, after = run.logs(4096), run.waits_for()
    found = list(rank_findings(RunOrder(logs, after, {})))
    assert not (found and is_in_order(logs, after, {}))


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.booleans(), st.sampled_from([1, 2, 3, 7]))
def test_how_logs_are_cut_into_chunks_does_not_matter(seed, takes_back, together):
    run = RandomRun(seed, takes_back)
    after = run.waits_for()
    assert is_in_order(run.logs(together), after, {}) == is_in_order(run.logs(4096), after, {})


@settings(max_examples=120, deadline=None)
@given(SEEDS, st.booleans(), st.sampled_from([1, 2, 5]))
def test_runs_of_many_blocks_are_gone_through_in_turn(seed, takes_back, in_turn):
    run = RandomRun(seed, takes_back)
    logs, after = run.logs(3), run.waits_for()
    with patch.object(rank_screen, "TOGETHER", 0), patch.object(rank_screen, "_IN_TURN", in_turn):
        in_turns = is_in_order(logs, after, {})
    assert in_turns == is_in_order(logs, after, {})


def test_most_runs_in_order_are_not_doubted():
    doubted = in_order = 0
    for seed in range(150):
        run = RandomRun(seed)
        logs, after = run.logs(4096), run.waits_for()
        if not list(rank_findings(RunOrder(logs, after, {}))):
            in_order += 1
            doubted += not is_in_order(logs, after, {})
    assert in_order > 50
    assert doubted < 0.1 * in_order


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.booleans(), st.booleans())
def test_what_cells_hold_afterwards(seed, takes_back, sets):
    run = RandomRun(seed, takes_back, sets)
    cells = {(0, 0): 5, (24, 1): 7}
    for dispatch in sorted(run.events):
        for _, _, step in run.events[dispatch]:
            if step[0] == "notify":
                place = step[2], step[1]
                cells[place] = step[3] if step[4] else cells.get(place, 0) + step[3]
    logs = run.logs(3)
    assert cells_after([logs[dispatch] for dispatch in sorted(logs)], {(0, 0): 5, (24, 1): 7}) == cells


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from([1, 5, 64, 4096]))
def test_packed_events_come_back(seed, together):
    chance = np.random.default_rng(seed)
    rows = np.zeros((chance.integers(0, 300), 14), np.int64)
    rows[:, 0] = chance.choice([w.WRITES, w.NOTIFIES, w.WAITED], len(rows))
    rows[:, 2] = chance.integers(0, 5, len(rows))
    rows[:, 1], rows[:, 3] = 3 * rows[:, 2], chance.integers(0, 4, len(rows))
    amounts = chance.integers(-(2**62), 2**62, len(rows))
    rows[:, 6] = np.where(rows[:, 0] >= w.NOTIFIES, amounts, 1)
    packed = EventRows.of(rows, together)
    assert np.array_equal(packed.plain(), rows)
    assert len(packed) == len(rows)
    assert packed.threads[:, 2].sum() == len(rows)


def logs_of(programs: list[list[tuple]]) -> dict:
    return {rank: (rank, log(rank, *program)) for rank, program in enumerate(programs)}


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_rounds_on_a_counter_that_all_ranks_share(ranks):
    programs = rounds_on_one_counter(ranks, 300)
    assert is_in_order(logs_of(programs), {}, {})
    last = max(n for n, step in enumerate(programs[1]) if step[0] == "read") - 1
    weaker = [("wait", 0, step[2] - 1) if n == last else step for n, step in enumerate(programs[1])]
    assert not is_in_order(logs_of([programs[0], weaker, *programs[2:]]), {}, {})


def turns(rounds: int) -> list[list[tuple]]:
    writer, reader = [], []
    for count in range(1, rounds + 1):
        writer += [("write", 0), ("notify", 1, 0, 1), ("wait", 8, count)]
        reader += [("wait", 0, count), ("read", 0), ("notify", 0, 8, 1)]
    return [writer, reader]


def ring(rounds: int, ranks: int = 4) -> list[list[tuple]]:
    """Every rank writes to its right neighbour once that has read what it wrote before: ranks are never all in step."""
    programs: list[list[tuple]] = [[] for _ in range(ranks)]
    for count in range(1, rounds + 1):
        for me, program in enumerate(programs):
            right, left = (me + 1) % ranks, (me - 1) % ranks
            program += [("wait", 8, count - 1), ("write", right), ("notify", right, 0, 1)]
            program += [("wait", 0, count), ("read", me), ("notify", left, 8, 1)]
    return programs


@pytest.mark.parametrize("made", [turns, ring])
def test_memory_does_not_grow_with_the_rounds(made):
    sizes, logged = [], []
    for rounds in (1500, 9000):
        logs = logs_of(made(rounds))
        chains = chains_of(logs, {})
        screen = RankScreen(chains, patterns_of(chains.logs), {})
        assert screen.is_in_order()
        sizes.append(screen.nbytes)
        logged.append(sum(each.events.nbytes for _, each in logs.values()))
        assert logged[-1] < 0.5 * sum(len(each.events) for _, each in logs.values())
    assert sizes[1] < 2 * sizes[0]  # six times the rounds


def test_a_late_race_among_thousands_of_rounds_is_told():
    writer, reader = turns(3000)
    at = len(writer) - 300
    writer = [step for n, step in enumerate(writer) if n != at + 2]  # one wait less
    assert writer != turns(3000)[0]
    kinds = {finding.kind for finding in findings_of_run(logs_of([writer, reader]), {}, {})}
    assert kinds and kinds <= {"window-race", "publish-order", "signal-reuse"}

"""Order between ranks from hand-written logs: what a wait proves, and what it does not."""

from __future__ import annotations

import numpy as np
import pytest

from pypto.sim.checks import words as w
from pypto.sim.checks.event_rows import EventRows
from pypto.sim.checks.findings import Location
from pypto.sim.checks.rank_log import EVENT_WORDS, Place, RankLog, Window
from pypto.sim.checks.rank_order import RunOrder
from pypto.sim.checks.ranks import rank_findings

SIZE, STRIDE = 256, 4096
OPERATIONS = ("store", "remote_load", "notify", "wait")


def log(rank: int, *steps: tuple) -> RankLog:
    """Steps: ("write" | "read", owner), ("notify", to, cell, value[, op]), ("wait", cell, expected[, comparison])."""
    rows = np.zeros((len(steps), EVENT_WORDS), np.int64)
    for row, (name, *rest) in zip(rows, steps):
        row[6::2] = 1
        if name in ("write", "read"):
            row[0], row[3] = (w.WRITES, 0) if name == "write" else (0, 1)
            row[4:6] = rest[0] * STRIDE, SIZE
        elif name == "notify":
            row[0], row[3] = w.NOTIFIES, 2
            row[4:8] = rest[1], rest[0], rest[2], rest[3] if len(rest) > 3 else 0
        else:
            row[0], row[3] = w.WAITED, 3
            row[4:8] = rest[0], 0, rest[1], rest[2] if len(rest) > 2 else 1
    places = tuple(
        Place("kernel", name, "signal" if n > 1 else "data", Location("k.py", n)) for n, name in enumerate(OPERATIONS)
    )
    window = Window("data", rank * STRIDE, SIZE, (1, 64), 32, STRIDE, rank, 2)
    return RankLog(EventRows.of(rows), places, (), (window,))


def kinds(*logs: RankLog, before: dict | None = None) -> list[str]:
    order = RunOrder({n: (n, each) for n, each in enumerate(logs)}, {}, before or {})
    return sorted({finding.kind for finding in rank_findings(order)})


READER = (("wait", 0, 1), ("read", 0))


def test_publish_notify_wait_read():
    assert kinds(log(0, ("write", 0), ("notify", 1, 0, 1)), log(1, *READER)) == []


def test_no_wait():
    assert kinds(log(0, ("write", 0), ("notify", 1, 0, 1)), log(1, ("read", 0), ("wait", 0, 1))) == ["window-race"]


def test_told_too_early():
    assert kinds(log(0, ("notify", 1, 0, 1), ("write", 0)), log(1, *READER)) == ["publish-order"]


@pytest.mark.parametrize(("second", "found"), [(2, []), (1, ["signal-reuse"])])
def test_the_threshold_of_a_second_round(second, found):
    writer = log(0, ("notify", 1, 0, 1), ("write", 0), ("notify", 1, 0, 1))
    assert kinds(writer, log(1, ("wait", 0, 1), ("wait", 0, second), ("read", 0))) == found


def test_credits_of_an_earlier_run():
    logs = log(0, ("write", 0), ("notify", 1, 0, 1)), log(1, *READER)
    assert kinds(*logs, before={(0, 1): 1}) == ["residue"]


def test_credits_taken_back_make_the_cell_usable_again():
    reader = log(1, ("wait", 0, 1), ("notify", 1, 0, -1), ("notify", 0, 8, 1), ("wait", 0, 1), ("read", 0))
    writer = log(0, ("notify", 1, 0, 1), ("wait", 8, 1), ("write", 0), ("notify", 1, 0, 1))
    assert kinds(writer, reader) == []


def test_an_overwrite_before_the_reader_is_done():
    writer = log(0, ("write", 0), ("notify", 1, 0, 1), ("write", 0))
    assert kinds(writer, log(1, *READER)) == ["window-race"]


def test_equality_on_a_counter_that_can_pass():
    writer = log(0, ("notify", 1, 0, 1), ("notify", 1, 0, 1))
    assert kinds(writer, log(1, ("wait", 0, 1, 0))) == ["signal-misuse"]


def test_set_and_add_on_one_cell():
    assert kinds(log(0, ("notify", 1, 0, 1, 1), ("notify", 1, 0, 1, 0)), log(1, ("wait", 0, 1))) == ["signal-misuse"]


def test_an_overwrite_in_the_next_round_is_no_stale_credit():
    writer = log(0, ("write", 0), ("notify", 1, 0, 1), ("write", 0), ("notify", 1, 0, 1))
    order = RunOrder({0: (0, writer), 1: (1, log(1, *READER, ("wait", 0, 2), ("read", 0)))}, {}, {})
    found = list(rank_findings(order))
    assert {finding.kind for finding in found} == {"window-race"}
    assert all("second barrier" in finding.suggestion for finding in found)


def test_a_wait_for_the_reader_that_an_earlier_round_satisfies():
    """The writer waits for the reader with the threshold of the round before."""
    writer = log(0, ("wait", 8, 1), ("write", 0), ("notify", 1, 0, 1), ("wait", 8, 1), ("write", 0))
    reader = log(1, ("notify", 0, 8, 1), ("wait", 0, 1), ("read", 0), ("notify", 0, 8, 1))
    order = RunOrder({0: (0, writer), 1: (1, reader)}, {}, {})
    (finding,) = rank_findings(order)
    assert (finding.kind, finding.tensor) == ("signal-reuse", "signal")
    assert "here 2" in finding.suggestion


def test_a_value_set_in_an_earlier_run_or_round_proves_nothing():
    SET, EQUAL = 1, 0
    writer = log(0, ("write", 0), ("notify", 1, 0, 1, SET))
    assert kinds(writer, log(1, ("wait", 0, 1, EQUAL), ("read", 0)), before={(0, 1): 1}) == ["residue"]
    writer = log(0, ("notify", 1, 0, 1, SET), ("write", 0), ("notify", 1, 0, 1, SET))
    assert kinds(writer, log(1, ("wait", 0, 1), ("wait", 0, 1), ("read", 0))) == ["signal-reuse"]
    writer = log(0, ("notify", 1, 0, 1, SET), ("write", 0), ("notify", 1, 0, 2, SET))
    assert kinds(writer, log(1, ("wait", 0, 1), ("wait", 0, 2), ("read", 0))) == []


def test_a_threshold_that_the_credits_of_another_rank_reach():
    logs = log(0, ("write", 0), ("notify", 1, 0, 1)), log(1, *READER), log(2, ("notify", 1, 0, 1))
    order = RunOrder({n: (n, each) for n, each in enumerate(logs)}, {}, {})
    (finding,) = rank_findings(order)
    assert finding.kind == "window-race" and "(2 here)" in finding.suggestion


def only(*logs: RankLog):
    """The one finding of a run."""
    order = RunOrder({n: (n, each) for n, each in enumerate(logs)}, {}, {})
    (finding,) = rank_findings(order)
    return finding


TELLS = (("write", 0), ("notify", 1, 0, 1))
WHY = {
    "the wait is missing": (TELLS, (("read", 0),), "notifies 'signal'[0, 0] of rank 1 after it, and rank 1 does not wait"),
    "the wait comes late": (TELLS, (("read", 0), ("wait", 0, 1)), "rank 1 waits for that only after it reads"),
    "another cell is awaited": (
        (("notify", 1, 8, 1), *TELLS), (("wait", 8, 1), ("read", 0)), "rank 1 does not wait for that",
    ),
    "the notify is for itself": ((("write", 0), ("notify", 0, 0, 1)), (("read", 0),), "is for itself"),
    "nothing is said": ((("write", 0),), (("read", 0),), "no notify and wait order the two"),
    "the wait needs nothing": (TELLS, (("wait", 0, 0), ("read", 0)), "satisfied before anybody notifies"),
    "its reader is not awaited": (
        (*TELLS, ("write", 0)), (*READER, ("notify", 0, 8, 1)), "rank 0 does not wait for that",
    ),
    "its reader is awaited too little": (
        (*TELLS, ("wait", 8, 0), ("write", 0)), (*READER, ("notify", 0, 8, 1)), "rank 0 has not waited for as much",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WHY)
def test_why_two_accesses_are_not_ordered(case):
    writer, reader, said = WHY[case]
    finding = only(log(0, *writer), log(1, *reader))
    assert finding.kind == "window-race" and said in finding.message, finding.message


def test_a_missing_wait_in_a_loop_is_no_notify_that_comes_too_early():
    """The reader has heard of the writer in the round before; what is missing is its own wait."""
    writer, reader = [("write", 0), ("notify", 1, 0, 1)], [("wait", 0, 1), ("read", 0)]
    for round_ in (1, 2):
        writer += [("wait", 8, round_), ("write", 1), ("notify", 1, 16, 1)]
        reader += [("notify", 0, 8, 1), ("read", 1)]
    finding = only(log(0, *writer), log(1, *reader))
    assert finding.kind == "window-race" and "rank 1 does not wait for that" in finding.message


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_notify_that_comes_too_early_in_a_loop(rounds):
    """Rows of their own, so that only the order of store and notify is wrong."""
    writer, reader = [], []
    for round_ in range(1, rounds + 1):
        writer += [("notify", 1, 8 * round_, 1), ("write", round_)]
        reader += [("wait", 8 * round_, 1), ("read", round_)]
    finding = only(log(0, *writer), log(1, *reader))
    assert finding.kind == "publish-order" and "after the store" in finding.suggestion


def test_what_a_third_rank_passes_on():
    logs = log(0, ("write", 0), ("notify", 2, 0, 1)), log(1, ("read", 0)), log(2, ("wait", 0, 1), ("notify", 1, 0, 1))
    finding = only(*logs)
    assert "rank 2 notifies 'signal'[0, 0] of rank 1 after it, and rank 1 does not wait for that" in finding.message


def test_a_threshold_of_a_third_rank_that_is_too_low():
    """Rank 2 gathers both ranks' credits and releases the reader; it waits for one of them."""
    gather = log(2, ("wait", 0, 1), ("notify", 1, 0, 1))
    logs = log(0, ("write", 0), ("notify", 2, 0, 1)), log(1, ("notify", 2, 0, 1), *READER), gather
    finding = only(*logs)
    assert finding.kind == "window-race" and "satisfied by the credits of other ranks" in finding.message

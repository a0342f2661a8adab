"""One clock for all ranks: arrivals, shared links, and that times repeat (spec distributed 5.3, hardware 13b)."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.runtime import benchmark, configure_log
from pypto.runtime.distributed_cells import Cell
from pypto.runtime.distributed_clock import ClockedTask, RankClock
from pypto.runtime.distributed_links import LinkTimes, Piece
from pypto.runtime.distributed_signal_play import SignalChain, SignalPlay, Step
from pypto.runtime.ranks_protocol import Done, Signals, Timed
from pypto.sim.chips import chip

from .programs import config, row_program

CHIP = chip("a2a3")
NOTIFY_PS = round(CHIP.link.notify_ns.value * 1000)


def words(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


# --- cells --------------------------------------------------------------------------------------------------------------


def arrivals(*items: tuple[int, int, int]) -> list[tuple[int, int, int, int]]:
    return sorted((at, k, value, sets) for k, (at, value, sets) in enumerate(items))


def test_a_counter_is_reached_by_the_arrival_that_completes_it():
    cell = Cell(arrivals((50, 1, 0), (20, 1, 0), (90, 1, 0)))
    assert [cell.reached(n, 1) for n in (0, 1, 2, 3)] == [0, 20, 50, 90]
    cell.change(-2, 0)
    assert cell.reached(1, 1) == 90


def test_set_and_equal():
    cell = Cell(arrivals((10, 7, 1), (30, 5, 1)))
    assert cell.reached(7, 0) == 10 and cell.reached(5, 0) == 30
    cell.change(0, 1)
    assert cell.reached(0, 0) == 0


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_a_wait_ends_with_the_kth_earliest_arrival(times):
    cell = Cell(arrivals(*((t, 1, 0) for t in times)))
    assert [cell.reached(k + 1, 1) for k in range(len(times))] == sorted(times)


_CHANGES = st.lists(st.tuples(st.integers(-3, 4), st.booleans()), max_size=12)


@settings(max_examples=300, deadline=None)
@given(_CHANGES, st.lists(st.integers(-2, 3), max_size=4), st.integers(-4, 8), st.sampled_from([0, 1]))
def test_a_wait_is_over_with_the_first_value_that_suits(changes, own, expected, comparison):
    """Against counting on: what the own rank adds, then every arrival."""
    cell = Cell([(10 * (k + 1), k, value, int(sets)) for k, (value, sets) in enumerate(changes)])
    for value in own:
        cell.change(value, 0)
    value, suits, found = sum(own), (lambda v: v == expected) if comparison == 0 else (lambda v: v >= expected), None
    for at, (change, sets) in [(0, (0, False)), *((10 * (k + 1), change) for k, change in enumerate(changes))]:
        value = change if sets else value + change
        if found is None and suits(value):
            found = at
    assert cell.reached(expected, comparison) == (10 * len(changes) if found is None else found)


# --- signals played together ---------------------------------------------------------------------------------------------

CELLS = [(0, 8), (1, 8)]


def relay(steps, first, pause):
    """Two chains that hand a token on ``steps`` times; ``first`` begins."""
    order = [[False, True], [True, False]]
    return [
        SignalChain(rank, 0, 0, tuple(
            Step(pause, CELLS[rank] if waits else CELLS[1 - rank], k + 1 if waits else 1, int(waits), waits)
            for k in range(steps) for waits in order[rank != first]
        ))
        for rank in (0, 1)
    ]  # fmt: skip


@given(st.integers(1, 30), st.sampled_from([0, 1]), st.integers(0, 50))
def test_a_token_takes_every_step(steps, first, pause):
    play = SignalPlay(relay(steps, first, pause), 100).play()
    assert play.ends[first][-1] == 2 * steps * (pause + 100)
    assert play.ends[1 - first][-1] == 2 * steps * (pause + 100) - 100


def test_the_events_of_a_play_grow_with_its_steps():
    events = [SignalPlay(relay(steps, 0, 5), 100).play().events for steps in (1000, 2000)]
    assert events[1] == 2 * events[0]


def test_a_chain_that_follows_another_is_late_with_it():
    first = SignalChain(0, 0, 20, (Step(10, (0, 8), 1, 1, True), Step(10, (1, 8), 1, 0, False)))
    second = SignalChain(0, 50, 60, (Step(10, (1, 8), 1, 0, False),))
    peer = SignalChain(1, 0, 500, (Step(500, (0, 8), 1, 0, False),))
    play = SignalPlay([first, second, peer], 100).play()
    assert play.ends == [[600, 610], [650], [500]] and play.starts == [0, 640, 0]


# --- links --------------------------------------------------------------------------------------------------------------


def played(chains, loads=None):
    """Durations (ps) of chains of (way, bytes, start, pause before)."""
    pieces = []
    for chain in chains:
        end, row = 0, []
        for way, nbytes, start, pause in chain:
            begin = max(start, end + pause)
            end = begin  # what the last timing took does not matter, the pauses do
            row.append(Piece(way, nbytes, begin, end))
        pieces.append(row)
    return LinkTimes(CHIP, pieces, loads or {}).play()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 10**6)), min_size=1, max_size=12))
def test_a_link_carries_no_more_than_it_can(transfers):
    work = played([[((0, 1), size, start, 0)] for start, size in transfers])
    own, whole, fixed = CHIP.link.staged_gbps.value, CHIP.link.gbps.value, CHIP.link.staged_ns.value * 1000
    for (_, size), (taken,) in zip(transfers, work):
        assert taken >= 1000 * size / own + fixed - 1
    last = max(start + taken for (start, _), (taken,) in zip(transfers, work)) - fixed
    span_ps = last - min(start for start, _ in transfers)
    assert sum(size for _, size in transfers) <= span_ps * whole / 1000 + 1


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(1, 10**6), min_size=1, max_size=6), min_size=1, max_size=12))
def test_full_links_are_never_idle_and_never_above_their_rate(chains):
    """Chains without pauses on one link: the last byte arrives when all bytes at the full rate would have."""
    work = played([[((0, 1), size, 0, 0) for size in chain] for chain in chains])
    own, whole, fixed = CHIP.link.staged_gbps.value, CHIP.link.gbps.value, CHIP.link.staged_ns.value * 1000
    total, longest = sum(map(sum, chains)), max(map(len, chains))
    last = max(map(sum, work))
    assert last >= 1000 * max(total / whole, max(map(sum, chains)) / own) - 1
    assert last <= 1000 * (total / whole + max(map(sum, chains)) / own) + longest * (fixed + 1)


def test_transfers_slow_each_other_down_only_when_the_link_is_full():
    few = played([[((0, 1), 56_000, 0, 0)] for _ in range(3)])
    many = played([[((0, 1), 56_000, 0, 0)] for _ in range(10)])
    both_ways = played([[(way, 56_000, 0, 0)] for way in ((0, 1), (1, 0), (0, 2)) for _ in range(3)])
    assert few[0][0] == pytest.approx(10_000_000 + 100_000, rel=1e-3)
    assert many[0][0] == pytest.approx(560_000_000 / CHIP.link.gbps.value + 100_000, rel=1e-3)
    assert {taken for (taken,) in both_ways} == {few[0][0]}


def test_a_chip_whose_cubes_work_moves_less():
    """Published: 63.6 GB/s to all peers alone, 50 under the GEMM (hardware 13b)."""
    (idle,), (half,), (busy,) = (played([[((0, 1), 560_000, 0, 0)]], {1: [(0, share)]})[0] for share in (0.0, 0.5, 1.0))
    assert (busy - 100_000) / (idle - 100_000) == pytest.approx(63.6 / 50, rel=1e-3)
    assert idle < half < busy
    assert played([[((0, 1), 560_000, 0, 0)]], {2: [(0, 1.0)]}) == [[idle]]


# --- settling -----------------------------------------------------------------------------------------------------------


def ping_pong(hops: int) -> tuple[list[ClockedTask], object]:
    """Two ranks whose launches wait for each other ``hops`` times; each step takes 1 us."""
    rows = np.arange(hops)
    signals = [
        Signals(
            notify_row=2 * rows + rank,
            notify_cell=np.zeros(hops, np.int64),
            notify_rank=np.full(hops, 1 - rank),
            notify_value=np.ones(hops, np.int64),
            notify_sets=np.zeros(hops, np.int64),
            wait_row=2 * rows + 1 - rank,
            wait_cell=np.zeros(hops, np.int64),
            wait_expected=rows + 1,
            wait_comparison=np.ones(hops, np.int64),
            notify_chain=np.zeros(hops, np.int64),
            wait_chain=np.zeros(hops, np.int64),
            order=np.stack([rows, -1 - rows] if rank == 0 else [-1 - rows, rows], axis=1).ravel(),
        )
        for rank in (0, 1)
    ]
    tasks = [ClockedTask(rank, rank, (), 0, Done(rank, b"", 0, 0, signals[rank])) for rank in (0, 1)]

    def ask(requests):
        answers = {}
        for rank, request in requests.items():
            now, ends, waits = 0, [], []
            for until in request.until[0].tolist():
                if rank == 0:
                    now += 1_000_000
                    ends.append(now)
                    now = max(now, until)
                    waits.append(now)
                else:
                    now = max(now, until)
                    waits.append(now)
                    now += 1_000_000
                    ends.append(now)
            over = (words(*waits),)
            answers[rank] = Timed(
                (now // 1000,),
                (words(*ends),),
                (words(),),
                (words(),),
                (np.zeros((0, 2), np.int64),),
                over,
                over,
                (words(0),),
            )
        return answers

    return tasks, ask


@pytest.mark.parametrize("hops", [1, 2, 9, 2000])
def test_waits_take_simulated_time(hops):
    tasks, ask = ping_pong(hops)
    clock = RankClock(CHIP, 0)
    settled = clock.settle(tasks, ask)
    assert settled.wall_ns[0] == hops * 2 * (1000 + NOTIFY_PS // 1000)
    assert settled.passes <= 3, "the length of a chain of signals decides nothing"
    again = clock.settle(ping_pong(hops)[0], ask)
    assert again.wall_ns == settled.wall_ns and again.passes == 1


def test_times_that_never_settle_are_an_error():
    """An engine that answers otherwise every time would be asked for ever."""
    tasks, ask = ping_pong(2)
    passes = count(1)

    def drifting(requests):
        late = 1000 * next(passes)
        return {rank: replace(t, notify_end=(t.notify_end[0] + late,)) for rank, t in ask(requests).items()}

    with pytest.raises(RuntimeError, match="the times of 2 launches do not settle in 100 passes"):
        RankClock(CHIP, 0).settle(tasks, drifting)


# --- whole runs ---------------------------------------------------------------------------------------------------------


@pl.inline
def ring_of_sums(inp, out, data, signal):
    data = pl.store(pl.load(inp, [0, 0], [1, 256]), [0, 0], data)
    data = pld.tensor.allreduce(data, signal)
    out = pl.store(pl.load(data, [0, 0], [1, 256]), [0, 0], out)


@pytest.mark.parametrize("ranks", [2, 3])
def test_times_are_the_same_in_every_round_and_every_benchmark(ranks):
    x, y = torch.randn(ranks, 1, 256).share_memory_(), torch.zeros(ranks, 1, 256).share_memory_()
    program = row_program(ranks, 256, pl.FP32, [ranks, 1], ring_of_sums).compile(x, y, config=config(ranks, "a2a3"))
    runs = [benchmark(program, [x, y], rounds=3, warmup=1) for _ in range(2)]
    series = [[sorted(s.per_rank("device").values()), s.per_round("union"), s.per_round("device_span")] for s in runs]
    assert series[0] == series[1]
    for values in (*series[0][0], *series[0][1:]):
        assert len(set(values)) == 1
    first = runs[0]
    for span, union, wall in zip(first.per_round("device_span"), first.per_round("union"), first.device_wall_us):
        assert wall <= span <= union
    assert set(first.dispatch_tasks().values()) == {"chip"} and not first.fallback_flattened


def test_a_rank_that_starts_late_makes_the_others_wait():
    """Rank 0 is dispatched first: it waits longest, and all ranks leave the barrier at about the same time."""
    ranks = 3
    x, y = torch.randn(ranks, 1, 256).share_memory_(), torch.zeros(ranks, 1, 256).share_memory_()
    program = row_program(ranks, 256, pl.FP32, [ranks, 1], ring_of_sums).compile(x, y, config=config(ranks, "a2a3"))
    stats = benchmark(program, [x, y], rounds=1, warmup=0)
    walls = [series[0] for _, series in sorted(stats.per_rank("device").items())]
    step_us = CHIP.host.run_subtask.value / 1000
    assert walls[0] - walls[1] == pytest.approx(step_us, abs=1.0) and walls[1] - walls[2] == pytest.approx(
        step_us, abs=1.0
    )


def test_markers_of_a_run(capfd):
    x, y = torch.randn(2, 1, 256).share_memory_(), torch.zeros(2, 1, 256).share_memory_()
    program = row_program(2, 256, pl.FP32, [2, 1], ring_of_sums).compile(x, y, config=config(2, "a2a3"))
    configure_log("timing")
    with program.prepare() as rt:
        pids = rt.pids
        capfd.readouterr()
        rt(x, y)
    text = capfd.readouterr().err
    roots = re.findall(r"pid=(\d+) .*depth=0 name=chip\.run ", text)
    assert sorted(map(int, roots)) == sorted(pids)
    for leaf in ("graph_build", "submit", "dispatch", "frame_submit", "complete", "post_fence_retirement"):
        assert f"name=node.{leaf} " in text
    assert len(re.findall(r"name=node\.dispatch ", text)) == 2


@pytest.mark.parametrize("nbytes", [4096, 16384, 65536])
def test_remote_reads_take_the_published_time(nbytes):
    """One vector core reads a peer's memory: published sample of 4 KB to 4 MB (timings C3), within 25 %."""
    published_us = {4096: 36.28 * 0.02, 16384: 149.98 * 0.02, 65536: 579.62 * 0.02}[nbytes]
    clock = RankClock(CHIP, 0)
    pieces = max(1, nbytes // 4096)
    signals = Signals(remote_row=np.arange(pieces), remote_bytes=np.full(pieces, nbytes // pieces))
    modelled_us = int(clock._alone(signals).sum()) / 1e6
    assert modelled_us == pytest.approx(published_us, rel=0.25)

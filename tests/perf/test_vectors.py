"""The test vectors of ``profiling.md`` section 9, to the character."""

from __future__ import annotations

import pytest

from pypto.perf import BenchmarkStats

from .logs import ranks, vector_l2, vector_l3

TREE = """\
launch[0] (pid=2207 inv=2 hid=3c9e41d07f):
chip.run                    840.0us
|- bind                     120.0us
|  `- args                  101.5us
|- runner_run               655.0us
|  `- device_wall [dev]     600.0us
|     |- graph_build [dev]  590.5us
|     |- sched [dev]        490.2us
|     `- orch [dev]         180.0us
`- validate                  24.0us"""

MEAN_TREE = """\
mean of 2 launches (warmup 1 excluded); each node: mean ±stdev [min..max]:
chip.run                    843.0us  ±4.2  [840.0..846.0]
|- bind                     122.0us  ±2.8  [120.0..124.0]
|  `- args                  103.0us  ±2.1  [101.5..104.5]
|- runner_run               652.0us  ±4.2  [649.0..655.0]
|  `- device_wall [dev]     602.0us  ±2.8  [600.0..604.0]
|     |- graph_build [dev]  592.2us  ±2.5  [590.5..594.0]
|     |- sched [dev]        492.5us  ±3.2  [490.2..494.8]
|     `- orch [dev]         181.0us  ±1.4  [180.0..182.0]
`- validate                  25.0us  ±1.4    [24.0..26.0]"""

L3_SUMMARY = """\
BenchmarkStats(rounds=2, warmup=1): device_wall_us min=103.0 median=104.0 mean=104.0 max=105.0 stdev=1.4 \
[L3: 2 ranks, per-round max across ranks; host-union mean=352.5us]
  per-dispatch device mean us: (pid=711,slot=0,task=aa01)=41.5  (pid=711,slot=1,task=bb02)=62.5  \
(pid=712,slot=0,task=cc03)=58.5"""

L3_MEAN_TREE = """\
dispatch pid=711 slot=1 task=bb02 — mean of 2 launches (warmup 1 excluded); each node: mean ±stdev:
chip.run                 152.5us  ±0.7
`- runner_run            152.5us  ±0.7
   `- device_wall [dev]   62.5us  ±0.7
      |- sched [dev]      31.2us  ±0.4
      `- orch [dev]       20.8us  ±0.2"""


@pytest.fixture
def l2() -> BenchmarkStats:
    return BenchmarkStats.from_strace(vector_l2(), rounds=2, warmup=1)


@pytest.fixture
def l3() -> BenchmarkStats:
    return BenchmarkStats.from_strace("".join(vector_l3()), rounds=2, warmup=1, distributed=True)


def test_single_chip_series(l2: BenchmarkStats) -> None:
    assert l2.samples == [600.0, 604.0]
    assert l2.host_wall_us == [840.0, 846.0]
    assert l2.per_round("effective") == [490.25, 494.75]
    assert l2.warnings == []
    assert str(l2) == (
        "BenchmarkStats(rounds=2, warmup=1): device_wall_us min=600.0 median=602.0 mean=602.0 max=604.0 stdev=2.8"
    )


def test_single_chip_trees(l2: BenchmarkStats) -> None:
    assert l2.format_tree(0) == TREE
    assert l2.format_tree().startswith(TREE + "\nlaunch[1] (pid=2207 inv=3 hid=3c9e41d07f):\n")
    assert l2.format_tree(-1).startswith("launch[-1] (pid=2207 inv=3 ")
    assert l2.format_mean_tree(spread="both") == MEAN_TREE
    nanoseconds = l2.format_mean_tree(us=False).splitlines()[1:3]
    assert nanoseconds == [
        "chip.run                    843000.0ns  ±4242.6",
        "|- bind                     122000.0ns  ±2828.4",
    ]
    assert "|- bind                     124000ns" in l2.format_tree(1, us=False).splitlines()
    with pytest.raises(IndexError, match="launch 99 is out of range: 2 launches"):
        l2.format_tree(99)


def test_rank_series(l3: BenchmarkStats) -> None:
    assert l3.device_wall_us == [103.0, 105.0]
    assert l3.per_rank("device") == {711: [103.0, 105.0], 712: [58.0, 59.0]}
    assert l3.per_dispatch() == {(711, 0): [41.0, 42.0], (711, 1): [62.0, 63.0], (712, 0): [58.0, 59.0]}
    assert l3.dispatch_tasks() == {(711, 0): "aa01", (711, 1): "bb02", (712, 0): "cc03"}
    assert l3.per_round("union") == [352.0, 353.0]
    assert l3.per_round("effective") == [51.5, 52.5]
    assert [(s.slowest_pid, s.fastest_pid, s.skew_us) for s in l3.rank_spread()] == [(711, 712, 45.0), (711, 712, 46.0)]
    with pytest.raises(ValueError, match="3 dispatches match pid=None slot=None"):
        l3.mean_invocation()
    mean = l3.mean_invocation(pid=711, slot=1)
    assert mean is not None
    assert mean.device_wall_us == 62.5


def test_rank_text(l3: BenchmarkStats) -> None:
    assert str(l3) == L3_SUMMARY
    assert l3.format_mean_tree(pid=711, slot=1) == L3_MEAN_TREE
    assert l3.format_mean_tree(pid=9) == "BenchmarkStats: no dispatch matches pid=9 slot=None"
    assert "launch[3] (pid=711 inv=6 hid=bb02 round=1 slot=1):" in l3.format_tree().splitlines()


def test_a_count_that_is_no_multiple_of_the_launches_pools_the_dispatches() -> None:
    pooled = BenchmarkStats.from_strace("".join(vector_l3()), rounds=4, warmup=0, distributed=True)
    assert pooled.fallback_flattened
    assert len(pooled.samples) == 9
    assert pooled.per_rank() == {}
    assert "[L3: flattened per-dispatch pool — non-deterministic dispatch shape]" in str(pooled)


def sentinel(kind: str, event: str) -> str:
    return f"[pypto] l3_swimlane_pass={kind} event={event}\n"


def two_pass(texts: list[str]) -> str:
    return "".join(
        sentinel(kind, "begin") + text + sentinel(kind, "end") for text in texts for kind in ("graph", "timing")
    )


def test_two_pass_regions_keep_only_the_timing_pass(l3: BenchmarkStats) -> None:
    stats = BenchmarkStats.from_strace(two_pass(vector_l3()), rounds=2, warmup=1, distributed=True)
    assert stats.per_rank() == l3.per_rank()
    assert not stats.fallback_flattened


@pytest.mark.parametrize("damage", ["end missing", "no timing", "end first", "too few", "unknown word"])
def test_malformed_two_pass_logs_give_no_samples(damage: str) -> None:
    log = two_pass(vector_l3())
    log = {
        "end missing": log[: log.rindex(sentinel("timing", "end"))],
        "no timing": log.replace("timing event", "graph event"),
        "end first": sentinel("timing", "end") + log,
        "too few": two_pass(vector_l3()[:2]),
        "unknown word": "[pypto] l3_swimlane_pass=other\n" + "".join(vector_l3()),
    }[damage]
    stats = BenchmarkStats.from_strace(log, rounds=2, warmup=1, distributed=True)
    assert stats.samples == []
    assert stats.fallback_flattened
    assert stats.warnings


def test_swapped_order_makes_slots_unstable_and_callables_readable(l3: BenchmarkStats) -> None:
    swapped = "".join(vector_l3(swapped_launch=2))
    stats = BenchmarkStats.from_strace(swapped, rounds=2, warmup=1, distributed=True)
    assert stats.unstable_dispatch_slots
    assert stats.per_dispatch() == {}
    assert stats.per_rank() == l3.per_rank()
    assert stats.per_callable() == {
        (711, "aa01"): [41.0, 42.0],
        (711, "bb02"): [62.0, 63.0],
        (712, "cc03"): [58.0, 59.0],
    }
    text = stats.format_mean_tree()
    assert text.startswith("BenchmarkStats: per-dispatch view unavailable — ")
    assert "dispatch pid=" not in text


def test_unknown_metrics_are_refused_by_name(l3: BenchmarkStats) -> None:
    with pytest.raises(
        ValueError, match=r"per_rank\(\): metric must be one of \['device', 'effective', 'host'\], got 'x'"
    ):
        l3.per_rank("x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"per_round\(\): unknown metric 'x'"):
        l3.per_round("x")  # type: ignore[arg-type]


def test_empty_and_all_zero_statistics_say_so() -> None:
    empty = BenchmarkStats(rounds=3)
    assert str(empty) == "BenchmarkStats(rounds=3: no samples)"
    assert "no span tree captured" in empty.format_tree()
    assert "no span tree captured" in empty.format_mean_tree()
    assert empty.mean_invocation() is None
    zero = BenchmarkStats(device_wall_us=[0.0, 0.0], rounds=2)
    assert zero.all_zero_device
    assert str(zero).endswith("(use host_wall_us)")


def test_more_than_eight_dispatches_are_cut_short() -> None:
    order = [f"{n:x}a" for n in range(10)]
    stats = BenchmarkStats.from_strace("".join(ranks(2, order=order, pids=(5,))), rounds=1, warmup=1, distributed=True)
    last = str(stats).splitlines()[-1]
    assert last.count("task=") == 8
    assert last.endswith("  ... +2 more")

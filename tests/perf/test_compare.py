"""Comparing runs: verdicts that hold up, profiles that survive the disk, exit codes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pypto.perf import BenchmarkStats, compare
from pypto.perf.cli import main
from pypto.perf.profile import ProfileError, RunProfile
from pypto.perf.shift import interval_rank, shift_between

from .logs import RUN, WALL, ranks, single_chip
from .properties import examples

values = st.lists(st.integers(1, 10**6).map(float), min_size=1, max_size=40)


def stats_of(walls_us: list[float]) -> BenchmarkStats:
    log = "".join(single_chip([int(us * 1000) for us in walls_us]))
    return BenchmarkStats.from_strace(log, rounds=len(walls_us), warmup=0)


@given(values, values)
@examples(150)
def test_swapping_the_runs_mirrors_the_shift(base: list[float], cand: list[float]) -> None:
    there, back = shift_between(base, cand), shift_between(cand, base)
    assert (there.low, there.shift, there.high) == (-back.high, -back.shift, -back.low)
    assert there.low <= there.shift <= there.high
    assert there.dominance == pytest.approx(-back.dominance)


@given(values, st.integers(-(10**5), 10**5))
@examples(100)
def test_a_shifted_copy_is_found_exactly(base: list[float], by: int) -> None:
    shift = shift_between(base, [value + by for value in base])
    assert shift.low <= by <= shift.high
    assert shift.shift == pytest.approx(by)


@given(values)
@examples()
def test_a_run_never_differs_from_itself(base: list[float]) -> None:
    assert shift_between(base, base).verdict == "same"


def test_without_spread_the_difference_is_exact() -> None:
    shift = shift_between([100.0] * 5, [103.0] * 5)
    assert (shift.exact, shift.shift, shift.low, shift.high) == (True, 3.0, 3.0, 3.0)
    assert shift.verdict == "slower"
    assert shift_between([0.0], [1.0]).relative == math.inf
    with pytest.raises(ValueError, match="nothing to compare: 0 baseline values, 1 candidate values"):
        shift_between([], [1.0])


def test_too_few_noisy_values_are_unclear() -> None:
    assert shift_between([1.0, 2.0], [11.0, 12.0]).verdict == "unclear"
    assert shift_between([320.0, 300.0, 356.0], [0.0, 310.0]).verdict == "unclear"
    assert shift_between([1.0, 2.0, 3.0, 4.0], [11.0, 12.0, 13.0, 14.0]).verdict == "slower"


def test_interval_covers_the_true_shift_as_often_as_it_says() -> None:
    """400 pairs of noisy runs with a known shift; the interval must miss it in about 5 % of them."""
    random = np.random.default_rng(7)
    missed = 0
    for _ in range(400):
        base, cand = random.lognormal(3, 0.3, 20), random.lognormal(3, 0.3, 20) + 2.0
        shift = shift_between(base.tolist(), cand.tolist())
        missed += not shift.low <= 2.0 <= shift.high
    assert 5 <= missed <= 35
    assert interval_rank(20, 20, 0.95)[0] == 127


def test_comparison_tells_what_moved() -> None:
    comparison = compare(stats_of([100, 101, 99, 100, 102]), stats_of([120, 121, 119, 120, 122]))
    assert comparison.headline.shift is not None
    assert comparison.headline.shift.relative == pytest.approx(0.2)
    assert comparison.regressed()
    assert comparison.regressed(0.1)
    assert not comparison.regressed(0.25)
    moved = {change.label for change in comparison.nodes if change.moved}
    assert moved == {RUN, f"{RUN}.runner_run", WALL, f"{WALL}.orch", f"{WALL}.sched"}
    text = str(comparison)
    assert text.startswith("device per round: 100.0us -> 120.0us  +20.0% (+20.0us, 95% interval")
    assert "device_wall [dev]" in text
    assert "slower" in text
    console = Console(width=160)
    with console.capture() as capture:
        console.print(comparison)
    assert "nodes that moved" in capture.get()
    assert set(comparison.to_pandas()["part"]) == {"round", "node"}


def test_ranks_and_dispatches_are_matched_by_position_not_pid() -> None:
    base = BenchmarkStats.from_strace("".join(ranks(5)), rounds=4, warmup=1, distributed=True)
    other = BenchmarkStats.from_strace("".join(ranks(5, pids=(901, 907))), rounds=4, warmup=1, distributed=True)
    comparison = compare(base, other)
    assert [change.label for change in comparison.ranks] == ["rank 0", "rank 1"]
    assert len(comparison.dispatches) == 4
    assert all(change.shift and change.shift.verdict == "same" for change in comparison.changes)
    assert not comparison.regressed()


def test_runs_of_unequal_rank_counts_say_that_ranks_may_be_shifted() -> None:
    two = BenchmarkStats.from_strace("".join(ranks(5)), rounds=4, warmup=1, distributed=True)
    one = BenchmarkStats.from_strace("".join(ranks(5, pids=(501,))), rounds=4, warmup=1, distributed=True)
    assert compare(two, two).warnings == []
    assert "baseline has 2 ranks, candidate 1: rows of ranks may be of different ranks" in compare(two, one).warnings


def test_a_node_of_one_run_only_is_named() -> None:
    base, cand = stats_of([100, 100]), stats_of([100, 100])
    profile = RunProfile.of(cand)
    profile.nodes_ns["all launches"][f"{RUN}.extra"] = [5_000, 5_000]
    text = str(compare(base, profile))
    assert "extra" in text
    assert "only in the candidate" in text


@pytest.mark.parametrize(
    ("block", "content", "place"),
    [
        ("rounds_us", 5, "rounds_us"),
        ("rounds_us", {"device": ["fast"]}, "rounds_us"),
        ("rounds_us", {"device": []}, "rounds_us"),
        ("ranks_us", [1], "ranks_us"),
        ("nodes_ns", {"all launches": 3}, "nodes_ns.all launches"),
    ],
)
def test_an_edited_profile_is_refused_by_place(block: str, content: object, place: str, tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    RunProfile.of(stats_of([100, 101])).write(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {block: content}))
    with pytest.raises(ProfileError, match=f"damaged profile: {place} must hold lists of numbers"):
        RunProfile.read(path)


def test_device_span_over_all_ranks_is_a_series_where_the_log_places_it() -> None:
    log = "".join(ranks(3))
    plain = BenchmarkStats.from_strace(log, rounds=3, warmup=0, distributed=True)
    assert "device_span" not in RunProfile.of(plain).rounds_us
    placed = log.replace("dur=1000000 ", "dur=1000000 mono=5000 ")
    assert placed != log
    stats = BenchmarkStats.from_strace(placed, rounds=3, warmup=0, distributed=True)
    assert RunProfile.of(stats).rounds_us["device_span"][0] == 1000.0
    assert compare(stats, stats, "device_span").headline.shift is not None


def test_only_runs_can_be_compared() -> None:
    with pytest.raises(TypeError, match="cannot compare str: expected BenchmarkStats or RunProfile"):
        compare(stats_of([100]), "run.log")  # type: ignore[arg-type]


def test_unknown_series_and_confidence_are_refused() -> None:
    run = stats_of([100])
    with pytest.raises(ValueError, match="baseline has no 'union' series per round; it has"):
        compare(run, run, "union")
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
        compare(run, run, confidence=1.5)


@given(st.lists(st.integers(1_000, 10**7), min_size=1, max_size=12))
@examples(30)
def test_profiles_read_back_equal_and_keep_a_series_on_one_line(walls: list[int]) -> None:
    stats = BenchmarkStats.from_strace("".join(single_chip(walls)), rounds=len(walls), warmup=0)
    profile = RunProfile.of(stats)
    text = profile.to_json()
    assert RunProfile.of_document(json.loads(text), "x") == profile
    assert max(text.count("\n"), 0) < 40


def test_damaged_profiles_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    for text, message in [
        ("{", "not JSON"),
        ("{}", 'expected an object with "format": "pypto-perf-run"'),
        ('{"format": "pypto-perf-run", "version": 9}', "version 9, this reader knows 1"),
        ('{"format": "pypto-perf-run", "version": 1}', "incomplete profile"),
    ]:
        path.write_text(text)
        with pytest.raises(ProfileError, match=message) as caught:
            RunProfile.read(path)
        assert str(path) in str(caught.value)


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "a.log", tmp_path / "b.log"
    for path, wall in zip(paths, (100_000, 110_000)):
        path.write_text("".join(single_chip([wall] * 4)))
    return paths


def test_exit_codes_of_compare(logs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, cand = map(str, logs)
    assert main(["compare", base, cand]) == 0
    assert main(["compare", base, cand, "--fail-over", "5%"]) == 1
    assert "slower by more than 5.0%" in capsys.readouterr().err
    assert main(["compare", base, cand, "--fail-over", "0.15"]) == 0
    assert main(["compare", cand, base, "--fail-over", "0"]) == 0
    saved = str(tmp_path / "base.json")
    assert main(["export", base, "-o", saved]) == 0
    assert main(["compare", saved, cand, "--fail-over", "5%"]) == 1
    assert "(+10.0us, exact): slower" in capsys.readouterr().out
    assert main(["compare", base, str(tmp_path / "missing.log")]) == 1
    assert "missing.log" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["compare", base, cand, "--fail-over", "much"])
    assert caught.value.code == 2


def test_a_difference_of_nanoseconds_is_shown_where_it_decides() -> None:
    said = str(compare(stats_of([21.788] * 3), stats_of([21.79] * 3)))
    assert said.startswith("device per round: 21.788us -> 21.790us  +0.009% (+0.002us, exact): slower\n")
    assert "(+0.0us, exact): same" in str(compare(stats_of([21.788] * 3), stats_of([21.788] * 3)))

"""Statistics beyond the vectors: losses, reused pids, steadiness, rendering, hand-made invocations."""

from __future__ import annotations

import io
import statistics
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pypto.perf import BenchmarkStats, TraceInvocation, TraceSpan, read_strace
from pypto.perf.aggregate import node_stats, rounded_mean
from pypto.perf.steady import steady_state

from .logs import RUN, WALL, launch, ranks, record, single_chip, vector_l2
from .properties import examples


@given(st.lists(st.integers(1_000, 10**9), min_size=1, max_size=30), st.integers(0, 3))
@examples(60)
def test_series_and_node_statistics_agree_with_the_definition(walls: list[int], warmup: int) -> None:
    log = "".join(single_chip([5] * warmup + walls))
    stats = BenchmarkStats.from_strace(log, rounds=len(walls), warmup=warmup)
    us = [wall / 1000 for wall in walls]
    assert stats.device_wall_us == us
    assert stats.device_us_mean == statistics.fmean(us)
    assert stats.device_us_median == statistics.median(us)
    node = {n.name: n for n in stats.mean_nodes()}[WALL]
    assert node.count == node.launches == len(walls)
    assert (node.min_ns, node.max_ns) == (min(walls), max(walls))
    assert node.mean_ns == pytest.approx(statistics.fmean(walls))
    assert node.stdev_ns == pytest.approx(statistics.stdev(walls) if len(walls) > 1 else 0.0, abs=1e-3)
    mean = stats.mean_invocation()
    assert mean is not None
    assert mean.by_name()[WALL].dur == round(sum(walls) / len(walls))


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=9))
@examples()
def test_rounded_mean_rounds_ties_to_even(values: list[int]) -> None:
    from fractions import Fraction

    assert rounded_mean(np.array(values, np.int64)) == round(Fraction(sum(values), len(values)))


def test_hand_made_invocations_aggregate_like_parsed_ones() -> None:
    parsed = BenchmarkStats.from_strace(vector_l2(), rounds=2, warmup=1)
    made = BenchmarkStats(
        device_wall_us=parsed.device_wall_us,
        rounds=2,
        warmup=1,
        invocations=[TraceInvocation(i.pid, i.inv, i.hid, list(i.spans)) for i in parsed.invocations],
    )
    assert made.format_mean_tree(spread="both") == parsed.format_mean_tree(spread="both")
    assert made.to_pandas()["device_us"].tolist() == [600.0, 604.0]
    assert [n.mean_ns for n in node_stats(made.invocations)] == [n.mean_ns for n in parsed.mean_nodes()]


def test_a_launch_without_root_or_wall_reads_zero() -> None:
    bare = TraceInvocation(1, 1, "ff", [TraceSpan(1, 1, 1, "ff", 1, f"{RUN}.bind", 5, 6, "")])
    assert (bare.root(), bare.device_wall_us, bare.host_wall_us, bare.effective_us) == (None, 0.0, 0.0, 0.0)
    assert bare.task_name == bare.task == "ff"
    assert TraceInvocation(1, 1, "ff").format_tree() == ""


def test_task_names_are_looked_up_by_hid_whatever_the_case() -> None:
    stats = BenchmarkStats.from_strace(vector_l2(), rounds=2, warmup=1, task_names={"3C9E41D07F": "add"})
    assert stats.invocations[0].task_name == "add"
    assert stats.format_tree(0).splitlines()[0] == "launch[0] (pid=2207 inv=2 hid=3c9e41d07f task=add):"
    assert stats.to_pandas()["task"].tolist() == ["add", "add"]


def test_a_lost_wall_is_nan_in_the_frame_and_said() -> None:
    texts = single_chip([1_000, 2_000, 3_000])
    texts[2] = "".join(line + "\n" for line in texts[2].splitlines() if f"name={WALL} " not in line)
    stats = BenchmarkStats.from_strace("".join(texts), rounds=2, warmup=1)
    assert stats.device_wall_us == [2.0, 0.0]
    frame = stats.to_pandas()
    assert frame["device_us"].isna().tolist() == [False, True]
    assert frame["host_us"].notna().all()
    assert any("device wall missing in 1 of 2 launches" in w and "pid 77 inv 3" in w for w in stats.warnings)


@pytest.mark.parametrize("lost", [2, 5, 7, 8])
def test_one_lost_dispatch_costs_one_round_of_one_rank_in_the_frame(lost: int) -> None:
    texts = ranks(4)
    del texts[8 + lost - 1]
    stats = BenchmarkStats.from_strace("".join(texts), rounds=3, warmup=1, distributed=True)
    assert stats.fallback_flattened
    assert stats.per_rank() == {}
    assert len(stats.device_wall_us) == 8 + 7 - 2
    frame = stats.to_pandas()
    holes = frame[frame["device_us"].isna()]
    inside_warmup = lost <= 2
    assert len(frame) == 12
    place = [] if inside_warmup else [(502, (lost - 1) // 2 - 1, (lost - 1) % 2)]
    assert list(zip(holes["rank"], holes["round"], holes["slot"])) == place
    whole = BenchmarkStats.from_strace("".join(ranks(4)), rounds=3, warmup=1, distributed=True).to_pandas()
    kept = frame["device_us"].notna()
    assert frame[kept]["device_us"].tolist() == whole[kept]["device_us"].tolist()


def test_a_log_joined_to_itself_counts_once_and_says_so() -> None:
    log = "".join(single_chip([1_000, 2_000, 3_000]))
    once, twice = (BenchmarkStats.from_strace(text, rounds=2, warmup=1) for text in (log, log + log))
    assert twice.device_wall_us == once.device_wall_us == [2.0, 3.0]
    assert once.warnings == [] and ["3 launches stand up to 2 times" in w for w in twice.warnings] == [True]


def test_a_reused_pid_counts_its_busiest_process_only() -> None:
    old = single_chip([9_000, 9_000])
    log = "".join(old) + "".join(t.replace("ts=1", "ts=9") for t in single_chip([1_000, 2_000, 3_000]))
    stats = BenchmarkStats.from_strace(log, rounds=2, warmup=1)
    assert stats.device_wall_us == [2.0, 3.0]
    assert any("busiest process of a reused pid" in w for w in stats.warnings)


def test_spans_seen_in_some_launches_say_so_in_rich_output_and_in_the_frame() -> None:
    log = "".join(single_chip([1_000, 2_000])).replace("name=chip.run ", "name=chip.run ", 1)
    log += record(f"{RUN}.claim_release", 10_000_050, 3, inv=2, depth=1)
    stats = BenchmarkStats.from_strace(log, rounds=2, warmup=0)
    text = rendered(stats)
    assert "n=1/2" in text
    frame = stats.nodes_to_pandas().set_index("name")
    assert frame.loc[f"{RUN}.claim_release", ["count", "launches"]].tolist() == [1, 2]
    assert "n=1/2" not in stats.format_mean_tree()


def rendered(stats: BenchmarkStats) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(stats)
    return console.file.getvalue()  # type: ignore[attr-defined]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_printing_is_plain_off_a_terminal_and_rich_on_one() -> None:
    stats = BenchmarkStats.from_strace(vector_l2(), rounds=2, warmup=1)
    plain, terminal = io.StringIO(), Terminal()
    stats.print_mean_tree(spread="both", file=plain)
    assert plain.getvalue() == stats.format_mean_tree(spread="both") + "\n"
    stats.print_mean_tree(spread="both", file=terminal)
    assert "├─ " in terminal.getvalue()
    assert "of parent" in terminal.getvalue()
    stats.print_tree(0, file=plain)
    assert plain.getvalue().endswith(stats.format_tree(0) + "\n")


def test_ranks_side_by_side_in_rich_output() -> None:
    text = rendered(BenchmarkStats.from_strace("".join(ranks(3)), rounds=2, warmup=1, distributed=True))
    assert "slowest rank" in text
    assert "skew us" in text
    assert "warnings" not in text


def test_html_of_names_is_escaped() -> None:
    log = launch(1, 100, 5_000) + record(f"{RUN}.%3Cb%3E", 120, 3, depth=1)
    html = BenchmarkStats.from_strace(log, rounds=1, warmup=0)._repr_html_()
    assert "&lt;b&gt; </td>" in html.replace("&lt;b&gt;</td>", "&lt;b&gt; </td>")
    assert ".<b>" not in html


def test_simulation_cost_stays_apart() -> None:
    stats = BenchmarkStats.from_strace(vector_l2(), rounds=2, warmup=1, simulation_wall_us=[1e6, 2e6, 3e6])
    assert stats.simulation_wall_us == [1e6, 2e6, 3e6]
    assert "simulating took 6.000 s" in rendered(stats)


def test_bad_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="rounds must be positive"):
        BenchmarkStats.from_strace("", rounds=0, warmup=0)
    with pytest.raises(ValueError, match="warmup must be non-negative"):
        BenchmarkStats.from_strace("", rounds=1, warmup=-1)


@given(st.integers(0, 30), st.integers(30, 200), st.randoms(use_true_random=False))
@examples(50)
def test_the_advised_warmup_covers_a_slow_start(slow: int, steady: int, random) -> None:  # type: ignore[no-untyped-def]
    series = [5_000.0 - 100 * i for i in range(slow)] + [1_000.0 + random.uniform(-1, 1) for _ in range(slow + steady)]
    verdict = steady_state(series, dropped=0)
    assert slow <= verdict.advised <= slow + (slow + steady) // 2
    assert abs(verdict.median_us - 1000) <= 1


def test_noise_alone_costs_no_launches() -> None:
    random = np.random.default_rng(5)
    advised = [steady_state(random.lognormal(3, 0.2, 100).tolist(), dropped=3).advised for _ in range(200)]
    assert sum(count > 5 for count in advised) <= 6


def test_unstable_slots_show_a_table_of_callables() -> None:
    texts = ranks(4)
    texts[4], texts[5] = texts[4].replace("hid=aaaa", "hid=bbbb"), texts[5].replace("hid=bbbb", "hid=aaaa")
    stats = BenchmarkStats.from_strace("".join(texts), rounds=3, warmup=1, distributed=True)
    assert stats.unstable_dispatch_slots
    assert set(stats.per_callable()) == {(501, "aaaa"), (501, "bbbb"), (502, "aaaa"), (502, "bbbb")}
    assert "callable" in rendered(stats)
    assert any("per_callable()" in warning for warning in stats.warnings)


def test_a_drifting_series_is_called_drifting_and_a_flat_one_is_not() -> None:
    assert steady_state([1_000 + 5.0 * i for i in range(100)], dropped=3).drifting
    assert not steady_state([1_000.0] * 100, dropped=3).drifting
    assert steady_state([1_000.0] * 100, dropped=3).advised == 0
    assert steady_state([9_000.0] + [1_000.0] * 99, dropped=0).advised == 1


SAMPLES = Path(__file__).parent / "samples"


@pytest.mark.parametrize(("name", "heads"), [("l2_vector.log", 65), ("l3_group.log", 152)])
def test_logs_of_the_hardware_runtime_are_read_whole(name: str, heads: int) -> None:
    table = read_strace(SAMPLES / name)
    assert (table.heads, table.parsed, table.warnings) == (heads, heads, [])


def test_logs_of_older_runtimes_are_read_in_their_own_words() -> None:
    for old in ("simpler_run", "run_prepared"):
        log = vector_l2().replace("name=chip.run", f"name={old}")
        stats = BenchmarkStats.from_strace(log, rounds=2, warmup=1)
        assert stats.device_wall_us == [600.0, 604.0]
        assert stats.per_round("effective") == [490.25, 494.75]
        assert stats.format_tree(0).splitlines()[1].startswith(old)


damages = st.lists(st.tuples(st.sampled_from(["drop", "cut", "glue", "swap"]), st.integers(0, 10**6)), max_size=8)


@given(damages, st.booleans())
@examples(150)
def test_no_damage_breaks_a_view(damage: list[tuple[str, int]], distributed: bool) -> None:
    lines = "".join(ranks(4) if distributed else single_chip([1_000, 2_000, 3_000, 4_000])).splitlines(keepends=True)
    for how, where in damage:
        at = where % len(lines)
        if how == "drop" and len(lines) > 1:
            del lines[at]
        elif how == "cut":
            lines[at] = lines[at][: where % (len(lines[at]) + 1)]
        elif how == "glue":
            lines[at] = lines[at].rstrip("\n")
        elif how == "swap":
            lines[at], lines[-1] = lines[-1], lines[at]
    stats = BenchmarkStats.from_strace("".join(lines), rounds=3, warmup=1, distributed=distributed)
    assert len(stats.to_pandas()) == len(stats.cells)
    assert sum(len(g) for parts in stats.rounds_dispatches for g in parts.values()) in (0, len(stats.invocations))
    assert rendered(stats)
    assert stats._repr_html_().startswith("<p><code>BenchmarkStats(")
    stats.format_tree()
    stats.format_mean_tree(spread="both")
    stats.nodes_to_pandas()
    if stats.samples:
        assert min(stats.samples) <= stats.device_us_median <= max(stats.samples)
        assert stats.steady_state().sentence()


@given(st.lists(st.sampled_from(["root", "wall", "orch", "sched"]), max_size=4), st.booleans())
@examples(40)
def test_columns_and_span_objects_answer_alike(lost: list[str], twice: bool) -> None:
    names = {"root": RUN, "wall": WALL, "orch": f"{WALL}.orch", "sched": f"{WALL}.sched"}
    log = "".join(single_chip([3_000]))
    for part in lost:
        log = "".join(line for line in log.splitlines(keepends=True) if f"name={names[part]} " not in line)
    log += record(WALL, 0, 9, depth=2, attrs="clk=dev") if twice else ""
    (parsed,) = BenchmarkStats.from_strace(log, rounds=1, warmup=0).invocations
    quick = (parsed.device_wall_us, parsed.host_wall_us, parsed.effective_us)
    made = TraceInvocation(parsed.pid, parsed.inv, parsed.hid, parsed.spans)
    assert quick == (made.device_wall_us, made.host_wall_us, made.effective_us)
    assert quick == (parsed.device_wall_us, parsed.host_wall_us, parsed.effective_us)


def test_an_unknown_spread_is_refused() -> None:
    stats = BenchmarkStats.from_strace(vector_l2(), rounds=2, warmup=1)
    with pytest.raises(ValueError, match="unknown spread 'range': expected one of"):
        stats.format_mean_tree(spread="range")  # type: ignore[arg-type]

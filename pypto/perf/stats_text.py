"""The plain text of a benchmark's statistics, exact to the character (``profiling.md`` 3.6 to 3.8)."""

from __future__ import annotations

import statistics
from typing import get_args

from pypto.perf.aggregate import NodeStats, node_stats
from pypto.perf.metrics import Dispatch, Spread
from pypto.perf.span import TraceInvocation, TraceSpan
from pypto.perf.stats import BenchmarkStats
from pypto.perf.tree import build_tree, format_plain

NOT_CAPTURED = (
    "BenchmarkStats: no span tree captured (the runtime was built without SIMPLER_HOST_STRACE, or a *sim platform)"
)
UNSTABLE = (
    "BenchmarkStats: per-dispatch view unavailable — slots map to different callables from one round to the next; "
    "sums per rank and per round stay valid"
)
LISTED_DISPATCHES = 8


def summary_line(stats: BenchmarkStats) -> str:
    """``str(stats)``."""
    if not stats.device_wall_us:
        return f"BenchmarkStats(rounds={stats.rounds}: no samples)"
    if stats.all_zero_device:
        return (
            f"BenchmarkStats(rounds={stats.rounds}): device_wall_us all 0 — runtime built without "
            "SIMPLER_HOST_STRACE or sim platform (use host_wall_us)"
        )
    return (
        f"BenchmarkStats(rounds={stats.rounds}, warmup={stats.warmup}): device_wall_us "
        f"min={stats.device_us_min:.1f} median={stats.device_us_median:.1f} mean={stats.device_us_mean:.1f} "
        f"max={stats.device_us_max:.1f} stdev={stats.device_us_stdev:.1f}{_rank_suffix(stats)}{_dispatch_line(stats)}"
    )


def _rank_suffix(stats: BenchmarkStats) -> str:
    if stats.fallback_flattened:
        return " [L3: flattened per-dispatch pool — non-deterministic dispatch shape]"
    if not stats.rounds_dispatches:
        return ""
    ranks = len({pid for parts in stats.rounds_dispatches for pid in parts})
    union = stats.per_round("union")
    window = f"; host-union mean={statistics.fmean(union):.1f}us" if union else ""
    return f" [L3: {ranks} ranks, per-round max across ranks{window}]"


def _dispatch_line(stats: BenchmarkStats) -> str:
    series = stats.per_dispatch("device")
    if len(series) <= len({pid for pid, _ in series}):
        return ""
    tasks = stats.dispatch_tasks()
    cells = [
        f"(pid={pid},slot={slot},task={tasks[pid, slot]})={statistics.fmean(values):.1f}"
        for (pid, slot), values in list(series.items())[:LISTED_DISPATCHES]
    ]
    if len(series) > LISTED_DISPATCHES:
        cells.append(f"... +{len(series) - LISTED_DISPATCHES} more")
    return "\n  per-dispatch device mean us: " + "  ".join(cells)


def launch_trees(stats: BenchmarkStats, launch: int | None, *, us: bool) -> str:
    """Header and tree of the selected launches."""
    if not stats.invocations:
        return NOT_CAPTURED
    places = grid_places(stats)
    chosen = range(len(stats.invocations)) if launch is None else [launch]
    parts = []
    for index in chosen:
        invocation = launch_at(stats, index)
        tree = invocation.format_tree(us=us)
        parts.append(launch_header(index, invocation, places) + (f"\n{tree}" if tree else ""))
    return "\n".join(parts)


def launch_at(stats: BenchmarkStats, index: int) -> TraceInvocation:
    """The captured launch with that index, counted from the end when negative.

    Raises:
        IndexError: there is no such launch.
    """
    try:
        return stats.invocations[index]
    except IndexError:
        count = len(stats.invocations)
        raise IndexError(f"launch {index} is out of range: {count} launches captured (0 to {count - 1})") from None


def grid_places(stats: BenchmarkStats) -> dict[int, tuple[int, int]]:
    """(round, slot) of every invocation object in the grid, by object identity."""
    return {
        id(inv): (k, slot)
        for k, parts in enumerate(stats.rounds_dispatches)
        for group in parts.values()
        for slot, inv in enumerate(group)
    }


def launch_header(index: int, invocation: TraceInvocation, places: dict[int, tuple[int, int]]) -> str:
    """``launch[i] (…):``"""
    place = places.get(id(invocation))
    where = f" round={place[0]} slot={place[1]}" if place else ""
    task = f" task={invocation.task_name}" if invocation.task_name != invocation.hid else ""
    return f"launch[{index}] (pid={invocation.pid} inv={invocation.inv} hid={invocation.hid}{where}{task}):"


def mean_trees(
    stats: BenchmarkStats, *, us: bool, spread: Spread, pid: int | None = None, slot: int | None = None
) -> str:
    """Header and mean tree of every matching dispatch, an empty line between them."""
    if not stats.invocations:
        return NOT_CAPTURED
    if stats.unstable_dispatch_slots:
        return UNSTABLE
    groups = stats.mean_groups(pid=pid, slot=slot)
    if not groups:
        return f"BenchmarkStats: no dispatch matches pid={pid} slot={slot}"
    return "\n\n".join(_mean_tree(stats, key, group, us=us, spread=spread) for key, group in groups)


def _mean_tree(
    stats: BenchmarkStats, key: Dispatch | None, group: list[TraceInvocation], *, us: bool, spread: Spread
) -> str:
    nodes = {node.name: node for node in node_stats(group)}
    tree = build_tree([node.span for node in nodes.values()])

    def columns(span: TraceSpan) -> list[str]:
        return value_columns(nodes[span.name], us=us, spread=spread)

    return f"{mean_header(stats, key, group, spread)}\n{format_plain(tree, columns)}"


def mean_header(stats: BenchmarkStats, key: Dispatch | None, group: list[TraceInvocation], spread: Spread) -> str:
    """The line above a mean tree."""
    label = f"dispatch pid={key[0]} slot={key[1]} task={group[0].task_name} — " if key else ""
    legend = "mean"
    if spread not in get_args(Spread):
        raise ValueError(f"unknown spread {spread!r}: expected one of {', '.join(get_args(Spread))}")
    legend += " ±stdev" if spread in ("stdev", "both") else ""
    legend += " [min..max]" if spread in ("minmax", "both") else ""
    return f"{label}mean of {len(group)} launches (warmup {stats.warmup} excluded); each node: {legend}:"


def value_columns(node: NodeStats, *, us: bool, spread: Spread) -> list[str]:
    """Mean, spread and range of a node as they are printed; spread cells carry no unit."""
    scale, unit = (1000.0, "us") if us else (1.0, "ns")
    columns = [f"{node.mean_ns / scale:.1f}{unit}"]
    if spread in ("stdev", "both"):
        columns.append(f"±{node.stdev_ns / scale:.1f}")
    if spread in ("minmax", "both"):
        columns.append(f"[{node.min_ns / scale:.1f}..{node.max_ns / scale:.1f}]")
    return columns

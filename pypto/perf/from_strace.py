"""Builds :class:`BenchmarkStats` from a span table (``profiling.md`` 3.2)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pypto.perf.grouping import LaunchGroups
from pypto.perf.metrics import DispatchCell
from pypto.perf.rounds import Cut, cut_distributed, cut_single_chip
from pypto.perf.span import TraceInvocation
from pypto.perf.stats import BenchmarkStats, invocations_of
from pypto.perf.table import SpanTable

NAMED_LAUNCHES = 5


def stats_of_table(
    table: SpanTable, *, rounds: int, warmup: int, distributed: bool, task_names: Mapping[str, str]
) -> BenchmarkStats:
    """Cut the table into rounds and collect the headline series."""
    cutter = cut_distributed if distributed else cut_single_chip
    cut = cutter(table, rounds=rounds, warmup=warmup)
    objects = invocations_of(cut, task_names)
    grid = [{pid: [objects[g] for g in part] for pid, part in parts.items()} for parts in cut.grid]
    device, host = _series_us(cut, cut.groups.words.wall), _series_us(cut, cut.groups.words.run)
    stats = BenchmarkStats(
        device_wall_us=device,
        host_wall_us=host,
        rounds=rounds,
        warmup=warmup,
        invocations=[objects[g] for g in cut.measured],
        rounds_dispatches=grid,
        fallback_flattened=cut.flattened,
        unstable_dispatch_slots=_unstable(grid),
        warmup_invocations=[objects[g] for g in cut.warm],
        cells=[
            DispatchCell(p.round, p.pid, p.slot, None if p.launch is None else objects[p.launch]) for p in cut.places
        ],
        table=table,
    )
    stats.warnings = [*table.warnings, *cut.warnings, *_lost_values(cut.groups, cut.measured)]
    if stats.unstable_dispatch_slots:
        stats.warnings.append("slots map to different callables from round to round: read per_callable() instead")
    return stats


def _series_us(cut: Cut, name: str) -> list[float]:
    durations = np.nan_to_num(cut.groups.durations_ns(name), nan=0.0) / 1000.0
    if not cut.grid:
        return durations[cut.measured].tolist()
    return [max(float(sum(durations[g] for g in part)) for part in parts.values()) for parts in cut.grid]


def _unstable(grid: list[dict[int, list[TraceInvocation]]]) -> bool:
    seen: dict[tuple[int, int], str] = {}
    return any(
        seen.setdefault((pid, slot), inv.hid) != inv.hid
        for parts in grid
        for pid, group in parts.items()
        for slot, inv in enumerate(group)
    )


def _lost_values(groups: LaunchGroups, measured: list[int]) -> list[str]:
    """Sentences about launches that lack a span which other launches of the log carry."""
    sentences = []
    for label, name in (("device wall", groups.words.wall), ("host wall", groups.words.run)):
        missing = np.isnan(groups.durations_ns(name))[measured] if measured else np.zeros(0, bool)
        if not missing.any() or missing.all():
            continue
        lost = np.array(measured)[missing]
        named = ", ".join(f"pid {groups.pid[g]} inv {groups.inv[g]}" for g in lost[:NAMED_LAUNCHES].tolist())
        more = f" and {len(lost) - NAMED_LAUNCHES} more" if len(lost) > NAMED_LAUNCHES else ""
        sentences.append(f"{label} missing in {len(lost)} of {len(measured)} launches, read as 0: {named}{more}")
    return sentences

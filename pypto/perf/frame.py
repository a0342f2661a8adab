"""Statistics as pandas frames."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pypto.perf.aggregate import node_stats
from pypto.perf.span import TraceInvocation

if TYPE_CHECKING:
    import pandas as pd

    from pypto.perf.metrics import DispatchCell
from pypto.perf.stats import BenchmarkStats


def dispatch_frame(stats: BenchmarkStats) -> pd.DataFrame:
    """One row per dispatch that there should be; lost ones read ``nan``."""
    import pandas as pd

    cells = stats.cells or _cells_of(stats)
    lost_device = not stats.all_zero_device
    rows = [_row(cell, lost_device) for cell in cells]
    columns = ["round", "rank", "slot", "task", "device_us", "host_us", "effective_us", "inv", "hid"]
    frame = pd.DataFrame(rows, columns=columns)
    for column in ("round", "slot", "inv"):
        frame[column] = frame[column].astype("Int64" if frame[column].isna().any() else "int64")
    return frame


def _cells_of(stats: BenchmarkStats) -> list[DispatchCell]:
    """Cells of statistics that were put together by hand."""
    from pypto.perf.metrics import DispatchCell

    if stats.rounds_dispatches:
        return [
            DispatchCell(k, pid, slot, inv)
            for k, parts in enumerate(stats.rounds_dispatches)
            for pid, group in parts.items()
            for slot, inv in enumerate(group)
        ]
    return [DispatchCell(k, inv.pid, 0, inv) for k, inv in enumerate(stats.invocations)]


def _row(cell: DispatchCell, zero_is_lost: bool) -> tuple[object, ...]:
    inv = cell.invocation
    if inv is None:
        return (cell.round, cell.pid, cell.slot, None, math.nan, math.nan, math.nan, None, None)
    device, host, effective = _values(inv, zero_is_lost)
    return (cell.round, cell.pid, cell.slot, inv.task_name, device, host, effective, inv.inv, inv.hid)


def _values(inv: TraceInvocation, zero_is_lost: bool) -> tuple[float, float, float]:
    spans, words = inv.by_name(), inv.run_names
    device = inv.device_wall_us if words.wall in spans or not zero_is_lost else math.nan
    host = inv.host_wall_us if words.run in spans else math.nan
    return device, host, inv.effective_us


def node_frame(stats: BenchmarkStats, *, pid: int | None, slot: int | None) -> pd.DataFrame:
    """One row per dispatch and span node; ``count < launches`` marks a node that some launches lack."""
    import pandas as pd

    rows = [
        (key[0] if key else group[0].pid, key[1] if key else 0, node.name, node.span.is_device, node.count,
         node.launches, node.mean_ns / 1000, node.stdev_ns / 1000, node.min_ns / 1000, node.max_ns / 1000)
        for key, group in stats.mean_groups(pid=pid, slot=slot)
        for node in node_stats(group)
    ]  # fmt: skip
    columns = ["rank", "slot", "name", "is_device", "count", "launches", "mean_us", "stdev_us", "min_us", "max_us"]
    return pd.DataFrame(rows, columns=columns)

"""Per-name statistics over the launches of one group: the numbers behind the mean tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pypto.perf.span import TableInvocation, TraceInvocation, TraceSpan
from pypto.perf.table import SpanTable


@dataclass(frozen=True)
class NodeStats:
    """Durations of one span name over the launches that carry it, in ns; ``span`` holds the rounded means."""

    span: TraceSpan
    count: int
    launches: int
    mean_ns: float
    stdev_ns: float
    min_ns: int
    max_ns: int

    @property
    def name(self) -> str:
        return self.span.name


def node_stats(invocations: Sequence[TraceInvocation]) -> list[NodeStats]:
    """One entry per span name in first-seen order; a name repeated inside a launch counts with its first span."""
    return [_one(table, rows, len(invocations)) for table, rows in _rows_by_name(invocations)]


def node_series(invocations: Sequence[TraceInvocation]) -> dict[str, list[int]]:
    """Durations in ns of every span name, in order of launches."""
    return {table.names[table.name[rows[0]]]: table.dur[rows].tolist() for table, rows in _rows_by_name(invocations)}


def _rows_by_name(invocations: Sequence[TraceInvocation]) -> list[tuple[SpanTable, np.ndarray]]:
    """For every name in first-seen order, the row of its first span in each launch that has one."""
    if not invocations:
        return []
    table, rows, owner = _columns(invocations)
    if not len(rows):
        return []
    first = _first_of_each_name(table.name[rows], owner)
    rows, owner = rows[first], owner[first]
    codes, start = np.unique(table.name[rows], return_index=True)
    order = np.argsort(start)
    sorted_rows = rows[np.argsort(table.name[rows], kind="stable")]
    bounds = np.searchsorted(table.name[sorted_rows], codes, side="left").tolist() + [len(sorted_rows)]
    return [(table, sorted_rows[bounds[at] : bounds[at + 1]]) for at in order.tolist()]


def _first_of_each_name(names: np.ndarray, owner: np.ndarray) -> np.ndarray:
    key = owner * (int(names.max(initial=0)) + 1) + names
    _, first = np.unique(key, return_index=True)
    first.sort()
    return first


def _columns(invocations: Sequence[TraceInvocation]) -> tuple[SpanTable, np.ndarray, np.ndarray]:
    """One table, the rows of all invocations and the invocation of each row."""
    backed = [inv for inv in invocations if isinstance(inv, TableInvocation)]
    if len(backed) == len(invocations) and all(inv.table is backed[0].table for inv in backed):
        table = backed[0].table
        rows = np.concatenate([inv.rows for inv in backed])
        sizes = [len(inv.rows) for inv in backed]
    else:
        spans = [inv.spans for inv in invocations]
        table = SpanTable.from_spans([span for one in spans for span in one])
        rows = np.arange(len(table))
        sizes = [len(one) for one in spans]
    return table, rows, np.repeat(np.arange(len(sizes)), sizes)


def _one(table: SpanTable, rows: np.ndarray, launches: int) -> NodeStats:
    dur = table.dur[rows]
    count = len(rows)
    carrier = table.span(int(rows[0]))
    mean = int(dur.sum()) / count
    span = TraceSpan(
        carrier.pid,
        carrier.tid,
        -1,
        carrier.hid,
        carrier.depth,
        carrier.name,
        ts=rounded_mean(table.ts[rows]),
        dur=rounded_mean(dur),
        attrs=carrier.attrs,
    )
    stdev = float(np.std(dur, ddof=1)) if count > 1 else 0.0
    return NodeStats(span, count, launches, mean, stdev, int(dur.min()), int(dur.max()))


def rounded_mean(values: np.ndarray) -> int:
    """Mean of int64 values rounded to an integer, ties to even, without a detour over floats."""
    low = int(values.min())
    whole, rest = divmod(int((values - low).sum()), len(values))
    double = 2 * rest
    up = double > len(values) or (double == len(values) and (whole + low) % 2 == 1)
    return low + whole + int(up)

"""Trace with one process lane per launch (``profiling.md`` 4.1.4)."""

from __future__ import annotations

from pypto.perf.grouping import LaunchGroups
from pypto.perf.timing_tables import label_of
from pypto.perf.trace_events import Slice, TraceDocument, nesting_lanes, process_name, thread_name
from pypto.perf.wall_clock import anchors_entry, wall_args

THREADS = ("host", "device (clk=dev)")


def launch_trace(groups: LaunchGroups) -> TraceDocument:
    """Host spans on tid 0, device spans on tid 1 with their own origin; what crosses moves to further threads."""
    labels = {bucket.hid[0]: label_of(bucket, busiest=at == 0) for at, bucket in enumerate(groups.by_hid())}
    document = TraceDocument(entries={"displayTimeUnit": "ms", **anchors_entry(groups.table)})
    for launch in range(len(groups)):
        _add_lane(document, groups, launch, labels[groups.hid[launch]])
    return document


def _add_lane(document: TraceDocument, groups: LaunchGroups, launch: int, label: str) -> None:
    table, rows, lane = groups.table, groups.of(launch), launch + 1
    first = int(rows[0])
    name = f"{label} inv={table.inv[first]} (pid={table.pid[first]})"
    document.metadata += [process_name(lane, name), *(thread_name(lane, t, title) for t, title in enumerate(THREADS))]
    extra = len(THREADS)
    for clock, title in enumerate(THREADS):
        own = [row for row in rows.tolist() if bool(table.is_device[row]) == bool(clock)]
        lanes = nesting_lanes([(int(table.ts[row]), int(table.end[row])) for row in own])
        tids = {0: clock}
        for number in sorted(set(lanes) - {0}):
            tids[number], extra = extra, extra + 1
            document.metadata.append(thread_name(lane, tids[number], f"{title} #{number + 1}"))
        document.slices += [_slice(groups, row, lane, tids[number]) for row, number in zip(own, lanes)]


def _slice(groups: LaunchGroups, row: int, lane: int, tid: int) -> Slice:
    span = groups.table.span(row)
    args = {"inv": span.inv, "hid": span.hid, "depth": span.depth, "attrs": span.attrs}
    if not span.is_device:
        args |= wall_args(groups.table.anchor_of(span.pid, row), span.ts)
    return Slice(span.name, lane, tid, span.ts, span.dur, args)

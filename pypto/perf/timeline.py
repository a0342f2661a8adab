"""A trace as columns for drawing: rows on which bars never overlap, bars sorted by start, arrows between bars."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pypto.perf.trace_events import FlowEnd, Slice, TraceDocument

DRAWN_FLOWS = ("dependency", "hb_violation", "task dispatch")


@dataclass
class Timeline:
    """Columns of one axis; times in ns from ``origin_ns``.

    Bar ``i`` of row ``row[i]`` is called ``names[name[i]]``; a row shows one nesting depth of one lane, so its bars are
    disjoint. ``arrows`` holds pairs of bar numbers and whether the arrow breaks happens-before.
    """

    title: str
    origin_ns: int
    lanes: list[dict[str, Any]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    dur: list[int] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    arrows: list[tuple[int, int, int]] = field(default_factory=list)
    critical: list[int] = field(default_factory=list)


def timeline_of(document: TraceDocument, title: str, critical_tasks: set[int] | None = None) -> Timeline:
    """Columns of a trace document.

    Args:
        critical_tasks: task ids to mark as the critical path.
    """
    titles = _titles(document)
    origin = min((one.ts for one in document.slices), default=0)
    timeline = Timeline(title, origin)
    codes: dict[str, int] = {}
    bars: dict[tuple[int, int], list[tuple[Slice, int]]] = {}
    tracks: dict[tuple[int, int], list[Slice]] = defaultdict(list)
    for one in document.slices:
        tracks[one.pid, one.tid].append(one)
    for track in sorted(tracks):
        process, thread = titles.get(track, (str(track[0]), str(track[1])))
        depths = _nesting_depths(tracks[track])
        rows = range(len(timeline.rows), len(timeline.rows) + max(depths) + 1)
        timeline.rows += [len(timeline.lanes)] * len(rows)
        timeline.lanes.append({"process": process, "thread": thread, "row": rows.start, "rows": len(rows)})
        bars[track] = []
        for one, depth in zip(tracks[track], depths):
            bars[track].append((one, len(timeline.row)))
            if critical_tasks and one.args.get("taskId") in critical_tasks:
                timeline.critical.append(len(timeline.row))
            timeline.row.append(rows.start + depth)
            timeline.start.append(one.ts - origin)
            timeline.dur.append(one.dur)
            timeline.name.append(codes.setdefault(one.name, len(codes)))
    timeline.names = list(codes)
    timeline.arrows = _arrows(document, bars)
    return timeline


def _titles(document: TraceDocument) -> dict[tuple[int, int], tuple[str, str]]:
    processes = {e["pid"]: e["args"]["name"] for e in document.metadata if e["name"] == "process_name"}
    return {
        (e["pid"], e["tid"]): (processes.get(e["pid"], str(e["pid"])), e["args"]["name"])
        for e in document.metadata
        if e["name"] == "thread_name"
    }


def _nesting_depths(own: list[Slice]) -> list[int]:
    """Depth of every slice of a track; sorts the track by start, enclosing slices first."""
    own.sort(key=lambda s: (s.ts, -s.end))
    stack: list[int] = []
    depths = []
    for one in own:
        while stack and stack[-1] <= one.ts:
            stack.pop()
        depths.append(len(stack))
        if one.dur:
            stack.append(one.end)
    return depths


def _arrows(
    document: TraceDocument, bars: dict[tuple[int, int], list[tuple[Slice, int]]]
) -> list[tuple[int, int, int]]:
    starts = {track: [one.ts for one, _ in own] for track, own in bars.items()}

    def bar_at(end: FlowEnd) -> int | None:
        own = bars.get((end.pid, end.tid), [])
        at = bisect_right(starts.get((end.pid, end.tid), []), end.ts) - 1
        while at >= 0 and own[at][0].end < end.ts:
            at -= 1
        return own[at][1] if at >= 0 else None

    pairs = []
    for flow in document.flows:
        if flow.name in DRAWN_FLOWS:
            source, target = bar_at(flow.start), bar_at(flow.finish)
            if source is not None and target is not None:
                pairs.append((source, target, int(flow.name == "hb_violation")))
    return pairs


def delta_encoded(values: Sequence[int]) -> list[int]:
    """Differences of neighbours: a fraction of the digits for sorted columns."""
    previous, encoded = 0, []
    for value in values:
        encoded.append(value - previous)
        previous = value
    return encoded

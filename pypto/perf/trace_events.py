"""Chrome/Perfetto trace documents: slices, flows, counters, lane splitting and the check before writing.

Times enter in integer ns. A microsecond number of a trace keeps them exactly: ns / 1000 is printed with the shortest
text that reads back to the same double, which has three decimals below 2**53 ns.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Event = dict[str, Any]
LISTED_PROBLEMS = 5


class TraceCheckError(ValueError):
    """A trace that viewers would draw wrongly; nothing was written."""


@dataclass(frozen=True)
class Slice:
    """A bar on a track, in ns."""

    name: str
    pid: int
    tid: int
    ts: int
    dur: int
    args: Event = field(default_factory=dict)
    cat: str | None = None
    extra: Event = field(default_factory=dict)
    """Further keys of the event, such as ``cname`` and ``id``."""

    @property
    def end(self) -> int:
        return self.ts + self.dur

    def event(self) -> Event:
        event: Event = {"name": self.name, "ph": "X", "pid": self.pid, "tid": self.tid}
        event |= {"ts": self.ts / 1000.0, "dur": self.dur / 1000.0, "args": self.args}
        return event | ({"cat": self.cat} if self.cat else {}) | self.extra


@dataclass(frozen=True)
class FlowEnd:
    """One end of an arrow, in ns; it must lie on a slice of its track. ``extra`` holds further keys of the event."""

    pid: int
    tid: int
    ts: int
    extra: Event = field(default_factory=dict)


@dataclass(frozen=True)
class Flow:
    """An arrow between two slices."""

    name: str
    cat: str
    start: FlowEnd
    finish: FlowEnd
    args: Event | None = None

    def events(self, number: int) -> list[Event]:
        common: Event = {"name": self.name, "cat": self.cat, "id": number}
        common |= {} if self.args is None else {"args": self.args}
        return [
            {**common, "ph": ph, "pid": end.pid, "tid": end.tid, "ts": end.ts / 1000.0, **end.extra}
            for ph, end in (("s", self.start), ("f", self.finish))
        ]


def process_name(pid: int, name: str) -> Event:
    """Metadata event that names a process."""
    return {"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": name}}


def thread_name(pid: int, tid: int, name: str) -> Event:
    """Metadata event that names a thread."""
    return {"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def nesting_lanes(intervals: Sequence[tuple[int, int]]) -> list[int]:
    """Lane of every (start, end) so that any two intervals of a lane are disjoint or nested.

    Longer intervals that start together come first; each goes to the first lane where it nests. ``end`` is exclusive:
    touching intervals are disjoint, an empty one fits anywhere.
    """
    lanes: list[list[int]] = []
    result = [0] * len(intervals)
    for index in sorted(range(len(intervals)), key=lambda i: (intervals[i][0], -intervals[i][1])):
        start, end = intervals[index]
        for lane, open_ends in enumerate(lanes):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            if not open_ends or end <= open_ends[-1]:
                open_ends.append(end)
                result[index] = lane
                break
        else:
            lanes.append([end])
            result[index] = len(lanes) - 1
    return result


class Coverage:
    """Where the tracks of a set of slices are covered: arrows may only end there."""

    def __init__(self, slices: Iterable[Slice]) -> None:
        tracks: dict[tuple[int, int], list[Slice]] = defaultdict(list)
        for one in slices:
            tracks[one.pid, one.tid].append(one)
        self._stretches = {track: _reach(sorted(own, key=lambda s: s.ts)) for track, own in tracks.items()}

    def touches(self, end: FlowEnd) -> bool:
        return _touches(self._stretches.get((end.pid, end.tid), []), end.ts)


def problems_of(slices: Iterable[Slice], flows: Iterable[Flow]) -> list[str]:
    """What a viewer would draw wrongly: negative times, slices that cross on a track, arrows into nothing."""
    slices = list(slices)
    tracks: dict[tuple[int, int], list[Slice]] = defaultdict(list)
    problems = []
    for one in slices:
        tracks[one.pid, one.tid].append(one)
        if one.dur < 0 or one.ts < 0:
            problems.append(f"slice {one.name!r} on {one.pid}/{one.tid} has ts {one.ts} ns and dur {one.dur} ns")
    for (pid, tid), own in tracks.items():
        problems += _crossings(pid, tid, own)
    coverage = Coverage(slices)
    for flow in flows:
        for label, end in (("start", flow.start), ("finish", flow.finish)):
            if not coverage.touches(end):
                problems.append(f"{label} of flow {flow.name!r} at {end.ts} ns touches no slice of {end.pid}/{end.tid}")
    return problems


def _crossings(pid: int, tid: int, own: list[Slice]) -> list[str]:
    own.sort(key=lambda s: (s.ts, -s.end))
    stack: list[Slice] = []
    problems = []
    for one in own:
        while stack and stack[-1].end <= one.ts:
            stack.pop()
        if stack and one.end > stack[-1].end:
            over = stack[-1].end - one.ts
            where = f"on track {pid}/{tid} at {one.ts} ns"
            problems.append(f"{one.name!r} overlaps {stack[-1].name!r} by {over} ns {where}")
        stack.append(one)
    return problems


def _reach(own: list[Slice]) -> list[tuple[int, int]]:
    """Disjoint stretches of a track (sorted by start) that are covered by slices."""
    stretches: list[tuple[int, int]] = []
    for one in own:
        if stretches and one.ts <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(stretches[-1][1], one.end))
        else:
            stretches.append((one.ts, one.end))
    return stretches


def _touches(stretches: list[tuple[int, int]], ts: int) -> bool:
    at = bisect_right(stretches, (ts, float("inf"))) - 1
    return at >= 0 and stretches[at][0] <= ts <= stretches[at][1]


@dataclass
class TraceDocument:
    """A trace to be: metadata events, slices, flows, ready-made events (counters) and further top-level entries."""

    metadata: list[Event] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    counters: list[Event] = field(default_factory=list)
    entries: Event = field(default_factory=dict)
    first_flow: int = 1
    indent: int | None = None

    def document(self) -> Event:
        """The JSON object.

        Raises:
            TraceCheckError: slices cross or have negative times, or an arrow ends nowhere.
        """
        problems = problems_of(self.slices, self.flows)
        if problems:
            more = f"; and {len(problems) - LISTED_PROBLEMS} more" if len(problems) > LISTED_PROBLEMS else ""
            raise TraceCheckError("trace not written: " + "; ".join(problems[:LISTED_PROBLEMS]) + more)
        events = [*self.metadata, *(one.event() for one in self.slices)]
        for number, flow in enumerate(self.flows, self.first_flow):
            events += flow.events(number)
        return {"traceEvents": [*events, *self.counters], **self.entries}

    def write(self, path: str | Path) -> None:
        """Check, then write."""
        document = self.document()
        Path(path).write_text(json.dumps(document, ensure_ascii=False, indent=self.indent))

"""The host swimlane: every host span on its real pid and tid, arrows submit → dispatch (``profiling.md`` 4.1.5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pypto.perf.grammar import parse_attrs
from pypto.perf.host_lanes import lanes_of_thread, process_title
from pypto.perf.names import family_of
from pypto.perf.span import TraceSpan
from pypto.perf.table import ClockAnchor, SpanTable
from pypto.perf.trace_events import Flow, FlowEnd, Slice, TraceDocument, nesting_lanes, process_name, thread_name
from pypto.perf.wall_clock import anchors_entry, wall_args

Anchored = tuple[TraceSpan, ClockAnchor | None]
"""A host span and the anchor of its process."""


@dataclass(frozen=True)
class HostTrace:
    """The document and what it holds."""

    document: TraceDocument
    host_spans: int
    device_spans: int


@dataclass(frozen=True)
class _Placed:
    span: TraceSpan
    tid: int
    anchor: ClockAnchor | None
    slice: Slice


def host_trace(table: SpanTable, detail: Sequence[TraceSpan] = ()) -> HostTrace:
    """Build the trace; device spans have no host time and are listed apart in ``unalignedDeviceSpans``.

    Args:
        detail: further host spans, such as the phases below ``bind``.
    """
    spans = [(span, table.anchor_of(span.pid, row)) for row, span in enumerate(table.spans())]
    host = [(span, anchor) for span, anchor in spans if not span.is_device]
    device = [span for span, _ in spans if span.is_device]
    document = TraceDocument()
    placed = _place(document, [*host, *((span, table.anchor_of(span.pid)) for span in detail)])
    by_pid: dict[int, list[TraceSpan]] = defaultdict(list)
    for span in [*(span for span, _ in spans), *detail]:
        by_pid[span.pid].append(span)
    names = [process_name(pid, process_title(pid, by_pid[pid])) for pid in sorted(by_pid)]
    document.metadata = [*names, *sorted(document.metadata, key=lambda e: (e["pid"], e["tid"]))]
    document.slices = sorted((p.slice for p in placed), key=lambda s: (s.ts, s.pid, s.tid, s.name))
    document.flows = _flows(placed)
    document.entries = {"displayTimeUnit": "ms", "unalignedDeviceSpans": _unaligned(device), **anchors_entry(table)}
    return HostTrace(document, len(host), len(device))


def _place(document: TraceDocument, spans: Sequence[Anchored]) -> list[_Placed]:
    """Give every span a lane on which it nests; lanes that are no OS thread get numbers above all real ones."""
    threads: dict[tuple[int, int], list[TraceSpan]] = defaultdict(list)
    for span, _ in spans:
        threads[span.pid, span.tid].append(span)
    slot_of = _slots_of([span for span, _ in spans])
    anchors = {id(span): anchor for span, anchor in spans}
    free = max((tid for _, tid in threads), default=0) + 1
    placed: list[_Placed] = []
    for pid, tid in sorted(threads):
        for lane in lanes_of_thread(tid, threads[pid, tid], slot_of):
            rows = nesting_lanes([(span.ts, span.end) for span in lane.spans])
            tids: dict[int, int] = {}
            for row in range(max(rows, default=-1) + 1):
                real = row == 0 and lane.slot is None
                tids[row], free = (tid, free) if real else (free, free + 1)
                title = lane.name if row == 0 else f"{lane.name} #{row + 1}"
                document.metadata.append(thread_name(pid, tids[row], title))
            placed += [_placed(span, tids[row], anchors[id(span)]) for span, row in zip(lane.spans, rows)]
    return placed


def _slots_of(spans: Sequence[TraceSpan]) -> dict[tuple[int, int], int]:
    """Pipeline slot of every (pid, inv) whose root names one."""
    slots: dict[tuple[int, int], int] = {}
    rooted: set[tuple[int, int]] = set()
    for span in spans:
        key = (span.pid, span.inv)
        if span.depth == 0 and key not in rooted and family_of(span.name) == "chip":
            rooted.add(key)
            slot = parse_attrs(span.attrs).get("slot_id")
            if isinstance(slot, int):
                slots[key] = slot
    return slots


def _placed(span: TraceSpan, tid: int, anchor: ClockAnchor | None) -> _Placed:
    args: dict[str, Any] = {"inv": span.inv, "hid": span.hid, "depth": span.depth, "attrs": span.attrs}
    args["os_tid"] = span.tid
    args = {**parse_attrs(span.attrs), **args, **wall_args(anchor, span.ts)}
    return _Placed(span, tid, anchor, Slice(span.name, span.pid, tid, span.ts, span.dur, args))


def _flows(placed: Sequence[_Placed]) -> list[Flow]:
    """One arrow per dispatch that has an earlier submit of the same task."""
    submits: dict[tuple[Any, ...], list[_Placed]] = defaultdict(list)
    dispatches = []
    for one in sorted(placed, key=lambda p: p.span.ts):
        if family_of(one.span.name) != "node":
            continue
        level, _, leaf = one.span.name.rpartition(".")
        attrs = parse_attrs(one.span.attrs)
        key = (one.span.pid, level, attrs.get("run_id"), attrs.get("task_slot", attrs.get("slot")))
        if leaf == "submit":
            submits[key].append(one)
        elif leaf == "dispatch":
            dispatches.append((key, attrs, one))
    flows = []
    for key, attrs, dispatch in dispatches:
        earlier = [submit for submit in submits[key] if submit.span.ts <= dispatch.span.ts]
        if earlier:
            flows.append(_flow(earlier[-1], dispatch, attrs))
    return flows


def _flow(submit: _Placed, dispatch: _Placed, attrs: dict[str, int | str]) -> Flow:
    slot = attrs.get("task_slot", attrs.get("slot"))
    tail = f"{attrs.get('group_index', -1)}:{attrs.get('worker_id', -1)}:{attrs.get('dispatch_id', 0)}"
    key = f"dispatch:{dispatch.span.pid}:{attrs.get('run_id')}:{slot}:{tail}"
    at = min(submit.span.end, dispatch.span.ts)
    args = {"dispatch_key": key, **wall_args(dispatch.anchor, dispatch.span.ts)}
    start = FlowEnd(submit.span.pid, submit.tid, at)
    return Flow(
        "task dispatch", "host.scheduler", start, FlowEnd(dispatch.span.pid, dispatch.tid, dispatch.span.ts), args
    )


def _unaligned(device: Sequence[TraceSpan]) -> list[dict[str, Any]]:
    ordered = sorted(device, key=lambda s: (s.pid, s.inv, s.ts, s.tid, s.name))
    return [
        {
            "name": span.name,
            "ts_ns": span.ts,
            "dur_ns": span.dur,
            "pid": span.pid,
            "tid": span.tid,
            "inv": span.inv,
            "hid": span.hid,
            "depth": span.depth,
            "attrs": {"raw": span.attrs, **parse_attrs(span.attrs)},
        }
        for span in ordered
    ]

"""Finer detail below ``chip.run.bind``: host phase records and ``bind phase=`` lines (``profiling.md`` 1.11, 5.6)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto.perf.names import CURRENT
from pypto.perf.source import Source, pieces
from pypto.perf.span import TraceSpan

BIND_SEGMENTS = frozenset(
    {
        "args",
        "arena_build",
        "static_arena",
        "gm_heap",
        "shared_mem",
        "runtime_init",
        "host_orch",
        "graph_upload",
        "relocate",
        "sm_h2d",
        "arena_h2d",
        "host_view_close",
    }
)
_BIND_LINE = re.compile(
    rb"\[mono_ns=\d+\]\[T0x(?P<thread>[0-9a-fA-F]+)\]\[TIMING\] [^\n]*?"
    rb"bind phase=(?P<phase>\w+) start_ns=(?P<start>\d+) dur_ns=(?P<dur>\d+)(?P<attrs>[^\r\n]*)"
)


@dataclass(frozen=True)
class PhasePass:
    """The host phases of one prepare pass; records hold ``phase start_ns end_ns detail tid``."""

    pid: int
    inv: int
    records: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class BindLine:
    """A ``bind phase=`` line; times in ns of the host clock."""

    phase: str
    start_ns: int
    dur_ns: int
    attrs: str
    thread: str


@dataclass(frozen=True)
class PhaseDetail:
    """Spans made of phase records or lines, and how many passes or lines found no ``bind`` to belong to."""

    spans: list[TraceSpan]
    unmatched: int


def read_phase_records(path: str | Path) -> list[PhasePass]:
    """Passes of a ``host_phase_records.jsonl``; damaged lines are left out (4.1.5).

    Raises:
        OSError: the file cannot be read.
    """
    passes = []
    for line in Path(path).read_text(errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("records"), list):
            records = tuple(record for record in entry["records"] if isinstance(record, dict))
            passes.append(PhasePass(int(entry.get("pid", -1)), int(entry.get("inv", -1)), records))
    return passes


def read_bind_lines(source: Source) -> list[BindLine]:
    """``bind phase=`` lines of a log in line order."""
    return [
        BindLine(
            match["phase"].decode(),
            int(match["start"]),
            int(match["dur"]),
            match["attrs"].decode("utf-8", "replace").strip(),
            match["thread"].decode(),
        )
        for piece in pieces(source)
        if b"bind phase=" in piece
        for match in _BIND_LINE.finditer(piece)
    ]


def spans_of_records(passes: Iterable[PhasePass], binds: Sequence[TraceSpan]) -> PhaseDetail:
    """One span per record below the ``bind`` of the same (pid, inv)."""
    by_launch = {(bind.pid, bind.inv): bind for bind in binds}
    spans, unmatched = [], 0
    for one in passes:
        bind = by_launch.get((one.pid, one.inv))
        if bind is None:
            unmatched += 1
            continue
        spans += [_record_span(record, bind) for record in one.records]
    return PhaseDetail(spans, unmatched)


def _record_span(record: dict[str, Any], bind: TraceSpan) -> TraceSpan:
    phase, own_tid = str(record.get("phase")), int(record.get("tid", 0))
    segment = phase in BIND_SEGMENTS
    name = f"{bind.name}.{phase}" if segment else f"{bind.name}.host_orch.{phase}"
    tid = bind.tid if segment or own_tid <= 0 else own_tid
    start = int(record.get("start_ns", 0))
    attrs = (
        f"detail={record.get('detail', 0)} src=host_phase_records host_phase_thread={_thread_role(phase, tid, bind)}"
    )
    depth = bind.depth + (1 if segment else 2)
    return TraceSpan(
        bind.pid, tid, bind.inv, bind.hid, depth, name, start, int(record.get("end_ns", start)) - start, attrs
    )


def _thread_role(phase: str, tid: int, bind: TraceSpan) -> str:
    if phase == "graph_submit":
        return "graph_submit_main"
    foreign = tid != bind.tid
    return "graph_record_worker" if foreign and phase in ("record_node", "build_definition") else "host_main"


def spans_of_lines(lines: Iterable[BindLine], binds: Sequence[TraceSpan], covered: set[tuple[int, int]]) -> PhaseDetail:
    """One span per line that lies inside a ``bind`` span whose launch is not covered by records already."""
    spans, unmatched = [], 0
    for line in lines:
        bind = next((b for b in binds if b.ts <= line.start_ns and line.start_ns + line.dur_ns <= b.end), None)
        if bind is None:
            unmatched += 1
        elif (bind.pid, bind.inv) not in covered:
            attrs = f"{line.attrs} log_thread=0x{line.thread} src=bind_phase".strip()
            name = f"{CURRENT.bind}.{line.phase}"
            place = (bind.pid, bind.tid, bind.inv, bind.hid, bind.depth + 1)
            spans.append(TraceSpan(*place, name, line.start_ns, line.dur_ns, attrs))
    return PhaseDetail(spans, unmatched)

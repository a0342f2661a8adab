"""Unix time of host spans, where an anchor allows it (``profiling.md`` 1.2, 4.1.4)."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from pypto.perf.table import ClockAnchor, SpanTable


def anchors_entry(table: SpanTable) -> dict[str, Any]:
    """``clockAnchors`` of a trace document; the values are text because doubles cannot hold epoch ns."""
    last = {anchor.pid: anchor for anchor in table.anchors}
    if not last:
        return {}
    return {
        "clockAnchors": [
            {"pid": pid, "mono_ns": str(last[pid].mono_ns), "wall_ns": str(last[pid].wall_ns)} for pid in sorted(last)
        ]
    }


def wall_args(anchor: ClockAnchor | None, ts_ns: int) -> dict[str, str]:
    """``wall_ts_ns`` and ``wall_time`` of a host timestamp, nothing where it has none."""
    wall = anchor.wall_at(ts_ns) if anchor else None
    if wall is None:
        return {}
    seconds, rest = divmod(wall, 10**9)
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return {"wall_ts_ns": str(wall), "wall_time": f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"}


def anchor_warnings(table: SpanTable) -> list[str]:
    """One sentence per pid with several anchors (4.1.6)."""
    counts: dict[int, int] = {}
    for anchor in table.anchors:
        counts[anchor.pid] = counts.get(anchor.pid, 0) + 1
    return [
        f"multiple [CLOCK_ANCHOR] records found for pid {pid} ({count} records); using the last one"
        for pid, count in sorted(counts.items())
        if count > 1
    ]

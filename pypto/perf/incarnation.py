"""Tells apart processes that share a pid: logs are appended to, and containers start at the same pid again."""

from __future__ import annotations

import numpy as np

from pypto.perf.table import ClockAnchor


def incarnations(
    pid: np.ndarray, inv: np.ndarray, ts: np.ndarray, dur: np.ndarray, is_root: np.ndarray, anchors: list[ClockAnchor]
) -> np.ndarray:
    """Ordinal of the process behind the pid of every span (int32), 0 for the first.

    A new process begins at a second, different clock anchor of a pid (an anchor is written once per process), and where
    a run root shows an invocation number that its process had already passed: the counter only grows, so a root that
    begins after a higher-numbered one has ended, or repeats a number at another time, is somebody else's.
    """
    result = np.zeros(len(pid), np.int32)
    starts: dict[int, set[int]] = {}
    for anchor_pid, row in _anchor_starts(anchors):
        starts.setdefault(anchor_pid, set()).add(row)
    roots = np.flatnonzero(is_root)
    order = roots[np.argsort(pid[roots], kind="stable")]
    for own in np.split(order, np.flatnonzero(np.diff(pid[order])) + 1) if len(order) else []:
        numbers = inv[own]
        if np.all(numbers[1:] > numbers[:-1]):
            continue
        for row in _backward_starts(own, pid, inv, ts, dur, starts.get(int(pid[own[0]]), set())):
            starts.setdefault(int(pid[row]), set()).add(row)
    for one_pid, rows in starts.items():
        mine = np.flatnonzero(pid == one_pid)
        result[mine] = np.searchsorted(sorted(rows), mine, side="right")
    return result


def _anchor_starts(anchors: list[ClockAnchor]) -> list[tuple[int, int]]:
    last: dict[int, ClockAnchor] = {}
    starts = []
    for anchor in anchors:
        before = last.get(anchor.pid)
        if before is not None and (before.mono_ns, before.wall_ns) != (anchor.mono_ns, anchor.wall_ns):
            starts.append((anchor.pid, anchor.row))
        last[anchor.pid] = anchor
    return starts


def _backward_starts(
    roots: np.ndarray, pid: np.ndarray, inv: np.ndarray, ts: np.ndarray, dur: np.ndarray, known: set[int]
) -> list[int]:
    """Rows where another process takes over, found from one pid's run roots in line order."""
    starts: list[int] = []
    breaks = sorted(known)
    top_inv, top_end, previous = -1, -1, -1
    seen: dict[int, int] = {}
    for row in map(int, roots):
        number, start, end = int(inv[row]), int(ts[row]), int(ts[row] + dur[row])
        if any(previous < b <= row for b in breaks):
            top_inv, top_end, seen = -1, -1, {}
        repeated = number in seen and seen[number] != start
        if repeated or (number < top_inv and start >= top_end):
            starts.append(_first_row_of(pid, inv, int(pid[row]), number, previous, row))
            top_inv, top_end, seen = -1, -1, {}
        if number > top_inv:
            top_inv, top_end = number, end
        seen.setdefault(number, start)
        previous = row
    return starts


def _first_row_of(pid: np.ndarray, inv: np.ndarray, one_pid: int, number: int, after: int, root: int) -> int:
    window = slice(after + 1, root + 1)
    return after + 1 + int(np.flatnonzero((pid[window] == one_pid) & (inv[window] == number))[0])

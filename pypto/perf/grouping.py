"""Groups the spans of a table into launches (``profiling.md`` 2.1, 2.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pypto.perf.names import RunNames, has_invocation
from pypto.perf.table import SpanTable


@dataclass(frozen=True, eq=False)
class LaunchGroups:
    """Launches of a table, sorted by (pid, incarnation, inv); spans inside a launch keep line order.

    ``rows`` lists span rows launch after launch, ``first[g]:first[g + 1]`` are those of launch ``g``.
    """

    table: SpanTable
    rows: np.ndarray
    first: np.ndarray

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def heads(self) -> np.ndarray:
        """Row of the first span of every launch."""
        return self.rows[self.first[:-1]]

    @property
    def pid(self) -> np.ndarray:
        return self.table.pid[self.heads]

    @property
    def incarnation(self) -> np.ndarray:
        return self.table.incarnation[self.heads]

    @property
    def inv(self) -> np.ndarray:
        return self.table.inv[self.heads]

    @property
    def hid(self) -> np.ndarray:
        return self.table.hid[self.heads]

    @property
    def words(self) -> RunNames:
        """The generation of span names the log speaks."""
        return self.table.run_names

    def of(self, launch: int) -> np.ndarray:
        """Span rows of one launch in line order."""
        return self.rows[self.first[launch] : self.first[launch + 1]]

    def pick(self, launches: np.ndarray) -> LaunchGroups:
        """The given launches (indices or mask) in order."""
        chosen = np.flatnonzero(launches) if launches.dtype == bool else launches
        parts = [self.of(g) for g in chosen.tolist()]
        sizes = np.array([len(part) for part in parts], np.int64)
        rows = np.concatenate(parts) if parts else np.empty(0, np.int64)
        return LaunchGroups(self.table, rows, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    def owner(self) -> np.ndarray:
        """Launch index of every entry of ``rows``."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    def first_named(self, name: str, *, depth: int | None = None) -> np.ndarray:
        """Per launch: row of its first span of that name, -1 when it has none."""
        found = np.full(len(self), -1, np.int64)
        hits = self.table.name[self.rows] == self.table.name_code(name)
        if depth is not None:
            hits &= self.table.depth[self.rows] == depth
        at = np.flatnonzero(hits)[::-1]
        found[self.owner()[at]] = self.rows[at]
        return found

    def earliest_named(self, name: str) -> np.ndarray:
        """Per launch: row of the span of that name that starts first, -1 when it has none (2.1, log tools)."""
        found = np.full(len(self), -1, np.int64)
        at = np.flatnonzero(self.table.name[self.rows] == self.table.name_code(name))
        late_first = at[np.argsort(-self.table.ts[self.rows[at]], kind="stable")]
        found[self.owner()[late_first]] = self.rows[late_first]
        return found

    def by_hid(self) -> list[LaunchGroups]:
        """Launches of every callable, the busiest first; ties in order of first appearance (2.1)."""
        hids = self.hid
        codes, first, counts = np.unique(hids, return_index=True, return_counts=True)
        return [self.pick(hids == codes[at]) for at in np.lexsort((first, -counts)).tolist()]

    def durations_ns(self, name: str) -> np.ndarray:
        """float64 ns per launch, NaN where the span is absent."""
        rows = self.first_named(name)
        return np.where(rows >= 0, self.table.dur[rows], np.nan) if len(self.table) else np.full(len(self), np.nan)

    def effective_ns(self) -> np.ndarray:
        """float64 ns per launch: the window ``orch`` ∪ ``sched`` (6.2), NaN where both are absent."""
        parts = [self.first_named(name) for name in (self.words.orch, self.words.sched)]
        table = self.table
        if not len(table):
            return np.full(len(self), np.nan)
        start = np.fmin(*(np.where(rows >= 0, table.ts[rows], np.nan) for rows in parts))
        end = np.fmax(*(np.where(rows >= 0, table.end[rows], np.nan) for rows in parts))
        return end - start


def is_launch_span(name: str) -> bool:
    """Whether spans of this name belong to launches: their ``inv`` numbers one, and the worker's prewarm is none."""
    return has_invocation(name) and ".prewarm." not in name


def launches_of(
    table: SpanTable, within: np.ndarray | None = None, *, admit: Callable[[str], bool] = is_launch_span
) -> LaunchGroups:
    """All launches of a table.

    Args:
        within: bool mask over spans; only those are looked at.
        admit: which span names take part.
    """
    words = np.array([admit(name) for name in table.names], bool)
    keep = words[table.name] if len(table) else np.zeros(0, bool)
    if within is not None:
        keep &= within
    rows = np.flatnonzero(keep)
    order = np.lexsort((table.inv[rows], table.incarnation[rows], table.pid[rows]))
    rows = rows[order]
    keys = (table.pid[rows], table.incarnation[rows], table.inv[rows])
    changed = np.zeros(len(rows), bool)
    if len(rows):
        changed[0] = True
        changed[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return LaunchGroups(table, rows, np.append(np.flatnonzero(changed), len(rows)).astype(np.int64))


def busiest_hid(hids: np.ndarray) -> int | None:
    """The hid code with the most launches; ties go to the one that appears first."""
    if not len(hids):
        return None
    codes, first, counts = np.unique(hids, return_index=True, return_counts=True)
    best = np.lexsort((first, -counts))[0]
    return int(codes[best])


def busiest_incarnations(groups: LaunchGroups) -> np.ndarray:
    """bool per launch: whether it belongs to the process that launched most under its pid (ties: the latest)."""
    keep = np.ones(len(groups), bool)
    incarnation, pids = groups.incarnation, groups.pid
    for pid in np.unique(pids[incarnation > 0]).tolist():
        mine = pids == pid
        counts = np.bincount(incarnation[mine])
        best = len(counts) - 1 - int(np.argmax(counts[::-1]))
        keep &= ~mine | (incarnation == best)
    return keep

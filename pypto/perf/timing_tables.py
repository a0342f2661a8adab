"""The reports of ``strace_timing``: TPOT table, rounds table, aggregated tree (``profiling.md`` 4.1.1 to 4.1.3)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pypto.perf.grouping import LaunchGroups
from pypto.perf.tree import printable

TRIM = 10
"""Rows dropped at either end for the trimmed average."""


def tpot_report(groups: LaunchGroups) -> str:
    """Per callable: the whole run and the mean of every stage."""
    return "\n".join(_tpot_bucket(bucket) for bucket in groups.by_hid())


def _tpot_bucket(bucket: LaunchGroups) -> str:
    table = bucket.table
    lines = [f"callable hid={table.hids[bucket.hid[0]]} — {len(bucket)} invocation(s)"]
    roots = _root_durations(bucket)
    if len(roots):
        mean = int(roots.sum()) // len(roots)
        lines.append(f"  chip.run: mean={_us(mean)}us min={_us(roots.min())}us max={_us(roots.max())}us")
    stages = []
    staged = np.unique(table.name[bucket.rows[table.depth[bucket.rows] != 0]])
    for code in staged.tolist():
        rows = bucket.earliest_named(table.names[code])
        durations = table.dur[rows[rows >= 0]]
        stages.append((-len(durations), table.names[code], int(durations.sum()) // len(durations)))
    for count, name, mean in sorted(stages):
        lines.append(f"{' ' * (2 + 2 * name.count('.'))}{printable(name)}: mean={_us(mean)}us (n={-count})")
    return "\n".join([*lines, ""])


def _root_durations(groups: LaunchGroups) -> np.ndarray:
    """Duration of the first depth-0 span of every launch that has one."""
    table = groups.table
    at = np.flatnonzero(table.depth[groups.rows] == 0)
    _, first = np.unique(groups.owner()[at], return_index=True)
    return table.dur[groups.rows[at[first]]]


def _us(ns: float) -> str:
    return f"{ns / 1000.0:.1f}"


@dataclass(frozen=True)
class Column:
    """A column of the rounds table in ns, NaN where a launch lacks the span."""

    title: str
    values: np.ndarray

    @property
    def shown(self) -> np.ndarray:
        return np.nan_to_num(self.values, nan=0.0)

    def average(self, *, nonzero: bool) -> float:
        values = self.shown[self.shown > 0] if nonzero else self.shown
        return statistics.fmean(values) if len(values) else 0.0


def round_columns(groups: LaunchGroups) -> list[Column]:
    """Host always; device, effective, orch and sched when any launch has them."""
    words = groups.words
    columns = [
        Column("Device", groups.durations_ns(words.wall)),
        Column("Effective", groups.effective_ns()),
        Column("Orch", groups.durations_ns(words.orch)),
        Column("Sched", groups.durations_ns(words.sched)),
    ]
    return [Column("Host", groups.durations_ns(words.run)), *(c for c in columns if (c.shown > 0).any())]


def rounds_report(groups: LaunchGroups) -> str:
    """One row per launch of the busiest callable; warm-up is not dropped."""
    columns = round_columns(groups.by_hid()[0])
    return format_rounds([c.title for c in columns], [c.shown for c in columns]) + "\n" + _averages(columns)


def format_rounds(titles: Sequence[str], columns: Sequence[np.ndarray]) -> str:
    """Header, rule and rows; columns in ns, printed in us."""
    header = "  " + f"{'Round':<6}" + "".join(f"  {title + ' (us)':>12}" for title in titles)
    lines = [header, "  " + "-" * (len(header) - 2)]
    for index, row in enumerate(zip(*columns)):
        lines.append(f"  {index:<6}" + "".join(f"  {ns / 1000.0:12.1f}" for ns in row))
    return "\n".join(lines)


def _averages(columns: Sequence[Column]) -> str:
    rounds = len(columns[0].values)
    parts = []
    for column in columns:
        average = f"Avg {column.title}: {_us(column.average(nonzero=column.title != 'Host'))} us"
        seen = f" [{int((column.shown > 0).sum())}/{rounds}]" if column.title == "Device" else ""
        parts.append(average + seen)
    lines = ["  " + "  |  ".join(parts) + f"  ({rounds} rounds)"]
    if rounds > 2 * TRIM:
        trimmed = [f"Trimmed Avg Host: {_us(trimmed_mean(columns[0].shown))} us"]
        device = next((c.shown[c.shown > 0] for c in columns if c.title == "Device"), np.empty(0))
        if len(device) > 2 * TRIM:
            trimmed.append(f"Trimmed Avg Device: {_us(trimmed_mean(device))} us")
        note = f"  (dropped {TRIM} low + {TRIM} high, {rounds - 2 * TRIM} rounds used)"
        lines.append("  " + "  |  ".join(trimmed) + note)
    return "\n".join(lines)


def trimmed_mean(values: np.ndarray) -> float:
    """Mean without the lowest and the highest ten."""
    return statistics.fmean(np.sort(values)[TRIM:-TRIM])


@dataclass
class _Node:
    leaf: str
    name: str
    start: int
    device: bool
    median_ns: float
    children: list[_Node] = field(default_factory=list)


def tree_report(groups: LaunchGroups) -> str:
    """Per callable: structure of its last launch, medians over all of them."""
    buckets = groups.by_hid()
    return "\n".join(_tree_bucket(bucket, label_of(bucket, busiest=at == 0)) for at, bucket in enumerate(buckets))


def label_of(bucket: LaunchGroups, *, busiest: bool) -> str:
    """``decode`` for the busiest callable, ``prefill`` for one launched once, else the start of its hid."""
    if busiest and len(bucket) > 1:
        return "decode"
    return "prefill" if len(bucket) == 1 else bucket.table.hids[bucket.hid[0]][:8]


def _tree_bucket(bucket: LaunchGroups, label: str) -> str:
    count = f"median of {len(bucket)} invocation(s)" if len(bucket) > 1 else "1 invocation"
    lines = [f"callable hid={bucket.table.hids[bucket.hid[0]]} ({label}) — {count}"]
    for root in _structure(bucket):
        lines += _tree_rows(root, 0, bucket)
    return "\n".join([*lines, ""])


def _structure(bucket: LaunchGroups) -> list[_Node]:
    """Nodes of the last launch under their immediate prefix."""
    table = bucket.table
    nodes: dict[str, _Node] = {}
    for row in sorted(bucket.of(len(bucket) - 1).tolist(), key=lambda r: int(table.ts[r])):
        name = table.names[table.name[row]]
        if name in nodes:
            continue
        rows = bucket.earliest_named(name)
        median = statistics.median(table.dur[rows[rows >= 0]].tolist())
        leaf = name.rpartition(".")[2]
        nodes[name] = _Node(leaf, name, int(table.ts[row]), bool(table.is_device[row]), median)
    roots: list[_Node] = []
    for name, node in nodes.items():
        parent = nodes.get(name.rpartition(".")[0])
        (parent.children if parent else roots).append(node)
    return roots


def _tree_rows(node: _Node, indent: int, bucket: LaunchGroups) -> list[str]:
    lines = [_tree_row(node.leaf, node.device, node.median_ns, indent)]
    leaves = {child.leaf: child for child in node.children}
    merged = "orch" in leaves and "sched" in leaves
    for child in node.children:
        if merged and child.leaf == "sched":
            continue
        if merged and child.leaf == "orch":
            lines += _effective_rows(child, leaves["sched"], indent + 1, bucket)
        else:
            lines += _tree_rows(child, indent + 1, bucket)
    return lines


def _tree_row(leaf: str, device: bool, ns: float, indent: int) -> str:
    return f"{'  ' * indent}{printable(leaf):<22}{' [dev]' if device else ' ' * 6}  {ns / 1000.0:12.1f} us"


def _effective_rows(orch: _Node, sched: _Node, indent: int, bucket: LaunchGroups) -> list[str]:
    effective = bucket.effective_ns()
    median = statistics.median(effective[~np.isnan(effective)].tolist())
    parts = f"orch {_us(orch.median_ns)}  ∥  sched {_us(sched.median_ns)}   (concurrent)"
    return [_tree_row("Effective", True, median, indent), f"{'  ' * (indent + 1)}{parts}"]

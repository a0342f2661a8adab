"""Critical paths as text: the summary line, the Markdown report, traces with everything else greyed out (5.4)."""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto.perf.chip_records import ChipRecordsError, read_chip_records
from pypto.perf.critical_path import CriticalPath, critical_path
from pypto.perf.swimlane import WORKER_VIEW
from pypto.perf.task_graph import read_kernel_names, read_task_graph
from pypto.perf.task_id import display_id

RECORD_NAMES = ("chip_swimlane_records.json", "l2_perf_records.json")


class CriticalPathError(ValueError):
    """Nothing to analyse, or an input that cannot be used."""


@dataclass(frozen=True)
class RankInput:
    """The files of one analysed directory."""

    label: str
    records: Path
    deps: Path
    names: Path


def find_ranks(root: Path) -> list[RankInput]:
    """Every directory at or below ``root`` with records, a task graph and a name map.

    Raises:
        CriticalPathError: there is none.
    """
    found = []
    for directory in sorted({root, *(path.parent for name in RECORD_NAMES for path in root.rglob(name))}):
        records = next((directory / name for name in RECORD_NAMES if (directory / name).is_file()), None)
        maps = sorted(directory.glob("name_map*.json"), key=lambda path: path.stat().st_mtime)
        if records and (directory / "deps.json").is_file() and maps:
            label = str(directory.relative_to(root))
            found.append(
                RankInput(directory.name if label == "." else label, records, directory / "deps.json", maps[-1])
            )
    if not found:
        needed = f"{RECORD_NAMES[0]}, deps.json and name_map*.json"
        raise CriticalPathError(f"no directory at or below {root} holds {needed}{_nearest_miss(root)}")
    return found


def _nearest_miss(root: Path) -> str:
    """What the first directory with records lacks, as the end of a sentence."""
    records = next((path for name in RECORD_NAMES for path in sorted(root.rglob(name))), None)
    if records is None:
        return ""
    lacking = [name for name in ("deps.json", "name_map*.json") if not any(records.parent.glob(name))]
    return f"; {records.parent} lacks {' and '.join(lacking)}"


def analyse_rank(rank: RankInput, *, tolerance_cycles: int) -> CriticalPath:
    """Critical path of one directory.

    Raises:
        CriticalPathError: the records lack the sixth column.
    """
    try:
        records = read_chip_records(rank.records)
    except ChipRecordsError as error:
        raise CriticalPathError(str(error)) from None
    if not records.receive_recorded:
        raise CriticalPathError(f"{rank.records}: aicore_tasks rows have 5 columns; the critical path needs 6")
    names = read_kernel_names(rank.names)
    return critical_path(records, read_task_graph(rank.deps), names, tolerance_cycles=tolerance_cycles)


def summary_line(label: str, path: CriticalPath) -> str:
    """One line per rank."""
    span = path.makespan_ns or 1
    waits = ", ".join(f"{wait} {100 * ns / span:.1f}%" for wait, ns in path.stall_by_wait().items() if ns)
    return (
        f"[{label}] makespan={path.makespan_ns / 1e6:.3f}ms  CPM={path.static_ns / 1e6:.2f}ms"
        f"({100 * path.static_ns / span:.1f}%)  compute={100 * path.compute_ns / span:.1f}%  "
        f"stall={100 * path.stall_ns / span:.1f}% ({waits or 'none'})"
    )


def markdown_report(label: str, path: CriticalPath, *, top: int) -> str:
    """Counts, shares, stall by kind, tiling check, families and the steps of the observed path."""
    span = path.makespan_ns or 1
    lines = [
        f"# Critical path: {label}",
        "",
        f"- tasks: {len(path.tasks)}, happens-before edges: {path.edges}",
        f"- makespan: {path.makespan_ns / 1000:.2f} us",
        f"- static longest path: {len(path.static)} tasks, {path.static_ns / 1000:.2f} us "
        f"({100 * path.static_ns / span:.1f}% of the makespan)",
        f"- observed path: {len(path.steps)} tasks, compute {path.compute_ns / 1000:.2f} us, "
        f"stall {path.stall_ns / 1000:.2f} us",
    ]
    lines += [f"  - {wait}: {ns / 1000:.2f} us ({100 * ns / span:.1f}%)" for wait, ns in path.stall_by_wait().items()]
    tiled = path.compute_ns + path.stall_ns
    verdict = "equal" if path.tiles else "NOT equal: the trace is not well formed"
    lines += [f"- tiling: compute + stall = {tiled / 1000:.2f} us, makespan {span / 1000:.2f} us ({verdict})", ""]
    lines += ["## Families", "", "| family | tasks | compute us | stall us |", "|---|---:|---:|---:|"]
    families: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for step in path.steps:
        for at, value in enumerate((1, step.compute_ns, step.stall_ns)):
            families[step.task.family][at] += value
    ranked = sorted(families.items(), key=lambda item: -(item[1][1] + item[1][2]))[:top]
    lines += [f"| {name} | {n} | {c / 1000:.2f} | {s / 1000:.2f} |" for name, (n, c, s) in ranked]
    lines += ["", "## Tasks", "", "| task | kernel | core | start us | compute us | stall us | waited for |"]
    lines += ["|---|---|---:|---:|---:|---:|---|"]
    lines += [
        f"| {display_id(s.task.task_id)} | {s.task.name} | {s.task.core} | {s.task.start_ns / 1000:.2f} | "
        f"{s.compute_ns / 1000:.2f} | {s.stall_ns / 1000:.2f} | {s.wait} |"
        for s in path.steps
    ]
    return "\n".join([*lines, ""])


def write_path_traces(directory: Path, path: CriticalPath) -> list[Path]:
    """Copies of the newest merged trace in which bars off the static or observed path are renamed ``·(<id>)``.

    Raises:
        CriticalPathError: the merged trace is no trace document.
    """
    merged = sorted(directory.glob("merged_swimlane*.json"), key=lambda p: p.stat().st_mtime)
    if not merged:
        return []
    try:
        document = json.loads(merged[-1].read_text())
        paths = {"static": path.static, "observed": [step.task.task_id for step in path.steps]}
        copies = {name: _only(document, set(keep)) for name, keep in paths.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CriticalPathError(f"{merged[-1]}: not a trace document: {error!r}") from None
    written = [directory / f"CPM_{name}.json" for name in copies]
    for target, copied in zip(written, copies.values()):
        target.write_text(json.dumps(copied, ensure_ascii=False, indent=2))
    return written


def _only(document: dict[str, Any], keep: set[int]) -> dict[str, Any]:
    result = copy.deepcopy(document)
    for event in result["traceEvents"]:
        task = event.get("args", {}).get("taskId")
        if event.get("ph") == "X" and event.get("pid") == WORKER_VIEW and task is not None and task not in keep:
            event["name"] = f"·({display_id(task)})"
    return result

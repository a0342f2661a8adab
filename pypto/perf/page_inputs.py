"""What a page is made from: finding the files of a run and reading them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pypto.perf.chip_records import ChipRecords, read_chip_records
from pypto.perf.counters import PipeUse, Roofline, read_pipe_use, read_roofline
from pypto.perf.critical_path import CriticalPath, critical_path
from pypto.perf.runs import RunError, RunOptions, load_stats
from pypto.perf.stats import BenchmarkStats
from pypto.perf.task_graph import TaskGraph, read_kernel_names, read_task_graph, sibling_name_map

RECORDS = "chip_swimlane_records.json"
SHOWN_CHIPS = 8
"""A run of more ranks and dispatches shows this many swimlanes; the page says how many there are."""
_SCANNED_BYTES = 1 << 20
_MARKERS = tuple("[STRACE]".encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be"))


@dataclass(frozen=True)
class ChipFiles:
    """Swimlane records and what lies beside them."""

    label: str
    records: Path

    def sibling(self, name: str) -> Path | None:
        """A file beside the records, None when there is none."""
        path = self.records.with_name(name)
        return path if path.is_file() else None


@dataclass(frozen=True)
class RunFiles:
    """Files of a run; empty where it does not have them."""

    log: Path | None = None
    chips: tuple[ChipFiles, ...] = ()
    pmu: Path | None = None
    roofline: Path | None = None
    logs_found: int = 0


@dataclass(frozen=True)
class ChipRun:
    """One dispatch on one chip, read and analysed."""

    label: str
    records: ChipRecords
    graph: TaskGraph | None = None
    names: Mapping[int, str] = field(default_factory=dict)
    path: CriticalPath | None = None


@dataclass(frozen=True)
class PageContent:
    """Everything a page shows."""

    title: str
    stats: BenchmarkStats | None = None
    chips: tuple[ChipRun, ...] = ()
    pipes: list[PipeUse] | None = None
    roofline: Roofline | None = None
    chips_found: int = 0
    notes: tuple[str, ...] = ()


def find_run_files(path: Path) -> RunFiles:
    """Files of a run: a log, a swimlane file, or a directory that holds any of them at any depth.

    Raises:
        RunError: there is nothing a page could show.
        FileNotFoundError: the path does not exist.
    """
    if not path.exists():
        raise FileNotFoundError(f"no such log or directory: {path}")
    if path.is_file():
        if path.suffix != ".json":
            return RunFiles(log=path)
        chip = ChipFiles(path.parent.name, path)
        return RunFiles(None, (chip,), chip.sibling("pmu.csv"), chip.sibling("roofline.json"))
    chips = tuple(ChipFiles(_label(path, records.parent), records) for records in sorted(path.rglob(RECORDS)))
    logs = _logs(path)
    newest = max(logs, key=lambda log: log.stat().st_mtime, default=None)
    found = RunFiles(newest, chips, _newest(path, "pmu.csv"), _newest(path, "roofline.json"), len(logs))
    if found == RunFiles():
        found = RunFiles(_newest(path, "*.log"))
    if found == RunFiles():
        raise RunError(f"{path}: nothing to show: expected *.log, {RECORDS}, pmu.csv or roofline.json in it")
    return found


def _logs(directory: Path) -> list[Path]:
    """Logs below ``directory`` with markers; a build directory has others, of the compiler."""
    return [path for path in directory.rglob("*.log") if _has_marker(path)]


def _has_marker(path: Path) -> bool:
    with path.open("rb") as file:
        end = b""
        while piece := file.read(_SCANNED_BYTES):
            text = end + piece
            if any(marker in text for marker in _MARKERS):
                return True
            end = text[-max(map(len, _MARKERS)) :]
    return False


def _label(root: Path, directory: Path) -> str:
    return root.name if directory == root else str(directory.relative_to(root))


def _newest(directory: Path, pattern: str) -> Path | None:
    return max(directory.rglob(pattern), key=lambda path: path.stat().st_mtime, default=None)


def read_run(run: RunFiles, options: RunOptions, *, title: str | None = None) -> PageContent:
    """Read the files of a run.

    Raises:
        ValueError: a file cannot be used; the message names it.
    """
    chips = tuple(_read_chip(chip) for chip in run.chips[:SHOWN_CHIPS])
    names = chips[0].names if chips else {}
    shown = run.log or (run.chips[0].records if run.chips else None) or run.pmu or run.roofline
    return PageContent(
        title or (shown.name if shown else "run"),
        load_stats(run.log, options) if run.log else None,
        chips,
        read_pipe_use(run.pmu, names) if run.pmu else None,
        read_roofline(run.roofline) if run.roofline else None,
        len(run.chips),
        (f"{run.log.name} is the newest of {run.logs_found} logs; the others are not shown.",)
        if run.log and run.logs_found > 1
        else (),
    )


def _read_chip(chip: ChipFiles) -> ChipRun:
    records, deps = read_chip_records(chip.records), chip.sibling("deps.json")
    graph = read_task_graph(deps) if deps else None
    name_map, _ = sibling_name_map(chip.records.parent)
    names = read_kernel_names(name_map) if name_map else {}
    path = critical_path(records, graph, names) if graph and records.tasks else None
    return ChipRun(chip.label, records, graph, names, path)

"""One self-contained page about a run: everything is in the file, nothing is fetched."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from pypto.perf.chip_records import ChipRecords, read_chip_records
from pypto.perf.counters import PipeUse, Roofline, read_pipe_use, read_roofline
from pypto.perf.critical_path import CriticalPath, critical_path
from pypto.perf.host_trace import host_trace
from pypto.perf.page_sections import (
    critical_path_section,
    distribution_section,
    overview_section,
    pipes_section,
    ranks_section,
    roofline_section,
    swimlane_section,
    tree_section,
)
from pypto.perf.profile import RunProfile
from pypto.perf.runs import RunError, RunOptions, load_stats
from pypto.perf.stats import BenchmarkStats
from pypto.perf.swimlane import swimlane_document
from pypto.perf.task_graph import TaskGraph, read_kernel_names, read_task_graph, sibling_name_map
from pypto.perf.timeline import Timeline, delta_encoded, timeline_of

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
HOST_SLICES = 100_000
"""A host timeline longer than this is cut after that many spans; its title says so."""


@dataclass(frozen=True)
class RunFiles:
    """What a page is made from; None where a run does not have it."""

    log: Path | None = None
    records: Path | None = None
    deps: Path | None = None
    names: Path | None = None
    pmu: Path | None = None
    roofline: Path | None = None


def find_run_files(path: Path) -> RunFiles:
    """Files of a run: a log, a swimlane file, or a directory that holds any of them at any depth.

    Raises:
        RunError: there is nothing a page could show.
        FileNotFoundError: the path does not exist.
    """
    if not path.exists():
        raise FileNotFoundError(f"no such log or directory: {path}")
    if path.is_file():
        return _beside(path) if path.suffix == ".json" else RunFiles(log=path)
    log = _newest(path, "*.log")
    records = _newest(path, "chip_swimlane_records.json")
    found = _beside(records) if records else RunFiles()
    pmu, roofline = found.pmu or _newest(path, "pmu.csv"), found.roofline or _newest(path, "roofline.json")
    if not (log or records or pmu or roofline):
        wanted = "*.log, chip_swimlane_records.json, pmu.csv or roofline.json"
        raise RunError(f"{path}: nothing to show: expected {wanted} in it")
    return RunFiles(log, records, found.deps, found.names, pmu, roofline)


def _newest(directory: Path, pattern: str) -> Path | None:
    return max(directory.rglob(pattern), key=lambda path: path.stat().st_mtime, default=None)


def _beside(records: Path) -> RunFiles:
    def sibling(name: str) -> Path | None:
        path = records.with_name(name)
        return path if path.is_file() else None

    names, _ = sibling_name_map(records.parent)
    return RunFiles(None, records, sibling("deps.json"), names, sibling("pmu.csv"), sibling("roofline.json"))


@dataclass(frozen=True)
class PageContent:
    """Everything a page shows, read and worked out."""

    title: str
    stats: BenchmarkStats | None = None
    records: ChipRecords | None = None
    graph: TaskGraph | None = None
    names: Mapping[int, str] | None = None
    path: CriticalPath | None = None
    pipes: list[PipeUse] | None = None
    roofline: Roofline | None = None


def page_of(run: RunFiles, options: RunOptions, *, title: str | None = None) -> str:
    """Read a run and render its page.

    Raises:
        ValueError: a file of the run cannot be used; the message names it.
    """
    names = read_kernel_names(run.names) if run.names else {}
    records = read_chip_records(run.records) if run.records else None
    graph = read_task_graph(run.deps) if run.deps else None
    shown = run.log or run.records or run.pmu or run.roofline
    content = PageContent(
        title or (shown.name if shown else "run"),
        load_stats(run.log, options) if run.log else None,
        records,
        graph,
        names,
        critical_path(records, graph, names) if records and graph and records.tasks else None,
        read_pipe_use(run.pmu, names) if run.pmu else None,
        read_roofline(run.roofline) if run.roofline else None,
    )
    return render_page(content)


def render_page(content: PageContent) -> str:
    """The page as text."""
    timelines = _timelines(content)
    sections = [
        overview_section(content.stats, content.records),
        tree_section(content.stats),
        distribution_section(content.stats),
        ranks_section(content.stats),
        swimlane_section(timelines),
        critical_path_section(content.path),
        pipes_section(content.pipes),
        roofline_section(content.roofline),
    ]
    shown = [section for section in sections if section is not None]
    nav = "".join(f'<a href="#{s.anchor}">{escape(s.title)}</a>' for s in shown)
    body = "".join(
        f'<section id="{s.anchor}" aria-labelledby="{s.anchor}-h">'
        f'<h2 id="{s.anchor}-h">{escape(s.title)}</h2>{s.html}</section>'
        for s in shown
    )
    parts = files("pypto.perf") / "html"
    template = (parts / "page.html").read_text("utf-8")
    replacements = {
        "title": escape(content.title),
        "nav": nav,
        "body": body,
        "css": (parts / "page.css").read_text("utf-8"),
        "js": "\n".join((parts / name).read_text("utf-8") for name in ("charts.js", "swimlane.js", "page.js")),
        "data": _embedded(_data(content, timelines)),
    }
    return _PLACEHOLDER.sub(lambda match: replacements[match[1]], template)


def _timelines(content: PageContent) -> list[Timeline]:
    timelines = []
    if content.records is not None:
        document = swimlane_document(content.records, content.graph, content.names)
        marked = {step.task.task_id for step in content.path.steps} if content.path else set()
        timelines.append(timeline_of(document, "Chip: cores, schedulers, orchestrator", marked))
    table = content.stats.table if content.stats else None
    if table is not None and len(table):
        shown = table.select(np.arange(min(len(table), HOST_SLICES)))
        cut = f", first {HOST_SLICES:,} of {len(table):,} spans" if len(table) > HOST_SLICES else ""
        timelines.append(timeline_of(host_trace(shown).document, f"Host: processes and threads{cut}"))
    return [timeline for timeline in timelines if timeline.row]


def _data(content: PageContent, timelines: list[Timeline]) -> dict[str, Any]:
    series: dict[str, dict[str, list[float]]] = {}
    if content.stats is not None:
        profile = RunProfile.of(content.stats)
        series["per round"] = profile.rounds_us
        series |= {f"per rank, {metric}": parts for metric, parts in profile.ranks_us.items()}
        series |= {f"per dispatch, {metric}": parts for metric, parts in profile.dispatches_us.items()}
    return {
        "series": {group: {name: one for name, one in parts.items() if any(one)} for group, parts in series.items()},
        "timelines": [_columns(timeline) for timeline in timelines],
        "roofline": _roofline_data(content.roofline) if content.roofline else None,
    }


def _roofline_data(roofline: Roofline) -> dict[str, Any]:
    kernels = [{"name": k.name, "x": k.intensity, "y": k.flops_per_s} for k in roofline.kernels]
    return {"flops": roofline.peak_flops_per_s, "bytes": roofline.peak_bytes_per_s, "kernels": kernels}


def _columns(timeline: Timeline) -> dict[str, Any]:
    return {**vars(timeline), "start": delta_encoded(timeline.start)}


def _embedded(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")

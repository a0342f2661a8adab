"""One self-contained page about a run: everything is in the file, nothing is fetched."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from pypto.perf.counters import Roofline
from pypto.perf.host_trace import host_trace
from pypto.perf.page_inputs import PageContent, RunFiles, read_run
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
from pypto.perf.runs import RunOptions
from pypto.perf.swimlane import swimlane_document
from pypto.perf.timeline import Timeline, delta_encoded, timeline_of

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
HOST_SLICES = 100_000
"""A host timeline longer than this is cut after that many spans; its title says so."""


def page_of(run: RunFiles, options: RunOptions, *, title: str | None = None) -> str:
    """Read a run and render its page.

    Raises:
        ValueError: a file of the run cannot be used; the message names it.
    """
    return render_page(read_run(run, options, title=title))


def render_page(content: PageContent) -> str:
    """The page as text."""
    timelines = _timelines(content)
    sections = [
        overview_section(content.stats, content.chips, content.chips_found, content.notes),
        tree_section(content.stats),
        distribution_section(content.stats),
        ranks_section(content.stats),
        swimlane_section(timelines),
        critical_path_section(content.chips),
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
    for chip in content.chips:
        document = swimlane_document(chip.records, chip.graph, chip.names)
        marked = {step.task.task_id for step in chip.path.steps} if chip.path else set()
        timelines.append(timeline_of(document, f"Chip {chip.label}: cores, schedulers, orchestrator", marked))
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
        "roofline": _roofline_data(content.roofline) if content.roofline and content.roofline.kernels else None,
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

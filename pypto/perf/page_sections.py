"""Sections of the page as HTML; what needs drawing is left to the page's scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from statistics import median

from pypto.perf.counters import PipeUse, Roofline
from pypto.perf.critical_path import CriticalPath, PathStep
from pypto.perf.critical_path_report import summary_line
from pypto.perf.page_inputs import ChipRun
from pypto.perf.stats import BenchmarkStats
from pypto.perf.task_id import display_id
from pypto.perf.timeline import Timeline
from pypto.perf.tree_html import mean_trees_html

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
PATH_ROWS = 500
SPREAD_ROWS = 200
DRAWN_KERNELS = 40


@dataclass(frozen=True)
class Section:
    """A titled part of the page."""

    anchor: str
    title: str
    html: str


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table; the first column is a row header."""
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in headers)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    rows_html = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll"><table class="data">{title}{rows_html}</table></div>'


def _us(value: float) -> str:
    return f"{value:,.1f}"


def overview_section(
    stats: BenchmarkStats | None, chips: Sequence[ChipRun], chips_found: int, notes: Sequence[str] = ()
) -> Section | None:
    """Headline, steadiness, warnings; ``notes`` say what of the run is not on the page."""
    parts = [f"<p>{escape(note)}</p>" for note in notes]
    if stats is not None:
        tiles = [("device median, us", _us(stats.device_us_median)), ("device stdev, us", _us(stats.device_us_stdev))]
        host = stats.per_round("host")
        tiles += [
            ("host median, us", _us(median(host)) if host else "-"),
            ("rounds", str(len(stats.samples))),
        ]
        cells = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in tiles)
        parts.append(f'<dl class="tiles">{cells}</dl><pre class="summary">{escape(str(stats))}</pre>')
        parts.append(f"<p>{escape(stats.steady_state('host' if stats.all_zero_device else 'device').sentence())}</p>")
        if stats.warnings:
            items = "".join(f"<li>{escape(warning)}</li>" for warning in stats.warnings)
            parts.append(f'<ul class="warnings" aria-label="warnings">{items}</ul>')
    for chip in chips:
        cores = len({task.core_id for task in chip.records.tasks})
        rows, level = len(chip.records.tasks), chip.records.level
        parts.append(f"<p>{escape(chip.label)}: {rows} task rows on {cores} cores, collection level {level}</p>")
    if chips_found > len(chips):
        parts.append(f"<p>{len(chips)} of {chips_found} swimlanes are shown.</p>")
    return Section("overview", "Overview", "".join(parts)) if parts else None


def tree_section(stats: BenchmarkStats | None) -> Section | None:
    """Mean trees; ``[dev]`` marks spans on the device clock."""
    if stats is None or not stats.invocations:
        return None
    note = "<p>Every node is a window on its own clock, no share of a whole: children may overlap.</p>"
    return Section("tree", "Mean tree", note + "".join(mean_trees_html(stats)))


def distribution_section(stats: BenchmarkStats | None) -> Section | None:
    """Quantiles and a chart per series."""
    if stats is None or not stats.samples:
        return None
    rows = []
    for metric in ("device", "effective", "host", "union", "device_span"):
        series = stats.per_round(metric)
        if any(series):
            rows.append([metric, str(len(series)), *(_us(v) for v in stats.quantiles(metric, QUANTILES).values())])
    headers = ["per round, us", "n", "min", "p5", "p25", "median", "p75", "p95", "max"]
    chart = (
        '<p><label>Series <select id="series-choice"></select></label></p>'
        '<div id="series-chart" class="chart" role="img" aria-label="series per round and histogram"></div>'
    )
    return Section("distribution", "Distribution", table(headers, rows) + chart)


def ranks_section(stats: BenchmarkStats | None) -> Section | None:
    """Slowest and fastest rank per round, mean per dispatch."""
    if stats is None or not stats.rounds_dispatches:
        return None
    every = stats.rank_spread()
    spreads = [
        [str(s.round), str(s.slowest_pid), _us(s.max_us), str(s.fastest_pid), _us(s.min_us), _us(s.skew_us)]
        for s in sorted(every, key=lambda s: -s.skew_us)[:SPREAD_ROWS]
    ]
    order = f"rounds by skew, first {len(spreads)} of {len(every)}"
    parts = [table(["round", "slowest rank", "max us", "fastest rank", "min us", "skew us"], spreads, order)]
    tasks = stats.dispatch_tasks()
    cells = [
        [f"{pid} slot {slot}", tasks[pid, slot], _us(sum(v) / len(v)), _us(min(v)), _us(max(v))]
        for (pid, slot), v in stats.per_dispatch().items()
    ]
    if stats.unstable_dispatch_slots:
        cells = [
            [str(pid), task, _us(sum(v) / len(v)), _us(min(v)), _us(max(v))]
            for (pid, task), v in stats.per_callable().items()
        ]
        parts.append(table(["rank", "callable", "mean device us per round", "min", "max"], cells))
    elif cells:
        parts.append(table(["dispatch", "task", "mean device us", "min", "max"], cells))
    return Section("ranks", "Ranks and dispatches", "".join(parts))


def swimlane_section(timelines: Sequence[Timeline]) -> Section | None:
    """Controls and canvas of the swimlane."""
    if not timelines:
        return None
    choices = "".join(f'<option value="{at}">{escape(t.title)}</option>' for at, t in enumerate(timelines))
    html = (
        '<div class="controls">'
        f'<label>Timeline <select id="lane-choice">{choices}</select></label>'
        '<label>Search <input id="lane-search" type="search" placeholder="kernel or task id"></label>'
        '<button id="lane-prev" type="button">previous</button><button id="lane-next" type="button">next</button>'
        '<label><input id="lane-arrows" type="checkbox"> all arrows</label>'
        '<label><input id="lane-critical" type="checkbox"> critical path only</label>'
        '<button id="lane-fit" type="button">fit</button></div>'
        '<p id="lane-status" role="status" aria-live="polite"></p>'
        '<div id="lane-scroll" class="lanes"><canvas id="lane-canvas" tabindex="0" '
        'aria-label="swimlane; arrow keys move, plus and minus zoom, brackets step, 0 fits"></canvas></div>'
        '<p id="lane-detail" class="detail" role="status" aria-live="polite">Nothing selected.</p>'
        '<p class="hint">Keys on the chart: ← → move, ↑ ↓ row, + − zoom, [ ] previous and next bar, 0 fit, / search, '
        "Esc clear. Mouse: wheel zooms, drag moves, click selects.</p>"
    )
    return Section("swimlane", "Swimlane", html)


def critical_path_section(chips: Sequence[ChipRun]) -> Section | None:
    """Per chip: summary, stall by kind, steps."""
    parts = [_path_of(chip.label, chip.path) for chip in chips if chip.path and chip.path.steps]
    return Section("critical-path", "Critical path", "".join(parts)) if parts else None


def _path_of(label: str, path: CriticalPath) -> str:
    rows = [_path_row(step) for step in path.steps[:PATH_ROWS]]
    more = f"<p>{len(path.steps) - PATH_ROWS} more steps are left out.</p>" if len(path.steps) > PATH_ROWS else ""
    span = path.makespan_ns or 1
    waits = "".join(_bar(wait, ns / span) for wait, ns in [("compute", path.compute_ns), *path.stall_by_wait().items()])
    headers = ["task", "kernel", "core", "start us", "compute us", "stall us", "waited for"]
    summary = f"<p><code>{escape(summary_line(label, path))}</code></p>"
    return f'{summary}<div class="bars">{waits}</div>{table(headers, rows)}{more}'


def _path_row(step: PathStep) -> list[str]:
    task = step.task
    times = (task.start_ns, step.compute_ns, step.stall_ns)
    return [display_id(task.task_id), task.name, str(task.core), *(_us(ns / 1000) for ns in times), step.wait]


def _bar(label: str, share: float) -> str:
    width = max(0.0, min(1.0, share)) * 100
    return (
        f'<div class="bar"><span>{escape(label)}</span><meter min="0" max="1" value="{share:.4f}">{share:.1%}</meter>'
        f'<i style="width:{width:.2f}%"></i><b>{share:.1%}</b></div>'
    )


def pipes_section(pipes: Sequence[PipeUse] | None) -> Section | None:
    """Busy share of every pipe per kernel."""
    if pipes is None:
        return None
    if not pipes:
        return Section(
            "pipes", "Pipe utilisation", "<p>The recording holds no busy cycles (simulators count none).</p>"
        )
    names = list(pipes[0].shares)
    rows = [[p.kernel, str(p.tasks), f"{p.cycles:,}", *(f"{p.shares[n]:.1%}" for n in names)] for p in pipes]
    bars = "".join(
        f"<div><h3>{escape(use.kernel)}</h3>{''.join(_bar(name, share) for name, share in use.shares.items())}</div>"
        for use in pipes[:DRAWN_KERNELS]
    )
    html = table(["kernel", "tasks", "cycles", *names], rows) + f'<div class="bars side-by-side">{bars}</div>'
    return Section("pipes", "Pipe utilisation", html)


def roofline_section(roofline: Roofline | None) -> Section | None:
    """The launch against the bound of every resource, kernels against compute and memory peak."""
    if roofline is None or not (roofline.kernels or roofline.bounds_ns):
        return None
    parts = [_bounds_of(roofline)] if roofline.bounds_ns else []
    parts += [_kernels_of(roofline)] if roofline.kernels else []
    return Section("roofline", "Roofline", "".join(parts))


def _bounds_of(roofline: Roofline) -> str:
    span = roofline.effective_ns or 1
    resource, limit_ns = roofline.limit
    ordered = sorted(roofline.bounds_ns.items(), key=lambda item: -item[1])
    bars = "".join(_bar(name, ns / span) for name, ns in ordered)
    rows = [[name, f"{ns / 1000:,.3f}", f"{ns / span:.1%}"] for name, ns in ordered]
    text = (
        f"{resource} alone needs {_us(limit_ns / 1000)} us of the {_us(roofline.effective_ns / 1000)} us that the "
        f"launch took ({limit_ns / span:.1%}): no schedule can be faster than that."
    )
    headers = ["resource", "least us", "of the effective window"]
    return f'<p>{escape(text)}</p><div class="bars">{bars}</div>{table(headers, rows)}'


def _kernels_of(roofline: Roofline) -> str:
    ridge = roofline.peak_flops_per_s / roofline.peak_bytes_per_s if roofline.peak_bytes_per_s else 0.0
    rows = []
    for kernel in roofline.kernels:
        roof = min(roofline.peak_flops_per_s, kernel.intensity * roofline.peak_bytes_per_s)
        bound = "memory" if kernel.intensity < ridge else "compute"
        share = kernel.flops_per_s / roof if roof else 0.0
        rows.append([kernel.name, f"{kernel.intensity:.3f}", f"{kernel.flops_per_s / 1e9:,.2f}", f"{share:.1%}", bound])
    chart = '<div id="roofline-chart" class="chart" role="img" aria-label="roofline"></div>'
    headers = ["kernel", "flop per byte", "Gflop/s", "of the roof", "bound by"]
    return chart + table(headers, rows)

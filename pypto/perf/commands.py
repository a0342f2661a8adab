"""What the commands of :mod:`pypto.perf.cli` do: load, transform, print."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from pypto.perf.chip_records import ChipRecords, read_chip_records
from pypto.perf.rich_tree import stats_renderable
from pypto.perf.runs import RunOptions, load_profile, load_stats
from pypto.perf.source import stdin_or_path
from pypto.perf.stats import BenchmarkStats
from pypto.perf.task_graph import TaskGraph, read_kernel_names, read_task_graph, sibling_name_map

RECORDS = "chip_swimlane_records.json"


def _stats(options: argparse.Namespace) -> BenchmarkStats:
    return load_stats(stdin_or_path(options.log), _run_options(options))


def _run_options(options: argparse.Namespace) -> RunOptions:
    return RunOptions(options.rounds, options.warmup, options.distributed)


def _console() -> Console:
    """As wide as the terminal, and wide enough for every table where there is none."""
    return Console(width=None if sys.stdout.isatty() else 160)


def report(options: argparse.Namespace) -> int:
    """Everything the statistics say, with tables and mean trees."""
    stats = _stats(options)
    if sys.stdout.isatty():
        _console().print(stats)
    else:
        print(stats)
        _console().print(stats_renderable(stats, headline=False))
    return 0


def tree(options: argparse.Namespace) -> int:
    """Span tree of one launch, or the mean tree."""
    stats = _stats(options)
    if options.launch is None:
        stats.print_mean_tree(us=not options.ns, spread=options.spread)
        return 0
    try:
        stats.print_tree(options.launch, us=not options.ns)
    except IndexError as error:
        raise ValueError(str(error)) from None
    return 0


def rounds(options: argparse.Namespace) -> int:
    """One line per dispatch."""
    frame = _stats(options).to_pandas()
    print(frame.to_string(index=False, float_format=lambda value: f"{value:.1f}"))
    return 0


def export(options: argparse.Namespace) -> int:
    """Write the run in another format."""
    from pypto.perf.export import export_run

    written = export_run(_stats(options), options.output, options.format, spans=options.spans)
    print(f"Wrote {options.output} ({written})")
    return 0


def compare_runs(options: argparse.Namespace) -> int:
    """Compare two runs; 1 when the headline regressed by more than allowed."""
    from pypto.perf.comparison import compare

    if options.baseline == options.candidate == "-":
        raise ValueError("standard input can be one of the two runs only")
    runs = (stdin_or_path(argument) for argument in (options.baseline, options.candidate))
    baseline, candidate = (load_profile(run, _run_options(options)) for run in runs)
    comparison = compare(baseline, candidate, options.metric, confidence=options.confidence)
    if sys.stdout.isatty():
        _console().print(comparison)
    else:
        print(comparison)
    if options.fail_over is None or not comparison.regressed(options.fail_over):
        return 0
    print(f"regression: {options.metric} per round is slower by more than {options.fail_over:.1%}", file=sys.stderr)
    return 1


def html(options: argparse.Namespace) -> int:
    """Write the page."""
    from pypto.perf.page import page_of
    from pypto.perf.page_inputs import find_run_files

    files = find_run_files(options.run_path)
    page = page_of(files, _run_options(options), title=options.title)
    options.output.write_text(page, encoding="utf-8")
    print(f"Wrote {options.output} ({len(page) / 1e6:.1f} MB)")
    return 0


def swimlane(options: argparse.Namespace) -> int:
    """Join records and graph into a trace and print the statistics table."""
    from pypto.perf.swimlane import swimlane_document
    from pypto.perf.task_statistics import statistics_report

    path = _inside(options.records or _newest_records(), RECORDS)
    records = read_chip_records(path)
    if records.unmatched:
        print(f"warning: {records.unmatched} scheduler rows have no core row (a lost core buffer)", file=sys.stderr)
    graph = _graph_beside(path, options.deps_json)
    names = _names(path.parent, options)
    document = swimlane_document(records, graph, names, overhead=options.overhead)
    output = options.output or path.with_name("merged_swimlane.json")
    document.write(output)
    print(f"Swimlane written\n  input:  {path}\n  output: {output}\n  slices: {len(document.slices)}\n")
    print(statistics_report(records, graph, names))
    if options.verbose:
        print(f"flows: {len(document.flows)}, counters: {len(document.counters)}", file=sys.stderr)
    return 0


def _inside(path: Path, name: str) -> Path:
    """A file, or the one of that name in a directory."""
    return path / name if path.is_dir() else path


def _newest_records() -> Path:
    found = sorted(Path("outputs").glob(f"*/{RECORDS}"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise ValueError(f"no records given and no outputs/*/{RECORDS} here")
    return found[-1]


def _graph_beside(records: Path, given: Path | None) -> TaskGraph | None:
    path = given or records.with_name("deps.json")
    if given is None and not path.is_file():
        print(f"warning: {path} is missing: no arrows, tasks stay anonymous", file=sys.stderr)
        return None
    return read_task_graph(path)


def _names(directory: Path, options: argparse.Namespace) -> dict[int, str]:
    given = options.func_names or options.kernel_config
    if given is not None:
        return read_kernel_names(given)
    found, warning = sibling_name_map(directory)
    if warning:
        print(f"warning: {warning}", file=sys.stderr)
    return read_kernel_names(found) if found else {}


def critical(options: argparse.Namespace) -> int:
    """Critical path of every rank below a directory; 2 when there is nothing to analyse."""
    from pypto.perf.critical_path_report import (
        CriticalPathError,
        analyse_rank,
        find_ranks,
        markdown_report,
        summary_line,
        write_path_traces,
    )

    if "/" in options.report or not options.report.strip():
        print(f"error: --report {options.report!r} must be a plain file name", file=sys.stderr)
        return 2
    try:
        ranks = find_ranks(options.directory)
        results = [(rank, analyse_rank(rank, tolerance_cycles=options.tol)) for rank in ranks]
        written = []
        for rank, path in results:
            target = rank.records.with_name(options.report)
            target.write_text(markdown_report(rank.label, path, top=options.top))
            written += [target, *write_path_traces(rank.records.parent, path)]
    except CriticalPathError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"Analyzed {len(results)} rank(s) under {options.directory}")
    for rank, path in results:
        print(summary_line(rank.label, path))
        if options.stdout:
            print(markdown_report(rank.label, path, top=options.top))
    print("\n".join(f"Wrote {path}" for path in written))
    return 0


def overhead(options: argparse.Namespace) -> int:
    """Print the scheduler-overhead analysis."""
    from pypto.perf.sched_overhead import sched_overhead
    from pypto.perf.sched_overhead_report import overhead_report

    given = [path for path in (options.records, options.chip_swimlane_records_json) if path is not None]
    if len(given) > 1:
        raise ValueError("give the records once, as RECORDS or as --chip-swimlane-records-json")
    path = _inside(given[0] if given else Path(), RECORDS)
    records: ChipRecords = read_chip_records(path)
    graph = read_task_graph(options.deps_json or path.with_name("deps.json"))
    print(overhead_report(sched_overhead(records, graph)))
    return 0


def deps(options: argparse.Namespace) -> int:
    """Write a task graph as text or for Graphviz."""
    from pypto.perf.graph_text import default_output, edges_shown, graph_dot, graph_text

    path, mode = _inside(options.graph, "deps.json"), options.edge_mode
    graph = read_task_graph(path)
    named = bool(_names(path.parent, options))
    sidecar = path.with_name(RECORDS).is_file()
    if options.format == "dot":
        text = graph_dot(graph, mode=mode, direction=options.direction)
    else:
        text = graph_text(graph, str(path), mode=mode, sidecar=sidecar, named=named)
    if str(options.output) == "-":
        print(text, end="")
        return 0
    output = options.output or default_output(path, mode, ".txt" if options.format == "text" else ".dot")
    output.write_text(text)
    if mode != "full":
        shown = len(edges_shown(graph, mode))
        removed = shown if mode.startswith("omitted") else len(graph.pairs) - shown
        print(f"{removed} of {len(graph.pairs)} edges are implied by longer paths ({mode})")
    counts = f"{len(graph.all_ids)} tasks, {len(graph.pairs)} unique edges, {len(graph.edges)} annotated edges"
    print(f"Wrote {output} ({counts}, format={options.format})")
    return 0

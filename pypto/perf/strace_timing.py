"""``python -m pypto.perf.strace_timing LOG``: the runtime's marker tool (``profiling.md`` 4.1)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pypto.perf.grouping import LaunchGroups, launches_of
from pypto.perf.host_phases import BindLine, read_bind_lines, read_phase_records, spans_of_lines, spans_of_records
from pypto.perf.host_trace import host_trace
from pypto.perf.launch_trace import launch_trace
from pypto.perf.names import GENERATIONS, in_log_tools
from pypto.perf.overlap import OverlapError, prove_overlap
from pypto.perf.pipe import survives_closed_pipe
from pypto.perf.progress import read_with_progress
from pypto.perf.source import read_all, stdin_or_path
from pypto.perf.span import TraceSpan
from pypto.perf.table import SpanTable
from pypto.perf.timing_tables import rounds_report, tpot_report, tree_report
from pypto.perf.wall_clock import anchor_warnings


@survives_closed_pipe
def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0, 1 for a file that cannot be read or written, or 2 when the overlap assertion fails.

    Bad arguments exit with 2 as well.
    """
    options = _parser().parse_args(argv)
    try:
        return _run(options)
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    source = read_all(sys.stdin.buffer) if options.log == "-" else stdin_or_path(options.log)
    table = read_with_progress(source)
    for warning in _warnings(table):
        print(f"warning: {warning}", file=sys.stderr)
    groups = launches_of(table, admit=in_log_tools)
    try:
        print(_report(groups, options))
    except OverlapError as failure:
        print(f"native overlap assertion failed: {failure}", file=sys.stderr)
        return 2
    if options.trace_out:
        document = launch_trace(groups)
        document.write(options.trace_out)
        print(f"Wrote Chrome trace: {options.trace_out} ({len(document.slices)} spans)")
    if options.swimlane:
        lines = read_bind_lines(source)
        _write_swimlane(table, lines, options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="strace_timing", description="Timing tables of [STRACE] markers.")
    parser.add_argument("log", metavar="LOG", help="log file, or - for standard input")
    parser.add_argument("--trace-out", metavar="PATH", help="Chrome trace, one process lane per invocation")
    parser.add_argument("--swimlane", metavar="PATH", help="Chrome trace on real pid/tid lanes")
    parser.add_argument("--host-phase-records", metavar="PATH", action="append", default=[], help="for --swimlane")
    parser.add_argument("--rounds-table", action="store_true", help="rounds table instead of the TPOT table")
    parser.add_argument("--tree", action="store_true", help="aggregated tree instead of the TPOT table")
    parser.add_argument("--assert-native-overlap", action="store_true", help="overlap proof instead of any table")
    parser.add_argument("--require-hidden-prepare", action="store_true", help="with the proof: bind fully hidden")
    return parser


def _warnings(table: SpanTable) -> list[str]:
    warnings = anchor_warnings(table)
    if table.torn:
        warnings.append(
            f"{table.torn} of {table.heads} [STRACE] records are incomplete and are excluded from the timing below"
        )
    return warnings + table.warnings[1 if table.torn else 0 :]


def _report(groups: LaunchGroups, options: argparse.Namespace) -> str:
    if options.assert_native_overlap:
        pairs = prove_overlap(groups, hidden=options.require_hidden_prepare)
        return f"Native overlap verified for {pairs} adjacent dispatch pair(s)."
    if not len(groups):
        return "No [STRACE] markers found."
    report = rounds_report if options.rounds_table else tree_report if options.tree else tpot_report
    return report(groups)


def _write_swimlane(table: SpanTable, lines: list[BindLine], options: argparse.Namespace) -> None:
    binds = _binds(table)
    passes = [one for path in options.host_phase_records for one in read_phase_records(path)]
    records = spans_of_records(passes, binds)
    if records.unmatched:
        print(f"warning: {records.unmatched} host phase pass(es) match no bind span and are dropped", file=sys.stderr)
    covered = {(span.pid, span.inv) for span in records.spans}
    phases = spans_of_lines(lines, binds, covered)
    if phases.unmatched:
        print(f"warning: {phases.unmatched} bind phase line(s) lie in no bind span and are dropped", file=sys.stderr)
    trace = host_trace(table, [*records.spans, *phases.spans])
    trace.document.write(options.swimlane)
    detail = f", {len(phases.spans)} bind phases" if phases.spans else ""
    detail += f", {len(records.spans)} host phase records" if records.spans else ""
    counts = f"{trace.host_spans} host spans, {trace.device_spans} unaligned device spans{detail}"
    print(f"Wrote host swimlane: {options.swimlane} ({counts})")


def _binds(table: SpanTable) -> list[TraceSpan]:
    names = {words.bind for words in GENERATIONS}
    codes = [code for code, name in enumerate(table.names) if name in names]
    return table.spans(row for row in range(len(table)) if table.name[row] in codes)


if __name__ == "__main__":
    raise SystemExit(main())

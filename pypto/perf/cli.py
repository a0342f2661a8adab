"""``python -m pypto.perf``, also installed as ``pypto-perf``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from pypto.perf import commands
from pypto.perf.export import FORMATS
from pypto.perf.graph_text import EdgeMode
from pypto.perf.pipe import survives_closed_pipe

METRICS = ("device", "host", "effective", "union", "device_span")


@survives_closed_pipe
def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Exit codes: 0 fine, 1 a regression or an input that cannot be used, 2 wrong arguments.
    """
    options = build_parser().parse_args(argv)
    try:
        return options.run(options)
    except BrokenPipeError:
        raise
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def share(text: str) -> float:
    """``5%`` or ``0.05`` as a share; a bare number above 1 is refused, since 5 % was meant."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: write 5% or 0.05") from None
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r}: a share must not be negative")
    if value > 1 and not text.endswith("%"):
        raise argparse.ArgumentTypeError(f"{text!r} would be {value:.0%}: write {text}% or {value / 100:g}")
    return value


def positive(text: str) -> int:
    """A count of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1")
    return int(text)


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(prog="pypto-perf", description="From a log of markers to an answer.")
    parsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_run_commands(parsers)
    _add_chip_commands(parsers)
    return parser


def _command(parsers: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser = parsers.add_parser(name, help=text, description=text)
    parser.set_defaults(run=run)
    return parser


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=positive, help="measured launches (default: what the log holds)")
    parser.add_argument("--warmup", type=int, default=0, help="launches to drop first (default: 0)")
    chips = parser.add_mutually_exclusive_group()
    chips.add_argument(
        "--distributed", action="store_true", default=None, help="several ranks (default: the log tells)"
    )
    chips.add_argument("--single-chip", dest="distributed", action="store_false", help="one chip")


def _add_run_commands(parsers: Any) -> None:
    for name, run, text in (
        ("report", commands.report, "statistics, ranks, steadiness, warnings and mean trees"),
        ("tree", commands.tree, "span tree of one launch, or the mean tree"),
        ("rounds", commands.rounds, "one line per launch"),
        ("export", commands.export, "write csv, parquet, json (a profile to compare with) or a perfetto trace"),
    ):
        parser = _command(parsers, name, run, text)
        parser.add_argument("log", metavar="LOG", help="log file, or - for standard input")
        _add_run_options(parser)
        if name == "tree":
            parser.add_argument("--launch", type=int, help="index of a launch (default: the mean of all)")
            parser.add_argument("--ns", action="store_true", help="nanoseconds instead of microseconds")
            parser.add_argument("--spread", choices=("stdev", "minmax", "both", "none"), default="both")
        if name == "export":
            parser.add_argument("-o", "--output", type=Path, required=True)
            parser.add_argument("--format", choices=FORMATS, help="default: told by the suffix")
            parser.add_argument("--spans", action="store_true", help="one row per span instead of one per dispatch")
    parser = _command(parsers, "compare", commands.compare_runs, "compare two runs; exit 1 on a regression")
    parser.add_argument("baseline", metavar="A", help="log, exported json, or - for standard input")
    parser.add_argument("candidate", metavar="B", help="log, exported json, or -")
    parser.add_argument("--metric", choices=METRICS, default="device")
    parser.add_argument("--fail-over", type=share, metavar="SHARE", help="exit 1 when the headline is slower by more")
    parser.add_argument("--confidence", type=share, default=0.95)
    _add_run_options(parser)
    parser = _command(parsers, "html", commands.html, "one self-contained page")
    parser.add_argument("run_path", metavar="RUN", type=Path, help="log, or directory with a log and diagnostics")
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"))
    parser.add_argument("--title")
    _add_run_options(parser)


def _add_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--func-names", type=Path, metavar="JSON", help="kernel names (default: a sibling name map)")
    parser.add_argument("-k", "--kernel-config", type=Path, metavar="PY", help="kernel names from a kernel_config.py")


def _add_chip_commands(parsers: Any) -> None:
    parser = _command(parsers, "swimlane", commands.swimlane, "join swimlane records and task graph into a trace")
    parser.add_argument(
        "records", nargs="?", type=Path, help="swimlane records or their directory (default: newest in outputs/)"
    )
    parser.add_argument("-o", "--output", type=Path, help="default: merged_swimlane.json beside the input")
    parser.add_argument("--deps-json", type=Path, help="default: deps.json beside the input")
    parser.add_argument("--overhead", action="store_true", help="add scheduler-overhead counters")
    parser.add_argument("-v", "--verbose", action="store_true")
    _add_names(parser)
    parser = _command(parsers, "critical-path", commands.critical, "what gated the makespan, per rank")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--report", default="critical_path.md", help="name of the report beside the records")
    parser.add_argument("--top", type=positive, default=25)
    parser.add_argument("--tol", type=int, default=2, help="cycles a producer may end late")
    parser.add_argument("--stdout", action="store_true", help="print the whole report")
    parser = _command(parsers, "sched-overhead", commands.overhead, "how much the scheduler is to blame for")
    parser.add_argument("records", nargs="?", type=Path, help="swimlane records or their directory (default: here)")
    parser.add_argument("--chip-swimlane-records-json", type=Path, help="the same, as the runtime's tool spells it")
    parser.add_argument("--deps-json", type=Path, help="default: deps.json beside the records")
    parser = _command(parsers, "deps", commands.deps, "a task graph as text or for Graphviz")
    parser.add_argument("graph", nargs="?", type=Path, default=Path("deps.json"))
    parser.add_argument("-o", "--output", type=Path, help="default: beside the input, - for stdout")
    parser.add_argument("--format", choices=("text", "dot"), default="text")
    parser.add_argument("--edge-mode", choices=get_args(EdgeMode), default="full")
    parser.add_argument("--direction", choices=("LR", "TB", "BT", "RL"), default="LR")
    _add_names(parser)


if __name__ == "__main__":
    raise SystemExit(main())

"""``python -m pypto.sim.check SCRIPT [ARGUMENT …]``: run a script with every check on, exit 1 when one finds something.

The script runs as it would by itself. Findings are gathered over all launches and shown at the end as a table (or as
JSON); a script that ends with an exception of its own still has its findings shown.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import traceback
from pathlib import Path

from pypto.sim.checks.findings import CheckError, Finding, table, to_json
from pypto.sim.checks.forced import forced, taken
from pypto.sim.checks.selection import Checks


def _run(script: str, arguments: list[str]) -> tuple[list[Finding], int]:
    """Findings of a script and the exit code it had."""
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except CheckError as error:
        return list(dict.fromkeys((*taken(), *error.findings))), 1
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
        return taken(), code
    except Exception:
        traceback.print_exc()
        return taken(), 1
    return taken(), 0


def main(argv: list[str] | None = None) -> int:
    """Run the command line; the exit code is 1 with findings, else the script's."""
    parser = argparse.ArgumentParser(prog="python -m pypto.sim.check", description=__doc__)
    parser.add_argument("--checks", default="all", help="'cheap', 'all' (default) or kinds with commas between them")
    parser.add_argument("--json", metavar="FILE", help="write the findings there as JSON ('-': standard output)")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(argv)
    _refuse_early(parser, options)
    with forced(options.checks, "collect"):
        findings, code = _run(options.script, options.arguments)
    if options.json:
        text = to_json(findings)
        print(text) if options.json == "-" else Path(options.json).write_text(text, "utf-8")
    else:
        _show(findings)
    return 1 if findings else code


def _refuse_early(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Exit 2 with one line for what would fail only after the script has run."""
    if options.checks not in ("none", "cheap", "all"):
        try:
            Checks.of(frozenset(options.checks.split(",")))
        except ValueError as error:
            parser.error(str(error))
    if not Path(options.script).exists():
        parser.error(f"no such script: {options.script}")
    if options.json not in (None, "-") and not Path(options.json).absolute().parent.is_dir():
        parser.error(f"--json: no such directory: {Path(options.json).absolute().parent}")


def _show(findings: list[Finding]) -> None:
    from rich.console import Console

    console = Console(stderr=True)
    if findings:
        console.print(table(findings))
    console.print(f"{len(findings)} finding{'s' if len(findings) != 1 else ''}")


if __name__ == "__main__":
    sys.exit(main())

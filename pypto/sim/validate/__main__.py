"""``python -m pypto.sim.validate [--write DOCS]``: time the published workloads and compare."""

from __future__ import annotations

import argparse
from pathlib import Path

from .communication import communication
from .operations import single_operations
from .report import markdown, picture
from .rows import Row, summaries
from .workloads import workloads


def print_summary(rows: list[Row]) -> None:
    """Mean absolute error per family, as a table on the terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table("family", "use", "rows", "not re-created", "mean error")
    for one in summaries(rows):
        mean = "" if one.mean_error is None else f"{one.mean_error:.1%}"
        table.add_row(one.family, one.use, str(one.rows), str(one.missing), mean)
    Console().print(table)


def main() -> int:
    """Print the comparison, and write the page where asked; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pypto.sim.validate", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="DOCS", help="also write validation.md and validation.png there")
    options = parser.parse_args()
    rows = [*single_operations(), *workloads(), *communication()]
    print_summary(rows)
    if options.write:
        (options.write / "validation.md").write_text(markdown(rows), encoding="utf-8")
        picture(rows, options.write / "validation.png")
        print(f"wrote {options.write / 'validation.md'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

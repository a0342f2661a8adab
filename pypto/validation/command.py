"""``python -m pypto.sim.validate [--families G1 V1 ...] [--write DOCS]``: time the published workloads and compare."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from .families import Part, begin_ranks, parts
from .report import markdown, percent, picture, precisions
from .rows import Pair, Row, signs, summaries


def print_summary(rows: Sequence[Row], pairs: Sequence[Pair]) -> None:
    """Mean absolute error per family and the signs of changes, as tables on the terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table("family", "use", "rows", "not re-created", "mean error", "without doubted rows")
    for one in summaries(rows):
        means = percent(one.mean_error), percent(one.mean_error_undoubted)
        table.add_row(one.family, one.use, str(one.rows), str(one.missing), *means)
    console = Console()
    console.print(table)
    for line in precisions(rows):
        console.print(line, soft_wrap=True)
    right, wrong, missing = signs(pairs)
    console.print(f"changes with the right sign: {right} of {right + wrong}; {missing} not re-created")


def compared(chosen: Sequence[Part]) -> tuple[list[Row], list[Pair]]:
    """All rows and pairs of ``chosen``; a terminal shows how far it is."""
    from rich.console import Console
    from rich.progress import Progress

    if any("C1" in part.families for part in chosen):
        begin_ranks()
    rows: list[Row] = []
    pairs: list[Pair] = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=len(chosen))
        for part in chosen:
            progress.update(bar, description=part.title)
            rows += part.rows()
            pairs += part.pairs()
            progress.advance(bar)
    return rows, pairs


def main() -> int:
    """Print the comparison, and write the page where asked; returns the exit status."""
    every = parts()
    known = [family for part in every for family in part.families]
    parser = argparse.ArgumentParser(prog="python -m pypto.sim.validate", description=__doc__)
    parser.add_argument("--families", nargs="+", choices=known, metavar="FAMILY", help=f"only these: {' '.join(known)}")
    parser.add_argument("--write", type=Path, metavar="DOCS", help="also write validation.md and validation.png there")
    options = parser.parse_args()
    if options.write and options.families:
        parser.error("--write needs all families; leave out --families")
    logging.getLogger("pypto").setLevel(logging.WARNING)
    wanted = set(options.families or known)
    rows, pairs = compared([part for part in every if wanted & set(part.families)])
    rows = [row for row in rows if row.family in wanted]
    print_summary(rows, [pair for pair in pairs if pair.family in wanted])
    if options.write:
        (options.write / "validation.md").write_text(markdown(rows, pairs), encoding="utf-8")
        picture(rows, options.write / "validation.png")
        print(f"wrote {options.write / 'validation.md'}")
    return 0

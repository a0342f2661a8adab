"""Run the benchmark modules and print one table; ``--markdown`` prints it for ``docs/performance.md``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from typing import Any

import benchmarks


def modules() -> list[str]:
    """Names of the benchmark modules: those with a ``measure`` function."""
    found = (m.name for m in pkgutil.iter_modules(benchmarks.__path__))
    return sorted(n for n in found if not n.startswith("_"))


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows one module measures."""
    module = importlib.import_module(f"benchmarks.{name}")
    return [{"benchmark": name, **row} for row in module.measure()] if hasattr(module, "measure") else []


def columns_of(rows: list[dict[str, Any]]) -> list[str]:
    """Every key, in order of appearance."""
    return list(dict.fromkeys(key for row in rows for key in row))


def shown(value: Any) -> str:
    """A cell: three significant digits for numbers."""
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


def print_markdown(rows: list[dict[str, Any]]) -> None:
    columns = columns_of(rows)
    print(f"| {' | '.join(columns)} |")
    print(f"|{'---|' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(shown(row.get(c)) for c in columns)} |")


def print_table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    columns = columns_of(rows)
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(shown(row.get(c)) for c in columns))
    Console().print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"modules to run (default: all): {', '.join(modules())}")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    options = parser.parse_args()
    unknown = [n for n in options.names if n not in modules()]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are: {', '.join(modules())}")
    for name in options.names or modules():
        print(f"measuring {name} ...", file=sys.stderr)
        rows = rows_of(name)
        print_markdown(rows) if options.markdown else print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())

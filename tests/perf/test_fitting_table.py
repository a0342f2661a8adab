"""Reports on terminals of any width: figures are whole or left out, and what is left out is said."""

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from pypto.perf import BenchmarkStats
from pypto.perf.fitting_table import FittingTable

from .logs import vector_l2


def printed(what, width):
    out = io.StringIO()
    Console(file=out, width=width, no_color=True).print(what)
    return out.getvalue()


NUMBERS = st.lists(st.floats(0, 1e7).map(lambda x: f"{x:,.1f}"), min_size=5, max_size=5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(NUMBERS, min_size=1, max_size=4), st.integers(45, 200))
def test_figures_are_whole_or_left_out(rows, width):
    titles = ["a name", "[n]", "mean", "low", "high", "last"]
    table = FittingTable(titles, spare=["low", "high", "[n]", "last"])
    for row in rows:
        table.add_row("things", *row)
    lines = printed(table, width).splitlines()
    left_out = lines[1 + len(rows)].removeprefix("too narrow for ").split(", ") if len(lines) > 1 + len(rows) else []
    assert set(left_out) <= {"low", "high", "[n]", "last"} and all(len(line) <= width for line in lines)
    kept = [index for index, title in enumerate(titles[1:]) if title not in left_out]
    assert lines[0].split("name")[1].split() == [titles[1:][index] for index in kept]
    for line, row in zip(lines[1:], rows):
        assert line.split() == ["things", *(row[index] for index in kept)]


def test_a_wide_terminal_shows_everything():
    table = FittingTable(["name", "x", "y"], spare=["y", "x"])
    table.add_row("a", "1.0", "2.0")
    assert printed(table, 100) == "name    x    y\na     1.0  2.0\n"
    assert printed(table, 9) == "name    x\na     1.0\ntoo \nnarrow \nfor y\n"


def test_reports_never_cut_a_figure():
    stats = BenchmarkStats.from_strace(vector_l2(), rounds=2, warmup=1)
    wide = printed(stats, 200)
    assert "[min..max]" in wide and "of parent" in wide and "too narrow" not in wide
    for width in (50, 60, 80):
        assert "…" not in printed(stats, width)
    assert "too narrow for [min..max], of parent" in printed(stats, 55)

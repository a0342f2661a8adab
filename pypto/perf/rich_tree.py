"""Trees and statistics for a terminal: aligned, device spans coloured, share of the parent, odd counts said."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING

from rich.console import Console, Group
from rich.panel import Panel
from rich.text import Text

from pypto.perf.aggregate import NodeStats, node_stats
from pypto.perf.fitting_table import FittingTable
from pypto.perf.span import TraceInvocation
from pypto.perf.tree import TreeNode, build_tree, printable, walk

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pypto.perf.metrics import Spread
from pypto.perf.stats import BenchmarkStats

DEVICE_STYLE = "cyan"
HOST_STYLE = "default"


def print_either(rich: Callable[[], RenderableType], plain: Callable[[], str], file: IO[str] | None) -> None:
    """Print the rich form when the stream is a terminal, the plain text otherwise."""
    stream = file or sys.stdout
    if stream.isatty():
        Console(file=stream).print(rich())
    else:
        print(plain(), file=stream)


def invocation_tree(invocation: TraceInvocation, *, us: bool = True) -> FittingTable:
    """One launch as an aligned tree."""
    scale, unit = (1000.0, "us") if us else (1.0, "ns")

    def cells(node: TreeNode) -> list[str]:
        return [f"{node.span.dur / scale:,.1f}{unit}" if us else f"{node.span.dur:,}{unit}"]

    return _tree_table(build_tree(invocation.spans), cells, ["duration"])


def mean_tree(nodes: Sequence[NodeStats], *, us: bool = True, spread: Spread = "stdev") -> FittingTable:
    """Means of one dispatch; nodes that some launches lack say in how many they were seen."""
    from pypto.perf.stats_text import value_columns

    by_name = {node.name: node for node in nodes}
    partial = any(node.count < node.launches for node in nodes)

    def cells(tree_node: TreeNode) -> list[str]:
        node = by_name[tree_node.span.name]
        seen = [f"n={node.count}/{node.launches}" if node.count < node.launches else ""] if partial else []
        return [*value_columns(node, us=us, spread=spread), *seen]

    titles = ["mean"]
    titles += ["±stdev"] if spread in ("stdev", "both") else []
    titles += ["[min..max]"] if spread in ("minmax", "both") else []
    return _tree_table(build_tree([node.span for node in nodes]), cells, [*titles, *(["seen"] if partial else [])])


def _tree_table(roots: Sequence[TreeNode], cells: Callable[[TreeNode], list[str]], titles: list[str]) -> FittingTable:
    table = FittingTable(["span", *titles, "of parent"], spare=["of parent", "seen", *titles[:0:-1]])
    for connector, node, parent in walk(roots):
        style = DEVICE_STYLE if node.span.is_device else HOST_STYLE
        label = Text(_drawn(connector), style="dim") + Text(node.label, style=style)
        share = Text(_share(node, parent), style="dim")
        table.add_row(label, *(Text(cell, style=style) for cell in cells(node)), share)
    return table


def _drawn(connector: str) -> str:
    return connector.replace("|-", "├─").replace("`-", "└─").replace("|", "│")


def _share(node: TreeNode, parent: TreeNode | None) -> str:
    """Share of the parent's window; a window is no partition, so shares of siblings need not sum to 100 %."""
    if parent is None or not parent.span.dur:
        return ""
    return f"{node.span.dur / parent.span.dur:.1%}"


def launch_renderable(stats: BenchmarkStats, launch: int | None, *, us: bool = True) -> RenderableType:
    """Header and tree of the selected launches."""
    from pypto.perf.stats_text import NOT_CAPTURED, grid_places, launch_at, launch_header

    if not stats.invocations:
        return Text(NOT_CAPTURED, style="yellow")
    places = grid_places(stats)
    parts: list[RenderableType] = []
    for index in range(len(stats.invocations)) if launch is None else [launch]:
        invocation = launch_at(stats, index)
        parts += [Text(launch_header(index, invocation, places), style="bold"), invocation_tree(invocation, us=us)]
    return Group(*parts)


def mean_renderable(
    stats: BenchmarkStats,
    *,
    us: bool = True,
    spread: Spread = "stdev",
    pid: int | None = None,
    slot: int | None = None,
) -> RenderableType:
    """Header and mean tree of every matching dispatch."""
    from pypto.perf.stats_text import mean_header, mean_trees

    groups = [] if stats.unstable_dispatch_slots else stats.mean_groups(pid=pid, slot=slot)
    if not groups:
        return Text(mean_trees(stats, us=us, spread=spread, pid=pid, slot=slot), style="yellow")
    parts: list[RenderableType] = []
    for key, group in groups:
        header = Text(mean_header(stats, key, group, spread), style="bold")
        parts += [header, mean_tree(node_stats(group), us=us, spread=spread), Text()]
    return Group(*parts[:-1])


def stats_renderable(stats: BenchmarkStats, *, headline: bool = True) -> RenderableType:
    """The report: headline, distribution, ranks side by side, steadiness, warnings, mean trees."""
    parts: list[RenderableType] = [Text(str(stats)), Text()] if headline else [Text()]
    if stats.device_wall_us:
        parts += [distribution_table(stats), Text()]
    if stats.rounds_dispatches:
        parts += [rank_table(stats), Text()]
    if stats.unstable_dispatch_slots:
        parts += [callable_table(stats), Text()]
    if stats.device_wall_us:
        parts += [Text(stats.steady_state("host" if stats.all_zero_device else "device").sentence()), Text()]
    parts.append(mean_renderable(stats, spread="both"))
    if stats.simulation_wall_us:
        cost = sum(stats.simulation_wall_us) / 1e6
        parts.append(Text(f"simulating took {cost:.3f} s of real time, in none of the figures above", style="dim"))
    if stats.warnings:
        parts += [Text(), Panel(Text("\n".join(stats.warnings)), title="warnings", border_style="yellow")]
    return Group(*parts)


def distribution_table(stats: BenchmarkStats) -> FittingTable:
    """Quantiles of every per-round series."""
    titles = ("per round, us", "n", "min", "p5", "p25", "median", "p75", "p95", "max", "mean", "stdev")
    table = FittingTable(titles, spare=("p25", "p75", "p5", "p95", "n", "stdev", "mean", "min", "max"))
    for metric in ("device", "effective", "host", "union", "device_span"):
        series = stats.per_round(metric)
        if not any(series):
            continue
        q = stats.quantiles(metric, (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0))
        mean = sum(series) / len(series)
        stdev = (sum((x - mean) ** 2 for x in series) / (len(series) - 1)) ** 0.5 if len(series) > 1 else 0.0
        numbers = [*q.values(), mean, stdev]
        table.add_row(metric, str(len(series)), *(f"{number:,.1f}" for number in numbers))
    return table


def callable_table(stats: BenchmarkStats) -> FittingTable:
    """Mean and range per rank and callable, for runs whose slots change their callable."""
    table = FittingTable(
        ("rank", "callable", "mean us per round", "min us", "max us"), ("min us", "max us"), named=False
    )
    for (pid, task), values in stats.per_callable().items():
        mean = sum(values) / len(values)
        table.add_row(str(pid), printable(task), f"{mean:,.1f}", f"{min(values):,.1f}", f"{max(values):,.1f}")
    return table


def rank_table(stats: BenchmarkStats) -> FittingTable:
    """Slowest rank, fastest rank and skew per round, and every rank's mean."""
    titles = ("round", "slowest rank", "max us", "fastest rank", "min us", "skew us")
    table = FittingTable(titles, spare=("min us", "fastest rank", "skew us"), named=False)
    spreads = stats.rank_spread()
    shown = spreads if len(spreads) <= 12 else [*spreads[:6], *spreads[-6:]]
    for s in shown:
        table.add_row(
            str(s.round), str(s.slowest_pid), f"{s.max_us:,.1f}", str(s.fastest_pid), f"{s.min_us:,.1f}",
            f"{s.skew_us:,.1f}",
        )  # fmt: skip
    return table

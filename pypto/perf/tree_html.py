"""HTML of trees and statistics for notebooks: plain elements, no script, readable in light and dark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from pypto.perf.aggregate import NodeStats, node_stats
from pypto.perf.span import TraceInvocation
from pypto.perf.tree import TreeNode, build_tree, walk

if TYPE_CHECKING:
    from pypto.perf.stats import BenchmarkStats

_CELL = "padding:0 1em 0 0;text-align:right;font-family:monospace;white-space:pre;border:none"
_LABEL = _CELL.replace("right", "left", 1)
_DEVICE = "color:#0e7490"


def tree_table(roots: Sequence[TreeNode], cells: Callable[[TreeNode], list[str]], titles: Sequence[str]) -> str:
    """A table with one row per span."""
    head = f'<th style="{_LABEL}">span</th>'
    head += "".join(f'<th style="{_CELL}">{escape(title)}</th>' for title in (*titles, "of parent"))
    body = "".join(_row(connector, node, parent, cells(node)) for connector, node, parent in walk(roots))
    return f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _row(connector: str, node: TreeNode, parent: TreeNode | None, cells: list[str]) -> str:
    share = f"{node.span.dur / parent.span.dur:.1%}" if parent and parent.span.dur else ""
    device = node.span.is_device
    attributes = f'class="dev" style="{_LABEL};{_DEVICE}"' if device else f'style="{_LABEL}"'
    label = f"<td {attributes}>{escape(connector + node.label)}</td>"
    values = "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in (*cells, share))
    return f"<tr>{label}{values}</tr>"


def invocation_html(invocation: TraceInvocation) -> str:
    """One launch as a table."""
    caption = f"pid={invocation.pid} inv={invocation.inv} {invocation.task_name}"
    tree = tree_table(build_tree(invocation.spans), lambda node: [f"{node.span.dur / 1000:,.1f}us"], ["duration"])
    return f"<p><b>{escape(caption)}</b></p>{tree}"


def stats_html(stats: BenchmarkStats) -> str:
    """Headline, warnings and mean trees."""
    parts = [f"<p><code>{escape(str(stats))}</code></p>"]
    parts += [f"<p>⚠ {escape(warning)}</p>" for warning in stats.warnings]
    parts += mean_trees_html(stats)
    return "".join(parts)


def _partial(nodes: Iterable[NodeStats]) -> bool:
    return any(node.count < node.launches for node in nodes)


def _seen(node: NodeStats, nodes: Iterable[NodeStats]) -> list[str]:
    """In how many launches a node was seen; no column where all were seen in all."""
    if not _partial(nodes):
        return []
    return [f"n={node.count}/{node.launches}" if node.count < node.launches else ""]


def mean_trees_html(stats: BenchmarkStats) -> list[str]:
    """Header and mean tree per dispatch, or the sentence that says why there is none."""
    from pypto.perf.stats_text import mean_header, mean_trees, value_columns

    groups = [] if stats.unstable_dispatch_slots else stats.mean_groups()
    if not groups:
        return [f"<p>{escape(mean_trees(stats, us=True, spread='both'))}</p>"]
    parts = []
    for key, group in groups:
        nodes = {node.name: node for node in node_stats(group)}

        def cells(tree_node: TreeNode, nodes: dict[str, NodeStats] = nodes) -> list[str]:
            node = nodes[tree_node.span.name]
            return [*value_columns(node, us=True, spread="both"), *_seen(node, nodes.values())]

        titles = ["mean", "±stdev", "[min..max]", *(["seen in"] if _partial(nodes.values()) else [])]
        tree = tree_table(build_tree([node.span for node in nodes.values()]), cells, titles)
        parts.append(f"<p><b>{escape(mean_header(stats, key, group, 'both'))}</b></p>{tree}")
    return parts

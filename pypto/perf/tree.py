"""Span trees rebuilt from dotted names, and their plain text layout (``profiling.md`` 2.2, 3.6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pypto.perf.span import TraceSpan, ValueFn


@dataclass
class TreeNode:
    """A span and its children in order of start; ``leaf`` is the part of the name below the parent."""

    span: TraceSpan
    leaf: str
    children: list[TreeNode] = field(default_factory=list)

    @property
    def label(self) -> str:
        return printable(self.leaf) + (" [dev]" if self.span.is_device else "")


def build_tree(spans: Sequence[TraceSpan]) -> list[TreeNode]:
    """Roots of the tree: the parent of a name is its longest proper dotted prefix that is present.

    Names, not times, give the nesting: device spans have another clock, and ``orch`` and ``sched`` overlap.
    """
    first: dict[str, TraceSpan] = {}
    for span in spans:
        first.setdefault(span.name, span)
    nodes: dict[str, TreeNode] = {}
    parents = {name: _parent_of(name, first) for name in first}
    for name, span in first.items():
        parent = parents[name]
        nodes[name] = TreeNode(span, name if parent is None else name[len(parent) + 1 :])
    roots: list[TreeNode] = []
    for name, node in nodes.items():
        parent = parents[name]
        (roots if parent is None else nodes[parent].children).append(node)
    for siblings in (roots, *(node.children for node in nodes.values())):
        siblings.sort(key=lambda node: node.span.ts)
    return roots


def _parent_of(name: str, present: dict[str, TraceSpan]) -> str | None:
    while "." in name:
        name = name.rpartition(".")[0]
        if name in present:
            return name
    return None


def walk(roots: Sequence[TreeNode]) -> Iterator[tuple[str, TreeNode, TreeNode | None]]:
    """Every node with its connectors and its parent, in printing order."""
    for root in roots:
        yield "", root, None
        yield from _walk_below(root, "")


def _walk_below(parent: TreeNode, indent: str) -> Iterator[tuple[str, TreeNode, TreeNode | None]]:
    for at, child in enumerate(parent.children):
        last = at == len(parent.children) - 1
        yield indent + ("`- " if last else "|- "), child, parent
        yield from _walk_below(child, indent + ("   " if last else "|  "))


def format_plain(roots: Sequence[TreeNode], value_fn: ValueFn) -> str:
    """Aligned text, no trailing newline; empty for an empty tree."""
    rows = [(connector + node.label, value_fn(node.span)) for connector, node, _ in walk(roots)]
    if not rows:
        return ""
    width = max(len(label) for label, _ in rows)
    columns = max(len(values) for _, values in rows)
    widths = [max((len(values[c]) for _, values in rows if c < len(values)), default=0) for c in range(columns)]
    lines = []
    for label, values in rows:
        cells = "".join(f"  {value:>{widths[c]}}" for c, value in enumerate(values))
        lines.append(f"{label:<{width}}{cells}".rstrip())
    return "\n".join(lines)


def duration_column(us: bool) -> ValueFn:
    """The default column: one decimal in us, whole ns otherwise."""
    return (lambda span: [f"{span.dur / 1000.0:.1f}us"]) if us else (lambda span: [f"{span.dur}ns"])


def printable(text: str) -> str:
    """Text without characters that move the cursor: names are decoded and may hold anything."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)

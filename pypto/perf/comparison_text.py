"""A comparison as plain text and for a terminal: headline, ranks, dispatches and the tree of nodes that moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pypto.perf.comparison import Change, Comparison
from pypto.perf.shift import Shift
from pypto.perf.span import TraceSpan
from pypto.perf.tree import build_tree, format_plain

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

STYLES = {"slower": "red", "faster": "green", "same": "dim", "unclear": "yellow"}


def comparison_text(comparison: Comparison) -> str:
    """Plain text, no trailing newline."""
    lines = [sentence(comparison.headline)]
    lines += [f"  {sentence(change)}" for change in (*comparison.ranks, *comparison.dispatches)]
    for group in dict.fromkeys(change.group for change in comparison.nodes):
        lines += ["", f"nodes that moved ({group}):", moved_tree(comparison, group) or "  none"]
    lines += [f"warning: {warning}" for warning in comparison.warnings]
    return "\n".join(lines)


def sentence(change: Change) -> str:
    """One series in one line."""
    shift = change.shift
    if shift is None:
        return f"{change.label}: only in the {change.only}"
    digits = _digits(shift.shift)
    head = (
        f"{change.label}: {shift.baseline:.{digits}f}us -> {shift.candidate:.{digits}f}us  "
        f"{percent(shift)} ({shift.shift:+.{digits}f}us"
    )
    if shift.exact:
        return f"{head}, exact): {shift.verdict}"
    interval = f"{shift.confidence:.0%} interval {shift.low:+.1f}..{shift.high:+.1f}us"
    counts = f"n={shift.counts[0]}/{shift.counts[1]}"
    return f"{head}, {interval}, dominance {shift.dominance:+.2f}, {counts}): {shift.verdict}"


def percent(shift: Shift) -> str:
    """Relative shift with its sign."""
    change = 100 * shift.relative
    return f"{change:+.{_digits(change)}f}%"


def _digits(change: float) -> int:
    """Decimals that show a change which is not zero: one, or down to the nanosecond."""
    return 1 if change == 0 or abs(change) >= 0.05 else 3


def moved_tree(comparison: Comparison, group: str) -> str:
    """The plain tree of the nodes that moved and their ancestors."""
    changes = {change.label: change for change in comparison.nodes if change.group == group}
    kept = _with_ancestors([label for label, change in changes.items() if change.moved], changes)
    roots = build_tree(_pseudo_spans(kept, comparison.device_nodes))
    return format_plain(roots, lambda span: node_cells(changes[span.name]))


def _with_ancestors(moved: Sequence[str], present: dict[str, Change]) -> list[str]:
    wanted = {label for name in moved for label in present if label == name or name.startswith(f"{label}.")}
    return [label for label in present if label in wanted]


def _pseudo_spans(names: Sequence[str], device: Sequence[str]) -> list[TraceSpan]:
    """Spans that only carry a name, to lay out nodes of two runs as one tree."""
    return [
        TraceSpan(0, 0, 0, "", name.count("."), name, at, 0, "clk=dev" if name in device else "")
        for at, name in enumerate(names)
    ]


def node_cells(change: Change) -> list[str]:
    """Baseline, candidate, relative change and verdict of a node."""
    shift = change.shift
    if shift is None:
        return ["", "", "", f"only in the {change.only}"]
    mark = shift.verdict if change.moved else ""
    return [f"{shift.baseline:.1f}us", f"{shift.candidate:.1f}us", percent(shift), mark]


def comparison_renderable(comparison: Comparison) -> RenderableType:
    """The same for a terminal, verdicts coloured."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [_styled(comparison.headline, bold=True)]
    parts += [Text("  ") + _styled(change) for change in (*comparison.ranks, *comparison.dispatches)]
    for group in dict.fromkeys(change.group for change in comparison.nodes):
        parts += [Text(), Text(f"nodes that moved ({group}):", style="bold")]
        for line in (moved_tree(comparison, group) or "  none").splitlines():
            word = line.rsplit(None, 1)[-1]
            parts.append(Text(line, style=STYLES.get(word, "default")))
    parts += [Text(f"warning: {warning}", style="yellow") for warning in comparison.warnings]
    return Group(*parts)


def _styled(change: Change, *, bold: bool = False) -> Text:
    from rich.text import Text

    colour = STYLES[change.shift.verdict] if change.shift else "yellow"
    return Text(sentence(change), style=f"bold {colour}" if bold else colour)

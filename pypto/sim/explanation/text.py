"""Explanations and differences as plain tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pypto.sim.explanation.difference import Change, Difference
from pypto.sim.explanation.explanation import Explanation

_PLACES: Final = 3  # named per class; the rest is one number
_LEAST_US: Final = 0.005  # what prints as 0.00

MEANING: Final = {
    "cube": "products on the cube",
    "vector": "arithmetic on the vector unit",
    "scalar": "issue of instructions, loops and addresses",
    "L1->L0": "operands on their way to the cube",
    "L0C->chip": "results of the cube moved within the core",
    "UB->chip": "tiles moved within the core",
    "GM->UB": "loads into UB that nothing hides",
    "GM->L1": "loads into L1 that nothing hides",
    "UB->GM": "stores from UB that nothing hides",
    "L0C->GM": "stores from the accumulator that nothing hides",
    "HBM": "transfers slowed down by others at HBM",
    "L2": "transfers slowed down by others at L2",
    "link": "transfers to and from other chips that nothing hides",
    "ranks": "waiting for signals of other ranks",
    "dependency": "latency between an instruction and the one that needs its result",
    "scheduler": "handing blocks to cores and noticing their ends",
    "orchestrator": "submitting tasks: fewer, larger ones or blocks of one SPMD task cost less",
}
"""What time of each class is spent on."""


def explanation_text(explanation: Explanation) -> str:
    """Headline, table of the critical path, tasks on it, busy pipes; no trailing newline."""
    timeline, classes = explanation.timeline, explanation.class_us()
    whole = timeline.effective_us
    bound = max(timeline.roofline, key=lambda name: timeline.roofline[name], default="")
    lines = [
        f"{timeline.name} on {timeline.chip}: effective {whole:.2f} us of {timeline.device_wall_us:.2f} us device wall"
        + (f"; {bound} alone needs {timeline.roofline_ns / 1000:.2f} us" if bound else "")
    ]
    rows = [
        (kind, f"{us:.2f}", f"{100 * us / whole:.1f}%", _places(explanation.place_us(kind)))
        for kind, us in classes.items()
        if us >= _LEAST_US
    ]
    lines += ["", *_table(("critical path", "us", "share", "where"), rows), ""]
    most = next(iter(classes), "")
    lines.append(f"most: {most}, {MEANING[most]}" if most else "no task on a core")
    lines += [f"tasks on the path: {_chain(explanation)}", f"pipes of the cores in use: {_busy(explanation)}"]
    return "\n".join(lines)


def difference_text(difference: Difference) -> str:
    """Headline, change per class, tasks on both paths; no trailing newline."""
    before, after, whole = difference.before, difference.after, difference.effective
    share = 100 * whole.change_us / whole.before_us if whole.before_us else 0.0
    verdict = "the same"
    if abs(whole.change_us) >= _LEAST_US:
        verdict = f"{abs(whole.change_us):.2f} us {'less' if whole.change_us < 0 else 'more'} ({share:+.1f}%)"
    lines = [
        f"{_title(before)} -> {_title(after)}: effective {whole.before_us:.2f} -> {whole.after_us:.2f} us, " + verdict
    ]
    rows = [
        (*_figures(change), _moved(difference.instructions(change.name)))
        for change in difference.classes()
        if max(change.before_us, change.after_us) >= _LEAST_US
    ]
    rows.append((*_figures(whole), ""))
    lines += ["", *_table(("critical path", "before", "after", "change", "where"), rows), ""]
    lines += [line for sign in (-1, 1) if (line := _largest(difference, sign))]
    lines += [f"tasks on the path before: {_chain(before)}", f"tasks on the path after:  {_chain(after)}"]
    return "\n".join(lines)


def _largest(difference: Difference, sign: int) -> str:
    """The class that gave (-1) or took (+1) most, in words; empty if none did to speak of."""
    change = max(difference.classes(), key=lambda change: sign * change.change_us, default=None)
    least = max(_LEAST_US, 0.01 * difference.effective.before_us)
    if change is None or sign * change.change_us < least:
        return ""
    return f"{'more' if sign > 0 else 'less'}: {change.name}, {MEANING[change.name]}"


def _title(explanation: Explanation) -> str:
    return f"{explanation.timeline.name} on {explanation.timeline.chip}"


def _figures(change: Change) -> tuple[str, str, str, str]:
    moved = round(change.change_us, 2) + 0.0  # no negative zero
    return change.name, f"{change.before_us:.2f}", f"{change.after_us:.2f}", f"{moved:+.2f}"


def _places(sums: Mapping[str, float]) -> str:
    """The places that take most of a class, each with its time."""
    shown = [(name, us) for name, us in sums.items() if us >= _LEAST_US]
    text = [f"{name} {us:.2f}".strip() for name, us in shown[:_PLACES]]
    if len(shown) > _PLACES:
        text.append(f"{len(shown) - _PLACES} more {sum(us for _, us in shown[_PLACES:]):.2f}")
    return ", ".join(text)


def _moved(changes: Sequence[Change]) -> str:
    shown = [change for change in changes if abs(change.change_us) >= _LEAST_US]
    return ", ".join(f"{change.name} {change.change_us:+.2f}".strip() for change in shown[:_PLACES])


def _chain(explanation: Explanation) -> str:
    """Names in order, runs of one name counted; a long chain by its ends."""
    names = [f"{name} x{count}" if count > 1 else name for name, count in explanation.path_tasks()]
    if len(names) > 8:
        names = [*names[:4], f"... {len(names) - 7} more ...", *names[-3:]]
    return " -> ".join(names) or "none"


def _busy(explanation: Explanation) -> str:
    """Share of the time of the cores that ran, per pipe that did something."""
    timeline = explanation.timeline
    busy = sorted(timeline.pipe_busy_us().items(), key=lambda item: -item[1])
    whole = sum(timeline.core_busy_us().values())
    shown = [f"{pipe} {100 * us / whole:.0f}%" for pipe, us in busy if whole and us >= 0.005 * whole]
    return ", ".join(shown) or "none"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """First and last column to the left, figures to the right."""
    table = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head) - 1)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:])), row[-1]]
        ).rstrip()
        for row in table
    ]

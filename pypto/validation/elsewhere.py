"""Families whose programs are not described well enough to write them again, row by row, with the reason."""

from __future__ import annotations

from .rows import Pair, Row
from .tables import Line, table

_VERSIONS = "a step of a model or a kernel of another code base, named by its commit; its program is not published"

# family: column of the figure, unit, columns that name the row, reason
_FAMILIES: dict[str, tuple[tuple[str, ...], str, tuple[str, ...], str]] = {
    "P1": (("after", "before"), "us", ("id", "workload", "metric"), _VERSIONS),
    "P2": (("after_us", "before_us"), "us", ("workload", "layers"), _VERSIONS),
    "P3": (("after_us", "before_us"), "us", ("workload", "note"), _VERSIONS),
}


def _number(text: str) -> float | None:
    """The first number of a cell such as ``295 / 6456`` or ``19.1-19.4``."""
    digits = ""
    for letter in text.strip():
        if not (letter.isdigit() or letter == "."):
            break
        digits += letter
    return float(digits) if digits else None


def _row(family: str, line: Line) -> Row | None:
    figures, unit, names, reason = _FAMILIES[family]
    published = next((n for n in (_number(line[c] or "") for c in figures) if n), None)
    case = ", ".join(line[c] for c in names if line[c])
    return None if published is None else Row(family, case, unit, published, reason=reason)


def rows() -> list[Row]:
    """One row per line of the tables."""
    found = (_row(family, line) for family in _FAMILIES for line in table(family))
    return [row for row in found if row is not None]


def pairs() -> list[Pair]:
    """Every line with a figure before and one after a change."""
    found = []
    for family in ("P1", "P2", "P3"):
        figures, _, names, reason = _FAMILIES[family]
        for line in table(family):
            before, after = _number(line[figures[1]] or ""), _number(line[figures[0]] or "")
            if before and after:
                case = ", ".join(line[c] for c in names if line[c])
                found.append(Pair(family, case, before, after, reason=reason))
    return found


def history_pairs() -> list[Pair]:
    """C1: versions of the fused GEMM with AllReduce, each against the one before it."""
    reason = "what the kernels of this version did differently is not published"
    found = []
    for a, b in zip(table("C1"), table("C1")[1:]):
        if a["platform"] == b["platform"] and "history" not in b["version"] or "history" in a["version"]:
            case = f"{a['version']} -> {b['version']} ({a['platform']})"
            found.append(Pair("C1", case, float(a["pipelined_us"]), float(b["pipelined_us"]), reason=reason))
    return found

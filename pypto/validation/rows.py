"""Rows of the validation page: a published figure beside the simulated one, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Use = Literal["fitted", "untouched"]


@dataclass(frozen=True)
class Row:
    """``use``: whether a constant of the model was chosen with this row in view. ``simulated`` is ``None`` when the row
    cannot be re-created; ``reason`` then says why. ``doubt``: why the published figure cannot be the time of the work
    it names; the row is simulated and counts all the same."""

    family: str
    case: str
    unit: str
    published: float
    simulated: float | None = None
    use: Use = "untouched"
    reason: str = ""
    doubt: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.simulated is None else self.simulated / self.published

    @property
    def error(self) -> float | None:
        """|simulated - published| / published."""
        return None if self.simulated is None else abs(self.simulated - self.published) / self.published


@dataclass(frozen=True)
class Pair:
    """A change somebody made and its effect: published and simulated, before and after, in one unit.

    ``reason`` says why a side that is ``None`` could not be re-created.
    """

    family: str
    case: str
    before: float
    after: float
    simulated_before: float | None = None
    simulated_after: float | None = None
    reason: str = ""

    @property
    def right(self) -> bool | None:
        """Whether the simulated change has the published sign; ``None`` when a side is missing."""
        if self.simulated_before is None or self.simulated_after is None:
            return None
        change = self.simulated_after - self.simulated_before
        return change * (self.after - self.before) > 0 or change == self.after - self.before == 0


@dataclass(frozen=True)
class Summary:
    """Mean absolute error of one family's fitted or untouched rows, and without those whose figure is in doubt.

    ``mean_error_undoubted`` is ``None`` when no figure is in doubt."""

    family: str
    use: str
    rows: int
    missing: int
    mean_error: float | None
    mean_error_undoubted: float | None = None


def summaries(rows: Iterable[Row]) -> list[Summary]:
    """Mean absolute error per family; fitted and untouched rows apart."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.family, row.use), []).append(row)
    found = []
    for (family, use), members in groups.items():
        errors = [row.error for row in members if row.error is not None]
        undoubted = [row.error for row in members if row.error is not None and not row.doubt]
        other = _mean(undoubted) if len(undoubted) < len(errors) else None
        found.append(Summary(family, use, len(errors), len(members) - len(errors), _mean(errors), other))
    return found


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def signs(pairs: Iterable[Pair]) -> tuple[int, int, int]:
    """How many changes come out with the right sign, with the wrong one, and how many are not re-created."""
    found = [pair.right for pair in pairs]
    return found.count(True), found.count(False), found.count(None)

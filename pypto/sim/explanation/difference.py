"""Two launches side by side: which waits became shorter, which longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pypto.sim.explanation.explanation import Explanation, explain
from pypto.sim.recording import Recording

if TYPE_CHECKING:
    import pandas
    from rich.console import RenderableType


class Change(NamedTuple):
    """Time on both critical paths, in us."""

    name: str
    before_us: float
    after_us: float

    @property
    def change_us(self) -> float:
        return self.after_us - self.before_us


@dataclass(frozen=True)
class Difference:
    """Two explained launches; ``print`` shows what the difference of their effective times is made of."""

    before: Explanation
    after: Explanation

    @property
    def effective(self) -> Change:
        """Both effective windows."""
        return Change("effective", self.before.timeline.effective_us, self.after.timeline.effective_us)

    def classes(self) -> list[Change]:
        """Change per class of the critical path, largest first; the changes add up to that of ``effective``."""
        return _changes(self.before.class_us(), self.after.class_us())

    def instructions(self, kind: str) -> list[Change]:
        """Change of a class per instruction or phase, largest first."""
        return _changes(self.before.instruction_us(kind), self.after.instruction_us(kind))

    def to_pandas(self) -> pandas.DataFrame:
        """One row per class: name, before_us, after_us, change_us."""
        import pandas as pd

        rows = [(*change, change.change_us) for change in self.classes()]
        return pd.DataFrame(rows, columns=["name", "before_us", "after_us", "change_us"])

    def __str__(self) -> str:
        from pypto.sim.explanation.text import difference_text

        return difference_text(self)

    def __rich__(self) -> RenderableType:
        from rich.text import Text

        return Text(str(self), no_wrap=True, overflow="ellipsis")

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def compare(before: Recording | Explanation, after: Recording | Explanation) -> Difference:
    """Why ``after`` is faster or slower than ``before``.

    Recordings are timed on the chip they were made for, with cold caches; ``explain`` first for another chip or state.
    """
    return Difference(*(one if isinstance(one, Explanation) else explain(one) for one in (before, after)))


def _changes(before: dict[str, float], after: dict[str, float]) -> list[Change]:
    names = dict.fromkeys((*before, *after))
    changes = [Change(name, before.get(name, 0.0), after.get(name, 0.0)) for name in names]
    return sorted(changes, key=lambda change: -abs(change.change_us))

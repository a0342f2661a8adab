"""Two runs side by side: headline, ranks, dispatches and span nodes, each with a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pypto.perf.metrics import RoundMetric
from pypto.perf.profile import RunProfile
from pypto.perf.shift import Shift, shift_between
from pypto.perf.stats import BenchmarkStats

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

Part = Literal["round", "rank", "dispatch", "node"]
MOVED = 0.005
"""A node counts as moved when its verdict is clear and it moved by at least this share of its baseline."""


@dataclass(frozen=True)
class Change:
    """One series in both runs, in us; ``shift`` is None when only one run has it (``only`` says which)."""

    part: Part
    label: str
    shift: Shift | None
    only: Literal["baseline", "candidate"] | None = None
    group: str = ""

    @property
    def moved(self) -> bool:
        """Clearly and noticeably different, or present in one run only."""
        if self.shift is None:
            return True
        return self.shift.verdict in ("slower", "faster") and abs(self.shift.relative) >= MOVED


@dataclass(frozen=True)
class Comparison:
    """Candidate against baseline for one metric."""

    metric: RoundMetric
    headline: Change
    ranks: list[Change] = field(default_factory=list)
    dispatches: list[Change] = field(default_factory=list)
    nodes: list[Change] = field(default_factory=list)
    device_nodes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def changes(self) -> list[Change]:
        return [self.headline, *self.ranks, *self.dispatches, *self.nodes]

    def regressed(self, fail_over: float = 0.0) -> bool:
        """Whether the headline is clearly slower, by more than the given share of the baseline."""
        shift = self.headline.shift
        return shift is not None and shift.verdict == "slower" and shift.relative > fail_over

    def __str__(self) -> str:
        from pypto.perf.comparison_text import comparison_text

        return comparison_text(self)

    def __rich__(self) -> RenderableType:
        from pypto.perf.comparison_text import comparison_renderable

        return comparison_renderable(self)

    def to_pandas(self) -> pd.DataFrame:
        """One row per series: ``part group label``, medians, shift and interval in us, ``relative``, ``verdict``."""
        import pandas as pd

        columns = ["part", "group", "label", "baseline_us", "candidate_us", "shift_us", "low_us", "high_us", "relative"]
        rows = [
            (c.part, c.group, c.label, s.baseline, s.candidate, s.shift, s.low, s.high, s.relative, s.verdict)
            if (s := c.shift) is not None
            else (c.part, c.group, c.label, *[float("nan")] * 6, f"only in {c.only}")
            for c in self.changes
        ]
        return pd.DataFrame(rows, columns=[*columns, "verdict"])


def compare(
    baseline: BenchmarkStats | RunProfile,
    candidate: BenchmarkStats | RunProfile,
    metric: RoundMetric = "device",
    *,
    confidence: float = 0.95,
) -> Comparison:
    """Compare two runs of the same program.

    Args:
        metric: series of the headline, ranks and dispatches (``union`` has no ranks and dispatches). Nodes are always
            compared by their own durations.
        confidence: of the intervals, between 0 and 1.

    Raises:
        TypeError: a run is neither statistics nor a profile.
        ValueError: a run has no such series, or the confidence is out of range.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    base, cand = _profile(baseline), _profile(candidate)
    for name, run in (("baseline", base), ("candidate", cand)):
        if metric not in run.rounds_us:
            raise ValueError(f"{name} has no {metric!r} series per round; it has {sorted(run.rounds_us) or 'none'}")
    headline = shift_between(base.rounds_us[metric], cand.rounds_us[metric], confidence=confidence)
    nodes = [
        change
        for group in _either(base.nodes_ns, cand.nodes_ns)
        for change in _changes(
            "node", _us(base.nodes_ns.get(group, {})), _us(cand.nodes_ns.get(group, {})), confidence, group
        )
    ]
    return Comparison(
        metric,
        Change("round", f"{metric} per round", headline),
        _changes("rank", base.ranks_us.get(metric, {}), cand.ranks_us.get(metric, {}), confidence),
        _changes("dispatch", base.dispatches_us.get(metric, {}), cand.dispatches_us.get(metric, {}), confidence),
        nodes,
        sorted({*base.device_nodes, *cand.device_nodes}),
        [
            *(f"{name}: {w}" for name, run in (("baseline", base), ("candidate", cand)) for w in run.warnings),
            *_unequal_ranks(base.ranks_us.get(metric, {}), cand.ranks_us.get(metric, {})),
        ],
    )


def _unequal_ranks(base: Mapping[str, object], cand: Mapping[str, object]) -> list[str]:
    """A log names processes, not ranks: they are matched in ascending order, which a lost one shifts."""
    if not base or not cand or len(base) == len(cand):
        return []
    return [f"baseline has {len(base)} ranks, candidate {len(cand)}: rows of ranks may be of different ranks"]


def _profile(run: BenchmarkStats | RunProfile) -> RunProfile:
    if isinstance(run, (BenchmarkStats, RunProfile)):
        return RunProfile.of(run) if isinstance(run, BenchmarkStats) else run
    raise TypeError(f"cannot compare {type(run).__name__}: expected BenchmarkStats or RunProfile")


def _either(first: Mapping[str, object], second: Mapping[str, object]) -> list[str]:
    return [*first, *(key for key in second if key not in first)]


def _us(series: Mapping[str, Sequence[int]]) -> dict[str, list[float]]:
    return {name: [ns / 1000 for ns in values] for name, values in series.items()}


def _changes(
    part: Part,
    base: Mapping[str, Sequence[float]],
    cand: Mapping[str, Sequence[float]],
    confidence: float,
    group: str = "",
) -> list[Change]:
    changes = []
    for label in _either(base, cand):
        if label not in base or label not in cand:
            changes.append(Change(part, label, None, "baseline" if label in base else "candidate", group))
        else:
            shift = shift_between(base[label], cand[label], confidence=confidence)
            changes.append(Change(part, label, shift, None, group))
    return changes

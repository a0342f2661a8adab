"""How far one series lies from another: Hodges-Lehmann shift with a distribution-free interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

Verdict = Literal["slower", "faster", "same", "unclear"]
LONGEST = 800
"""Longer series are thinned evenly, so that all pairs fit into memory."""


@dataclass(frozen=True)
class Shift:
    """Candidate minus baseline, in the unit of the series.

    ``shift`` is the median of all pairwise differences; ``low`` and ``high`` enclose it with ``confidence``, whatever
    the distribution. ``exact`` marks two series without any spread, where the difference is no estimate.
    ``dominance`` is Cliff's delta: +1 when every candidate value lies above every baseline value.
    """

    baseline: float
    candidate: float
    shift: float
    low: float
    high: float
    confidence: float
    wanted: float
    dominance: float
    exact: bool
    counts: tuple[int, int]

    @property
    def relative(self) -> float:
        """Shift as a share of the baseline's median; infinite when something appeared out of nothing."""
        if self.baseline:
            return self.shift / self.baseline
        return math.inf * np.sign(self.shift) if self.shift else 0.0

    @property
    def verdict(self) -> Verdict:
        """``same``: the interval holds 0; ``unclear``: there is a shift, but too few values to be sure of anything."""
        if self.shift and not self.exact and self.confidence < self.wanted:
            return "unclear"
        if self.low <= 0 <= self.high:
            return "same"
        return "slower" if self.shift > 0 else "faster"


def shift_between(baseline: Sequence[float], candidate: Sequence[float], *, confidence: float = 0.95) -> Shift:
    """Compare two series that are not empty.

    Raises:
        ValueError: a series is empty.
    """
    if not len(baseline) or not len(candidate):
        raise ValueError(f"nothing to compare: {len(baseline)} baseline values, {len(candidate)} candidate values")
    base, cand = _thin(np.asarray(baseline, float)), _thin(np.asarray(candidate, float))
    medians = float(np.median(baseline)), float(np.median(candidate))
    counts = (len(baseline), len(candidate))
    if np.ptp(base) == 0 and np.ptp(cand) == 0:
        difference = float(cand[0] - base[0])
        return Shift(
            *medians, difference, difference, difference, 1.0, confidence, float(np.sign(difference)), True, counts
        )
    differences = np.sort(np.subtract.outer(cand, base).ravel())
    rank, reached = interval_rank(len(base), len(cand), confidence)
    dominance = float(np.sign(differences).mean())
    low, high = float(differences[rank]), float(differences[len(differences) - 1 - rank])
    return Shift(*medians, float(np.median(differences)), low, high, reached, confidence, dominance, False, counts)


def interval_rank(m: int, n: int, confidence: float) -> tuple[int, float]:
    """How many ordered pairwise differences to leave out at either end, and the confidence that gives.

    The normal approximation of the rank-sum distribution; with few values the whole range is taken and its exact
    confidence ``1 - 2 / C(m + n, n)`` returned.
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rank = math.floor(m * n / 2 - z * math.sqrt(m * n * (m + n + 1) / 12))
    if rank >= 1:
        return rank, confidence
    return 0, 1 - 2 / math.comb(m + n, n)


def _thin(values: np.ndarray) -> np.ndarray:
    if len(values) <= LONGEST:
        return values
    return values[np.linspace(0, len(values) - 1, LONGEST).round().astype(int)]

"""Is a series steady? How many launches were still warming up? (distribution-free, no assumption of noise)"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

DRIFT_SIGNIFICANCE = 0.01
DRIFT_EFFECT = 0.01
"""A drift counts when it is significant and moves the series by at least this share of its median."""


@dataclass(frozen=True)
class SteadyState:
    """Verdict on a series of launches.

    ``advised`` launches should have been dropped (``dropped`` were); ``drift_us`` is how far the fitted trend moves
    over the launches after that, with ``p_value`` of the Mann-Kendall test.
    """

    launches: int
    dropped: int
    advised: int
    drift_us: float
    p_value: float
    median_us: float

    @property
    def drifting(self) -> bool:
        """Whether the rest still drifts: significantly, and by a share of the median that matters."""
        return self.p_value < DRIFT_SIGNIFICANCE and abs(self.drift_us) >= DRIFT_EFFECT * abs(self.median_us)

    def sentence(self) -> str:
        """The verdict in plain words."""
        if self.launches < 4:
            return f"steady state: not judged, {self.launches} launches are too few"
        if self.drifting:
            return (
                f"steady state: still drifting after {self.advised} launches, by {self.drift_us:+.1f} us over the rest "
                f"(p={self.p_value:.2g}); take more warm-up or read the trend"
            )
        if self.advised > self.dropped:
            return f"steady state: drop {self.advised} launches instead of {self.dropped}, then it is steady"
        return f"steady state: steady after {self.advised} launches ({self.dropped} dropped)"


def steady_state(series: Sequence[float], dropped: int) -> SteadyState:
    """Judge a series in us whose first ``dropped`` launches were warm-up.

    The number to drop minimises the marginal standard error of the mean (MSER): dropping pays while what is dropped
    lies further off than the noise of what is kept.
    """
    values = np.asarray(series, float)
    if len(values) < 4:
        return SteadyState(len(values), dropped, dropped, 0.0, 1.0, float(np.median(values)) if len(values) else 0.0)
    advised = truncation_point(values)
    rest = values[max(advised, min(dropped, len(values) - 4)) :]
    slope, p_value = trend(rest)
    return SteadyState(len(values), dropped, advised, slope * (len(rest) - 1), p_value, float(np.median(rest)))


def truncation_point(values: np.ndarray) -> int:
    """How many leading values to drop: the minimum of the marginal standard error over the first half."""
    kept = np.arange(len(values), 0, -1)
    centred = values - values[-1]
    sums = np.cumsum(centred[::-1])[::-1]
    squares = np.cumsum(centred[::-1] ** 2)[::-1]
    marginal = np.maximum(squares - sums**2 / kept, 0.0) / kept.astype(float) ** 2
    half = len(values) // 2 + 1
    scale = float(np.max(np.abs(centred))) or 1.0
    flat = marginal[:half] <= 1e-15 * scale**2
    point = int(np.argmax(flat)) if flat.any() else int(np.argmin(marginal[:half]))
    return settling_point(values, point)


def settling_point(values: np.ndarray, point: int) -> int:
    """The first of ``values[:point]`` that lies where nine in ten of the kept ones do: noise must not cost launches."""
    low, high = np.quantile(values[point:], (0.05, 0.95))
    settled = (values[:point] >= low) & (values[:point] <= high)
    return int(np.argmax(settled)) if settled.any() else point


def trend(values: np.ndarray, limit: int = 1000) -> tuple[float, float]:
    """Theil-Sen slope per launch and two-sided p of the Mann-Kendall test; long series are thinned to ``limit``."""
    step = max(1, math.ceil(len(values) / limit))
    thin = values[::step]
    n = len(thin)
    if n < 3:
        return 0.0, 1.0
    first, second = np.triu_indices(n, 1)
    rises = thin[second] - thin[first]
    score = float(np.sign(rises).sum())
    _, ties = np.unique(thin, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance <= 0:
        return 0.0, 1.0
    z = (score - np.sign(score)) / math.sqrt(variance)
    slope = float(np.median(rises / (second - first))) / step
    return slope, math.erfc(abs(z) / math.sqrt(2))


def quantiles(series: Sequence[float], q: Sequence[float]) -> dict[float, float]:
    """Linear quantiles; empty for an empty series."""
    if not series:
        return {}
    return dict(zip(q, np.quantile(np.asarray(series, float), q).tolist()))

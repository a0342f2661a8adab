"""Plots of a benchmark with matplotlib."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from pypto.perf.metrics import RoundMetric
from pypto.perf.stats import BenchmarkStats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_stats(stats: BenchmarkStats, metric: RoundMetric = "device") -> Figure:
    """Series per round (every rank beside the headline) and its distribution.

    Raises:
        ImportError: matplotlib is not installed (extra ``plot``).
        ValueError: an unknown metric, or no samples.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("stats.plot() needs matplotlib: pip install 'pypto[plot]'") from None
    series = stats.per_round(metric)
    if not series:
        raise ValueError(f"nothing to plot: no {metric!r} samples per round")
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 1), sharey=True)
    _draw_series(left, stats, metric, series)
    right.boxplot(series, widths=0.6)
    right.set_xticks([1], [f"n={len(series)}"])
    figure.suptitle(f"{metric} per round, us (warm-up {stats.warmup} excluded)")
    return figure


def _draw_series(axes: Axes, stats: BenchmarkStats, metric: RoundMetric, series: list[float]) -> None:
    ranks = stats.per_rank(metric) if metric != "union" and metric != "device_span" else {}
    for pid, values in ranks.items():
        axes.plot(range(len(values)), values, linewidth=0.8, alpha=0.6, label=f"rank pid={pid}")
    axes.plot(range(len(series)), series, marker=".", linewidth=1.4, label="headline")
    axes.axhline(median(series), linestyle=":", linewidth=0.8, color="grey")
    axes.set_xlabel("round")
    axes.set_ylabel("us")
    if ranks:
        axes.legend(fontsize="small")

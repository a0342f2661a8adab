"""``BenchmarkStats``: what a benchmark measured, per round, rank and dispatch (``profiling.md`` 3.5)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, get_args

from pypto.perf.aggregate import NodeStats, node_stats
from pypto.perf.metrics import (
    METRICS,
    Dispatch,
    DispatchCell,
    Metric,
    RankSpread,
    RoundMetric,
    Spread,
    chunk_sums,
    device_span_us,
    metric_of,
    union_us,
)
from pypto.perf.source import Source
from pypto.perf.span import TableInvocation, TraceInvocation
from pypto.perf.strace import read_strace
from pypto.perf.table import SpanTable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from pypto.perf.rounds import Cut
    from pypto.perf.steady import SteadyState


@dataclass(eq=False)
class BenchmarkStats:
    """Samples of a benchmark; every time is in microseconds (``profiling.md`` 3.5).

    ``warnings`` holds plain sentences about anything odd in the log and is empty when nothing is.
    ``simulation_wall_us`` is what the launches cost to simulate (one value per launch), None for a real log.
    """

    device_wall_us: list[float] = field(default_factory=list)
    host_wall_us: list[float] = field(default_factory=list)
    rounds: int = 0
    warmup: int = 0
    invocations: list[TraceInvocation] = field(default_factory=list, repr=False)
    rounds_dispatches: list[dict[int, list[TraceInvocation]]] = field(default_factory=list, repr=False)
    fallback_flattened: bool = False
    unstable_dispatch_slots: bool = False
    warnings: list[str] = field(default_factory=list)
    simulation_wall_us: list[float] | None = None
    warmup_invocations: list[TraceInvocation] = field(default_factory=list, repr=False)
    cells: list[DispatchCell] = field(default_factory=list, repr=False)
    table: SpanTable | None = field(default=None, repr=False)

    @classmethod
    def from_strace(
        cls,
        source: Source | SpanTable,
        *,
        rounds: int,
        warmup: int,
        distributed: bool = False,
        task_names: Mapping[str, str] | None = None,
        simulation_wall_us: Sequence[float] | None = None,
    ) -> BenchmarkStats:
        """Statistics of a log of ``warmup + rounds`` launches (``profiling.md`` 3.2).

        Args:
            source: anything :func:`read_strace` takes, or a table it returned.
            rounds: measured launches, at least 1.
            warmup: launches to drop in front of them.
            distributed: cut the launches of every rank into rounds (L3) instead of taking the busiest callable (L2).
            task_names: display names by hid, for callables whose name the caller knows; case does not matter.
            simulation_wall_us: real time each launch took to simulate, kept apart from everything measured.

        Raises:
            ValueError: ``rounds`` is not positive or ``warmup`` is negative.
        """
        from pypto.perf.from_strace import stats_of_table

        if rounds <= 0:
            raise ValueError(f"rounds must be positive, got {rounds}")
        if warmup < 0:
            raise ValueError(f"warmup must be non-negative, got {warmup}")
        table = source if isinstance(source, SpanTable) else read_strace(source)
        names = {hid.lower(): name for hid, name in (task_names or {}).items()}
        stats = stats_of_table(table, rounds=rounds, warmup=warmup, distributed=distributed, task_names=names)
        stats.simulation_wall_us = None if simulation_wall_us is None else list(simulation_wall_us)
        return stats

    # --- aggregates over the headline series ---------------------------------------------------------------------

    @property
    def samples(self) -> list[float]:
        """The very list ``device_wall_us``."""
        return self.device_wall_us

    @property
    def device_us_min(self) -> float:
        return min(self.device_wall_us, default=0.0)

    @property
    def device_us_max(self) -> float:
        return max(self.device_wall_us, default=0.0)

    @property
    def device_us_mean(self) -> float:
        return statistics.fmean(self.device_wall_us) if self.device_wall_us else 0.0

    @property
    def device_us_median(self) -> float:
        return statistics.median(self.device_wall_us) if self.device_wall_us else 0.0

    @property
    def device_us_stdev(self) -> float:
        """Sample standard deviation (n - 1); 0.0 below two samples."""
        return statistics.stdev(self.device_wall_us) if len(self.device_wall_us) > 1 else 0.0

    device_wall_us_min = device_us_min
    device_wall_us_max = device_us_max
    device_wall_us_mean = device_us_mean
    device_wall_us_median = device_us_median
    device_wall_us_stdev = device_us_stdev

    @property
    def all_zero_device(self) -> bool:
        """Samples exist and all are 0: a ``*sim`` platform, or a runtime built without device markers."""
        return bool(self.device_wall_us) and not any(self.device_wall_us)

    def quantiles(
        self, metric: RoundMetric = "device", q: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
    ) -> dict[float, float]:
        """Quantiles of the per-round series in us, linear between samples; empty without samples."""
        from pypto.perf.steady import quantiles

        return quantiles(self.per_round(metric), q)

    def steady_state(self, metric: Metric = "device") -> SteadyState:
        """Whether the series still drifts after warm-up, and how many launches should have been dropped.

        Warm-up launches are judged too: the first ``warmup`` values of the series are theirs.
        """
        from pypto.perf.steady import steady_state

        measured = self.per_round(metric)
        return steady_state([*self._warmup_series(metric), *measured], len(self._warmup_series(metric)))

    def _warmup_series(self, metric: Metric) -> list[float]:
        value = METRICS[metric]
        if not self.rounds_dispatches:
            return [value(inv) for inv in self.warmup_invocations] if not self.fallback_flattened else []
        streams: dict[int, list[float]] = {}
        for inv in self.warmup_invocations:
            streams.setdefault(inv.pid, []).append(value(inv))
        sums = [chunk_sums(stream, self.warmup) for stream in streams.values()]
        return [max(values) for values in zip(*sums)]

    # --- views -----------------------------------------------------------------------------------------------------

    def dispatch_groups(self) -> dict[Dispatch, list[TraceInvocation]]:
        """Invocations of every (pid, slot), one per round; empty without a grid or with unstable slots."""
        return {} if self.unstable_dispatch_slots else self._slots()

    def dispatch_tasks(self) -> dict[Dispatch, str]:
        """Display name of the callable behind every (pid, slot)."""
        return {key: invocations[0].task_name for key, invocations in self.dispatch_groups().items()}

    def per_dispatch(self, metric: Metric = "device") -> dict[Dispatch, list[float]]:
        """us per round for every (pid, slot), nothing summed.

        Raises:
            ValueError: the metric is none of device, effective, host.
        """
        value = metric_of("per_dispatch", metric)
        return {key: [value(inv) for inv in group] for key, group in self.dispatch_groups().items()}

    def per_rank(self, metric: Metric = "device") -> dict[int, list[float]]:
        """us per round for every rank, its dispatches summed; valid with unstable slots too.

        Raises:
            ValueError: the metric is none of device, effective, host.
        """
        value = metric_of("per_rank", metric)
        pids = sorted({pid for parts in self.rounds_dispatches for pid in parts})
        return {
            pid: [float(sum(value(inv) for inv in parts.get(pid, ()))) for parts in self.rounds_dispatches]
            for pid in pids
        }

    def per_callable(self, metric: Metric = "device") -> dict[tuple[int, str], list[float]]:
        """us per round for every (pid, task), summed over the dispatches of that callable.

        Needs no stable slots: this is the series to read when the order of dispatches varies.

        Raises:
            ValueError: the metric is none of device, effective, host.
        """
        value = metric_of("per_callable", metric)
        series: dict[tuple[int, str], list[float]] = {}
        for k, parts in enumerate(self.rounds_dispatches):
            for pid, group in parts.items():
                for inv in group:
                    row = series.setdefault((pid, inv.task_name), [0.0] * len(self.rounds_dispatches))
                    row[k] += value(inv)
        return dict(sorted(series.items()))

    def per_round(self, metric: RoundMetric = "device") -> list[float]:
        """One value per round in us.

        ``device``, ``host``: the stored series. ``effective``: the slowest rank's sum. ``union``: from the first
        start to the last end of all ranks' roots on the host clock, empty on one chip. ``device_span``: likewise from
        the first start to the last end of all device walls, on one clock; 0.0 where the log does not place them.

        Raises:
            ValueError: an unknown metric.
        """
        if metric == "device":
            return list(self.device_wall_us)
        if metric == "host":
            return list(self.host_wall_us)
        if metric == "effective":
            if not self.rounds_dispatches:
                return [inv.effective_us for inv in self.invocations]
            return [max(values) for values in zip(*self.per_rank("effective").values())]
        if metric == "union":
            return [union_us(parts) for parts in self.rounds_dispatches]
        if metric == "device_span":
            return [device_span_us(parts) for parts in self.rounds_dispatches]
        raise ValueError(f"per_round(): unknown metric {metric!r}; use one of {', '.join(get_args(RoundMetric))}")

    def rank_spread(self, metric: Metric = "device") -> list[RankSpread]:
        """Per round: slowest rank, fastest rank and the skew between them; empty without a grid."""
        ranks = self.per_rank(metric)
        spreads = []
        for k in range(len(self.rounds_dispatches)):
            values = {pid: series[k] for pid, series in ranks.items()}
            slow, fast = max(values, key=lambda pid: values[pid]), min(values, key=lambda pid: values[pid])
            spreads.append(RankSpread(k, slow, values[slow], fast, values[fast]))
        return spreads

    def _slots(self) -> dict[Dispatch, list[TraceInvocation]]:
        slots: dict[Dispatch, list[TraceInvocation]] = {}
        for parts in self.rounds_dispatches:
            for pid, group in parts.items():
                for slot, inv in enumerate(group):
                    slots.setdefault((pid, slot), []).append(inv)
        return dict(sorted(slots.items()))

    # --- trees -----------------------------------------------------------------------------------------------------

    def mean_invocation(self, *, pid: int | None = None, slot: int | None = None) -> TraceInvocation | None:
        """A synthetic launch (``inv=-1``): every span name with its mean ``ts`` and ``dur``, rounded to whole ns.

        Raises:
            ValueError: the selectors match more than one dispatch.
        """
        if self.unstable_dispatch_slots:
            return None
        groups = self.mean_groups(pid=pid, slot=slot)
        if len(groups) > 1:
            keys = sorted(key for key, _ in groups if key is not None)
            raise ValueError(f"{len(groups)} dispatches match pid={pid} slot={slot}; choose one of {keys}")
        nodes = node_stats(groups[0][1]) if groups else []
        if not nodes:
            return None
        first = groups[0][1][0]
        return TraceInvocation(first.pid, -1, first.hid, [node.span for node in nodes], display_name=first.display_name)

    def mean_groups(
        self, *, pid: int | None = None, slot: int | None = None
    ) -> list[tuple[Dispatch | None, list[TraceInvocation]]]:
        """What a mean tree is drawn of: every matching (pid, slot), or one unlabelled group of all launches."""
        if self.rounds_dispatches:
            return [
                (key, group) for key, group in self._slots().items() if pid in (None, key[0]) and slot in (None, key[1])
            ]
        if pid is not None or slot is not None or not self.invocations:
            return []
        return [(None, self.invocations)]

    def mean_nodes(self, *, pid: int | None = None, slot: int | None = None) -> list[NodeStats]:
        """Statistics of every span node of the matching launches taken together."""
        groups = self.mean_groups(pid=pid, slot=slot)
        return node_stats([inv for _, group in groups for inv in group])

    def format_tree(self, launch: int | None = None, *, us: bool = True) -> str:
        """Span trees of one launch or of all, in the plain layout of 3.6.

        Raises:
            IndexError: ``launch`` is out of range.
        """
        from pypto.perf.stats_text import launch_trees

        return launch_trees(self, launch, us=us)

    def format_mean_tree(
        self, *, us: bool = True, spread: Spread = "stdev", pid: int | None = None, slot: int | None = None
    ) -> str:
        """Mean trees in the plain layout of 3.7, one per dispatch on several ranks."""
        from pypto.perf.stats_text import mean_trees

        return mean_trees(self, us=us, spread=spread, pid=pid, slot=slot)

    def print_tree(self, launch: int | None = None, *, us: bool = True, file: IO[str] | None = None) -> None:
        """Print launch trees: aligned and coloured on a terminal, the exact plain layout anywhere else."""
        from pypto.perf.rich_tree import launch_renderable, print_either

        print_either(lambda: launch_renderable(self, launch, us=us), lambda: self.format_tree(launch, us=us), file)

    def print_mean_tree(
        self,
        *,
        us: bool = True,
        spread: Spread = "stdev",
        pid: int | None = None,
        slot: int | None = None,
        file: IO[str] | None = None,
    ) -> None:
        """Print mean trees: aligned and coloured on a terminal, the exact plain layout anywhere else."""
        from pypto.perf.rich_tree import mean_renderable, print_either

        print_either(
            lambda: mean_renderable(self, us=us, spread=spread, pid=pid, slot=slot),
            lambda: self.format_mean_tree(us=us, spread=spread, pid=pid, slot=slot),
            file,
        )

    # --- other media -----------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        from pypto.perf.stats_text import summary_line

        return summary_line(self)

    def __rich__(self) -> RenderableType:
        from pypto.perf.rich_tree import stats_renderable

        return stats_renderable(self)

    def _repr_html_(self) -> str:
        from pypto.perf.tree_html import stats_html

        return stats_html(self)

    def to_pandas(self) -> pd.DataFrame:
        """One row per dispatch: ``round rank slot task device_us host_us effective_us inv hid``.

        A dispatch whose records were lost keeps its row with ``nan``; so does a single lost value.
        """
        from pypto.perf.frame import dispatch_frame

        return dispatch_frame(self)

    def nodes_to_pandas(self, *, pid: int | None = None, slot: int | None = None) -> pd.DataFrame:
        """One row per dispatch and span node with ``count`` of ``launches``, mean, stdev, min and max in us."""
        from pypto.perf.frame import node_frame

        return node_frame(self, pid=pid, slot=slot)

    def plot(self, metric: RoundMetric = "device") -> Figure:
        """Series per round and its distribution, with matplotlib (extra ``plot``).

        Raises:
            ImportError: matplotlib is not installed.
        """
        from pypto.perf.plot import plot_stats

        return plot_stats(self, metric)


def invocations_of(cut: Cut, task_names: Mapping[str, str]) -> dict[int, TraceInvocation]:
    """Invocation objects of a cut's launches by launch number."""
    table = cut.groups.table
    names = [task_names.get(hid) for hid in table.hids]
    return {
        g: TableInvocation(table, cut.groups.of(g), display_name=names[table.hid[cut.groups.of(g)[0]]])
        for g in [*cut.warm, *cut.measured]
    }

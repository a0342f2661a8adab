"""Metrics of a launch and of a round, and the small records that statistics are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pypto.perf.span import TraceInvocation

Metric = Literal["device", "host", "effective"]
RoundMetric = Literal["device", "host", "effective", "union", "device_span"]
Spread = Literal["stdev", "minmax", "both", "none"]
Dispatch = tuple[int, int]
"""(pid, slot)"""

METRICS: dict[str, Callable[[TraceInvocation], float]] = {
    "device": lambda inv: inv.device_wall_us,
    "effective": lambda inv: inv.effective_us,
    "host": lambda inv: inv.host_wall_us,
}


@dataclass(frozen=True)
class RankSpread:
    """One round across ranks, in us: the rank that bounds it, the fastest one, and the skew between them."""

    round: int
    slowest_pid: int
    max_us: float
    fastest_pid: int
    min_us: float

    @property
    def skew_us(self) -> float:
        return self.max_us - self.min_us


@dataclass
class DispatchCell:
    """A dispatch that there should be: ``invocation`` is None where its records were lost."""

    round: int | None
    pid: int
    slot: int | None
    invocation: TraceInvocation | None


def metric_of(method: str, metric: str) -> Callable[[TraceInvocation], float]:
    """The value of a metric on one launch, in us.

    Raises:
        ValueError: no such metric; the message names the method that was asked.
    """
    if metric not in METRICS:
        raise ValueError(f"{method}(): metric must be one of {sorted(METRICS)}, got {metric!r}")
    return METRICS[metric]


def union_us(parts: Mapping[int, Sequence[TraceInvocation]]) -> float:
    """From the first start to the last end of all ranks' roots of a round, on the host clock."""
    roots = [inv.by_name().get(inv.run_names.run) for group in parts.values() for inv in group]
    found = [root for root in roots if root is not None]
    if not found:
        return 0.0
    return (max(root.end for root in found) - min(root.ts for root in found)) / 1000.0


def device_span_us(parts: Mapping[int, Sequence[TraceInvocation]]) -> float:
    """From the first device start to the last device end of all ranks of a round, on one clock.

    Device walls say where they stand on the host clock in the attribute ``mono`` (ns). Logs of hardware runs do not
    have it, as their device clocks have no anchor: 0.0.
    """
    walls = [inv.by_name().get(inv.run_names.wall) for group in parts.values() for inv in group]
    placed = [
        (start, start + wall.dur)
        for wall in walls
        if wall is not None and (start := _placed_ns(wall.attrs)) is not None
    ]
    if not placed:
        return 0.0
    return (max(end for _, end in placed) - min(start for start, _ in placed)) / 1000.0


def _placed_ns(attrs: str) -> int | None:
    """The ``mono`` attribute of a span, ``None`` when there is none that is a number."""
    for part in attrs.split():
        key, _, value = part.partition("=")
        if key == "mono" and value.isdigit():
            return int(value)
    return None


def chunk_sums(values: Sequence[float], chunks: int) -> list[float]:
    """Sums over equal parts of a series; what is left over at the end is not counted."""
    size = len(values) // chunks if chunks else 0
    return [sum(values[k * size : (k + 1) * size]) for k in range(chunks)]

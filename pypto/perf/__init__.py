"""Profiling: from a log of ``[STRACE]`` markers to statistics, trees, frames and timelines.

Needs nothing from the simulator: everything shown for a simulated run can be shown for a log of a real card.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.perf.comparison import Comparison, compare
    from pypto.perf.span import TraceInvocation, TraceSpan
    from pypto.perf.stats import BenchmarkStats
    from pypto.perf.strace import read_strace
    from pypto.perf.table import ClockAnchor, SpanTable

_HOME = {
    "BenchmarkStats": "stats",
    "ClockAnchor": "table",
    "Comparison": "comparison",
    "SpanTable": "table",
    "TraceInvocation": "span",
    "TraceSpan": "span",
    "compare": "comparison",
    "read_strace": "strace",
}

__all__ = [
    "BenchmarkStats",
    "ClockAnchor",
    "Comparison",
    "SpanTable",
    "TraceInvocation",
    "TraceSpan",
    "compare",
    "read_strace",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pypto.perf' has no attribute {name!r}")
    return getattr(import_module(f"pypto.perf.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Writes a run in other formats: csv, parquet, the profile as json, a Perfetto trace."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from pypto.perf.host_trace import host_trace
from pypto.perf.profile import RunProfile
from pypto.perf.stats import BenchmarkStats
from pypto.perf.table import SpanTable

Format = Literal["csv", "parquet", "json", "perfetto"]
FORMATS: tuple[str, ...] = get_args(Format)
_BY_SUFFIX: dict[str, Format] = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json"}


class ExportError(ValueError):
    """A format that cannot be told or written."""


def format_of(path: Path, wanted: Format | None) -> Format:
    """The format asked for, else the one of the suffix.

    Raises:
        ExportError: neither tells.
    """
    if wanted is not None:
        return wanted
    if path.name.endswith((".perfetto.json", ".trace.json")):
        return "perfetto"
    if path.suffix not in _BY_SUFFIX:
        raise ExportError(f"{path}: which format? Give one of {', '.join(FORMATS)}, or a suffix that tells")
    return _BY_SUFFIX[path.suffix]


def export_run(stats: BenchmarkStats, path: Path, wanted: Format | None = None, *, spans: bool = False) -> Format:
    """Write a run.

    Args:
        spans: one row per span instead of one per dispatch (csv and parquet).

    Raises:
        ExportError: the format cannot be told, has no rows for ``spans``, or parquet is asked for without pyarrow.
        TraceCheckError: the trace would be drawn wrongly.
    """
    chosen = format_of(path, wanted)
    if spans and chosen not in ("csv", "parquet"):
        raise ExportError(f"{path}: rows per span exist as csv and parquet only, not as {chosen}")
    if chosen == "json":
        RunProfile.of(stats).write(path)
    elif chosen == "perfetto":
        host_trace(_table(stats)).document.write(path)
    else:
        frame = _table(stats).to_pandas() if spans else stats.to_pandas()
        if chosen == "csv":
            frame.to_csv(path, index=False)
        else:
            _need_pyarrow()
            frame.to_parquet(path, index=False)
    return chosen


def _table(stats: BenchmarkStats) -> SpanTable:
    if stats.table is None:
        raise ExportError("these statistics were put together by hand: there is no log to export spans of")
    return stats.table


def _need_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ExportError("parquet needs pyarrow: pip install 'pypto[parquet]', or choose csv") from None

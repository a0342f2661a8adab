"""Reading a log with a progress bar where somebody is watching a long one."""

from __future__ import annotations

import sys

from pypto.perf.source import Source, describe_source, source_bytes
from pypto.perf.strace import read_strace
from pypto.perf.table import SpanTable

LONG_BYTES = 64 << 20


def read_with_progress(source: Source) -> SpanTable:
    """``read_strace`` with a bar on standard error when that is a terminal and the input is long or of unknown size."""
    size = source_bytes(source)
    if not sys.stderr.isatty() or (size is not None and size < LONG_BYTES):
        return read_strace(source)
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"reading {describe_source(source)}", total=size)
        return read_strace(source, progress=lambda count: bar.advance(task, count))

"""Descriptor 2 redirected to a file, so that what native code and child processes write is caught as well."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from pypto.runtime import markers
from pypto.runtime.markers import STDERR


@contextlib.contextmanager
def capture_stderr(path: str | Path) -> Iterator[None]:
    """Send descriptor 2 to the file ``path`` for the block; it is restored whatever happens."""
    _change_log()
    saved = os.dup(STDERR)
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.dup2(target, STDERR)
        finally:
            os.close(target)
        yield
    finally:
        _change_log()
        with contextlib.suppress(OSError):      # not every target can be synced
            os.fsync(STDERR)
        os.dup2(saved, STDERR)
        os.close(saved)


@contextlib.contextmanager
def without_markers(path: str | Path) -> Iterator[None]:
    """Hold back the markers of the block; everything else it writes to descriptor 2 follows at its end.

    ``path`` is a file to keep the text in meanwhile.
    """
    try:
        with capture_stderr(path):
            yield
    finally:
        lines = Path(path).read_bytes().splitlines(keepends=True)
        markers.write(b"".join(line for line in lines if not _is_marker(line)))


def _is_marker(line: bytes) -> bool:
    return b"[STRACE]" in line or b"[CLOCK_ANCHOR]" in line


def _change_log() -> None:
    """Finish what goes to the present target; the next one is a log of its own, with its own clock anchor."""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        sys.stderr.flush()
    markers.start_log()

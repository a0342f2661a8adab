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
    try:
        saved = os.dup(STDERR)
    except OSError as closed:
        raise RuntimeError(
            f"descriptor {STDERR} (standard error) is closed ({closed.strerror}); the markers of the launches need it"
        ) from closed
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.dup2(target, STDERR)
        finally:
            os.close(target)
        yield
    finally:
        _change_log()
        with contextlib.suppress(OSError):  # not every target can be synced
            os.fsync(STDERR)
        os.dup2(saved, STDERR)
        os.close(saved)


def _change_log() -> None:
    """Finish what goes to the present target; the next one is a log of its own, with its own clock anchor."""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        sys.stderr.flush()
    markers.start_log()

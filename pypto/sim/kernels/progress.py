"""What a person sees while kernels are compiled for the first time: a status line on a terminal, one line elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

_PATIENCE_SECONDS = 1.0


class Progress:
    """Counts compilations of one batch. A warm cache compiles nothing and shows nothing."""

    def __init__(self) -> None:
        self._count = 0
        self._started = 0.0
        self._told = False
        self._status: Any = None

    def __enter__(self) -> Progress:
        return self

    def compiling(self, name: str) -> None:
        """One more kernel is about to be compiled."""
        now = time.monotonic()
        self._started = self._started or now
        self._count += 1
        if sys.stderr.isatty():
            self._show(f"compiling tile kernels for this processor, once: {self._count} ({name})")
        elif now - self._started > _PATIENCE_SECONDS and not self._told:
            self._told = True
            print("pypto: compiling tile kernels for this processor (only the first time)", file=sys.stderr)

    def _show(self, text: str) -> None:
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status(text)
            self._status.start()
        self._status.update(text)

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
        seconds = time.monotonic() - self._started
        if self._count and seconds > _PATIENCE_SECONDS:
            print(f"pypto: compiled {self._count} tile kernels in {seconds:.1f} s", file=sys.stderr)

"""What a person sees while code is compiled for the first time: a status line on a terminal, one line elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

_PATIENCE_SECONDS = 1.0
_ONCE = "pypto: compiling kernels and simulator for this processor (first use; about 10 s of processor time, then kept)"


class Progress:
    """Compilations of one batch of ``total`` missing kernels. A warm cache compiles nothing and shows nothing.

    Elsewhere than on a terminal there is one line per process, and only when compiling takes more than a second:
    ``slow`` says that one compilation of the batch does.
    """

    _told = False
    _waits = False

    def __init__(self, total: int, *, slow: bool = False) -> None:
        self._total = total
        self._slow = slow
        self._count = 0
        self._started = 0.0
        self._status: Any = None

    def __enter__(self) -> Progress:
        return self

    def compiling(self, name: str) -> None:
        """The next kernel is about to be compiled."""
        now = time.monotonic()
        self._started = self._started or now
        self._count += 1
        if sys.stderr.isatty():
            part = f"{self._count} of {self._total}, " if self._total > 1 else ""
            self._show(f"compiling for this processor (first use): {part}{name}")
        elif (self._slow or now - self._started > _PATIENCE_SECONDS) and not Progress._told:
            Progress._told = True
            print(_ONCE, file=sys.stderr)

    def _show(self, text: str) -> None:
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status(text)
            self._status.start()
        self._status.update(text)

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()


def waiting() -> None:
    """Another process compiles what this one needs; said once per process."""
    if not Progress._waits:
        Progress._waits = True
        print("pypto: waiting for another process that compiles for this processor (first use)", file=sys.stderr)

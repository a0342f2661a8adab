"""What an uncaught error of a program prints in place of a Python traceback (spec language 8.5)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TextIO

from pypto.ir.errors import Error

BACKTRACE = "PTO_BACKTRACE"
NOTE = f"   = note: set {BACKTRACE}=1 for the Python traceback"
RED, PLAIN = "\x1b[1;31m", "\x1b[0m"
CARETS = re.compile(r"^(\s*\|\s*)(\^.*)$", re.MULTILINE)

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def wants_backtrace(environment: Mapping[str, str] = os.environ) -> bool:
    """True when ``PTO_BACKTRACE`` asks for the Python traceback; ``ValueError`` unless it is 0 or 1."""
    value = environment.get(BACKTRACE, "0")
    if value not in ("0", "1"):
        raise ValueError(f"{BACKTRACE} is {value!r}; legal: 0, 1")
    return value == "1"


def wants_colour(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether ``stream`` is a terminal and allows it: ``NO_COLOR`` before ``FORCE_COLOR`` before ``TERM=dumb``."""
    if not stream.isatty() or environment.get("NO_COLOR"):
        return False
    return bool(environment.get("FORCE_COLOR")) or environment.get("TERM") != "dumb"


def report(error: Error, colour: bool = False) -> str:
    """The error with its header, place and trailer, and how to see the Python traceback."""
    head, text = ("Error:", str(error))
    if colour:
        head, text = f"{RED}{head}{PLAIN}", CARETS.sub(rf"\1{RED}\2{PLAIN}", text)
    return f"{head} {text}\n{NOTE}\n"


def install() -> None:
    """Print errors of programs as :func:`report` says when nothing catches them; other exceptions as before."""
    if wants_backtrace() or getattr(sys.excepthook, "reports_programs", False):
        return
    sys.excepthook = _hook(sys.excepthook)


def _hook(previous: Hook) -> Hook:
    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, Error):
            sys.stderr.write(report(error, wants_colour(sys.stderr)))
        else:
            previous(kind, error, trace)

    hook.reports_programs = True  # type: ignore[attr-defined]
    return hook

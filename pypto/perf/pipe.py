"""Behaving well when the reader of our output goes away (``pypto-perf tree LOG | head``)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Main = TypeVar("Main", bound=Callable[..., int])


def survives_closed_pipe(main: Main) -> Main:
    """A ``main`` that ends with 0 when standard output is closed under it, without a traceback at exit."""

    @wraps(main)
    def run(*args: object) -> int:
        try:
            code = main(*args)
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    return run  # type: ignore[return-value]

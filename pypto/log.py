"""The compiler's log: a level of its own, apart from the runtime's (spec runtime 12.1)."""

from __future__ import annotations

import os
import sys
from enum import IntEnum


class LogLevel(IntEnum):
    """Messages below the level are dropped; ``NONE`` drops all of them."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3
    FATAL = 4
    EVENT = 5
    NONE = 6


def _initial() -> LogLevel:
    """``PYPTO_LOG_LEVEL`` by name, any case; anything else is ``INFO``."""
    return LogLevel.__members__.get(os.environ.get("PYPTO_LOG_LEVEL", "").upper(), LogLevel.INFO)


_level = _initial()


def set_log_level(level: LogLevel) -> None:
    """Set the level of the process."""
    global _level
    _level = LogLevel(level)


def get_log_level() -> LogLevel:
    """The level of the process."""
    return _level


def _log(level: LogLevel, text: str) -> None:
    if level >= _level:
        print(f"[{level.name}] {text}", file=sys.stderr)


def log_debug(text: str) -> None:
    """Write a line at level DEBUG."""
    _log(LogLevel.DEBUG, text)


def log_info(text: str) -> None:
    """Write a line at level INFO."""
    _log(LogLevel.INFO, text)


def log_warn(text: str) -> None:
    """Write a line at level WARN."""
    _log(LogLevel.WARN, text)


def log_error(text: str) -> None:
    """Write a line at level ERROR."""
    _log(LogLevel.ERROR, text)


def log_fatal(text: str) -> None:
    """Write a line at level FATAL."""
    _log(LogLevel.FATAL, text)


def log_event(text: str) -> None:
    """Write a line at level EVENT."""
    _log(LogLevel.EVENT, text)

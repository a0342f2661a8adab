"""The runtime's log threshold (spec runtime 12.2): which records a worker writes to descriptor 2.

The threshold lives in the Python logger ``simpler``, so that ``logging`` configuration and ``configure_log`` agree. A
worker copies it when it is initialised; later changes reach the next worker only.
"""

from __future__ import annotations

import logging
import os
from typing import Final

from pypto.log import LogLevel, set_log_level

LEVELS: Final[dict[str, int]] = {
    "debug": 10,
    "info": 20,
    "timing": 25,
    "warn": 30,
    "warning": 30,
    "error": 40,
    "null": 60,
}
TIMING: Final = LEVELS["timing"]
LOGGER: Final = logging.getLogger("simpler")

_configured = False


def _threshold(level: object) -> int:
    """``level`` as a number; anything unknown means ``timing``, as scripts pass names of older releases."""
    if isinstance(level, str):
        return LEVELS.get(level.lower(), TIMING)
    if isinstance(level, int) and not isinstance(level, bool):
        return level
    return TIMING


def configure_log(level: object, *, sync_pypto: bool = False) -> None:
    """Set the threshold by name (``debug info timing warn error null``, any case) or number.

    An unknown name or type selects ``timing``; 0 inherits the root logger's level. ``sync_pypto`` also sets the
    compiler's log level.
    """
    global _configured
    _configured = True
    LOGGER.setLevel(_threshold(level))
    if sync_pypto:
        _sync_to_pypto()


def current_level() -> int:
    """The threshold in force, as a number."""
    return LOGGER.getEffectiveLevel()


def _sync_to_pypto() -> None:
    """Give the compiler's logger the nearest level at or above the threshold."""
    level = current_level()
    limits = ((10, "DEBUG"), (20, "INFO"), (30, "WARN"), (40, "ERROR"))
    name = next((name for limit, name in limits if level <= limit), "NONE")
    set_log_level(LogLevel[name])


def apply_environment() -> None:
    """Apply ``PYPTO_RUNTIME_LOG`` (and ``PYPTO_RUNTIME_LOG_SYNC=1``) unless a level was chosen already."""
    if _configured:
        return
    level = os.environ.get("PYPTO_RUNTIME_LOG")
    if level:
        configure_log(level, sync_pypto=os.environ.get("PYPTO_RUNTIME_LOG_SYNC") == "1")
    elif LOGGER.level == logging.NOTSET:
        LOGGER.setLevel(TIMING)


logging.addLevelName(TIMING, "TIMING")

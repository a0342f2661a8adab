"""The clock: when everything in a recorded launch happened on a chip.

``time_recording(recording, chip, state)`` is the way in. ``costs`` and ``cycles`` price instructions, ``link`` finds
who waits for whom, ``engine`` plays cores, memory and task runtime together, ``timeline`` reads the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .state import DeviceState
    from .timeline import TaskRecord, Timeline, time_ranks, time_recording

_HOMES = {
    "DeviceState": "state",
    "TaskRecord": "timeline",
    "Timeline": "timeline",
    "time_ranks": "timeline",
    "time_recording": "timeline",
}

__all__ = ["DeviceState", "TaskRecord", "Timeline", "time_ranks", "time_recording"]


def __getattr__(name: str) -> Any:
    """Load on first use: Numba takes a second to import."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

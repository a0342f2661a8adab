"""Load the compiled engine before processes are forked that all need it."""

from __future__ import annotations

import numpy as np

from pypto.sim.chips import chip
from pypto.sim.recording import Recording

from .state import DeviceState
from .timeline import time_recording

_COLUMNS = (
    "task_kind", "task_blocks", "task_flags", "task_tensors", "task_scalars", "task_lookups", "task_scope", "deps",
    "deps_kind", "subtask_program", "subtask_block", "subtask_lane", "subtask_trace_start", "subtask_trace_stop",
)


def warm(chip_name: str) -> None:
    """Time a launch of nothing on the chip called ``chip_name``."""
    none, start = np.zeros(0, np.int64), np.zeros(1, np.int64)
    columns = dict.fromkeys(_COLUMNS, none)
    empty = Recording(
        name="nothing", platform="", programs=[], trace=np.zeros((0, 8), np.int64), task_name=[], deps_start=start,
        subtask_start=start, events=np.zeros((0, 4), np.int64), **columns,
    )
    time_recording(empty, chip(chip_name), DeviceState())

"""Compile the timing engine beside everything else: on a new machine it takes as long as machine and kernels together.

``compile_ahead`` starts a process that does it on the second core while the caller compiles what computes values; the
lock of the cache makes the caller wait for that process instead of compiling the same code again.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from pypto.sim.chips import chip
from pypto.sim.kernels.cache import folder, write
from pypto.sim.recording import DUMMY, SUBMIT, Recording
from pypto.sim.timing.compiled import fingerprint
from pypto.sim.timing.state import DeviceState
from pypto.sim.timing.timeline import time_recording

_started = False


def _marker() -> Path | None:
    """A file that says that the engine of these sources has been compiled."""
    place = folder()
    return None if place is None else place / f"timing-ready-{fingerprint()}.kernel"


def compile_ahead() -> None:
    """Start the compilation in another process, unless it is done or there is no cache to leave it in."""
    global _started
    marker = _marker()
    if _started or marker is None or marker.exists():
        return
    _started = True
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen([sys.executable, "-m", "pypto.sim.timing.ahead"], **quiet)  # type: ignore[call-overload]


def smallest_recording() -> Recording:
    """One dummy task: enough to reach every entry point of the engine."""

    def words(*values: int) -> np.ndarray:
        return np.array(values, np.int64)

    return Recording(
        name="ahead", platform="a2a3", programs=[], trace=np.zeros((0, 8), np.int64), task_name=["none"],
        task_kind=words(DUMMY), task_blocks=words(1), task_flags=words(0), task_tensors=words(0), task_scalars=words(0),
        task_lookups=words(0), task_scope=words(0), deps_start=words(0, 0), deps=words(), deps_kind=words(),
        subtask_start=words(0, 0), subtask_program=words(), subtask_block=words(), subtask_lane=words(),
        subtask_trace_start=words(), subtask_trace_stop=words(), events=words(SUBMIT, 0, 0, 0).reshape(1, 4),
    )  # fmt: skip


def load_engine(chip_name: str) -> None:
    """Load the compiled engine for ``chip_name`` before processes are forked that all need it."""
    time_recording(smallest_recording(), chip(chip_name), DeviceState())


def main() -> None:
    """Compile, then leave the marker."""
    smallest_recording().time()
    marker = _marker()
    if marker is not None:
        write(marker, b"ready")


if __name__ == "__main__":
    main()

"""How the interpreter stops: the status of a run, and what the frame says about it."""

from __future__ import annotations

from typing import Final

from pypto.sim import opcodes as op
from pypto.sim.kernels.compilation import kernel_code

RUNNING: Final = -1
"""Status while nothing stops the program; all others are in opcodes.py."""


@kernel_code
def stop(frame, status, pc, site):
    """End the run at ``pc``; returns ``status``."""
    frame[op.PC], frame[op.SITE] = pc, site
    return status


@kernel_code
def fault(frame, code, pc, instruction):
    """End the run because of ``code``."""
    frame[op.FAULT], frame[op.CODE] = code, pc
    return stop(frame, op.FAULTED, pc, instruction)

"""Refusals of tensors that live where a launch cannot reach them (spec runtime 10.8, distributed 5.2 D18)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from pypto.sim.checks.findings import Finding, Location, PlacementError

_PACKAGE: Final = str(Path(__file__).resolve().parents[1]) + "/"


def placement_error(message: str, tensor: str, repair: str, *, task: str = "", place: str = "") -> PlacementError:
    """The error of ``tensor`` given to a chip that does not hold it.

    ``place`` is ``file:line`` of the dispatch; without it the error names the line that launched.
    """
    file, _, line = place.rpartition(":")
    where = (Location(file, int(line), f"dispatch of '{task}'"),) if line.isdigit() else _caller(tensor)
    return PlacementError([Finding("placement", message, tensor, (task,) if task else (), where, None, (), repair)])


def _caller(tensor: str) -> tuple[Location, ...]:
    """The line outside the package that made the launch."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_back is None:
            return ()
        frame = frame.f_back
    return (Location(frame.f_code.co_filename, frame.f_lineno, f"launch with '{tensor}'"),)

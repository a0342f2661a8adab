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
    if line.isdigit():
        where = Location(file, int(line), f"dispatch of '{task}'")
    else:
        where = calling_line(f"launch with '{tensor}'")
    return PlacementError([Finding("placement", message, tensor, (task,) if task else (), (where,), None, (), repair)])


def calling_line(what: str) -> Location:
    """The line outside the package that made the launch."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Location(frame.f_code.co_filename, frame.f_lineno, what)

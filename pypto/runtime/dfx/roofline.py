"""``roofline.json``: the least time every resource needs for a launch, beside the time the launch took."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pypto.runtime.launch import Launched

ROOFLINE: Final = "roofline.json"


def write_roofline(launched: Launched, folder: Path) -> Path:
    """Write the bounds of a launch: per resource in ns, whatever the schedule, and the effective window in ns."""
    timeline = launched.known_timeline
    path = folder / ROOFLINE
    bounds = {name: round(ns, 3) for name, ns in timeline.roofline.items()}
    path.write_text(
        json.dumps({"effective_ns": timeline.effective_ns, "bounds_ns": bounds}, indent=1), encoding="utf-8"
    )
    return path

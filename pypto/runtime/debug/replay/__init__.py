"""``python -m pypto.runtime.debug.replay WORK_DIR`` and the function behind it."""

from __future__ import annotations

from pypto.runtime.debug.replay.cli import main
from pypto.runtime.debug.replay.run import replay

__all__ = ["main", "replay"]

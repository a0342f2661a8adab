"""``debug/run.py`` of a build directory (spec runtime 5.4); written by every compilation."""

from __future__ import annotations

from pypto.runtime.run_script import write_run_script

__all__ = ["write_run_script"]

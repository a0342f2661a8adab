"""Running a build directory as it lies on disk, after editing its texts (spec runtime 5)."""

from __future__ import annotations

from pypto.runtime.debug.pto_rebuild import invalidate_binary_cache, rebuild_kernel_cpp_from_pto
from pypto.runtime.debug.replay import replay
from pypto.runtime.debug.run_script_writer import write_run_script

__all__ = ["invalidate_binary_cache", "rebuild_kernel_cpp_from_pto", "replay", "write_run_script"]

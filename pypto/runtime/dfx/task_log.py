"""What a launch notes for its diagnostics, beyond its recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pypto.runtime.run_config import RunConfig
    from pypto.sim.task_log import Capture, TaskLog

# levels of the argument dump (spec runtime 13.6)
MARKED, ALL, HYBRID = 1, 2, 3
_CAPTURE: Final[dict[int, Capture]] = {MARKED: "marked", ALL: "all", HYBRID: "marked"}


def log_for(config: RunConfig) -> TaskLog | None:
    """An empty log when ``config`` asks for a file that needs one."""
    from pypto.sim.task_log import TaskLog

    if not (
        config.enable_dump_args or config.enable_dep_gen or config.enable_chip_swimlane or config.enable_scope_stats
    ):
        return None
    return TaskLog(_CAPTURE.get(config.enable_dump_args, "none"))

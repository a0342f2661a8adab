"""Diagnostics of a launch, written to ``dfx_outputs`` of its build directory (spec runtime 13).

Written: the chip swimlane with its merged trace, the task graph, the name map. Argument dumps, hardware counters and
scope statistics have no source in a recording yet; asking for one prints a line that says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pypto.runtime.callable import ChipCallable
from pypto.runtime.run_config import RunConfig

if TYPE_CHECKING:
    from pypto.runtime.launch import Launched

_WITHOUT_SOURCE = ("enable_dump_args", "enable_pmu", "enable_scope_stats")


def write_diagnostics(launched: Launched, chip_callable: ChipCallable, config: RunConfig, folder: Path) -> None:
    """Write what ``config`` asks for about ``launched`` to ``folder`` and print where it is.

    Files of earlier runs stay beside the new ones.
    """
    from pypto.runtime.dfx.kernel_names import write_name_map
    from pypto.runtime.dfx.roofline import write_roofline
    from pypto.runtime.dfx.swimlane import write_merged_trace, write_swimlane
    from pypto.runtime.dfx.task_graph import write_task_graph

    folder.mkdir(parents=True, exist_ok=True)
    for name in _WITHOUT_SOURCE:
        if getattr(config, name):
            print(f"[dfx] {name}: nothing is written, recordings do not hold it yet")
    level, wants_graph = config.enable_chip_swimlane, config.enable_dep_gen
    if not (level or wants_graph):
        return
    names = write_name_map(chip_callable, folder)
    graph = write_task_graph(launched, chip_callable, folder)
    if wants_graph:
        print(f"[dfx] task graph: {graph}; view it with python -m pypto.perf deps {graph}")
    if level:
        records = write_swimlane(launched, level, folder)
        merged = write_merged_trace(records, graph, names, folder)
        print(f"[dfx] swimlane: {records}, merged trace: {merged}, roofline: {write_roofline(launched, folder)}")

"""Diagnostics of a launch, written to ``dfx_outputs`` of its build directory (spec runtime 13).

Written: the chip swimlane with its merged trace, the task graph, the name map, the arguments of the tasks, counters of
the cores, and how full rings and heap were.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pypto.runtime.callable import ChipCallable
from pypto.runtime.run_config import RunConfig

if TYPE_CHECKING:
    from pypto.runtime.launch import Launched


def write_diagnostics(launched: Launched, chip_callable: ChipCallable, config: RunConfig, folder: Path) -> None:
    """Write what ``config`` asks for about ``launched`` to ``folder`` and print where it is.

    Files of earlier runs stay beside the new ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if config.enable_dump_args > 0:
        _dump_arguments(launched, chip_callable, config.enable_dump_args, folder)
    if config.enable_pmu > 0:
        _count(launched, chip_callable, config.enable_pmu, folder)
    if config.enable_scope_stats:
        from pypto.runtime.dfx.scope_stats import write_scope_stats

        print(f"[dfx] scope statistics: {write_scope_stats(launched, folder)}")
    if config.enable_chip_swimlane or config.enable_dep_gen:
        _draw(launched, chip_callable, config, folder)


def _dump_arguments(launched: Launched, chip_callable: ChipCallable, level: int, folder: Path) -> None:
    from pypto.runtime.dfx.argument_dump import write_argument_dump

    if launched.log is None:
        print("[dfx] argument dump: not available for this kind of launch")
        return
    path = write_argument_dump(launched, chip_callable, level, folder)
    print(f"[dfx] argument dump: {path or 'nothing to write, no tensor is marked by pl.dump_tag or dumps='}")


def _count(launched: Launched, chip_callable: ChipCallable, asked: int, folder: Path) -> None:
    from pypto.runtime.dfx.pmu import EVENTS, asked_number, counters_without_model, event_type, write_pmu

    event, number = event_type(asked), asked_number(asked)
    if event != number:
        groups = ", ".join(f"{known} {name}" for known, name in EVENTS.items())
        print(f"[dfx] event {number} names no group of counters, {event} is taken; groups: {groups}")
    print(f"[dfx] counters {EVENTS[event]}: {write_pmu(launched, chip_callable, event, folder)}")
    absent = counters_without_model(launched.known_chip.generation, event)
    if absent:
        print(f"[dfx] always 0, as the model has nothing like it: {', '.join(absent)}")


def _draw(launched: Launched, chip_callable: ChipCallable, config: RunConfig, folder: Path) -> None:
    """Task graph and names; swimlane and merged trace when there is a level."""
    from pypto.runtime.dfx.kernel_names import write_name_map
    from pypto.runtime.dfx.roofline import write_roofline
    from pypto.runtime.dfx.swimlane import write_merged_trace, write_swimlane
    from pypto.runtime.dfx.task_graph import write_task_graph

    names = write_name_map(chip_callable, folder)
    graph = write_task_graph(launched, chip_callable, folder)
    if config.enable_dep_gen:
        print(f"[dfx] task graph: {graph}; view it with python -m pypto.perf deps {graph}")
    if config.enable_chip_swimlane:
        records = write_swimlane(launched, config.enable_chip_swimlane, folder)
        merged = write_merged_trace(records, graph, names, folder)
        print(f"[dfx] swimlane: {records}, merged trace: {merged}, roofline: {write_roofline(launched, folder)}")

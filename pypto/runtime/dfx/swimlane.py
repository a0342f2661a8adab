"""``chip_swimlane_records.json``: what every core and every control thread did, in cycles of the device's counter.

Levels add to each other: 1 cores, 2 dispatch and finish, 3 scheduler phases, 4 orchestrator (spec runtime 13.4).
"""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pypto.runtime.dfx.kernel_names import task_tokens

if TYPE_CHECKING:
    from pypto.runtime.launch import Launched
    from pypto.sim.timing import TaskRecord

RECORDS: Final = "chip_swimlane_records.json"
CORES, DISPATCH, SCHEDULERS, ORCHESTRATOR = 1, 2, 3, 4


def write_swimlane(launched: Launched, level: int, folder: Path) -> Path:
    """Write the records of a launch at ``level``."""
    path = folder / RECORDS
    path.write_text(json.dumps(swimlane_records(launched, level)), encoding="utf-8")
    return path


def swimlane_records(launched: Launched, level: int) -> dict[str, Any]:
    """The content of the file."""
    timeline, chip = launched.known_timeline, launched.known_chip
    megahertz = round(chip.cores.counter_mhz.value)
    tokens = task_tokens(launched.known_recording)
    metadata: dict[str, Any] = {
        "clock_freq_hz": megahertz * 1_000_000,
        "num_cores": len(timeline.core_names),
        "core_types": [name[:3] for name in timeline.core_names],
    }
    rows = _task_rows(timeline.records(), tokens, megahertz)
    content: dict[str, Any] = {
        "chip_swimlane_level": level,
        "metadata": metadata,
        "aicore_tasks": [core for core, _ in rows],
        "aicpu_tasks": [control for _, control in rows] if level >= DISPATCH else [],
    }
    if level >= SCHEDULERS:
        from pypto.runtime.dfx.control_threads import control_threads

        threads = control_threads(launched, tokens, megahertz)
        metadata["core_to_thread"] = threads.core_to_thread
        content["aicpu_scheduler_phases"] = threads.scheduler_phases
        if level >= ORCHESTRATOR:
            content["aicpu_orchestrator_phases"] = [threads.submits]
    return content


def _task_rows(records: list[TaskRecord], tokens: list[int], megahertz: int) -> list[tuple[list[int], list[int]]]:
    """Per subtask, in dispatch order: the core's row and the control thread's, joined by core and number on it."""
    numbers: Counter[int] = Counter()
    rows = []
    for record in sorted(records, key=lambda r: (r.dispatch_ns, r.core, r.task, r.block)):
        numbers[record.core] += 1
        number = numbers[record.core]
        times_ns = (record.dispatch_ns, record.receive_ns, record.start_ns, record.end_ns, record.finish_ns)
        dispatch, receive, start, end, finish = (cycles(t, megahertz) for t in times_ns)
        rows.append(
            (
                [record.core, tokens[record.task], number, start, end, start - receive],
                [record.core, number, dispatch, finish],
            )
        )
    return rows


def cycles(time_ns: int, megahertz: int) -> int:
    """Ticks of the device's counter, cut to whole ones."""
    return time_ns * megahertz // 1000


def write_merged_trace(records: Path, graph: Path, names: Path, folder: Path) -> Path:
    """Join records and graph into ``merged_swimlane_<time>.json``, a Chrome trace."""
    from pypto.perf.chip_records import read_chip_records
    from pypto.perf.swimlane import swimlane_document
    from pypto.perf.task_graph import read_kernel_names, read_task_graph

    path = folder / f"merged_swimlane_{time.strftime('%Y%m%d_%H%M%S')}.json"
    document = swimlane_document(read_chip_records(records), read_task_graph(graph), read_kernel_names(names))
    document.write(path)
    return path

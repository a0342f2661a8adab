"""From a kernel of this language to microseconds: compile, record without values, time as a launch of the vendor."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pypto.sim.capture import record
from pypto.sim.chips import Chip, chip
from pypto.sim.recording import Recording
from pypto.sim.timing import DeviceState, time_recording


def recorded(kernel: Any, *arguments: Any, platform: str = "a2a3") -> Recording:
    """What ``kernel`` (a jit function or a program) does on ``arguments``, torch tensors; no value is computed."""
    with tempfile.TemporaryDirectory() as folder:
        return record(compiled(kernel, *arguments, folder=folder, platform=platform), arguments, values=False)


def compiled(kernel: Any, *arguments: Any, folder: str, platform: str = "a2a3") -> Any:
    """``kernel`` for the shapes of ``arguments``, built in ``folder``."""
    from pypto import ir
    from pypto.ir.pass_manager import DiagnosticPhase

    program = kernel.lower(*arguments) if hasattr(kernel, "lower") else kernel
    quiet = DiagnosticPhase.NONE  # short rows and single buffers are what some of the workloads are about
    return ir.compile(program, output_dir=folder, platform=platform, dump_passes=False, diagnostic_phase=quiet)


def tensor(*shape: int, dtype: str = "float16") -> Any:
    """A tensor nobody fills: its pages are never touched."""
    import torch

    return torch.empty(shape, dtype=getattr(torch, dtype))


# Launch through the vendor's stream (spec hardware 11): picking and starting a kernel, software start of a core, report
# of the end; what all cores of the chip cost more than one.
_PICK_US, _START_US, _REPORT_US = 0.2, 1.0, 0.5
_ALL_CORES_US = {"a2a3": 6.0, "a5": 0.5}


@dataclass(frozen=True)
class Launched:
    """One launch through the vendor's stream, in us. Figures only: the timeline of a large product holds gigabytes."""

    task_us: float  # what the profiler calls task duration
    core_us: float  # longest core, software start included
    mean_core_us: float
    cores: int
    pipe_busy_us: Mapping[str, float]  # summed over the cores


def launched(recording: Recording, part: str, warm: bool = False, unit_flag: bool = False) -> Launched:
    """Time ``recording`` as one kernel of the vendor's stream.

    ``warm``: the second of two launches. ``unit_flag``: drains follow the last multiply granule by granule.
    """
    target = _vendor(part)
    if unit_flag:
        target = target.replace(unit_flag=1)
    state = DeviceState()
    if warm:
        time_recording(recording, target, state)
    timeline = time_recording(recording, target, state)
    records = timeline.records()
    first, last = min(r.start_ns for r in records), max(r.end_ns for r in records)
    cores = len({r.core for r in records})
    longest, mean = (last - first) / 1000, sum(r.end_ns - r.start_ns for r in records) / cores / 1000
    overhead = _PICK_US + _REPORT_US + _ALL_CORES_US[target.generation] * _share(cores, target)
    task, core = longest + _START_US + overhead, longest + _START_US
    return Launched(task, core, mean + _START_US, cores, timeline.pipe_busy_us())


def _share(cores: int, target: Chip) -> float:
    """How much of the chip a launch uses, 0 for one core."""
    clusters = int(target.cores.clusters.value)
    every = clusters if cores <= clusters else clusters * int(target.cores.vectors_per_cluster.value)
    return min((cores - 1) / max(every - 1, 1), 1.0)


@cache
def _vendor(part: str) -> Chip:
    """The part with cores that hardware starts together instead of the task runtime one after the other."""
    cold = ("core_cold_min", "core_cold_median", "core_cold_max")
    at_once = dict.fromkeys(("dispatch", "dispatch_store", "core_setup", *cold), 0)
    return chip(part).replace(**{f"runtime.{name}": value for name, value in at_once.items()})

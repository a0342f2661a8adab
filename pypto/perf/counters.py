"""Recordings of what kernels did on their core: PMU counters and work against peak (``profiling.md`` 5.9)."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pypto.perf.task_graph import kernel_label

FIXED_COLUMNS = ("thread_id", "core_id", "task_id", "func_id", "core_type", "pmu_total_cycles", "event_type")
PIPE_WORDS = ("vec", "cube", "scalar", "mte1", "mte2", "mte3", "fix")


class CountersError(ValueError):
    """A recording that cannot be read; the message names the file and the line."""


@dataclass(frozen=True)
class PipeUse:
    """Mean share of its cycles that one kernel kept each pipe busy (0 to 1)."""

    kernel: str
    tasks: int
    cycles: int
    shares: dict[str, float]


@dataclass(frozen=True)
class KernelWork:
    """A point of the roofline: operations and bytes of one kernel and the time it took."""

    name: str
    flops: float
    bytes: float
    time_ns: float

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def flops_per_s(self) -> float:
        return self.flops / self.time_ns * 1e9 if self.time_ns else 0.0


@dataclass(frozen=True)
class Roofline:
    """What the hardware allows at best, and what became of it. Either part may be absent.

    Kernels are measured against the peaks of one core. ``bounds_ns`` holds the least time that each resource needs for
    the whole launch, whatever the schedule; ``effective_ns`` is the time the launch took.
    """

    peak_flops_per_s: float = 0.0
    peak_bytes_per_s: float = 0.0
    kernels: list[KernelWork] = field(default_factory=list)
    effective_ns: float = 0.0
    bounds_ns: dict[str, float] = field(default_factory=dict)

    @property
    def limit(self) -> tuple[str, float]:
        """The resource whose bound is the largest, and that bound in ns."""
        return max(self.bounds_ns.items(), key=lambda item: item[1])


def read_pipe_use(path: Path, names: Mapping[int, str]) -> list[PipeUse]:
    """Pipe use per kernel from a ``pmu.csv`` of the pipe-utilisation group; empty for other groups or all-zero rows.

    Raises:
        CountersError: a column is missing or a row holds no numbers.
    """
    totals: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        missing = set(FIXED_COLUMNS) - set(reader.fieldnames or ())
        if missing:
            raise CountersError(f"{path}: columns missing: {', '.join(sorted(missing))}")
        busy = {column: pipe for column in reader.fieldnames or () if (pipe := _pipe_of(column))}
        for number, row in enumerate(reader, 2):
            try:
                kernel = int(row["func_id"])
                totals[kernel]["cycles"] += int(row["pmu_total_cycles"])
                for column, pipe in busy.items():
                    totals[kernel][pipe] += int(row[column])
            except (TypeError, ValueError):
                raise CountersError(f"{path}:{number}: not a row of counters: {row}") from None
            totals[kernel]["tasks"] += 1
    return [
        PipeUse(
            kernel_label(kernel, names),
            counts["tasks"],
            counts["cycles"],
            {pipe: counts[pipe] / counts["cycles"] for pipe in PIPE_WORDS if pipe in busy.values()},
        )
        for kernel, counts in sorted(totals.items())
        if counts["cycles"]
    ]


def _pipe_of(column: str) -> str | None:
    """Pipe that a counter of busy cycles belongs to, on either chip family."""
    if column in FIXED_COLUMNS or not ("busy" in column or column.endswith("_instr_busy")):
        return None
    return next((pipe for pipe in PIPE_WORDS if pipe in column), None)


def read_roofline(path: Path) -> Roofline:
    """A ``roofline.json`` with kernels, bounds per resource, or both.

    Kernels: ``{"peak_flops_per_s", "peak_bytes_per_s", "kernels": [{name, flops, bytes, time_ns}]}``; bounds:
    ``{"effective_ns", "bounds_ns": {resource: ns}}``.

    Raises:
        CountersError: the file does not have that shape.
    """
    try:
        raw = json.loads(path.read_text())
        effective_ns, bounds = 0.0, {}
        if "bounds_ns" in raw:
            bounds = {str(name): float(ns) for name, ns in dict(raw["bounds_ns"]).items()}
            effective_ns = float(raw["effective_ns"])
            if "kernels" not in raw:
                return Roofline(effective_ns=effective_ns, bounds_ns=bounds)
        kernels = [KernelWork(k["name"], k["flops"], k["bytes"], k["time_ns"]) for k in raw["kernels"]]
        peaks = float(raw["peak_flops_per_s"]), float(raw["peak_bytes_per_s"])
        return Roofline(*peaks, kernels, effective_ns, bounds)
    except (ValueError, KeyError, TypeError) as error:
        raise CountersError(f"{path}: not a roofline recording: {error!r}") from None

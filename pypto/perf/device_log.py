"""The older device log lines that markers replaced (``profiling.md`` 4.2)."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pypto.perf.timing_tables import TRIM, format_rounds, trimmed_mean

_LINE = re.compile(
    r"Thread \d+: (?P<kind>orch|sched)_start=(?P<start>\d+) (?:orch|sched)_end(?:\(timeout\))?=(?P<end>\d+) "
    r"(?:orch|sched)_cost=(?P<cost>[0-9.]+)us"
    r"|PTO2 total submitted tasks = (?P<tasks>\d+)"
)


class DeviceLogError(ValueError):
    """No device log can be read; the message says where it was looked for."""


@dataclass(frozen=True)
class DeviceRound:
    """One round in us."""

    orch_us: float
    sched_us: float
    total_us: float


@dataclass
class DeviceTiming:
    """Complete rounds of a device log and the last task count it names."""

    rounds: list[DeviceRound] = field(default_factory=list)
    tasks: int | None = None


@dataclass
class _Block:
    """An ``orch_start`` line and the scheduler windows that follow it, in cycles."""

    start: int
    end: int
    cost_us: float
    scheds: list[tuple[int, int]] = field(default_factory=list)

    def finish(self) -> DeviceRound | None:
        cycles = self.end - self.start
        if self.cost_us <= 0 or cycles <= 0 or not self.scheds:
            return None
        per_us = cycles / self.cost_us
        first, last = min(s for s, _ in self.scheds), max(e for _, e in self.scheds)
        total = max(self.end, last) - min(self.start, first)
        return DeviceRound(self.cost_us, (last - first) / per_us, total / per_us)


def read_device_log(lines: Iterable[str]) -> DeviceTiming:
    """Rounds of a device log; a round without a scheduler line of positive length is left out."""
    timing, blocks = DeviceTiming(), []
    for line in lines:
        for match in _LINE.finditer(line):
            if match["tasks"]:
                timing.tasks = int(match["tasks"])
            elif match["kind"] == "orch":
                blocks.append(_Block(int(match["start"]), int(match["end"]), float(match["cost"])))
            elif blocks and float(match["cost"]) > 0 and int(match["end"]) > int(match["start"]):
                blocks[-1].scheds.append((int(match["start"]), int(match["end"])))
    timing.rounds = [one for block in blocks if (one := block.finish()) is not None]
    return timing


def device_report(timing: DeviceTiming, source: str) -> str:
    """The table and its averages."""
    lines = [f"Device-log timing (from {source})"]
    if timing.tasks is not None:
        lines.append(f"  tasks = {timing.tasks}")
    if not timing.rounds:
        return "\n".join([*lines, "  no complete orchestrator/scheduler block found (markers replaced these lines)"])
    series = {
        "Total": np.array([r.total_us for r in timing.rounds]),
        "Orch": np.array([r.orch_us for r in timing.rounds]),
        "Sched": np.array([r.sched_us for r in timing.rounds]),
    }
    lines.append(format_rounds(list(series), [values * 1000 for values in series.values()]))
    count = len(timing.rounds)
    cells = "  |  ".join(f"{title}: {values.mean():.1f} us" for title, values in series.items())
    lines.append(f"  Avg  {cells}  ({count} rounds)")
    if count > 2 * TRIM:
        cells = "  |  ".join(f"{title}: {trimmed_mean(values):.1f} us" for title, values in series.items())
        lines.append(f"  Trimmed Avg  {cells}  (dropped {TRIM} low + {TRIM} high, {count - 2 * TRIM} rounds used)")
    return "\n".join(lines)


def find_logs(argument: str) -> list[Path]:
    """Files of a path, a directory (its newest ``.log``) or a pattern (all matches, oldest first).

    Raises:
        DeviceLogError: nothing matches.
    """
    path = Path(argument)
    if path.is_dir():
        found = _by_age(path.glob("*.log"))[-1:]
    else:
        found = [path] if path.is_file() else _by_age(map(Path, glob.glob(argument)))
    if not found:
        raise DeviceLogError(f"no device log at {argument}: expected a file, a directory with *.log, or a pattern")
    return found


def _by_age(paths: Iterable[Path]) -> list[Path]:
    """Oldest first; files that a rotation removes meanwhile are left out."""
    aged = []
    for path in paths:
        try:
            aged.append((path.stat().st_mtime, path))
        except FileNotFoundError:
            continue
    return [path for _, path in sorted(aged)]


def device_log_root(env: Mapping[str, str] = os.environ) -> Path:
    """Where the driver writes device logs."""
    candidates = [
        Path(env[variable], *parts)
        for variable, parts in (("ASCEND_PROCESS_LOG_PATH", ["debug"]), ("ASCEND_WORK_PATH", ["log", "debug"]))
        if env.get(variable)
    ]
    return next((path for path in candidates if path.is_dir()), Path.home() / "ascend" / "log" / "debug")


def read_lines(paths: Sequence[Path]) -> Iterable[str]:
    """Lines of all files in order."""
    for path in paths:
        try:
            with path.open(errors="replace") as file:
                yield from file
        except FileNotFoundError:
            continue

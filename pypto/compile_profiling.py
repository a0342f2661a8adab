"""Where the time of a compile goes (spec profiling 5.12)."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

TITLE: Final = "Compile profile report"


@dataclass
class Stage:
    """One stage: its name, the seconds spent in it, the stages inside it."""

    name: str
    seconds: float = 0.0
    children: list[Stage] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "seconds": round(self.seconds, 6),
            "children": [child.to_dict() for child in self.children],
        }


class _Active(threading.local):
    """The profilers entered on this thread, innermost last."""

    def __init__(self) -> None:
        self.stack: list[CompileProfiler] = []


_active = _Active()


class CompileProfiler:
    """Collects stages while it is entered: ``with CompileProfiler() as p: ir.compile(...)``."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self._open: list[Stage] = []
        self._entered_s: float | None = None
        self._total_s = 0.0

    def __enter__(self) -> CompileProfiler:
        _active.stack.append(self)
        self._entered_s = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self._total_s = self.total_seconds
        self._entered_s = None
        _active.stack.remove(self)

    @staticmethod
    def current() -> CompileProfiler | None:
        """The innermost profiler entered on this thread."""
        return _active.stack[-1] if _active.stack else None

    @property
    def total_seconds(self) -> float:
        """Seconds from entering to leaving, or until now."""
        running = 0.0 if self._entered_s is None else time.perf_counter() - self._entered_s
        return self._total_s + running

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Time the block as a stage, inside the stage that is open now."""
        stage = Stage(name)
        (self._open[-1].children if self._open else self.stages).append(stage)
        self._open.append(stage)
        start_s = time.perf_counter()
        try:
            yield stage
        finally:
            stage.seconds = time.perf_counter() - start_s
            self._open.pop()

    def add_stage_record(self, name: str, seconds: float, children: list[Stage] | None = None) -> Stage:
        """Add a stage that was timed elsewhere, inside the stage that is open now."""
        stage = Stage(name, seconds, list(children or []))
        (self._open[-1].children if self._open else self.stages).append(stage)
        return stage

    def to_dict(self) -> dict[str, Any]:
        """``{"total_seconds", "stages": [{"name", "seconds", "children"}]}``."""
        return {"total_seconds": round(self.total_seconds, 6), "stages": [stage.to_dict() for stage in self.stages]}

    def to_json(self, path: str | Path | None = None, indent: int = 2) -> str:
        """The dictionary as JSON, also written to ``path`` when given."""
        text = json.dumps(self.to_dict(), indent=indent)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def summary(self) -> str:
        """One line per stage: name, time, share of the total."""
        total = self.total_seconds
        lines = [TITLE, "=" * len(TITLE), f"Total: {_time_text(total)}", ""]

        def add(stage: Stage, depth: int) -> None:
            share = 100 * stage.seconds / total if total else 0.0
            lines.append(f"{'  ' * depth}{stage.name:<28}{_time_text(stage.seconds):>10}  ({share:5.1f}%)")
            for child in stage.children:
                add(child, depth + 1)

        for stage in self.stages:
            add(stage, 0)
        return "\n".join(lines)

    def write_report(self, directory: str | Path) -> None:
        """Write ``pipeline_profile.txt`` and ``pipeline_profile.json`` to ``directory``."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pipeline_profile.txt").write_text(self.summary() + "\n", encoding="utf-8")
        self.to_json(folder / "pipeline_profile.json")


def _time_text(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f}us"
    if seconds < 1:
        return f"{seconds * 1e3:.1f}ms"
    return f"{seconds:.3f}s"


_from_environment: CompileProfiler | None = None


def get_active_profiler() -> CompileProfiler | None:
    """The profiler stages go to: the innermost entered one, or one for the process with ``PYPTO_COMPILE_PROFILING``."""
    entered = CompileProfiler.current()
    if entered is not None:
        return entered
    if os.environ.get("PYPTO_COMPILE_PROFILING", "").lower() not in ("1", "true", "yes"):
        return None
    global _from_environment
    if _from_environment is None:
        _from_environment = CompileProfiler()
        _from_environment._entered_s = time.perf_counter()
    return _from_environment

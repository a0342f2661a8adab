"""Compile and run in one call, or run a build directory (spec runtime 9.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pypto.runtime.dispatch import LEVEL, dispatch_prepared, prepare_directory
from pypto.runtime.golden_runner import execute_on_golden as _execute_on_device
from pypto.runtime.golden_runner import validate_persisted_outputs
from pypto.runtime.run_config import SWIMLANE_MAX_LEVEL, DfxOptions, RunConfig
from pypto.runtime.run_config import DfxOptions as _DfxOpts

__all__ = [
    "RunConfig",
    "RunResult",
    "_DfxOpts",
    "_execute_on_device",
    "compile_program",
    "execute_compiled",
    "run",
    "validate_persisted_outputs",
]

_SWIMLANE_MAX_LEVEL = _SWIMLANE_FULL_LEVEL = SWIMLANE_MAX_LEVEL
_SWIMLANE_CLI_HELP = (
    f"collect a swimlane of every launch at level 0 to {SWIMLANE_MAX_LEVEL}; without a number at {SWIMLANE_MAX_LEVEL}"
)
"""Names that harnesses import for their command lines (spec runtime 2)."""


@dataclass
class RunResult:
    """Outcome of one harness case; ``execution_time`` is wall-clock seconds of the whole case, not device time."""

    __test__: ClassVar[bool] = False

    passed: bool
    test_name: str | None = None
    error: str | None = None
    execution_time: float | None = None
    profile: Any = None

    def __str__(self) -> str:
        elapsed = f" ({self.execution_time:.2f}s)" if self.execution_time else ""
        if self.passed:
            return (f"PASS: {self.test_name}" if self.test_name else "PASS") + elapsed
        named = f"FAIL: {self.test_name}" if self.test_name else "FAIL"
        reason = f"{' - ' if self.test_name else ': '}{self.error}" if self.error else ""
        return named + reason + elapsed


def run(program: Any, *tensors: Any, config: RunConfig | None = None) -> Any:
    """Compile ``program`` and, when tensors are given and ``config.codegen_only`` is off, launch it once.

    Returns the compiled program; nothing is compared.
    """
    from pypto import ir

    config = RunConfig() if config is None else config
    compiled = ir.compile(program, **config.compile_options())
    if tensors and not config.codegen_only:
        compiled(*tensors, config=config)
    return compiled


def compile_program(program: Any, work_dir: str | Path, **options: Any) -> None:
    """Compile ``program`` into ``work_dir``; ``options`` are those of ``ir.compile``."""
    from pypto import ir

    ir.compile(program, output_dir=str(work_dir), **options)


def execute_compiled(
    work_dir: str | Path,
    args: Sequence[Any],
    *,
    platform: str,
    device_id: int,
    dfx: DfxOptions = DfxOptions(),  # noqa: B008 - frozen
    level: int = LEVEL,
    aicpu_thread_num: int | None = None,
    analyze_auto_scopes_for_deps: bool = False,
) -> None:
    """Launch the build directory ``work_dir`` once with ``args`` in parameter order (tensors, ctypes or plain scalars).

    Shapes, types and directions are those of the orchestration text. ``analyze_auto_scopes_for_deps`` belongs to the
    compile and has no effect here.
    """
    if level != LEVEL:
        raise ValueError(f"execute_compiled runs programs of one chip (level 2), got level={level!r}")
    config = RunConfig(
        platform=platform,
        device_id=device_id,
        aicpu_thread_num=aicpu_thread_num,
        **dfx.options(),
    )
    prepared = prepare_directory(work_dir, platform)
    dispatch_prepared(prepared, args, config)

"""Options of the pass pipeline and the contexts that carry them (spec runtime 3.2, 3.3, 3.10)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextvars import ContextVar, Token
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any

from pypto.ir import nodes as ir


class OptimizationStrategy(Enum):
    """Which pipeline to run."""

    Default = "Default"


class PassDumpLevel(Enum):
    """How much of the pipeline is written to ``passes_dump``."""

    NONE = 0
    CONCISE = 1
    EXPLICIT = 2


class VerificationLevel(Enum):
    """What is verified between passes; ``ROUNDTRIP`` also prints, re-parses and compares."""

    NONE = 0
    BASIC = 1
    ROUNDTRIP = 2


class DiagnosticPhase(Enum):
    """When advisory checks run."""

    NONE = 0
    PRE_PIPELINE = 1
    POST_PASS = 2
    POST_PIPELINE = 3


class DiagnosticCheck(Enum):
    """The advisory checks (spec language 8.4; from ``InParamWritten`` on checks of this package)."""

    UnusedVariable = 0
    UnusedControlFlowResult = 1
    TileInnermostDimGranularity = 2
    OutParamWriteDropped = 3
    InParamWritten = 4
    SerialisedParallelTasks = 5
    UnevenMatrixRows = 6


class MemoryPlanner(Enum):
    """Who decides on-chip addresses."""

    PYPTO = 0
    DSA_RP = 1
    PTOAS = 2


class RuntimeKind(Enum):
    """Runtime variant a program is compiled for."""

    TENSORMAP_AND_RINGBUFFER = "tensormap_and_ringbuffer"
    HOST_BUILD_GRAPH = "host_build_graph"


class DiagnosticCheckSet:
    """A mutable set of checks."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, checks: Iterable[DiagnosticCheck] = ()):
        self._checks = set(checks)

    def insert(self, check: DiagnosticCheck) -> None:
        self._checks.add(check)

    def remove(self, check: DiagnosticCheck) -> None:
        self._checks.discard(check)

    def contains(self, check: DiagnosticCheck) -> bool:
        return check in self._checks

    def empty(self) -> bool:
        return not self._checks

    def difference(self, other: DiagnosticCheckSet) -> DiagnosticCheckSet:
        return DiagnosticCheckSet(self._checks - other._checks)

    def union_with(self, other: DiagnosticCheckSet) -> DiagnosticCheckSet:
        return DiagnosticCheckSet(self._checks | other._checks)

    def to_list(self) -> list[DiagnosticCheck]:
        return sorted(self._checks, key=lambda c: c.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DiagnosticCheckSet) and self._checks == other._checks


_active: ContextVar[PassContext | None] = ContextVar("pypto_pass_context", default=None)
EXCLUSIVE = ("verification_level", "diagnostic_phase", "memory_planner", "runtime")
"""Fields a call must not state while a context is active."""


class PassContext:
    """Options that every compile inside the ``with`` block inherits."""

    def __init__(
        self,
        instruments: Iterable[Any] = (),
        verification_level: VerificationLevel = VerificationLevel.BASIC,
        diagnostic_phase: DiagnosticPhase = DiagnosticPhase.PRE_PIPELINE,
        disabled_diagnostics: DiagnosticCheckSet | None = None,
        memory_planner: MemoryPlanner = MemoryPlanner.PYPTO,
        enable_pypto_l0c_double_buffer: bool = False,
        runtime: RuntimeKind = RuntimeKind.TENSORMAP_AND_RINGBUFFER,
    ):
        self._instruments = list(instruments)
        self._options = {
            "verification_level": verification_level,
            "diagnostic_phase": diagnostic_phase,
            "disabled_diagnostics": disabled_diagnostics
            or DiagnosticCheckSet([DiagnosticCheck.UnusedControlFlowResult]),
            "memory_planner": memory_planner,
            "enable_pypto_l0c_double_buffer": enable_pypto_l0c_double_buffer,
            "runtime": runtime,
        }
        self._tokens: list[Token[PassContext | None]] = []

    @staticmethod
    def current() -> PassContext | None:
        """The innermost active context."""
        return _active.get()

    def __enter__(self) -> PassContext:
        self._tokens.append(_active.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _active.reset(self._tokens.pop())

    def get_instruments(self) -> list[Any]:
        return list(self._instruments)

    def get_verification_level(self) -> VerificationLevel:
        return self._options["verification_level"]  # type: ignore[return-value]

    def get_diagnostic_phase(self) -> DiagnosticPhase:
        return self._options["diagnostic_phase"]  # type: ignore[return-value]

    def get_disabled_diagnostics(self) -> DiagnosticCheckSet:
        return self._options["disabled_diagnostics"]  # type: ignore[return-value]

    def get_memory_planner(self) -> MemoryPlanner:
        return self._options["memory_planner"]  # type: ignore[return-value]

    def get_enable_pypto_l0c_double_buffer(self) -> bool:
        return bool(self._options["enable_pypto_l0c_double_buffer"])

    def get_runtime(self) -> RuntimeKind:
        return self._options["runtime"]  # type: ignore[return-value]


def refuse_conflicts(operation: str, stated: dict[str, Any]) -> None:
    """``RuntimeError`` when ``operation`` states a field that an active context already decides."""
    if PassContext.current() is None:
        return
    for name in EXCLUSIVE:
        if stated.get(name) is not None:
            raise RuntimeError(f"{operation}: {name} was passed while a PassContext is already active")


def effective(name: str, stated: Any) -> Any:
    """An option of the pipeline: as stated, else of the active context, else of the environment, else the default."""
    if stated is not None:
        return stated
    context = PassContext.current()
    if context is not None:
        return context._options[name]
    variable, members, default = _FROM_ENVIRONMENT[name]
    return members.get(os.environ.get(variable, "").strip().lower(), default)


_FROM_ENVIRONMENT: dict[str, tuple[str, dict[str, Any], Any]] = {
    "verification_level": (
        "PYPTO_VERIFY_LEVEL",
        {"none": VerificationLevel.NONE, "roundtrip": VerificationLevel.ROUNDTRIP},
        VerificationLevel.BASIC,
    ),
    "diagnostic_phase": (
        "PYPTO_WARNING_LEVEL",
        {
            "none": DiagnosticPhase.NONE,
            "post_pass": DiagnosticPhase.POST_PASS,
            "post_pipeline": DiagnosticPhase.POST_PIPELINE,
        },
        DiagnosticPhase.PRE_PIPELINE,
    ),
    "memory_planner": ("", {}, MemoryPlanner.PYPTO),
    "disabled_diagnostics": ("", {}, DiagnosticCheckSet([DiagnosticCheck.UnusedControlFlowResult])),
}
"""Option -> environment variable, its values, and the default (spec language 8.5)."""


class PassManager:
    """The passes of a strategy, to run one by one on a program."""

    def __init__(self, strategy: OptimizationStrategy):
        from pypto.ir.passes.pipeline import lowering_passes

        self.strategy = strategy
        self.passes = lowering_passes()
        self.pass_names = [p.name for p in self.passes]

    @classmethod
    def get_strategy(
        cls,
        strategy: OptimizationStrategy = OptimizationStrategy.Default,
        *,
        analyze_auto_scopes_for_deps: bool = False,
    ) -> PassManager:
        """The manager of ``strategy``."""
        return cls(strategy)

    def run_passes(
        self, program: ir.Program, dump_ir: bool = False, output_dir: str | Path | None = None, prefix: str = "pl"
    ) -> ir.Program:
        """Run every pass; ``dump_ir`` writes the program after each one to ``output_dir``."""
        from pypto.ir.passes.pipeline import run_passes

        if dump_ir and output_dir is None:
            raise ValueError("dump_ir=True needs output_dir, the directory for the dumps")
        target = None
        if dump_ir and output_dir is not None:
            target = Path(output_dir)
            target.mkdir(parents=True, exist_ok=True)
        return run_passes(program, self.passes, target)

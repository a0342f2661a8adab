"""``ir.compile``: a program to a build directory (spec runtime 3)."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.ir import nodes as ir
from pypto.ir.advice import Advisor
from pypto.ir.enums import FunctionType
from pypto.ir.errors import CompileError, Error, PartialCodegenError
from pypto.ir.hints import hint
from pypto.ir.pass_manager import (
    DiagnosticCheck,
    DiagnosticPhase,
    MemoryPlanner,
    PassContext,
    VerificationLevel,
    effective,
    refuse_conflicts,
)
from pypto.ir.verification import verify

if TYPE_CHECKING:
    from pypto.ir.compiled_program import CompiledProgram, ParamInfo
    from pypto.ir.lowering.planners import Planner

GENERATIONS = {"Ascend910B": "a2a3", "Ascend950": "a5"}
ENTRY_TYPES = (FunctionType.Orchestration, FunctionType.Graph)


@dataclass(frozen=True)
class CompileOptions:
    """What a ``RunConfig`` says about compiling; the part of the jit cache key that is not the program."""

    platform: str | None = None
    strategy: str = "Default"
    memory_planner: str | None = None
    analyze_auto_scopes_for_deps: bool = False
    dump_ptoas_passes: bool = False
    distributed: Any = None

    def key(self) -> tuple[Any, ...]:
        """Hashable identity."""
        return (
            self.platform,
            self.strategy,
            self.memory_planner,
            self.analyze_auto_scopes_for_deps,
            self.dump_ptoas_passes,
            self.distributed,
        )


_NO_OPTIONS = CompileOptions()


def compile_options(config: Any) -> CompileOptions:
    """The compile-side fields of a ``RunConfig`` (or ``None``)."""
    if config is None:
        context = PassContext.current()
        return _NO_OPTIONS if context is None else CompileOptions(memory_planner=str(context.get_memory_planner()))
    if not hasattr(config, "platform"):
        raise TypeError(f"config must be a RunConfig, got {type(config).__name__} {config!r}")
    distributed = config.distributed_config
    frozen = None if distributed is None else repr(distributed)
    return CompileOptions(
        config.platform,
        str(getattr(config, "strategy", "Default")),
        str(effective("memory_planner", getattr(config, "memory_planner", None))),
        bool(getattr(config, "analyze_auto_scopes_for_deps", False)),
        bool(getattr(config, "dump_ptoas_passes", False)),
        frozen,
    )


@dataclass(frozen=True)
class Checks:
    """What is checked around the passes: verification, warnings, hints (spec runtime 3.2)."""

    verification: VerificationLevel
    phase: DiagnosticPhase
    disabled: frozenset[DiagnosticCheck]
    advisor: Advisor

    @classmethod
    def of(cls, verification: Any = None, phase: Any = None, disabled: Any = None) -> Checks:
        """The stated options, those left out from the active context or the environment."""
        when = effective("diagnostic_phase", phase)
        silent = frozenset(effective("disabled_diagnostics", disabled).to_list())
        return cls(effective("verification_level", verification), when, silent, Advisor(when, silent))

    def before(self, program: ir.Program) -> None:
        """Verify ``program`` and warn about it; ``pypto.Error`` when it breaks a rule."""
        if self.verification != VerificationLevel.NONE:
            verify(program)
        self.advisor.before(program)

    def after(self, name: str, program: ir.Program) -> None:
        """Warn if asked to after every pass; with ``ROUNDTRIP`` the text of ``program`` must parse back to it."""
        self.advisor.after_pass(program)
        if self.verification != VerificationLevel.ROUNDTRIP:
            return
        from pypto.language.text import parse

        if parse(program.as_python()) != program:
            raise Error(f"Verification failed after {name!r}: the printed program does not parse back to an equal one")

    def placed(self, program: ir.Program, generation: str, directory: Path) -> None:
        """Warnings and performance hints on the placed program."""
        self.advisor.done(program)
        if self.phase != DiagnosticPhase.NONE:
            hint(program, generation, directory / "report", self.disabled)


def lower_with(program: ir.Program, config: Any = None) -> ir.Program:
    """Run the chip-independent passes."""
    from pypto.ir.passes.pipeline import lowering_passes, run_passes

    stated = {name: getattr(config, name, None) for name in ("diagnostic_phase", "memory_planner")}
    refuse_conflicts("lower()", stated)
    checks = Checks.of(None, stated["diagnostic_phase"], getattr(config, "disabled_diagnostics", None))
    checks.before(program)
    return run_passes(program, lowering_passes(), after=checks.after)


def compile_with(program: ir.Program, config: Any = None) -> Any:
    """Compile with the options of a ``RunConfig`` (or the defaults)."""
    if config is None:
        return compile(program, dump_passes=False)
    return compile(
        program,
        output_dir=getattr(config, "save_kernels_dir", None),
        dump_passes=bool(getattr(config, "dump_passes", False)),
        platform=config.platform,
        distributed_config=config.distributed_config,
        profiling=bool(getattr(config, "compile_profiling", False)),
        memory_planner=getattr(config, "memory_planner", None),
        diagnostic_phase=getattr(config, "diagnostic_phase", None),
        disabled_diagnostics=getattr(config, "disabled_diagnostics", None),
    )


def compile(  # noqa: A001 - the public name
    program: ir.Program,
    output_dir: str | os.PathLike[str] | None = None,
    strategy: Any = None,
    dump_passes: Any = True,
    backend_type: Any = None,
    skip_ptoas: bool = False,
    verification_level: Any = None,
    diagnostic_phase: Any = None,
    disabled_diagnostics: Any = None,
    memory_planner: Any = None,
    enable_pypto_l0c_double_buffer: bool | None = None,
    profiling: bool = False,
    platform: str | None = None,
    distributed_config: Any = None,
    analyze_auto_scopes_for_deps: bool = False,
    emit_source_loc: bool | None = None,
    dump_ptoas_passes: bool = False,
    runtime: Any = None,
) -> Any:
    """Compile ``program`` into a build directory.

    Returns a ``CompiledProgram``, or a ``DistributedCompiledProgram`` when the program has a HOST-level function.
    Raises ``ValueError`` for an unknown platform and for programs that do not fit the chip; it names the place.
    """
    from pypto.backend.platforms import BackendType, find_platform

    stated = {
        "verification_level": verification_level,
        "diagnostic_phase": diagnostic_phase,
        "memory_planner": memory_planner,
        "runtime": runtime,
    }
    refuse_conflicts("compile()", stated)
    if not isinstance(program, ir.Program):
        raise TypeError(
            f"ir.compile takes an ir.Program (a @pl.program class or kernel.lower(...)), got {type(program).__name__}"
        )
    if platform is not None:
        target = find_platform(platform)
        backend_type = target.backend_type
    else:
        backend_type = backend_type if backend_type is not None else BackendType.Ascend910B
        platform = f"{GENERATIONS[backend_type.name]}sim"
    checks = Checks.of(verification_level, diagnostic_phase, disabled_diagnostics)
    checks.before(program)
    planner = _planner(memory_planner)
    name = program.name
    directory = output_directory(name, output_dir)
    if any(f.level is not None and f.level.number >= 3 for f in program.functions.values()):
        from pypto.ir.distributed_compiled_program import compile_distributed

        return compile_distributed(
            program, directory, platform, backend_type, distributed_config, dump_passes, planner, checks
        )
    return _compile_chip(program, directory, platform, backend_type, dump_passes, checks, planner)


def _planner(stated: Any) -> Planner:
    from pypto.ir.lowering.planners import planner_named

    chosen = effective("memory_planner", stated)
    if not isinstance(chosen, MemoryPlanner):
        names = ", ".join(f"MemoryPlanner.{member.name}" for member in MemoryPlanner)
        raise TypeError(f"memory_planner is {chosen!r}; legal: {names}")
    return planner_named(chosen.name)


def _compile_chip(
    program: ir.Program,
    directory: Path,
    platform: str,
    backend_type: Any,
    dump_passes: Any,
    checks: Checks,
    planner: Planner,
) -> CompiledProgram:
    from pypto.ir.artifact import write_build, write_partial
    from pypto.ir.compiled_program import CompiledProgram
    from pypto.ir.lowering.build import build

    chip, ready = prepared(program, backend_type, planner, _dump_dir(directory, dump_passes, program), checks.after)
    checks.placed(ready, GENERATIONS[backend_type.name], directory)
    entries = [f for f in ready.functions.values() if f.type in ENTRY_TYPES]
    if not entries:
        raise CompileError(
            f"program {program.name!r} has no Orchestration function and more than one kernel; nothing launches them: "
            "declare the function that calls them with type=pl.FunctionType.Orchestration"
        )
    names = [e.name for e in entries]
    for entry in entries:
        target = directory if len(entries) == 1 else directory / "next_levels" / entry.name
        target.mkdir(parents=True, exist_ok=True)
        try:
            units = build(ready, entry, chip, planner)
        except PartialCodegenError as error:
            write_partial(target, error)
            raise
        write_build(target, units, entry, platform, backend_type.name, "tensormap_and_ringbuffer")
    compiled = CompiledProgram(directory, program, platform, backend_type, names if len(names) > 1 else [], ready)
    if len(entries) == 1:
        write_runner(directory, compiled.param_infos, platform)
    return compiled


def write_runner(directory: Path, params: Sequence[ParamInfo], platform: str) -> None:
    """``debug/run.py``, by which an author runs the directory again (spec runtime 5.4); it is never worth an error."""
    from pypto.runtime.run_script import write_run_script

    with contextlib.suppress(OSError):
        write_run_script(directory, params, platform=platform)


def prepared(
    program: ir.Program,
    backend_type: Any,
    planner: Planner | None = None,
    dump_dir: Path | None = None,
    after: Callable[[str, ir.Program], None] | None = None,
) -> tuple[Any, ir.Program]:
    """The chip description and the program after all passes."""
    from pypto.ir.lowering.build import fitting, spaces_of
    from pypto.ir.lowering.planners import DEFAULT_PLANNER
    from pypto.ir.passes.pipeline import lowering_passes, placement_passes, run_passes
    from pypto.sim.chips import chip

    generation = GENERATIONS[backend_type.name]
    description = chip(generation)
    capacity = {name: space.capacity_bytes for name, space in spaces_of(description).items()}
    fits = fitting(description, planner or DEFAULT_PLANNER)
    passes = lowering_passes() + placement_passes(generation, capacity, fits)
    return description, run_passes(program, passes, dump_dir, after=after)


def _dump_dir(directory: Path, dump_passes: Any, program: ir.Program) -> Path | None:
    if not dump_passes or getattr(dump_passes, "value", dump_passes) == 0:
        return None
    target = directory / "passes_dump"
    target.mkdir(parents=True, exist_ok=True)
    (target / "00_frontend.py").write_text(program.as_python(), encoding="utf-8")
    return target


def output_directory(name: str, output_dir: str | os.PathLike[str] | None) -> Path:
    """The build directory: the given one, or a new one under ``$PYPTO_PROG_BUILD_DIR`` (default ``build_output``)."""
    if output_dir is not None:
        path = Path(output_dir)
        if path.exists() and not path.is_dir():
            raise NotADirectoryError(f"output_dir {str(path)!r} is a file; name a directory, new or existing")
        path.mkdir(parents=True, exist_ok=True)
        return path.resolve()
    base = Path(os.environ.get("PYPTO_PROG_BUILD_DIR") or "build_output")
    stem = f"{name}_{time.strftime('%Y%m%d_%H%M%S')}"
    for number in range(1_000_000):
        path = base / (stem if not number else f"{stem}_{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return path.resolve()
    raise OSError(f"no free build directory under {base}")

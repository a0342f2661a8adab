"""Programs over several chips: their configuration, their build directory, and calling them (spec distributed 3)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.ir import nodes as ir
from pypto.ir.artifact import signature_of, write_meta
from pypto.ir.compiled_program import ParamInfo
from pypto.ir.dtype import DataType
from pypto.ir.enums import FunctionType, ParamDirection
from pypto.ir.errors import CompileError
from pypto.ir.walk import expressions_of

if TYPE_CHECKING:
    from pypto.ir.compilation import Checks
    from pypto.ir.lowering.planners import Planner

META = "distributed_meta.json"
_DISTRIBUTED_META_FILENAME = META
SCHEMA = 2
HOST_TEXT = "orchestration/host_orch.py"
DEFAULT_RUNTIME = "tensormap_and_ringbuffer"
_STALE = ("compiled_meta.json", "kernel_config.py")


@dataclass
class DistributedConfig:
    """Which chips a program runs on: position in ``device_ids`` is the rank.

    ``num_sub_workers`` is the least number of Python sub-processes, ``aicpu_thread_num`` 0 the chip's default.
    """

    device_ids: list[int] = field(default_factory=lambda: [0])
    num_sub_workers: int = 0
    runtime: str = DEFAULT_RUNTIME
    aicpu_thread_num: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.device_ids, (str, int)) or self.device_ids is None:
            raise TypeError(f"device_ids is a list of device numbers, got {self.device_ids!r}")
        ids = self.device_ids = list(self.device_ids)
        if not ids:
            raise ValueError("device_ids must not be empty")
        for number in ids:
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise ValueError(f"device_ids must be non-negative integers, got {number!r} in {ids}")
        if len(set(ids)) != len(ids):
            raise ValueError(f"device_ids must be distinct, got {ids}")
        if self.num_sub_workers < 0:
            raise ValueError(f"num_sub_workers must be non-negative, got {self.num_sub_workers}")
        if self.aicpu_thread_num < 0 or self.aicpu_thread_num == 1:
            raise ValueError(f"aicpu_thread_num must be 0 (default) or at least 2, got {self.aicpu_thread_num}")


@dataclass(frozen=True)
class SubWorkerSource:
    """A HOST sub-worker: its parameters and its body; ``function`` is ``None`` after a reload."""

    name: str
    required: bool
    text: str
    function: Any = field(default=None, compare=False)


class DistributedCompiledProgram:
    """The result of ``ir.compile`` for a program with a HOST orchestrator; converts to its build directory."""

    __test__ = False

    def __init__(
        self,
        directory: Path,
        platform: str,
        config: DistributedConfig,
        meta: Mapping[str, Any],
        program: ir.Program | None = None,
        sub_workers: Sequence[SubWorkerSource] = (),
    ):
        self._directory, self._platform, self._config = Path(directory), platform, config
        self._meta, self._program, self._sub_workers = dict(meta), program, tuple(sub_workers)
        self.__name__ = str(self._meta["name"])
        self.last_findings: list[Any] = []
        self._stand_ins: dict[str, Any] = {}
        self.checks: tuple[Any, Any, Any] | None = None
        """``checks``, ``checks_mode`` and ``poison`` of its compilation, for calls without a configuration."""

    @property
    def output_dir(self) -> Path:
        """Build directory."""
        return self._directory

    @property
    def platform(self) -> str:
        return self._platform

    @property
    def program(self) -> ir.Program | None:
        """The program after all passes; ``None`` after :meth:`from_dir`."""
        return self._program

    @property
    def distributed_config(self) -> DistributedConfig:
        """The chips it was compiled for."""
        return self._config

    @property
    def sub_workers(self) -> tuple[SubWorkerSource, ...]:
        """HOST sub-workers in program order."""
        return self._sub_workers

    @property
    def chip_tasks(self) -> list[str]:
        """Names of the chip programs under ``next_levels``."""
        return list(self._meta["chip_tasks"])

    @property
    def param_infos(self) -> list[ParamInfo]:
        """Parameters of the HOST orchestrator in call order."""
        return [
            ParamInfo(
                p["name"],
                ParamDirection[p["direction"]],
                None if p["shape"] is None else tuple(p["shape"]),
                DataType.from_string(p["dtype"]),
            )
            for p in self._meta["params"]
        ]

    @property
    def output_indices(self) -> list[int]:
        """Positions of pure ``Out`` parameters."""
        return [i for i, p in enumerate(self._meta["params"]) if p["direction"] == "Out"]

    @property
    def has_return(self) -> bool:
        """True when the HOST orchestrator returns something."""
        return bool(self._meta["num_return_types"] > 0)

    def bind_external(self, name: str, function: Any) -> None:
        """Run ``function`` (on NumPy views of the arguments) on the ranks in place of the C++ kernel ``name``.

        It goes to the ranks that are forked from now on, with everything it closes over.
        """
        self._stand_ins[name] = function

    def _get_metadata(self) -> tuple[list[ParamInfo], list[int], int]:
        return self.param_infos, self.output_indices, int(self._meta["num_return_types"])

    def __call__(self, *args: Any, config: Any = None) -> Any:
        """One-shot run: a worker is opened, used once and closed (spec distributed 3.2).

        The function is looked up at each call, so that a harness can put its own in its place (spec runtime 16.2).
        """
        from pypto.runtime import distributed_runner

        return distributed_runner.execute_distributed(self, args, config)

    def prepare(
        self,
        config: Any = None,
        *,
        extra_compiled: Sequence[DistributedCompiledProgram] = (),
        persistent: bool = False,
        reset_persistent_windows: bool | None = None,
        callbacks: Mapping[str, Any] | None = None,
        sub_worker_overrides: Mapping[str, Any] | None = None,
        startup_timeout_s: float | None = None,
    ) -> Any:
        """A live ``DistributedWorker`` for this program (and ``extra_compiled``)."""
        from pypto.runtime.distributed_worker import DistributedWorker

        return DistributedWorker(
            [self, *extra_compiled],
            config,
            persistent=persistent,
            reset_persistent_windows=reset_persistent_windows,
            callbacks=callbacks,
            sub_worker_overrides=sub_worker_overrides,
            startup_timeout_s=startup_timeout_s,
        )

    @classmethod
    def from_dir(
        cls,
        output_dir: str | os.PathLike[str],
        *,
        platform: str | None = None,
        backend_type: Any = None,
        distributed_config: DistributedConfig | None = None,
    ) -> DistributedCompiledProgram:
        """Reload a build directory; ``FileNotFoundError`` or ``ValueError`` names what is missing or damaged."""
        directory = Path(output_dir).resolve()
        meta = read_meta(directory)
        if backend_type is not None and backend_type.name != meta["backend_type"]:
            raise ValueError(f"{directory} was compiled for {meta['backend_type']}, not {backend_type.name}")
        config = distributed_config or DistributedConfig(**meta["distributed_config"])
        return cls(directory, platform or meta["platform"], config, meta, None, _read_sub_workers(directory))

    def __str__(self) -> str:
        return str(self._directory)

    def __fspath__(self) -> str:
        return str(self._directory)

    def __repr__(self) -> str:
        return f"DistributedCompiledProgram({self._directory})"


def read_meta(directory: Path) -> dict[str, Any]:
    """The sidecar of a distributed build directory, checked."""
    path = directory / META
    if not path.is_file():
        raise FileNotFoundError(
            f"{directory}: no {META}; a program of one chip is reloaded with CompiledProgram.from_dir"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as e:
        raise ValueError(f"{path} is damaged ({e}); compile the program again") from e
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        schema = content.get("schema") if isinstance(content, dict) else None
        raise ValueError(f"{path} has schema {schema!r}, this version reads schema {SCHEMA}; compile the program again")
    for key in ("name", "params", "num_return_types", "platform", "backend_type", "distributed_config", "chip_tasks"):
        if key not in content:
            raise ValueError(f"{path} is damaged ({key} is missing); compile the program again")
    for name in (HOST_TEXT, *(f"next_levels/{task}/kernel_config.py" for task in content["chip_tasks"])):
        if not (directory / name).is_file():
            raise FileNotFoundError(f"{directory / name}: no such file; {path} names it (compile the program again)")
    return content


def _read_sub_workers(directory: Path) -> list[SubWorkerSource]:
    required_path = directory / "sub_workers" / "__required__.json"
    required = set(json.loads(required_path.read_text(encoding="utf-8"))) if required_path.is_file() else set()
    return [
        SubWorkerSource(path.stem, path.stem in required, path.read_text(encoding="utf-8"))
        for path in sorted((directory / "sub_workers").glob("*.py"))
    ]


# --- compiling --------------------------------------------------------------------------------------------------------


def compile_distributed(
    program: ir.Program,
    directory: Path,
    platform: str,
    backend_type: Any,
    distributed_config: DistributedConfig | None,
    dump_passes: Any,
    planner: Planner,
    checks: Checks,
) -> DistributedCompiledProgram:
    """Write the build directory of a program with a HOST orchestrator."""
    from pypto.ir.artifact import write_build
    from pypto.ir.compilation import GENERATIONS, _dump_dir, prepared, write_runner
    from pypto.ir.lowering.build import build
    from pypto.ir.lowering.chip_results import with_result_outputs
    from pypto.ir.lowering.distributed_domains import Domains
    from pypto.ir.lowering.distributed_host import HostLowering
    from pypto.ir.lowering.orchestrators import host_orchestrator, with_chip_programs
    from pypto.ir.passes.outline_chips import outline_chips

    program = with_chip_programs(outline_chips(program))
    chip, ready = prepared(program, backend_type, planner, _dump_dir(directory, dump_passes, program), checks.after)
    ready = with_result_outputs(ready)
    checks.placed(ready, GENERATIONS[backend_type.name], directory)
    host = host_orchestrator(ready)
    _check_lanes(host, chip)
    domains = Domains(host).infer()
    text = HostLowering(host, ready.functions, domains).run()
    entries = [f for f in ready.functions.values() if f.type == FunctionType.Orchestration]
    for entry in entries:
        target = directory / "next_levels" / entry.name
        target.mkdir(parents=True, exist_ok=True)
        write_build(target, build(ready, entry, chip, planner), entry, platform, backend_type.name, DEFAULT_RUNTIME)
        (target / "compiled_meta.json").unlink(missing_ok=True)
    for name in _STALE:
        (directory / name).unlink(missing_ok=True)
    (directory / "orchestration").mkdir(parents=True, exist_ok=True)
    (directory / HOST_TEXT).write_text(text, encoding="utf-8")
    sub_workers = _write_sub_workers(directory, ready)
    config = distributed_config or DistributedConfig()
    meta = {
        "schema": SCHEMA,
        "name": host.name,
        **signature_of(host),
        "platform": platform,
        "backend_type": backend_type.name,
        "distributed_config": asdict(config),
        "chip_tasks": [e.name for e in entries],
    }
    write_meta(directory / META, meta)
    compiled = DistributedCompiledProgram(directory, platform, config, meta, ready, sub_workers)
    write_runner(directory, compiled.param_infos, platform)
    return compiled


def _check_lanes(host: ir.Function, chip: Any) -> None:
    """A collective on more cores than the chip has cannot start (spec distributed 2.13.3)."""
    cores = chip.vector_cores
    for stmt in host.body:
        for expr in expressions_of(stmt):
            lanes = expr.attrs.get("lanes", 1) if isinstance(expr, ir.FunctionCall) else 1
            if lanes > cores:
                raise CompileError(f"core_num={lanes} exceeds the backend AIV core count ({cores})", expr.span)


def _write_sub_workers(directory: Path, program: ir.Program) -> list[SubWorkerSource]:
    sources = []
    for function in program.functions.values():
        python = function.attrs.get("python")
        if python is not None:
            required = bool(function.attrs.get("required"))
            sources.append(SubWorkerSource(function.name, required, function.attrs.get("source", ""), python))
    folder = directory / "sub_workers"
    if sources:
        folder.mkdir(exist_ok=True)
        for source in sources:
            (folder / f"{source.name}.py").write_text(source.text, encoding="utf-8")
        (folder / "__required__.json").write_text(
            json.dumps([s.name for s in sources if s.required]) + "\n", encoding="utf-8"
        )
    return sources


def execute_distributed_compiled(
    output_dir: str | os.PathLike[str],
    args: Sequence[Any],
    config: Any = None,
    *,
    platform: str | None = None,
    distributed_config: DistributedConfig | None = None,
) -> Any:
    """Reload a build directory and run it once."""
    compiled = DistributedCompiledProgram.from_dir(output_dir, platform=platform, distributed_config=distributed_config)
    return compiled(*args, config=config)

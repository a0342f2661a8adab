"""A build directory, loaded: what the runtime launches."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pypto.ir.dtype import DataType
from pypto.sim.assembler import assemble, link
from pypto.sim.distributed import CONTEXT_SHIFT, window_reach
from pypto.sim.distributed_tasks import Exchange
from pypto.sim.emitter import float_word, round_literal
from pypto.sim.external import StandIn
from pypto.sim.launch import Launch, Workspace, tensor_descriptor
from pypto.sim.layout import TENSOR_NAME
from pypto.sim.machine import interpreter
from pypto.sim.manifest import Manifest, read_manifest
from pypto.sim.memory import FIRST_STABLE, Allocations
from pypto.sim.recording import Recording, Words
from pypto.sim.syntax import Group, ScalarParameter, TensorParameter, Unit
from pypto.sim.tasks import Library, TaskPlan, plan
from pypto.sim.text import read_unit
from pypto.sim.tile_program import Submit, TileProgram

if TYPE_CHECKING:
    from pypto.sim.checks.findings import Finding
    from pypto.sim.checks.rank_log import RankLog
    from pypto.sim.checks.run import Report
    from pypto.sim.checks.selection import Checks
    from pypto.sim.crew import LeftBehind
    from pypto.sim.task_log import TaskLog


@dataclass(frozen=True)
class ProgramParameter:
    """One parameter of the program; ``shape`` is ``None`` for scalars and holds -1 for dynamic extents."""

    name: str
    kind: Literal["tensor", "scalar"]
    direction: Literal["in", "out", "inout"]
    dtype: DataType
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class TensorArgument:
    """A C-contiguous tensor: ``address`` of element 0 on the host; ``resident``: not copied by this launch.

    ``context``: address of the context record of a window (:mod:`pypto.sim.distributed`), 0 for other tensors.
    ``device``: address of element 0 in the memory of the chip, 0 for tensors that get one from the launch.
    """

    name: str
    address: int
    shape: tuple[int, ...]
    dtype: DataType
    resident: bool = False
    context: int = 0
    device: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the elements (4-bit dtypes are packed two to a byte)."""
        count = 1
        for extent in self.shape:
            count *= extent
        bits = self.dtype.get_bit()
        return (count * bits + 7) // 8 if bits == 4 else count * self.dtype.get_byte()


@dataclass(frozen=True)
class Execution:
    """What a launch leaves behind: its recording (``None`` unless asked for) and the number of tasks it ran."""

    recording: Recording | None
    tasks: int
    findings: tuple[Finding, ...] = ()
    rank_log: RankLog | None = None
    left_behind: tuple[tuple[TaskPlan, LeftBehind], ...] = ()
    log: TaskLog | None = None


class LoadedProgram:
    """An orchestration and its kernels, ready to execute; may be executed from several threads at once."""

    def __init__(
        self,
        orchestration: TileProgram,
        kernels: dict[str, TileProgram],
        groups: dict[str, Group],
        manifest: Manifest | None = None,
    ):
        self.name = orchestration.name
        self.manifest = manifest
        self.orchestration, self.kernels, self.groups = orchestration, kernels, groups
        externals = {entry.name: entry.core for entry in manifest.externals} if manifest else {}
        self._library = Library(kernels, groups, externals)
        self.params = tuple(_parameter(parameter) for parameter in orchestration.parameters)
        self._plans = self._plan()
        self._workspaces: deque[Workspace] = deque()
        self._places = self._parameter_words()
        self.gathers = any(call.row.kernel == "gather.flat" for kernel in kernels.values() for call in kernel.calls)
        self._last_bound: _Bound | None = None

    @property
    def externals(self) -> tuple[str, ...]:
        """Names of the C++ kernels, which only a stand-in can run."""
        return tuple(self._library.externals)

    def _plan(self) -> dict[int, TaskPlan]:
        plans = {}
        for site, request in enumerate(self.orchestration.requests):
            if isinstance(request, Submit):
                plans[site] = plan(request, request.index, self.orchestration, self._library)
        return plans

    def _parameter_words(self) -> Words:
        words = [
            np.arange(b.offset, b.offset + (TENSOR_NAME if b.is_tensor else 1)) for b in self.orchestration.bindings
        ]
        return np.concatenate(words or [np.zeros(0, np.int64)]).astype(np.int64)

    def execute(
        self,
        args: Sequence[TensorArgument | int | float],
        *,
        record: bool = False,
        clusters: int = 24,
        threads: int | None = None,
        platform: str = "",
        stand_ins: Mapping[str, StandIn] | None = None,
        exchange: Exchange | None = None,
        checks: Checks | None = None,
        log: TaskLog | None = None,
        behind: int = FIRST_STABLE,
    ) -> Execution:
        """Run the program once.

        ``args`` in parameter order. ``record``: keep what the tasks did. ``clusters``: cube cores of the chip, which
        limits how many blocks can wait for each other. ``threads``: host threads (default: all); values do not depend
        on it. ``stand_ins``: Python functions for the C++ kernels, by name (external.py). ``exchange``: how the
        launch reaches other ranks, for programs with windows. ``checks``: what is looked for on the way
        (:mod:`pypto.sim.checks`). ``log``: notes arguments and scopes of the tasks. ``behind``: chip addresses below
        it belong to buffers that outlive the launch.
        Raises ``TypeError`` for arguments that do not fit, ``ExecutionError`` for what goes
        wrong while running, its subclass ``CheckError`` for what the checks find.
        """

        def run(report: Report | None = None) -> Execution:
            return self._execute(
                args, record=record, clusters=clusters, threads=threads, platform=platform, stand_ins=stand_ins,
                exchange=exchange, report=report, log=log, behind=behind,
            )  # fmt: skip

        if not checks:
            return run()
        from pypto.sim.checks.run import execute_checked

        return execute_checked(self, platform, checks, run)

    def execute_observed(self, args: Sequence[TensorArgument | int | float], watch: Any, **options: Any) -> Execution:
        """Run the program once with ``watch`` looking at every block; ``watch.begin(tensors, numbers)`` gives it."""
        defaults = {
            "record": False, "threads": 1, "stand_ins": None, "exchange": None, "log": None, "behind": FIRST_STABLE,
        }  # fmt: skip
        return self._execute(args, report=watch, **{**defaults, **options})

    def _execute(
        self,
        args: Sequence[TensorArgument | int | float],
        *,
        record: bool,
        clusters: int,
        threads: int | None,
        platform: str,
        stand_ins: Mapping[str, StandIn] | None,
        exchange: Exchange | None,
        report: Report | None,
        log: TaskLog | None,
        behind: int,
    ) -> Execution:
        bound = self._bind(args, behind)
        try:
            workspace = self._workspaces.popleft()
        except IndexError:
            workspace = Workspace()
        try:
            workspace.reset()
            launch = Launch(
                self.orchestration, self._plans, workspace, bound.allocations.copy(),
                record=record, clusters=clusters, threads=threads, stand_ins=stand_ins, exchange=exchange,
                watch=None if report is None else report.begin(bound.tensors, bound.numbers),
                indices=None if report is None else report.indices, log=log,
            )  # fmt: skip
            launch.run(self._places, bound.words)
            if report is not None:
                report.orchestrated(launch)
            recording = None
            if record:
                trace = workspace.trace
                table = launch.allocations.table()
                recording = launch.recorder.recording(
                    self.name, platform, trace.rows[: trace.used].copy(), bound.arguments.copy(), table
                )
            launch.leave()
            return Execution(recording, launch.tasks, log=log, left_behind=tuple(launch.left_behind))
        finally:
            self._workspaces.append(workspace)

    def _bind(self, args: Sequence[TensorArgument | int | float], behind: int) -> _Bound:
        """Arguments as frame words. A benchmark passes equal arguments again and again: the last ones are kept."""
        if len(args) != len(self.params):
            raise TypeError(f"{self.name} takes {len(self.params)} arguments, found {len(args)}")
        key = [a if isinstance(a, TensorArgument) else _scalar_word(self.name, p, a) for p, a in zip(self.params, args)]
        last = self._last_bound
        if last is None or last.key != key or last.behind != behind:
            last = self._last_bound = self._bind_anew(key, behind)
        return last

    def _bind_anew(self, key: list[TensorArgument | int], behind: int) -> _Bound:
        tensors = [item for item in key if isinstance(item, TensorArgument)]
        sizes = [tensor.nbytes for tensor in tensors]
        allocations = Allocations(behind)
        plain = [(a.address, size) for a, size in zip(tensors, sizes) if not a.context]
        found = iter(allocations.add_arguments(plain, [a.device for a in tensors if not a.context]))
        numbers = [_add_window(allocations, a, n) if a.context else next(found) for a, n in zip(tensors, sizes)]
        words: list[int] = []
        rows: list[tuple[int, bool, bool, bool]] = []
        for parameter, item in zip(self.params, key):
            if isinstance(item, TensorArgument):
                _check_tensor(self.name, parameter, item)
                size = sizes[len(rows)]
                flags = item.context << CONTEXT_SHIFT
                words += tensor_descriptor(item.address, item.shape, item.dtype, numbers[len(rows)], size, flags)
                rows.append((size, parameter.direction != "out", parameter.direction != "in", item.resident))
            else:
                words.append(item)
        table = np.array(rows, np.int64).reshape(-1, 4)
        return _Bound(key, np.array(words, np.int64), table, allocations, tensors, numbers, behind)


def _add_window(allocations: Allocations, window: TensorArgument, nbytes: int) -> int:
    """Id of a window; those of its peers lie around it, where it has a place on the chip or in the launch."""
    if window.device:
        return allocations.add(window.address, nbytes, window.device)
    return allocations.add_window(window.address, nbytes, *window_reach(window.context))


@dataclass(frozen=True)
class _Bound:
    """Arguments of a launch: frame words in the order of the parameters, and the recording's rows about tensors."""

    key: list[TensorArgument | int]
    words: Words
    arguments: Words
    allocations: Allocations
    tensors: list[TensorArgument]
    numbers: list[int]  # allocation of every tensor
    behind: int


def _parameter(parameter: TensorParameter | ScalarParameter) -> ProgramParameter:
    dtype = DataType.from_string(parameter.dtype)
    if isinstance(parameter, TensorParameter):
        return ProgramParameter(parameter.name, "tensor", parameter.direction, dtype, parameter.shape)
    return ProgramParameter(parameter.name, "scalar", "in", dtype, None)


def _check_tensor(program: str, parameter: ProgramParameter, argument: TensorArgument) -> None:
    shape = parameter.shape
    if shape is None:
        raise TypeError(f"{program}: '{parameter.name}' is a scalar, found a tensor")
    if shape == argument.shape and argument.dtype is parameter.dtype:
        return
    fits = len(shape) == len(argument.shape) and all(e in (-1, a) for e, a in zip(shape, argument.shape))
    if not fits or argument.dtype != parameter.dtype:
        raise TypeError(
            f"{program}: '{parameter.name}' expects shape {shape} and dtype {parameter.dtype}, found "
            f"{tuple(argument.shape)} and {argument.dtype}"
        )


def _scalar_word(program: str, parameter: ProgramParameter, value: int | float) -> int:
    if parameter.kind == "tensor":
        raise TypeError(f"{program}: '{parameter.name}' is a tensor, found {value!r}")
    if parameter.dtype.is_float():
        return float_word(round_literal(float(value), parameter.dtype))
    if isinstance(value, float):
        raise TypeError(f"{program}: '{parameter.name}' expects an integer ({parameter.dtype}), found {value!r}")
    if parameter.dtype.category == "bool":
        return int(bool(value))
    bits = parameter.dtype.get_bit()
    wrapped = int(value) & ((1 << bits) - 1)
    signed = not parameter.dtype.is_unsigned_int() or bits == 64
    return wrapped - (1 << bits) if signed and wrapped >> (bits - 1) else wrapped


def load_program(build_dir: Path) -> LoadedProgram:
    """Assemble the texts of ``build_dir``.

    ``FileNotFoundError`` names a missing file; ``ValueError`` names the damaged one, its line and what is wrong.
    """
    manifest = read_manifest(Path(build_dir))
    orchestration = _read(manifest.orchestration, None)
    kernels = {entry.name: _read(entry.source, entry.core) for entry in manifest.kernels}
    groups = {entry.name: Group(entry.name, entry.aic, entry.aiv, entry.lanes) for entry in manifest.groups}
    loaded = LoadedProgram(orchestration, kernels, groups, manifest)
    link(kernels.values())
    interpreter()
    return loaded


def _read(path: Path, core: str | None) -> TileProgram:
    unit = read_unit(path)
    if not isinstance(unit, Unit) or unit.core != core:
        wanted = "an orchestration" if core is None else f"an {core} kernel"
        found = (
            "a group"
            if isinstance(unit, Group)
            else "an orchestration"
            if unit.core is None
            else f"an {unit.core} kernel"
        )
        raise ValueError(f"{path}:1: expected {wanted}, found {found} (@{unit.name})")
    return assemble(unit, path.read_text("utf-8"), str(path))

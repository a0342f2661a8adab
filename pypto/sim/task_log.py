"""What the tasks of a launch were given: their arguments, the tensors' contents, the scopes they were submitted in.

A recording holds what the timing engine needs and no more; diagnostics ask for a log beside it. A log costs a launch
without one nothing.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Final, Literal

import numpy as np

from pypto.ir.dtype import FP32, INT64, DataType
from pypto.sim import layout
from pypto.sim.dependencies import INOUT, INPUT, NO_DEP, OUTPUT, OUTPUT_EXISTING, TensorMap
from pypto.sim.emitter import word_float
from pypto.sim.external import tensor_view
from pypto.sim.memory import Allocations
from pypto.sim.recording import Words
from pypto.sim.syntax import TensorParameter
from pypto.sim.tasks import TaskPlan
from pypto.sim.tile_program import TileProgram

Role = Literal["input", "output", "inout"]
Stage = Literal["before_dispatch", "after_completion"]
Capture = Literal["none", "marked", "all"]

_TENSOR_WORDS: Final = layout.TENSOR_NAME  # of a descriptor among the values of a submit
_IN_MEMORY_BYTES: Final = 64 << 20  # contents beyond that wait in a temporary file
_ROLES: Final[dict[int, Role]] = {INPUT: "input", OUTPUT: "output", OUTPUT_EXISTING: "output", INOUT: "inout"}
_UNTRACKED: Final = {"in": INPUT, "out": OUTPUT_EXISTING, "inout": INOUT}


@dataclass(frozen=True)
class TensorValue:
    """A tensor argument. ``index`` counts the tensors of the task.

    ``buffer`` is the address of the whole tensor the argument is (a window of); ``start`` counts from there, in
    elements like ``strides``. ``direction`` is a code of :mod:`pypto.sim.dependencies`; one that takes no part in
    dependencies has that of the kernel's parameter, and ``tracked`` is false.
    """

    index: int
    direction: int
    tracked: bool
    marked: bool
    dtype: DataType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int
    allocation: int
    buffer: int
    words: Words = field(repr=False)

    @property
    def role(self) -> Role:
        return _ROLES[self.direction]

    @property
    def modified(self) -> bool:
        """Whether later tasks may have to wait for this one because of the argument."""
        return self.tracked and self.direction in (INOUT, OUTPUT_EXISTING)

    @property
    def elements(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_contiguous(self) -> bool:
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
            if extent != 1 and stride != expected:
                return False
            expected *= extent
        return True

    def reach(self) -> tuple[int, int]:
        """Addresses [first, last) of the bytes between the first element and the last; empty without elements."""
        first = int(self.words[layout.TENSOR_ADDRESS])
        if 0 in self.shape:
            return first, first
        last = sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides))
        return first, first + (last // 2 + 1 if self.dtype.get_bit() == 4 else (last + 1) * self.dtype.get_byte())

    def content(self) -> bytes:
        """The elements as they are now, row by row; packed 4-bit elements as the bytes that hold them."""
        return np.ascontiguousarray(tensor_view(self.words)).tobytes()


@dataclass(frozen=True)
class ScalarValue:
    """A scalar argument; ``index`` counts the scalars of the task and goes on from its tensors."""

    index: int
    dtype: DataType
    value: int | float


@dataclass(frozen=True)
class Content:
    """Where the bytes of tensor ``index`` of a task lie among the contents of the log."""

    index: int
    stage: Stage
    offset: int
    size: int


@dataclass(frozen=True)
class ScopeEdge:
    """A scope begins or ends at a statement.

    ``inserted`` and ``removed``: entries of the tensor map per task, beside the edge before this one.
    """

    file: str
    line: int
    inserted: Counter[int]
    removed: Counter[int]


@dataclass(frozen=True)
class _Submitted:
    plan: TaskPlan
    values: Words


class TaskLog:
    """Filled by one launch.

    ``capture``: whose contents are kept, inputs as they are before the task and outputs as they are after it.
    """

    def __init__(self, capture: Capture = "none"):
        self.capture: Capture = capture
        self.scopes: list[ScopeEdge] = []  # the last is the end of the launch
        self._contents: dict[int, list[Content]] = {}
        self.allocations = Allocations()
        self._modifiers: Counter[int] = Counter()
        self._tasks: list[_Submitted | None] = []
        self._begun: set[int] = set()
        self._bytes: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115 - the log's
        self._used = 0

    # --- filled by the launch -----------------------------------------------------------------------------------------

    def submitted(self, plan: TaskPlan | None, values: Words) -> None:
        """The next task, in submit order; ``None`` for a dummy."""
        self._tasks.append(None if plan is None else _Submitted(plan, values.copy()))

    def before(self, task: int) -> None:
        """The task is about to start."""
        if task not in self._begun:
            self._begun.add(task)
            self._keep(task, "before_dispatch", ("input", "inout"))

    def after(self, task: int) -> None:
        """The task has ended."""
        self._keep(task, "after_completion", ("output", "inout"))

    def scope(self, orchestration: TileProgram, index: int, tensor_map: TensorMap) -> None:
        """A scope begins or ends at instruction ``index``."""
        place = orchestration.place(index)
        file, line = (orchestration.files.get(place.file, ""), place.line) if place is not None else ("", 0)
        self._edge(file, line, tensor_map)

    def finish(self, allocations: Allocations, tensor_map: TensorMap) -> None:
        """The launch has ended."""
        self.allocations = allocations
        self._edge("", 0, tensor_map)

    def _edge(self, file: str, line: int, tensor_map: TensorMap) -> None:
        now = Counter(tensor_map.modifiers())
        self.scopes.append(ScopeEdge(file, line, now - self._modifiers, self._modifiers - now))
        self._modifiers = now

    def _keep(self, task: int, stage: Stage, roles: Sequence[Role]) -> None:
        if self.capture == "none":
            return
        for tensor in self.tensors(task):
            if tensor.role in roles and (tensor.marked or self.capture == "all"):
                data = tensor.content()
                self._bytes.write(data)
                self._contents.setdefault(task, []).append(Content(tensor.index, stage, self._used, len(data)))
                self._used += len(data)

    # --- read afterwards ----------------------------------------------------------------------------------------------

    @property
    def tasks(self) -> int:
        return len(self._tasks)

    @property
    def begun(self) -> frozenset[int]:
        """Tasks that ran; a false predicate keeps one from running."""
        return frozenset(self._begun)

    @property
    def content_bytes(self) -> int:
        return self._used

    def contents_of(self, task: int) -> list[Content]:
        """What was kept of the tensors of a task."""
        return self._contents.get(task, [])

    def copy_contents(self, target: IO[bytes]) -> None:
        """Write all contents, one after the other, to ``target``."""
        self._bytes.seek(0)
        while chunk := self._bytes.read(1 << 20):
            target.write(chunk)

    def kernels(self, task: int) -> list[str]:
        """Names of the kernels of a task: cube before vector, the stand-in's for a hand-written one."""
        entry = self._tasks[task]
        if entry is None:
            return []
        return [member.program.name for member in entry.plan.members] or [entry.plan.request.kernel]

    def tensors(self, task: int) -> list[TensorValue]:
        """Tensor arguments of a task in the order of the kernel's parameters."""
        return [v for v in self._arguments(task) if isinstance(v, TensorValue)]

    def scalars(self, task: int) -> list[ScalarValue]:
        """Scalar arguments of a task in the order of the kernel's parameters."""
        return [v for v in self._arguments(task) if isinstance(v, ScalarValue)]

    def _arguments(self, task: int) -> list[TensorValue | ScalarValue]:
        entry = self._tasks[task]
        if entry is None:
            return []
        plan, at = entry.plan, 0
        found: list[TensorValue | ScalarValue] = []
        tensors, scalars = 0, len(plan.tensors)
        for position, (is_tensor, _) in enumerate(plan.request.arguments):
            if is_tensor:
                found.append(_tensor(plan, position, tensors, entry.values[at : at + _TENSOR_WORDS]))
                tensors, at = tensors + 1, at + _TENSOR_WORDS
            else:
                found.append(_scalar(plan, position, scalars, int(entry.values[at])))
                scalars, at = scalars + 1, at + 1
        return found


def _tensor(plan: TaskPlan, position: int, index: int, words: Words) -> TensorValue:
    dtype, rank = DataType.from_code(int(words[layout.TENSOR_DTYPE])), int(words[layout.TENSOR_RANK])
    direction = plan.request.directions[position]
    tracked = direction != NO_DEP
    if not tracked:
        parameter = plan.members[0].program.parameters[position] if plan.members else None
        direction = _UNTRACKED[parameter.direction] if isinstance(parameter, TensorParameter) else INPUT
    buffer = int(words[layout.TENSOR_LOW])
    return TensorValue(
        index,
        direction,
        tracked,
        position in plan.request.dumped,
        dtype,
        tuple(words[layout.TENSOR_EXTENTS : layout.TENSOR_EXTENTS + rank].tolist()),
        tuple(words[layout.TENSOR_STRIDES : layout.TENSOR_STRIDES + rank].tolist()),
        elements_in(int(words[layout.TENSOR_ADDRESS]) - buffer, dtype),
        int(words[layout.TENSOR_ALLOCATION]),
        buffer,
        words,
    )


def _scalar(plan: TaskPlan, position: int, index: int, word: int) -> ScalarValue:
    is_float = position in plan.request.floats
    if plan.members:
        dtype = DataType.from_string(plan.members[0].program.parameters[position].dtype)
    else:
        dtype = FP32 if is_float else INT64
    if dtype.is_float():
        return ScalarValue(index, dtype, word_float(word))
    if dtype.category == "bool":
        return ScalarValue(index, dtype, bool(word))
    return ScalarValue(index, dtype, word % 2 ** dtype.get_bit() if dtype.is_unsigned_int() else word)


def elements_in(size: int, dtype: DataType) -> int:
    """Elements of ``dtype`` that ``size`` bytes hold."""
    return size * 2 if dtype.get_bit() == 4 else size // dtype.get_byte()


__all__ = ["Capture", "Content", "ScalarValue", "ScopeEdge", "TaskLog", "TensorValue", "elements_in"]

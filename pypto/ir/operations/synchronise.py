"""Barriers, events, caches and task ids (spec ops 16)."""

from __future__ import annotations

from typing import Annotated, Any

from pypto.ir.dtype import BOOL, INDEX, INT32, INT64, TASK_ID
from pypto.ir.enums import PipeType
from pypto.ir.nodes import Const, Dim, Expr, NoneType, ScalarType, TensorType, Type
from pypto.ir.operations import dims, results
from pypto.ir.operations.errors import OperandTypeError, OperandValueError
from pypto.ir.operations.kinds import Index, Option, Scalar
from pypto.ir.operations.parameters import Dims
from pypto.ir.operations.row import Lowering
from pypto.ir.operations.show import show
from pypto.ir.operations.table import define

_EVENTS = 14
_FFTS_WORDS = 256
_SOFT_BARRIER_WORDS = 16

Event = Annotated[Dim, Index((INDEX,))]
Core = Annotated[str, Option((str,), ("aic", "aiv"))]
CoreSet = Annotated[str, Option((str,), ("mix", "aiv_only", "aic_only"))]
BarrierMode = Annotated[str, Option((str,), ("hard", "soft"))]
Count = Annotated[Dim, Index((INT32,))]
TaskId = Annotated[Expr, Scalar((TASK_ID,))]


def _need_event(event_id: Dim) -> None:
    known = dims.constant(event_id)
    if known is not None and not 0 <= known < _EVENTS:
        raise OperandValueError(f"event_id is {known}; legal: 0 to {_EVENTS - 1}")


def _flag(*, set_pipe: PipeType, wait_pipe: PipeType, event_id: Event) -> Type:
    _need_event(event_id)
    return NoneType()


def _set(event_id: Event, *, pipe: PipeType, ffts_mode: int | None = None, core_type: Core | None = None) -> Type:
    _need_event(event_id)
    if ffts_mode is not None and ffts_mode not in (0, 1, 2):
        raise OperandValueError(f"ffts_mode is {ffts_mode}; legal: 0, 1, 2")
    return NoneType()


def _wait(event_id: Event, *, pipe: PipeType, core_type: Core | None = None) -> Type:
    _need_event(event_id)
    return NoneType()


def _set_ffts(workspace: TensorType) -> Type:
    if len(workspace.shape) != 1 or workspace.dtype != INT64:
        raise OperandTypeError(f"workspace must be an INT64 tensor with one axis, got a {show(workspace)}")
    if dims.less(workspace.shape[0], _FFTS_WORDS):
        raise OperandValueError(f"workspace has {dims.text(workspace.shape[0])} words; it needs {_FFTS_WORDS}")
    return NoneType()


def _nothing() -> Type:
    return NoneType()


def _cacheinvalid(tensor: TensorType | None = None, shapes: Dims | None = None, offsets: Dims | None = None) -> Type:
    given = [value is not None for value in (tensor, shapes, offsets)]
    if any(given) and not all(given):
        raise OperandTypeError("takes nothing, or tensor, shapes and offsets together")
    if tensor is not None and shapes is not None and offsets is not None:
        rank = len(tensor.shape)
        if len(shapes) != rank or len(offsets) != rank:
            raise OperandValueError(f"shapes and offsets must have {rank} entries for the {show(tensor)}")
    return NoneType()


def _syncall(
    *,
    core_type: CoreSet = "mix",
    mode: BarrierMode = "hard",
    gm_workspace: TensorType | None = None,
    used_cores: Count | None = None,
) -> Type:
    if mode == "hard":
        if gm_workspace is not None or used_cores is not None:
            raise OperandValueError("mode='hard' takes neither gm_workspace nor used_cores")
        return NoneType()
    if gm_workspace is None or used_cores is None:
        raise OperandValueError("mode='soft' needs gm_workspace and used_cores")
    results.need_dtype(gm_workspace, (INT32,), "gm_workspace")
    if dims.less(dims.product(gm_workspace.shape), _SOFT_BARRIER_WORDS):
        raise OperandValueError(
            f"gm_workspace {dims.listing(gm_workspace.shape)} must hold at least {_SOFT_BARRIER_WORDS} words"
        )
    if dims.less(used_cores, 0):
        raise OperandValueError(f"used_cores is {dims.text(used_cores)}; it must not be negative")
    return NoneType()


def _task_invalid() -> Type | Expr:
    return Const(None, TASK_ID)


def _task_dummy(*, deps: Any) -> Type:
    return ScalarType(TASK_ID)


def _task_is_valid(task: TaskId) -> Type:
    return ScalarType(BOOL)


def _marker(tensor: TensorType) -> Type:
    return NoneType()


def _no_dep(tensor: TensorType) -> Type:
    raise OperandTypeError("marks an argument of a kernel call and has no value of its own")


_SYNC: dict[str, Any] = {"kind": "sync", "spec": "16"}
_TASK: dict[str, Any] = {"kind": "system", "spec": "16"}
define("system.sync_src", _flag, **_SYNC, summary="set a flag between pipes; the machine orders pipes itself")
define("system.sync_dst", _flag, **_SYNC, summary="wait for a flag between pipes; the machine orders pipes itself")
define(
    "system.sync_set",
    _set,
    **_SYNC,
    summary="set a cross-core event",
    lowering=Lowering("sync_set", ("event_id",), {"pipe": "pipe", "ffts_mode": "ffts_mode", "core": "core_type"}),
)
define(
    "system.sync_wait",
    _wait,
    **_SYNC,
    summary="wait for a cross-core event",
    lowering=Lowering("sync_wait", ("event_id",), {"pipe": "pipe", "core": "core_type"}),
)
define("system.set_ffts", _set_ffts, **_SYNC, summary="workspace of cross-core events; no effect here")
for _name, _pipe in (("bar_v", PipeType.V), ("bar_m", PipeType.M), ("bar_all", PipeType.ALL)):
    define(
        f"system.{_name}",
        _nothing,
        **_SYNC,
        summary=f"wait until pipe {_pipe} has drained",
        lowering=Lowering("pipe_barrier", (), {"pipe": int(_pipe)}),
    )
define("system.fence", _nothing, **_SYNC, lowering=Lowering("fence", ()), summary="order the accesses to GM")
define(
    "system.cacheinvalid", _cacheinvalid, **_SYNC, lowering=Lowering("cacheinvalid", ()), summary="drop cached lines"
)
define(
    "system.syncall",
    _syncall,
    **_SYNC,
    summary="wait for all blocks of the launch",
    lowering=Lowering("syncall", (), {"core_type": "core_type"}),
)
define("system.task_invalid", _task_invalid, **_TASK, summary="the task id that names no producer")
define("system.task_dummy", _task_dummy, **_TASK, summary="a task id that is ready when all deps are")
define("system.task_is_valid", _task_is_valid, **_TASK, summary="whether a task id names a producer")
define(
    "tensor.no_dep",
    _no_dep,
    promoted=("no_dep",),
    **_TASK,
    summary="drops an argument of a kernel call from dependency tracking",
)
define(
    "tensor.dump_tag",
    _marker,
    promoted=("dump_tag",),
    kind="debug",
    spec="20",
    summary="later kernel calls that take the tensor dump it",
)

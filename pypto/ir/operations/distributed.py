"""Windows, one-sided transfers and signals between ranks (spec distributed 2.1 to 2.11)."""

from __future__ import annotations

from typing import Annotated, Any

from pypto.ir.dtype import BF16, BOOL, FP16, FP32, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, DataType
from pypto.ir.enums import AtomicType, MemorySpace, NotifyOp, WaitCmp
from pypto.ir.nodes import Const, Dim, Expr, NoneType, OpaqueType, ScalarType, TensorType, TileType, Type, as_dim
from pypto.ir.operations import dims, results, windows
from pypto.ir.operations.errors import OperandTypeError, OperandValueError
from pypto.ir.operations.kinds import Option
from pypto.ir.operations.movement import need_atomic
from pypto.ir.operations.parameters import Dims, OffsetScalar, StaticDims, Word32
from pypto.ir.operations.show import show
from pypto.ir.operations.table import define

COMM_CTX = OpaqueType("CommCtx")
POINTER = OpaqueType("Ptr")
WINDOW_DTYPES = (FP16, FP32, BF16, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, BOOL)
"""Element types a window may hold (spec distributed 2.3)."""
MAX_EXPECTED = 2**31 - 1

NotifyKind = Annotated[NotifyOp, Option((NotifyOp,))]
Comparison = Annotated[WaitCmp, Option((WaitCmp,))]


def need_window(tensor: Type, what: str) -> TensorType:
    """``tensor`` when it is window-bound; ``OperandTypeError`` otherwise."""
    if not isinstance(tensor, TensorType) or not tensor.distributed:
        raise OperandTypeError(f"{what} must be window-bound (a pld.DistributedTensor), got a {show(tensor)}")
    return tensor


def need_signal(tensor: Type, what: str = "signal") -> TensorType:
    """A window of INT32 cells."""
    signal = need_window(tensor, what)
    if signal.dtype != INT32:
        raise OperandValueError(f"{what} must hold INT32 cells, got {signal.dtype.constant}")
    return signal


def _need_rank(values: tuple[Dim, ...], rank: int, name: str) -> None:
    if len(values) != rank:
        raise OperandValueError(f"{name} {dims.listing(values)} has {len(values)} entries for {rank} axes")


def need_region(offsets: tuple[Dim, ...], extents: tuple[Dim, ...], target: TensorType, phrase: str) -> None:
    """``OperandValueError`` when the region provably leaves the target."""
    windows.need_offsets(offsets, len(target.shape))
    for axis, (offset, extent, room) in enumerate(zip(offsets, extents, target.shape)):
        if dims.less(room, dims.add(offset, extent)):
            raise OperandValueError(
                f"{phrase}: axis {axis} needs {dims.text(offset)} + {dims.text(extent)}, "
                f"the target has {dims.text(room)}"
            )


# --- ranks and contexts -----------------------------------------------------------------------------------------------


def _world_size() -> Type:
    return ScalarType(INT64)


def _get_comm_ctx(dist_tensor: TensorType) -> Type:
    need_window(dist_tensor, "dist_tensor")
    return COMM_CTX


def _rank(ctx: OpaqueType) -> Type:
    if ctx != COMM_CTX:
        raise OperandTypeError(f"ctx must be a CommCtx from pld.get_comm_ctx, got a {ctx.name}")
    return ScalarType(INT32)


# --- windows ----------------------------------------------------------------------------------------------------------


def _alloc_window_buffer(size: Any, *, dtype: DataType | None = None, name: str = "") -> Type:
    is_shape = isinstance(size, tuple)
    if is_shape and dtype is None:
        raise OperandValueError("the shape form needs dtype=; an integer without dtype is a number of bytes per rank")
    if not is_shape and dtype is not None:
        raise OperandValueError("dtype= belongs to the shape form; an integer is a number of bytes per rank")
    if is_shape and not size:
        raise OperandValueError("the shape is empty")
    for extent in size if is_shape else (size,):
        dim = as_dim(extent)
        if isinstance(dim, int) and dim <= 0:
            raise OperandValueError(f"a window buffer needs positive extents, got {dims.text(dim)}")
    if dtype is not None:
        need_window_dtype(dtype)
    return POINTER


def need_window_dtype(dtype: DataType) -> None:
    """``OperandValueError`` for element types that no window holds."""
    if dtype not in WINDOW_DTYPES:
        legal = ", ".join(d.constant for d in WINDOW_DTYPES)
        raise OperandValueError(f"a window of {dtype.constant} does not exist; legal: {legal}")


def _window(buf: OpaqueType, shape: Dims, *, dtype: DataType) -> Type:
    if buf != POINTER:
        raise OperandTypeError(f"buf must be a Ptr from pld.alloc_window_buffer, got a {buf.name}")
    need_window_dtype(dtype)
    if not shape:
        raise OperandValueError("the shape of a window is empty")
    return TensorType(tuple(shape), dtype, None, True)


# --- one-sided transfers ----------------------------------------------------------------------------------------------


def _remote_load(
    target: TensorType, peer: OffsetScalar, offsets: Dims, shape: StaticDims, valid_shape: Dims | None = None
) -> TileType:
    need_window(target, "target")
    rank = len(target.shape)
    _need_rank(offsets, rank, "offsets")
    _need_rank(shape, rank, "shape")
    if valid_shape is not None:
        _need_rank(valid_shape, rank, "valid_shape")
        windows.need_request(valid_shape, shape)
    reach = shape if valid_shape is None else valid_shape
    need_region(offsets, reach, target, "reads past the end of dimension")
    return results.tile(shape, target.dtype, MemorySpace.Vec, valid=valid_shape)


def _check_remote_store(
    source: TileType | TensorType, target: TensorType, offsets: tuple[Dim, ...], atomic: AtomicType
) -> None:
    need_window(target, "target")
    rank = len(target.shape)
    if rank < 2:
        raise OperandValueError(f"target needs two axes or more, got a {show(target)}")
    if source.dtype != target.dtype:
        raise OperandValueError(f"source is {source.dtype.constant}, target is {target.dtype.constant}")
    _need_rank(offsets, rank, "offsets")
    need_atomic(atomic, target)
    if len(source.shape) == rank:
        need_region(offsets, tuple(source.valid_shape), target, "exceeds the peer's target region")
    elif len(source.shape) != 2:
        raise OperandValueError(f"source must have 2 or {rank} axes, got a {show(source)}")


def _tile_remote_store(
    src_tile: TileType, target: TensorType, peer: OffsetScalar, offsets: Dims, *, atomic: AtomicType = AtomicType.None_
) -> Type:
    if src_tile.space not in (None, MemorySpace.Vec, MemorySpace.Acc):
        raise OperandValueError(f"a tile in {src_tile.space.name} cannot be stored to a peer; legal: Vec, Acc")
    _check_remote_store(src_tile, target, offsets, atomic)
    return NoneType()


def _tensor_remote_store(
    src: TensorType, target: TensorType, peer: OffsetScalar, offsets: Dims, *, atomic: AtomicType = AtomicType.None_
) -> Type:
    if src.distributed:
        raise OperandTypeError("src must be a plain tensor; pld.tensor.put transfers from a window")
    _check_remote_store(src, target, offsets, atomic)
    return NoneType()


# --- signals ----------------------------------------------------------------------------------------------------------


def _notify(target: TensorType, peer: OffsetScalar, offsets: Dims, value: Word32, *, op: NotifyKind) -> Type:
    need_window(target, "target")
    need_region(offsets, (1,) * len(target.shape), target, "the cell lies outside the signal")
    return NoneType()


def _wait(signal: TensorType, offsets: Dims, expected: Word32, *, cmp: Comparison) -> Type:
    need_signal(signal)
    need_region(offsets, (1,) * len(signal.shape), signal, "the cell lies outside the signal")
    return NoneType()


def _defer_wait(signal: TensorType, offsets: Dims, expected: Word32, *, cmp: Comparison) -> Type:
    if cmp is not WaitCmp.Ge:
        raise OperandValueError("cmp of a deferred wait is pld.WaitCmp.Ge; the counter is monotonic")
    if isinstance(expected, Const) and not 0 <= int(expected.value or 0) <= MAX_EXPECTED:
        raise OperandValueError(f"expected is {expected.value}; a deferred wait compares with 0 to {MAX_EXPECTED}")
    return _wait(signal, offsets, expected, cmp=cmp)


_SYSTEM: dict[str, Any] = {"kind": "system", "spec": "distributed 2.1"}
_MEMORY: dict[str, Any] = {"kind": "memory", "spec": "distributed 2.6"}
_SYNC: dict[str, Any] = {"kind": "sync", "spec": "distributed 2.8"}
define("pld.system.world_size", _world_size, **_SYSTEM, summary="number of ranks the program runs on; HOST only")
define("pld.system.get_comm_ctx", _get_comm_ctx, **_SYSTEM, summary="communication context of a window")
define("pld.system.rank", _rank, **_SYSTEM, summary="this rank's index in its domain")
define("pld.system.nranks", _rank, **_SYSTEM, summary="number of ranks in the domain")
define(
    "pld.tensor.alloc_window_buffer",
    _alloc_window_buffer,
    kind="memory",
    spec="distributed 2.4",
    summary="symmetric memory on every rank of a domain; HOST only",
)
define("pld.tensor.window", _window, kind="memory", spec="distributed 2.4", summary="a typed view of a window buffer")
define("pld.tile.remote_load", _remote_load, **_MEMORY, summary="a rectangle of a peer's window as a tile")
define("pld.tile.remote_store", _tile_remote_store, **_MEMORY, summary="write or add a tile into a peer's window")
define("pld.tensor.remote_store", _tensor_remote_store, **_MEMORY, summary="write or add a tensor into a peer's window")
define("pld.system.notify", _notify, **_SYNC, summary="set or add to a signal cell of a peer")
define("pld.system.wait", _wait, **_SYNC, summary="block until an own signal cell compares true")
define(
    "pld.system.defer_wait",
    _defer_wait,
    kind="sync",
    spec="distributed 2.11",
    summary="complete the enclosing task when an own signal cell has reached a value",
)

SHORT_NAMES = {
    "world_size": "pld.system.world_size",
    "get_comm_ctx": "pld.system.get_comm_ctx",
    "rank": "pld.system.rank",
    "nranks": "pld.system.nranks",
    "alloc_window_buffer": "pld.tensor.alloc_window_buffer",
    "window": "pld.tensor.window",
    "remote_load": "pld.tile.remote_load",
    "remote_store": "pld.tile.remote_store",
}
"""Names directly under ``pld`` (spec distributed 2.1)."""


def canonical(namespace: str, name: str, first: Any = None) -> str:
    """The row behind ``pld.name`` or ``pld.category.name``; ``remote_store`` follows the kind of its source."""
    if namespace != "pld":
        return f"{namespace}.{name}"
    if name == "remote_store" and isinstance(first, Expr) and isinstance(first.type, TensorType):
        return "pld.tensor.remote_store"
    return SHORT_NAMES.get(name, f"pld.{name}")

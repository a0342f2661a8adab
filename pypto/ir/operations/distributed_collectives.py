"""Bulk transfers and collectives between ranks: what their arguments must be (spec distributed 2.7, 2.13).

What they do is written in the language itself (:mod:`pypto.language.collectives`); the parser expands it.
"""

from __future__ import annotations

from typing import Annotated, Any

from pypto.ir.dtype import FP16, FP32, INT32
from pypto.ir.enums import AtomicType, ReduceOp, TensorLayout
from pypto.ir.nodes import Dim, NoneType, TensorType, TileType, Type
from pypto.ir.operations import dims
from pypto.ir.operations.distributed import need_region, need_signal, need_window
from pypto.ir.operations.errors import OperandTypeError, OperandValueError
from pypto.ir.operations.kinds import Option
from pypto.ir.operations.movement import need_atomic
from pypto.ir.operations.parameters import Dims, OffsetScalar
from pypto.ir.operations.show import show
from pypto.ir.operations.table import define

Reduction = Annotated[ReduceOp, Option((ReduceOp,))]


def _need_plain_int(value: Any, name: str, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise OperandTypeError(f"{name} is a Python integer, got {value!r}")
    if value < least:
        raise OperandValueError(f"{name} is {value}; the least legal value is {least}")


def _transfer(
    dst: TensorType,
    src: TensorType,
    dst_offsets: Any,
    src_offsets: Any,
    shape: Any,
    chunk_rows: int,
    chunk_cols: int,
    pipeline: bool,
) -> Type:
    if dst.dtype != src.dtype:
        raise OperandValueError(f"dst is {dst.dtype.constant}, src is {src.dtype.constant}")
    if len(dst.shape) != len(src.shape):
        raise OperandValueError(f"dst and src differ in rank: {show(dst)} and {show(src)}")
    given = [part is not None for part in (dst_offsets, src_offsets, shape)]
    if any(given) and not all(given):
        raise OperandValueError("dst_offsets, src_offsets and shape must be provided together")
    if all(given):
        for extent in shape:
            if isinstance(extent, int) and extent <= 0:
                raise OperandValueError(f"shape {dims.listing(shape)} needs positive extents")
        need_region(dst_offsets, shape, dst, "the region leaves dst")
        need_region(src_offsets, shape, src, "the region leaves src")
    elif any(dims.differ(a, b) for a, b in zip(dst.shape, src.shape)):
        raise OperandValueError(f"a whole transfer needs equal shapes, got {show(dst)} and {show(src)}")
    _check_chunks(shape if all(given) else dst.shape, chunk_rows, chunk_cols, pipeline)
    return NoneType()


def _check_chunks(shape: tuple[Dim, ...], chunk_rows: int, chunk_cols: int, pipeline: bool) -> None:
    _need_plain_int(chunk_rows, "chunk_rows", 0)
    _need_plain_int(chunk_cols, "chunk_cols", 0)
    if pipeline and not (chunk_rows and chunk_cols):
        raise OperandValueError("pipeline=True needs chunk_rows and chunk_cols")
    if not isinstance(shape[-1], int) and not chunk_cols:
        raise OperandValueError("a run-time innermost extent needs chunk_cols")
    if any(not isinstance(extent, int) for extent in shape[:-1]) and not chunk_rows:
        raise OperandValueError("a run-time leading extent needs chunk_rows")


def _put(
    dst: TensorType,
    peer: OffsetScalar,
    src: TensorType,
    dst_offsets: Dims | None = None,
    src_offsets: Dims | None = None,
    shape: Dims | None = None,
    *,
    atomic: AtomicType = AtomicType.None_,
    chunk_rows: Any = 0,
    chunk_cols: Any = 0,
    pipeline: bool = False,
) -> Type:
    need_window(dst, "dst")
    need_atomic(atomic, dst)
    return _transfer(dst, src, dst_offsets, src_offsets, shape, chunk_rows, chunk_cols, pipeline)


def _get(
    dst: TensorType,
    peer: OffsetScalar,
    src: TensorType,
    dst_offsets: Dims | None = None,
    src_offsets: Dims | None = None,
    shape: Dims | None = None,
    *,
    chunk_rows: Any = 0,
    chunk_cols: Any = 0,
    pipeline: bool = False,
) -> Type:
    need_window(src, "src")
    return _transfer(dst, src, dst_offsets, src_offsets, shape, chunk_rows, chunk_cols, pipeline)


def _tile_put(
    dst: TensorType,
    peer: OffsetScalar,
    src: TensorType,
    stage: TileType,
    stage2: TileType | None = None,
    dst_offsets: Dims | None = None,
    src_offsets: Dims | None = None,
    shape: Dims | None = None,
    *,
    atomic: AtomicType = AtomicType.None_,
) -> Type:
    need_window(dst, "dst")
    need_atomic(atomic, dst)
    return _transfer(dst, src, dst_offsets, src_offsets, shape, *_stage_extents(stage, dst), False)


def _tile_get(
    dst: TensorType,
    peer: OffsetScalar,
    src: TensorType,
    stage: TileType,
    stage2: TileType | None = None,
    dst_offsets: Dims | None = None,
    src_offsets: Dims | None = None,
    shape: Dims | None = None,
) -> Type:
    need_window(src, "src")
    return _transfer(dst, src, dst_offsets, src_offsets, shape, *_stage_extents(stage, dst), False)


def _stage_extents(stage: TileType, dst: TensorType) -> tuple[int, int]:
    if stage.dtype != dst.dtype:
        raise OperandValueError(f"the staging tile is {stage.dtype.constant}, dst is {dst.dtype.constant}")
    return stage.shape[-2] if len(stage.shape) > 1 else 1, stage.shape[-1]


# --- collectives ------------------------------------------------------------------------------------------------------


def _need_packed(target: TensorType) -> None:
    if target.layout != TensorLayout.ND or (target.view is not None and target.view.stride):
        raise OperandValueError(f"target must be packed row-major, got a {show(target)}")


def _need_rows(tensor: TensorType, what: str) -> None:
    if len(tensor.shape) != 2:
        raise OperandValueError(f"{what} must have two axes [ranks, size], got a {show(tensor)}")


def _allreduce(
    target: TensorType,
    signal: TensorType | None = None,
    *,
    op: Reduction = ReduceOp.Sum,
    mode: str = "mesh",
    core_num: Any = 1,
) -> Type:
    need_window(target, "target")
    _need_packed(target)
    if target.dtype not in (FP16, FP32):
        raise OperandValueError(f"target is {target.dtype.constant}; allreduce takes FP16 and FP32")
    _need_plain_int(core_num, "core_num", 1)
    if mode not in ("mesh", "ring"):
        raise OperandValueError(f"mode is {mode!r}; legal modes: mesh, ring")
    if signal is None:
        if mode == "ring":
            raise OperandValueError("mode='ring' requires an explicit signal")
    else:
        need_signal(signal)
    if mode == "ring" and core_num != 1:
        raise OperandValueError(f"mode='ring' runs on one core, got core_num={core_num}")
    return target


def _barrier(signal: TensorType) -> Type:
    return need_signal(signal)


def _broadcast(target: TensorType, signal: TensorType, *, root: Any) -> Type:
    need_window(target, "target")
    need_signal(signal)
    _need_plain_int(root, "root", 0)
    return target


def _gathered(input: TensorType, target: TensorType, signal: TensorType, what: str) -> TensorType:
    need_window(target, "target")
    need_signal(signal)
    _need_rows(input, what)
    _need_rows(target, "target")
    if input.dtype != target.dtype or dims.differ(input.shape[1], target.shape[1]):
        raise OperandValueError(
            f"{what} and target need the same dtype and row length, got {show(input)} and {show(target)}"
        )
    return target


def _allgather(local_data: TensorType, target: TensorType, signal: TensorType) -> Type:
    result = _gathered(local_data, target, signal, "local_data")
    if dims.differ(local_data.shape[0], 1):
        raise OperandValueError(f"local_data must be one row [1, size], got a {show(local_data)}")
    return result


def _reduce_scatter(target: TensorType, signal: TensorType, *, op: Reduction = ReduceOp.Sum) -> Type:
    need_window(target, "target")
    need_signal(signal)
    _need_rows(target, "target")
    if op is not ReduceOp.Sum:
        raise OperandValueError(f"op is {op.name}; reduce_scatter sums")
    return target


def _all_to_all(input: TensorType, target: TensorType, signal: TensorType) -> Type:
    return _gathered(input, target, signal, "input")


def _all_to_all_v(
    input: TensorType, target: TensorType, signal: TensorType, send_counts: TensorType, recv_counts: TensorType
) -> Type:
    result = _gathered(input, target, signal, "input")
    need_signal(recv_counts, "recv_counts")
    if send_counts.dtype != INT32:
        raise OperandValueError(f"send_counts holds INT32, got {send_counts.dtype.constant}")
    counts = (signal.shape[0], send_counts.shape[0], recv_counts.shape[0])
    if not all(isinstance(n, int) for n in (*counts, target.shape[0])) or len(set(counts)) != 1:
        raise OperandValueError(
            f"signal, send_counts and recv_counts need the same static first extent, got {dims.listing(counts)}"
        )
    if int(target.shape[0]) % int(counts[0]):  # type: ignore[arg-type]
        raise OperandValueError(f"target has {target.shape[0]} rows, which {counts[0]} ranks do not divide")
    return result


_BULK: dict[str, Any] = {"kind": "memory", "spec": "distributed 2.7"}
_COLLECTIVE: dict[str, Any] = {"kind": "sync", "spec": "distributed 2.13"}
define("pld.tensor.put", _put, **_BULK, summary="copy or add a region into a peer's window through on-chip staging")
define("pld.tensor.get", _get, **_BULK, summary="copy a region of a peer's window through on-chip staging")
define("pld.tile.put", _tile_put, **_BULK, summary="put through given staging tiles")
define("pld.tile.get", _tile_get, **_BULK, summary="get through given staging tiles")
define(
    "pld.tensor.allreduce", _allreduce, **_COLLECTIVE, summary="reduce a window over all ranks, result on every rank"
)
define("pld.tensor.barrier", _barrier, **_COLLECTIVE, summary="wait for all ranks of the domain")
define("pld.tensor.broadcast", _broadcast, **_COLLECTIVE, summary="copy the root's window to every rank")
define("pld.tensor.allgather", _allgather, **_COLLECTIVE, summary="collect one row per rank on every rank")
define("pld.tensor.reduce_scatter", _reduce_scatter, **_COLLECTIVE, summary="sum row r over all ranks on rank r")
define("pld.tensor.all_to_all", _all_to_all, **_COLLECTIVE, summary="row d of every rank goes to rank d")
define("pld.tensor.all_to_all_v", _all_to_all_v, **_COLLECTIVE, summary="blocks of varying row counts to every rank")

"""Other shapes, dtypes and layouts over the same bytes (spec ops 13, 13.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto.ir.dtype import (
    BF16,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DataType,
)  # fmt: skip
from pypto.ir.enums import PadValue, TensorLayout
from pypto.ir.nodes import Dim, TensorType, TileType
from pypto.ir.operations import dims, results, windows
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.parameters import Dims, PositiveDims, StaticDims
from pypto.ir.operations.table import define

_REINTERPRETED = (INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FP16, BF16, FP32)

# --- reshape ----------------------------------------------------------------------------------------------------------


def reshaped_valid(shape: Sequence[Dim], valid: Sequence[Dim], target: Sequence[Dim]) -> tuple[Dim, ...]:
    """The valid region under another shape (spec ops 13.1); ``ValueError`` when it is no box there."""
    if dims.all_equal(shape, valid):
        return tuple(target)
    if any(dims.equal(extent, 0) for extent in valid):
        return (0,) * len(target)
    mapped = _unit_axes(shape, valid, target)
    if mapped is None:
        mapped = _flat_prefix(shape, valid, target)
    if mapped is None:
        raise OperandValueError(
            f"the valid region {dims.listing(valid)} of {dims.listing(shape)} is no box in {dims.listing(target)}; "
            "use pl.fillpad or pl.set_validshape first"
        )
    return mapped


def _unit_axes(shape: Sequence[Dim], valid: Sequence[Dim], target: Sequence[Dim]) -> tuple[Dim, ...] | None:
    """Only axes of 1 come or go: extents map one to one."""
    core = [(extent, v) for extent, v in zip(shape, valid) if extent != 1]
    wanted = [extent for extent in target if extent != 1]
    if len(core) != len(wanted) or not all(dims.equal(c[0], w) for c, w in zip(core, wanted)):
        return None
    queue = iter([v for _, v in core])
    return tuple(1 if extent == 1 else next(queue) for extent in target)


def _flat_prefix(shape: Sequence[Dim], valid: Sequence[Dim], target: Sequence[Dim]) -> tuple[Dim, ...] | None:
    """The valid elements are the first ``n`` in row-major order and ``n`` fills whole rows of the target."""
    axis = next((k for k, extent in enumerate(shape) if extent != 1), 0)
    if not dims.all_equal(shape[axis + 1 :], valid[axis + 1 :]):
        return None
    count = dims.constant(dims.product(valid))
    known = [dims.constant(extent) for extent in target]
    if count is None or None in known:
        return None
    extents = [extent for extent in known if extent is not None]
    result: list[Dim] = [1] * len(extents)
    for k in reversed(range(len(extents))):
        if count <= extents[k]:
            result[k] = count
            return tuple(result)
        if count % extents[k]:
            return None
        result[k] = extents[k]
        count //= extents[k]
    return None


def _need_same_count(source: results.Shaped, shape: Sequence[Dim]) -> None:
    own, asked = dims.product(source.shape), dims.product(shape)
    if dims.differ(own, asked):
        raise OperandValueError(
            f"{dims.listing(source.shape)} has {dims.text(own)} elements, {dims.listing(shape)} {dims.text(asked)}"
        )


def reshape_tensor(tensor: TensorType, shape: PositiveDims, valid_shape: Dims | None = None) -> TensorType:
    """The same elements in row-major order under another shape."""
    _need_same_count(tensor, shape)
    valid = valid_shape if valid_shape is not None else reshaped_valid(tensor.shape, tensor.valid_shape, shape)
    return results.tensor(shape, tensor.dtype, valid)


def reshape_tile(tile: TileType, shape: StaticDims) -> TileType:
    """The same elements in row-major order under another shape."""
    _need_same_count(tile, shape)
    valid = reshaped_valid(tile.shape, tile.valid_shape, shape)
    return results.tile(shape, tile.dtype, tile.space, valid, tile.view.pad if tile.view else None)


# --- dtype and layout -------------------------------------------------------------------------------------------------


def _reinterpreted(
    data: results.Shaped, dtype: DataType, shape: Sequence[Dim] | None
) -> tuple[tuple[Dim, ...], tuple[Dim, ...] | None]:
    results.need_dtype(data, _REINTERPRETED, "data")
    if dtype not in _REINTERPRETED or dtype == data.dtype:
        legal = ", ".join(d.constant for d in _REINTERPRETED if d != data.dtype)
        raise OperandValueError(f"dtype is {dtype.constant}; legal: {legal}")
    own, other = data.dtype.get_byte(), dtype.get_byte()
    if shape is not None:
        if not results.fully_valid(data):
            raise OperandValueError("shape= needs a fully valid operand; leave it out to scale the last axis")
        if dims.differ(dims.mul(dims.product(data.shape), own), dims.mul(dims.product(shape), other)):
            raise OperandValueError(
                f"{dims.listing(data.shape)} {data.dtype.constant} and {dims.listing(shape)} {dtype.constant} "
                "differ in bytes"
            )
        return tuple(shape), None
    last, last_valid = (_scaled(extent, own, other, data) for extent in (data.shape[-1], data.valid_shape[-1]))
    return (*data.shape[:-1], last), (*data.valid_shape[:-1], last_valid)


def _scaled(extent: Dim, own: int, other: int, data: results.Shaped) -> Dim:
    if own >= other:
        return dims.mul(extent, own // other)
    known = dims.constant(extent)
    if known is not None and known * own % other:
        raise OperandValueError(
            f"{known} columns of {data.dtype.constant} are {known * own} bytes, no multiple of {other}"
        )
    return dims.floor_div(extent, other // own)


def _surviving_pad(data: results.Shaped) -> int:
    return int(PadValue.zero) if data.view and data.view.pad == PadValue.zero else 0


def reinterpret_tensor(data: TensorType, dtype: DataType, *, shape: PositiveDims | None = None) -> TensorType:
    """The same bytes read as another dtype; the last axis scales with the element size."""
    made, valid = _reinterpreted(data, dtype, shape)
    return results.tensor(made, dtype, valid, pad=_surviving_pad(data))


def reinterpret_tile(data: TileType, dtype: DataType, *, shape: StaticDims | None = None) -> TileType:
    """The same bytes read as another dtype; the last axis scales with the element size."""
    made, valid = _reinterpreted(data, dtype, shape)
    return results.tile(results.static(made), dtype, data.space, valid, _surviving_pad(data))


def view_tensor(
    tensor: TensorType,
    shape: PositiveDims | None = None,
    valid_shape: Dims | None = None,
    *,
    layout: TensorLayout | None = None,
) -> TensorType:
    """The same storage under another shape, valid shape or layout."""
    if shape is None and layout is None:
        raise OperandValueError("needs shape or layout")
    if not {layout or TensorLayout.ND, tensor.layout} <= {TensorLayout.ND, TensorLayout.DN}:
        raise OperandValueError("layout is limited to ND and DN")
    target = tensor.layout if layout is None else layout
    rank = len(shape or tensor.shape)
    if rank < 1 or (target is TensorLayout.DN and rank < 2):
        raise OperandValueError(f"layout {target.name} needs at least {2 if target is TensorLayout.DN else 1} axes")
    if shape is None:
        return _relabelled(tensor, target)
    _need_same_count(tensor, shape)
    valid = _view_valid(tensor, shape, valid_shape)
    stride = (*results.row_major(shape)[:-2], 1, shape[-2]) if target is TensorLayout.DN else ()
    return results.tensor(shape, tensor.dtype, valid, stride, target)


def _relabelled(tensor: TensorType, layout: TensorLayout) -> TensorType:
    if layout is tensor.layout:
        return tensor
    last = len(tensor.shape) - 1
    shape, valid = results.swapped(tensor.shape, last - 1, last), results.swapped(tensor.valid_shape, last - 1, last)
    return results.tensor(shape, tensor.dtype, valid, results.swapped(results.strides(tensor), last - 1, last), layout)


def _view_valid(tensor: TensorType, shape: Sequence[Dim], valid: Sequence[Dim] | None) -> tuple[Dim, ...] | None:
    if valid is None:
        if not results.fully_valid(tensor):
            raise OperandValueError("a partially valid tensor needs an explicit valid_shape")
        return None
    windows.need_request(valid, shape)
    collapses = dims.all_equal(shape, (dims.product(tensor.shape[:-1]), tensor.shape[-1]))
    flat = dims.all_equal(shape, (1, dims.product(tensor.shape)))
    if not (collapses or flat):
        raise OperandValueError(
            f"valid_shape is for a collapse of {dims.listing(tensor.shape)} to two axes or to [1, all], "
            f"not to {dims.listing(shape)}"
        )
    return tuple(valid)


_ROW: dict[str, Any] = {"kind": "transform", "spec": "13"}
define("tensor.reshape", reshape_tensor, **_ROW, summary="another shape over the same bytes")
define("tile.reshape", reshape_tile, **_ROW, summary="another shape over the same bytes")
define(
    "tensor.reinterpret_view",
    reinterpret_tensor,
    **_ROW,
    tile_form="tile.reinterpret_view",
    summary="the same bytes as another dtype",
)
define("tile.reinterpret_view", reinterpret_tile, **_ROW, summary="the same bytes as another dtype")
define("tensor.view", view_tensor, **_ROW, summary="another shape or layout over the same bytes")

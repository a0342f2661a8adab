"""Scatter: by flat index, along an axis, by column pattern, whole rows, into GM (spec ops 14.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto.ir.dtype import BF16, FP16, FP32, INT8, INT16, INT32, DataType
from pypto.ir.nodes import Call, Expr, ScalarType, TensorType, TileType, Type
from pypto.ir.operations import dims, results
from pypto.ir.operations.errors import OperandTypeError, OperandValueError
from pypto.ir.operations.gather import GATHERED, pattern_step
from pypto.ir.operations.parameters import Axis
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.show import show
from pypto.ir.operations.table import define

_SCATTERED = (FP16, FP32, BF16, INT8, INT16, INT32)
_ROW_AXIS = -2


def _need_index(data: DataType, index: DataType, name: str) -> None:
    wanted = INT32 if data.get_bit() == 32 else INT16
    if index != wanted:
        raise OperandValueError(f"{name} is {index.constant}; {data.constant} data takes {wanted.constant}")


def _need_data(target: results.Shaped, source: results.Shaped, names: tuple[str, str]) -> None:
    results.need_dtype(target, _SCATTERED, names[0])
    results.need_same_dtype(target, source, names)


# --- type rules -------------------------------------------------------------------------------------------------------


def _flat(dst: TileType, src: TileType, indexes: TileType) -> Type:
    _need_data(dst, src, ("dst", "src"))
    _need_index(src.dtype, indexes.dtype, "indexes")
    results.need_rank(dst, 2, "dst")
    results.need_same_shape(src, indexes, ("src", "indexes"))
    return dst


def _along_axis(dst: TileType, src: TileType, indexes: TileType, axis: Axis) -> Type:
    return dst


def _columns(dst: results.Shaped, src: results.Shaped, pattern: int) -> Type:
    results.need_same_dtype(dst, src, ("dst", "the source"))
    for value, name in ((dst, "dst"), (src, "the source")):
        results.need_rank(value, 2, name)
    wanted = (src.shape[0], dims.mul(src.shape[1], pattern_step(pattern)))
    if any(map(dims.differ, dst.shape, wanted)):
        raise OperandValueError(f"dst must be {dims.listing(wanted)} for pattern {pattern}, got a {show(dst)}")
    return dst


def _scatter_mask(dst: TileType, src: TileType, mask_pattern: Axis) -> Type:
    return _columns(dst, src, mask_pattern)


def _scatter(
    input: TensorType,
    dim: int | None = None,
    index: TensorType | None = None,
    src: TensorType | None = None,
    *,
    mask_pattern: int | None = None,
    dst: TensorType | None = None,
) -> Type:
    if mask_pattern is not None:
        if dst is None or index is not None or src is not None:
            raise OperandTypeError("the mask form takes input, mask_pattern and dst")
        return _columns(dst, input, mask_pattern)
    if dim is None or index is None or src is None or dst is not None:
        raise OperandTypeError("the index form takes input, dim, index and src")
    _need_data(input, src, ("input", "src"))
    results.need_rank(input, 2, "input")
    if dim not in (-1, 1):
        raise OperandValueError(f"dim is {dim}; legal: -1, 1")
    _need_index(src.dtype, index.dtype, "index")
    results.need_same_shape(src, index, ("src", "index"))
    if dims.less(input.shape[0], src.shape[0]):
        raise OperandValueError(f"src has {dims.text(src.shape[0])} rows and input {dims.text(input.shape[0])}")
    return input


def _update(input: results.Shaped, dim: int, index: results.Shaped, src: results.Shaped) -> Type:
    if dim != _ROW_AXIS:
        raise OperandValueError(f"dim is {dim}; legal: {_ROW_AXIS}")
    if len(input.shape) not in (2, 4) or len(src.shape) != len(input.shape):
        raise OperandValueError(f"input and src have 2 or 4 axes each, got a {show(input)} and a {show(src)}")
    results.need_same_dtype(input, src, ("input", "src"))
    results.need_rank(index, 2, "index")
    if not index.dtype.is_int():
        raise OperandValueError(f"index is {index.dtype.constant}; an integer dtype is needed")
    if dims.differ(input.shape[-1], src.shape[-1]):
        raise OperandValueError(f"input has {dims.text(input.shape[-1])} columns and src {dims.text(src.shape[-1])}")
    return input


def _update_tensor(input: TensorType, dim: Axis, index: TensorType, src: TensorType) -> Type:
    return _update(input, dim, index, src)


def _update_tile(input: TileType, dim: Axis, index: TileType, src: TileType) -> Type:
    return _update(input, dim, index, src)


def update_arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """``(input, index, src, dim=-2)`` as ``(input, dim, index, src)``; the other call shapes stay."""
    given = dict(kwargs)
    second = args[1] if len(args) > 1 else None
    starts_with_index = isinstance(second, Expr) and not isinstance(second.type, ScalarType)
    if not starts_with_index and not (len(args) == 1 and "dim" not in given):
        return args, given
    dim = given.pop("dim", _ROW_AXIS)
    return (args[0], dim, *args[1:]), given


def _to_memory(src: TileType, idx: TileType, output_tensor: TensorType) -> Type:
    results.need_dtype(src, GATHERED, "src")
    results.need_dtype(idx, (INT32,), "idx")
    results.need_same_shape(src, idx, ("src", "idx"))
    results.need_same_dtype(src, output_tensor, ("src", "output_tensor"))
    return output_tensor


# --- tensor forms -----------------------------------------------------------------------------------------------------


def _scatter_form(call: Call, b: Builder) -> Expr:
    given = call.arguments
    if given["mask_pattern"] is not None:
        return b.tile("scatter_mask_kept", dst=given["dst"], src=given["input"], mask_pattern=given["mask_pattern"])
    return b.tile("scatter_axis", dst=given["input"], src=given["src"], indexes=given["index"], axis=1)


_ROW: dict[str, Any] = {"kind": "gather", "spec": "14.2"}
define(
    "tensor.scatter",
    _scatter,
    promoted=("scatter",),
    **_ROW,
    tile_form=_scatter_form,
    summary="elements written along the rows, or to a pattern of columns",
)
define(
    "tile.scatter",
    _flat,
    **_ROW,
    summary="elements written at flat row-major indices, later ones win",
    lowering=Lowering("tscatter", ("src", "indexes"), destination="dst"),
)
define(
    "tile.scatter_axis",
    _along_axis,
    **_ROW,
    summary="elements written along an axis, written by tensor.scatter",
    lowering=Lowering("tscatter_axis", ("src", "indexes"), {"axis": "axis"}, destination="dst"),
)
define(
    "tile.scatter_mask",
    _scatter_mask,
    **_ROW,
    summary="a pattern of columns written, the others zeroed",
    lowering=Lowering("tscatter_mask", ("src",), {"pattern": "mask_pattern", "others": 0}, destination="dst"),
)
define(
    "tile.scatter_mask_kept",
    _scatter_mask,
    **_ROW,
    summary="a pattern of columns, written by tensor.scatter",
    lowering=Lowering("tscatter_mask", ("src",), {"pattern": "mask_pattern", "others": 1}, destination="dst"),
)
define(
    "tensor.scatter_update",
    _update_tensor,
    **_ROW,
    tile_form="tile.scatter_update",
    summary="whole rows written at row numbers, later ones win",
)
define(
    "tile.scatter_update",
    _update_tile,
    **_ROW,
    summary="whole rows written at row numbers, later ones win",
    lowering=Lowering("tscatter_rows", ("src", "index"), destination="input"),
)
define(
    "tile.mscatter",
    _to_memory,
    promoted=("mscatter",),
    **_ROW,
    summary="elements of a tensor written at flat indices",
    lowering=Lowering("mscatter", ("src", "idx"), destination="output_tensor"),
)

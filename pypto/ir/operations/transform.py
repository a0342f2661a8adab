"""Views, padding, transposition and concatenation (spec ops 13)."""

from __future__ import annotations

import warnings
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
from pypto.ir.enums import MemorySpace, PadValue, TensorLayout
from pypto.ir.nodes import Call, Dim, Expr, TensorType, TileType, Type, as_dim
from pypto.ir.operations import dims, results, windows
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.movement import tile_with_valid, with_valid
from pypto.ir.operations.parameters import Axes, Axis, Dims, IndexScalar, PadChoice, PositiveDims, StaticDims
from pypto.ir.operations.results import dtype_of, shape_of
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.show import show
from pypto.ir.operations.table import define

_REINTERPRETED = (INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FP16, BF16, FP32)

# --- slice ------------------------------------------------------------------------------------------------------------


def _kept_axes(
    shape: Sequence[Dim], valid: Sequence[Dim], drop: Sequence[int] | None, source: results.Shaped
) -> list[int]:
    """Axes that stay; ``ValueError`` when a dropped one is not a fully valid axis of 1."""
    dropped = [results.axis_of(axis, len(shape), "drop_dims entry") for axis in drop or ()]
    if len(set(dropped)) != len(dropped):
        raise OperandValueError(f"drop_dims {list(drop or ())} names an axis twice")
    for axis in dropped:
        if shape[axis] != 1 or valid[axis] != 1:
            raise OperandValueError(f"drop_dims names axis {axis} of {dims.listing(shape)}; only axes of 1 can go")
    if dropped and len(dropped) == len(shape) and isinstance(source, TensorType):
        raise OperandValueError(f"drop_dims drops every axis of {dims.listing(shape)}; use pl.read for one element")
    return [axis for axis in range(len(shape)) if axis not in dropped]


def _need_pad(pad: PadValue | None, shape: Sequence[Dim], valid: Sequence[Dim]) -> None:
    if pad not in (None, PadValue.null) and dims.all_equal(shape, valid):
        warnings.warn(f"pad_value={pad} cannot matter: the window {dims.listing(shape)} is fully valid", UserWarning,
                      stacklevel=2)


def _inherited_pad(source: results.Shaped, pad: PadValue | None) -> int:
    if pad is not None:
        return int(pad)
    return (source.view.pad or 0) if source.view else 0


def slice_tensor(
    tensor: TensorType,
    shape: PositiveDims,
    offset: Dims,
    valid_shape: Dims | None = None,
    drop_dims: Axes | None = None,
    pad_value: PadChoice | None = None,
    clamp: bool = False,
) -> TensorType:
    rank = len(tensor.shape)
    if len(shape) > rank:
        raise OperandValueError(f"the window {dims.listing(shape)} has more axes than the {show(tensor)}")
    windows.need_offsets(offset, rank if len(shape) == rank else len(offset), "offset")
    if len(offset) not in (rank, len(shape)):
        raise OperandValueError(f"offset {dims.listing(offset)} must have {rank} or {len(shape)} entries")
    lead = rank - len(shape)
    window = (*(1,) * lead, *shape)
    offsets = (*(0,) * (rank - len(offset)), *offset)
    if valid_shape is not None:
        windows.need_request(valid_shape, shape)
    asked = None if valid_shape is None else (*(1,) * lead, *valid_shape)
    windows.need_inside(offsets, asked or window, tensor.shape, "tensor", clamp)
    valid = windows.read_valid(tensor, offsets, window, asked, clamp)[lead:]
    _need_pad(pad_value, shape, valid)
    kept = _kept_axes(shape, valid, drop_dims, tensor)
    stride = tensor.view.stride[lead:] if tensor.view and tensor.view.stride else _strides(tensor)[lead:]
    return results.tensor(
        [shape[k] for k in kept], tensor.dtype, [valid[k] for k in kept], [stride[k] for k in kept],
        tensor.layout, _inherited_pad(tensor, pad_value),
    )  # fmt: skip


def _strides(tensor: TensorType) -> tuple[Dim, ...]:
    """Row-major strides, or those of a DN tensor (spec language 2.3)."""
    if tensor.view is not None and tensor.view.stride:
        return tensor.view.stride
    rank = len(tensor.shape)
    if tensor.layout is TensorLayout.DN and rank >= 2:
        outer = [dims.product(tensor.shape[axis + 1 :]) for axis in range(rank - 2)]
        return (*outer, 1, tensor.shape[-2])
    return tuple(dims.product(tensor.shape[axis + 1 :]) for axis in range(rank))


def slice_tile(
    tile: TileType,
    shape: StaticDims,
    offset: Dims,
    valid_shape: Dims | None = None,
    drop_dims: Axes | None = None,
    pad_value: PadChoice | None = None,
) -> TileType:
    rank = len(tile.shape)
    if len(shape) != rank:
        raise OperandValueError(f"the window {dims.listing(shape)} must have the {rank} axes of the {show(tile)}")
    windows.need_offsets(offset, rank, "offset")
    windows.need_inside(offset, shape, tile.shape, "tile")
    if valid_shape is not None:
        windows.need_request(valid_shape, shape)
    valid = windows.read_valid(tile, offset, shape, valid_shape)
    _need_pad(pad_value, shape, valid)
    kept = _kept_axes(shape, valid, drop_dims, tile)
    lead = max(0, 2 - len(kept)) if drop_dims else 0
    return results.tile(
        (*(1,) * lead, *(shape[k] for k in kept)), tile.dtype, tile.space,
        (*(1,) * lead, *(valid[k] for k in kept)), _inherited_pad(tile, pad_value),
    )  # fmt: skip


def _copied(call: Call, b: Builder) -> Expr | None:
    """A window whose rows are not one run of the tile's rows cannot share its bytes: it is copied matrix by matrix."""
    tile, offset = call.arguments["tile"], call.arguments["offset"]
    window = results.static(call.arguments["shape"])
    if windows.is_one_run(window, shape_of(tile)):
        return None
    target = b.create_tile(window, dtype_of(tile), call.type.space or MemorySpace.Vec)  # type: ignore[attr-defined]
    block = (*(1,) * (len(window) - 2), *window[-2:])
    for at in windows.positions(window[:-2]):
        start = tuple(dims.add(as_dim(o), step) for o, step in zip(offset, (*at, 0, 0)))
        part = b.tile("slice", tile=tile, shape=block, offset=start)
        target = b.tile("assemble", target=target, source=part, offset=(*at, 0, 0))
    return b.tile("reshape", tile=target, shape=shape_of(call)) if shape_of(call) != window else target


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
    _need_same_count(tensor, shape)
    valid = valid_shape if valid_shape is not None else reshaped_valid(tensor.shape, tensor.valid_shape, shape)
    return results.tensor(shape, tensor.dtype, valid)


def reshape_tile(tile: TileType, shape: StaticDims) -> TileType:
    _need_same_count(tile, shape)
    valid = reshaped_valid(tile.shape, tile.valid_shape, shape)
    return results.tile(shape, tile.dtype, tile.space, valid, tile.view.pad if tile.view else None)


# --- transpose --------------------------------------------------------------------------------------------------------


def _axes(source: results.Shaped, axis1: int, axis2: int) -> tuple[int, int]:
    rank = len(source.shape)
    results.need_rank(source, 2, "the operand", at_least=True)
    first, second = results.axis_of(axis1, rank, "axis1"), results.axis_of(axis2, rank, "axis2")
    if first == second:
        raise OperandValueError(f"axis1 and axis2 are both axis {first}")
    return first, second


def _swap(values: Sequence[Dim], first: int, second: int) -> tuple[Dim, ...]:
    result = list(values)
    result[first], result[second] = result[second], result[first]
    return tuple(result)


def transpose_tensor(tensor: TensorType, axis1: Axis, axis2: Axis) -> TensorType:
    first, second = _axes(tensor, axis1, axis2)
    shape, valid = _swap(tensor.shape, first, second), _swap(tensor.valid_shape, first, second)
    last_two = {first, second} == {len(shape) - 2, len(shape) - 1}
    layout = TensorLayout.DN if last_two and tensor.layout is TensorLayout.ND else TensorLayout.ND
    return results.tensor(shape, tensor.dtype, valid, _swap(_strides(tensor), first, second), layout)


def transpose_tile(tile: TileType, axis1: Axis, axis2: Axis, tmp_tile: TileType | None = None) -> TileType:
    first, second = _axes(tile, axis1, axis2)
    return results.tile(results.static(_swap(tile.shape, first, second)), tile.dtype, tile.space or MemorySpace.Vec)


def _transpose_stack(call: Call, b: Builder) -> Expr | None:
    """Above two axes the instruction swaps the last two, matrix by matrix; other pairs are built from that."""
    tile = call.arguments["tile"]
    last = len(shape_of(tile)) - 1
    first, second = sorted(call.arguments[key] % (last + 1) for key in ("axis1", "axis2"))
    if (first, second) == (last - 1, last):
        return None
    if second < last:
        return _transpose_outer(tile, first, second, b)
    inner = b.tile("transpose", tile=tile, axis1=last - 1, axis2=last)
    return b.tile("transpose", tile=_transpose_outer(inner, first, last - 1, b), axis1=last - 1, axis2=last)


def _transpose_outer(tile: Expr, first: int, second: int, b: Builder) -> Expr:
    """Swap two axes before the last: every block behind them is copied to its new place."""
    shape = shape_of(tile)
    target = b.create_tile(results.static(_swap(shape, first, second)), dtype_of(tile))
    block = (*(1,) * (second + 1), *shape[second + 1 :])
    for at in windows.positions(shape[: second + 1]):
        zeros = (0,) * (len(shape) - second - 1)
        part = b.tile("slice", tile=tile, shape=block, offset=(*at, *zeros))
        target = b.tile("assemble", target=target, source=part, offset=(*_swap(at, first, second), *zeros))
    return target


def transpose_view(tile: TileType) -> TileType:
    results.need_rank(tile, 2, "tile", at_least=True)
    last = len(tile.shape) - 1
    valid = _swap(tile.valid_shape, last - 1, last)
    shape = results.static(_swap(tile.shape, last - 1, last))
    blayout, slayout = (tile.view.blayout, tile.view.slayout) if tile.view else (None, None)
    return results.tile(shape, tile.dtype, tile.space, valid, None, slayout, blayout)


# --- concat, reinterpretation, tensor.view ----------------------------------------------------------------------------


def _concat(src0: results.Shaped, src1: results.Shaped) -> results.Shaped:
    for value, name in ((src0, "src0"), (src1, "src1")):
        results.need_rank(value, 2, name)
    results.need_same_dtype(src0, src1, ("src0", "src1"))
    if dims.differ(src0.shape[0], src1.shape[0]):
        raise OperandValueError(
            f"src0 has {dims.text(src0.shape[0])} rows and src1 {dims.text(src1.shape[0])}; they must agree"
        )
    return results.fresh(src0, (src0.shape[0], dims.add(src0.shape[1], src1.shape[1])), src0.dtype)


def concat_tensor(src0: TensorType, src1: TensorType) -> Type:
    return _concat(src0, src1)


def concat_tile(src0: TileType, src1: TileType) -> Type:
    return _concat(src0, src1)


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
    made, valid = _reinterpreted(data, dtype, shape)
    return results.tensor(made, dtype, valid, pad=_surviving_pad(data))


def reinterpret_tile(data: TileType, dtype: DataType, *, shape: StaticDims | None = None) -> TileType:
    made, valid = _reinterpreted(data, dtype, shape)
    return results.tile(results.static(made), dtype, data.space, valid, _surviving_pad(data))


def view_tensor(
    tensor: TensorType,
    shape: PositiveDims | None = None,
    valid_shape: Dims | None = None,
    *,
    layout: TensorLayout | None = None,
) -> TensorType:
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
    stride = (*_row_major(shape)[:-2], 1, shape[-2]) if target is TensorLayout.DN else ()
    return results.tensor(shape, tensor.dtype, valid, stride, target)


def _relabelled(tensor: TensorType, layout: TensorLayout) -> TensorType:
    if layout is tensor.layout:
        return tensor
    last = len(tensor.shape) - 1
    shape, valid = _swap(tensor.shape, last - 1, last), _swap(tensor.valid_shape, last - 1, last)
    return results.tensor(shape, tensor.dtype, valid, _swap(_strides(tensor), last - 1, last), layout)


def _row_major(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    return tuple(dims.product(shape[axis + 1 :]) for axis in range(len(shape)))


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


# --- valid shape and padding ------------------------------------------------------------------------------------------


def _need_valid(source: results.Shaped, rows: Dim, cols: Dim) -> None:
    results.need_rank(source, 2, "the operand")
    for name, value, extent in (("valid_rows", rows, source.shape[0]), ("valid_cols", cols, source.shape[1])):
        if dims.less(value, 0) or dims.less(extent, value):
            raise OperandValueError(f"{name} is {dims.text(value)}; legal: 0 to {dims.text(extent)}")


def set_valid_tensor(tensor: TensorType, valid_rows: IndexScalar, valid_cols: IndexScalar) -> TensorType:
    _need_valid(tensor, valid_rows, valid_cols)
    return with_valid(tensor, (valid_rows, valid_cols))


def set_valid_tile(tile: TileType, valid_rows: IndexScalar, valid_cols: IndexScalar) -> TileType:
    _need_valid(tile, valid_rows, valid_cols)
    return tile_with_valid(tile, (valid_rows, valid_cols))


def _need_fill(pad_value: PadValue) -> None:
    if pad_value is PadValue.null:
        raise OperandValueError("pad_value is null; legal: zero, max, min")


def fillpad_tensor(tensor: TensorType, pad_value: PadChoice = PadValue.zero) -> TensorType:
    _need_fill(pad_value)
    return results.tensor(tensor.shape, tensor.dtype)


def fillpad_tile(tile: TileType, pad_value: PadChoice = PadValue.zero) -> TileType:
    _need_fill(pad_value)
    return results.tile(tile.shape, tile.dtype, tile.space or MemorySpace.Vec)


def _need_larger(source: results.Shaped, shape: Sequence[int]) -> None:
    if len(shape) != len(source.shape) or any(map(dims.less, shape, source.shape)):
        raise OperandValueError(f"shape {dims.listing(shape)} must cover the source's {dims.listing(source.shape)}")


def fillpad_expand_tensor(tensor: TensorType, shape: StaticDims, pad_value: PadChoice = PadValue.zero) -> TensorType:
    _need_fill(pad_value)
    _need_larger(tensor, shape)
    return results.tensor(shape, tensor.dtype)


def fillpad_expand_tile(tile: TileType, shape: StaticDims, pad_value: PadChoice = PadValue.zero) -> TileType:
    _need_fill(pad_value)
    _need_larger(tile, shape)
    return results.tile(shape, tile.dtype, tile.space or MemorySpace.Vec)


_VIEW: dict[str, Any] = {"kind": "transform", "spec": "13"}
define("tensor.slice", slice_tensor, **_VIEW, view_of="tensor", summary="a window, sharing the bytes")
define("tile.slice", slice_tile, **_VIEW, view_of="tile", expand=_copied, summary="a window, sharing the bytes")
define("tensor.reshape", reshape_tensor, **_VIEW, view_of="tensor", summary="another shape over the same bytes")
define("tile.reshape", reshape_tile, **_VIEW, view_of="tile", summary="another shape over the same bytes")
define("tensor.transpose", transpose_tensor, **_VIEW, summary="two axes swapped")
define("tile.transpose", transpose_tile, **_VIEW, expand=_transpose_stack, summary="two axes swapped, data moved",
       lowering=Lowering("ttrans", ("tile",), {"batch": "tile.batch"}, scratch=("tmp_tile",), may_share=False))
define("tile.transpose_view", transpose_view, **_VIEW, view_of="tile", summary="the last two axes relabelled",
       lowering=Lowering("tmov", ("tile",), {"transpose": 1}, may_share=False))
define("tensor.concat", concat_tensor, **_VIEW, tile_form="tile.concat", summary="columns of src0, then of src1")
define("tile.concat", concat_tile, **_VIEW, lowering=Lowering("tconcat", ("src0", "src1"), may_share=False),
       summary="columns of src0, then of src1")
define("tensor.reinterpret_view", reinterpret_tensor, **_VIEW, view_of="data",
       tile_form="tile.reinterpret_view", summary="the same bytes as another dtype")
define("tile.reinterpret_view", reinterpret_tile, **_VIEW, view_of="data", summary="the same bytes as another dtype")
define("tensor.view", view_tensor, **_VIEW, view_of="tensor", summary="another shape or layout over the same bytes")
define("tensor.set_validshape", set_valid_tensor, **_VIEW, view_of="tensor", tile_form="tile.set_validshape",
       summary="another valid shape, no data moved")
define("tile.set_validshape", set_valid_tile, **_VIEW, view_of="tile", summary="another valid shape, no data moved",
       lowering=Lowering("setvalid", ("valid_rows", "valid_cols"), destination="tile"))
define("tensor.fillpad", fillpad_tensor, **_VIEW, tile_form="tile.fillpad",
       summary="the pad value outside the valid region")
define("tile.fillpad", fillpad_tile, **_VIEW, summary="the pad value outside the valid region",
       lowering=Lowering("tfillpad", ("tile",), {"pad": "pad_value"}))
define("tile.fillpad_inplace", fillpad_tile, **_VIEW, summary="the pad value outside the valid region, in place",
       lowering=Lowering("tfillpad", ("tile",), {"pad": "pad_value"}), view_of="tile")
define("tensor.fillpad_expand", fillpad_expand_tensor, **_VIEW, tile_form="tile.fillpad_expand",
       summary="a larger shape, the pad value outside the valid region")
define("tile.fillpad_expand", fillpad_expand_tile, **_VIEW,
       summary="a larger shape, the pad value outside the valid region",
       lowering=Lowering("tfillpad_expand", ("tile",), {"pad": "pad_value"}, may_share=False))

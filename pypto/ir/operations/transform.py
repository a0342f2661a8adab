"""Transposition, concatenation, valid shapes and padding (spec ops 13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto.ir.enums import MemorySpace, PadValue, TensorLayout
from pypto.ir.nodes import Call, Dim, Expr, TensorType, TileType, Type
from pypto.ir.operations import dims, results, windows
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.movement import tile_with_valid, with_valid
from pypto.ir.operations.parameters import Axis, IndexScalar, PadChoice, StaticDims
from pypto.ir.operations.results import dtype_of, shape_of
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.table import define

# --- transposition ----------------------------------------------------------------------------------------------------


def _axes(source: results.Shaped, axis1: int, axis2: int) -> tuple[int, int]:
    rank = len(source.shape)
    results.need_rank(source, 2, "the operand", at_least=True)
    first, second = results.axis_of(axis1, rank, "axis1"), results.axis_of(axis2, rank, "axis2")
    if first == second:
        raise OperandValueError(f"axis1 and axis2 are both axis {first}")
    return first, second


def transpose_tensor(tensor: TensorType, axis1: Axis, axis2: Axis) -> TensorType:
    """A view with two axes exchanged; the last two of an ND tensor give a DN one."""
    first, second = _axes(tensor, axis1, axis2)
    shape, valid = results.swapped(tensor.shape, first, second), results.swapped(tensor.valid_shape, first, second)
    last_two = {first, second} == {len(shape) - 2, len(shape) - 1}
    layout = TensorLayout.DN if last_two and tensor.layout is TensorLayout.ND else TensorLayout.ND
    return results.tensor(shape, tensor.dtype, valid, results.swapped(results.strides(tensor), first, second), layout)


def transpose_tile(tile: TileType, axis1: Axis, axis2: Axis, tmp_tile: TileType | None = None) -> TileType:
    """A copy with two axes exchanged."""
    first, second = _axes(tile, axis1, axis2)
    shape = results.static(results.swapped(tile.shape, first, second))
    return results.tile(shape, tile.dtype, tile.space or MemorySpace.Vec)


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
    target = b.create_tile(results.static(results.swapped(shape, first, second)), dtype_of(tile))
    block = (*(1,) * (second + 1), *shape[second + 1 :])
    for at in windows.positions(shape[: second + 1]):
        zeros = (0,) * (len(shape) - second - 1)
        part = b.tile("slice", tile=tile, shape=block, offset=(*at, *zeros))
        target = b.tile("assemble", target=target, source=part, offset=(*results.swapped(at, first, second), *zeros))
    return target


def transpose_view(tile: TileType) -> TileType:
    """The same storage with the last two axes exchanged and its layouts with them."""
    results.need_rank(tile, 2, "tile", at_least=True)
    last = len(tile.shape) - 1
    valid = results.swapped(tile.valid_shape, last - 1, last)
    shape = results.static(results.swapped(tile.shape, last - 1, last))
    blayout, slayout = (tile.view.blayout, tile.view.slayout) if tile.view else (None, None)
    return results.tile(shape, tile.dtype, tile.space, valid, None, slayout, blayout)


# --- concatenation ----------------------------------------------------------------------------------------------------


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
    """Two operands side by side along the last axis."""
    return _concat(src0, src1)


def concat_tile(src0: TileType, src1: TileType) -> Type:
    """Two operands side by side along the last axis."""
    return _concat(src0, src1)


# --- valid shape and padding ------------------------------------------------------------------------------------------


def _need_valid(source: results.Shaped, rows: Dim, cols: Dim) -> None:
    results.need_rank(source, 2, "the operand")
    for name, value, extent in (("valid_rows", rows, source.shape[0]), ("valid_cols", cols, source.shape[1])):
        if dims.less(value, 0) or dims.less(extent, value):
            raise OperandValueError(f"{name} is {dims.text(value)}; legal: 0 to {dims.text(extent)}")


def set_valid_tensor(tensor: TensorType, valid_rows: IndexScalar, valid_cols: IndexScalar) -> TensorType:
    """The same storage with another valid region, in rows and columns."""
    _need_valid(tensor, valid_rows, valid_cols)
    return with_valid(tensor, (valid_rows, valid_cols))


def set_valid_tile(tile: TileType, valid_rows: IndexScalar, valid_cols: IndexScalar) -> TileType:
    """The same storage with another valid region, in rows and columns."""
    _need_valid(tile, valid_rows, valid_cols)
    return tile_with_valid(tile, (valid_rows, valid_cols))


def _need_fill(pad_value: PadValue) -> None:
    if pad_value is PadValue.null:
        raise OperandValueError("pad_value is null; legal: zero, max, min")


def fillpad_tensor(tensor: TensorType, pad_value: PadChoice = PadValue.zero) -> TensorType:
    """A copy whose elements outside the valid region hold ``pad_value``; all of it is valid."""
    _need_fill(pad_value)
    return results.tensor(tensor.shape, tensor.dtype)


def fillpad_tile(tile: TileType, pad_value: PadChoice = PadValue.zero) -> TileType:
    """A copy whose elements outside the valid region hold ``pad_value``; all of it is valid."""
    _need_fill(pad_value)
    return results.tile(tile.shape, tile.dtype, tile.space or MemorySpace.Vec)


def _need_larger(source: results.Shaped, shape: Sequence[int]) -> None:
    if len(shape) != len(source.shape) or any(map(dims.less, shape, source.shape)):
        raise OperandValueError(f"shape {dims.listing(shape)} must cover the source's {dims.listing(source.shape)}")


def fillpad_expand_tensor(tensor: TensorType, shape: StaticDims, pad_value: PadChoice = PadValue.zero) -> TensorType:
    """A copy of a larger shape whose added elements hold ``pad_value``."""
    _need_fill(pad_value)
    _need_larger(tensor, shape)
    return results.tensor(shape, tensor.dtype)


def fillpad_expand_tile(tile: TileType, shape: StaticDims, pad_value: PadChoice = PadValue.zero) -> TileType:
    """A copy of a larger shape whose added elements hold ``pad_value``."""
    _need_fill(pad_value)
    _need_larger(tile, shape)
    return results.tile(shape, tile.dtype, tile.space or MemorySpace.Vec)


_ROW: dict[str, Any] = {"kind": "transform", "spec": "13"}
define("tensor.transpose", transpose_tensor, **_ROW, summary="two axes swapped")
define(
    "tile.transpose",
    transpose_tile,
    **_ROW,
    expand=_transpose_stack,
    summary="two axes swapped, data moved",
    lowering=Lowering("ttrans", ("tile",), {"batch": "tile.batch"}, scratch=("tmp_tile",), may_share=False),
)
define(
    "tile.transpose_view",
    transpose_view,
    **_ROW,
    summary="the last two axes relabelled",
    lowering=Lowering("tmov", ("tile",), {"transpose": 1}, may_share=False),
)
define("tensor.concat", concat_tensor, **_ROW, tile_form="tile.concat", summary="columns of src0, then of src1")
define(
    "tile.concat",
    concat_tile,
    **_ROW,
    lowering=Lowering("tconcat", ("src0", "src1"), may_share=False),
    summary="columns of src0, then of src1",
)
define(
    "tensor.set_validshape",
    set_valid_tensor,
    **_ROW,
    tile_form="tile.set_validshape",
    summary="another valid shape, no data moved",
)
define(
    "tile.set_validshape",
    set_valid_tile,
    **_ROW,
    summary="another valid shape, no data moved",
    lowering=Lowering("setvalid", ("valid_rows", "valid_cols"), destination="tile"),
)
define(
    "tensor.fillpad", fillpad_tensor, **_ROW, tile_form="tile.fillpad", summary="the pad value outside the valid region"
)
define(
    "tile.fillpad",
    fillpad_tile,
    **_ROW,
    summary="the pad value outside the valid region",
    lowering=Lowering("tfillpad", ("tile",), {"pad": "pad_value"}),
)
define(
    "tile.fillpad_inplace",
    fillpad_tile,
    **_ROW,
    summary="the pad value outside the valid region, in place",
    lowering=Lowering("tfillpad", ("tile",), {"pad": "pad_value"}, destination="tile"),
)
define(
    "tensor.fillpad_expand",
    fillpad_expand_tensor,
    **_ROW,
    tile_form="tile.fillpad_expand",
    summary="a larger shape, the pad value outside the valid region",
)
define(
    "tile.fillpad_expand",
    fillpad_expand_tile,
    **_ROW,
    summary="a larger shape, the pad value outside the valid region",
    lowering=Lowering("tfillpad_expand", ("tile",), {"pad": "pad_value"}, may_share=False),
)

"""Windows of tiles and tensors that share their bytes (spec ops 13)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from pypto.ir.enums import MemorySpace, PadValue
from pypto.ir.nodes import Call, Dim, Expr, TensorType, TileType, as_dim
from pypto.ir.operations import dims, results, windows
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.parameters import Axes, Dims, PadChoice, PositiveDims, StaticDims
from pypto.ir.operations.results import dtype_of, shape_of
from pypto.ir.operations.row import Builder
from pypto.ir.operations.show import show
from pypto.ir.operations.table import define


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
        warnings.warn(
            f"pad_value={pad} cannot matter: the window {dims.listing(shape)} is fully valid", UserWarning, stacklevel=2
        )


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
    """A window of ``shape`` at ``offset``; ``drop_dims`` leaves out axes of extent 1."""
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
    stride = tensor.view.stride[lead:] if tensor.view and tensor.view.stride else results.strides(tensor)[lead:]
    return results.tensor(
        [shape[k] for k in kept], tensor.dtype, [valid[k] for k in kept], [stride[k] for k in kept],
        tensor.layout, _inherited_pad(tensor, pad_value),
    )  # fmt: skip


def slice_tile(
    tile: TileType,
    shape: StaticDims,
    offset: Dims,
    valid_shape: Dims | None = None,
    drop_dims: Axes | None = None,
    pad_value: PadChoice | None = None,
) -> TileType:
    """A window of ``shape`` at ``offset``; ``drop_dims`` leaves out axes of extent 1."""
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


_ROW: dict[str, Any] = {"kind": "transform", "spec": "13"}
define("tensor.slice", slice_tensor, **_ROW, summary="a window, sharing the bytes")
define("tile.slice", slice_tile, **_ROW, expand=_copied, summary="a window, sharing the bytes")

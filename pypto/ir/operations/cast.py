"""Dtype conversion of tiles and tensors (spec ops 11)."""

from __future__ import annotations

from pypto.ir.dtype import DataType
from pypto.ir.nodes import Call, Expr, TensorType, TileType, Type
from pypto.ir.operations import results
from pypto.ir.operations.convert import cast_chain
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.parameters import CastMode
from pypto.ir.operations.results import dtype_of
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.table import define


def _need_other(source: results.Shaped, target_type: DataType) -> None:
    if source.dtype == target_type:
        raise OperandValueError(f"the operand is {target_type.constant} already")


def _tensor(input: TensorType, target_type: DataType, mode: CastMode = "round") -> Type:
    _need_other(input, target_type)
    return results.like(input, target_type)


def _tile(tile: TileType, target_type: DataType, mode: CastMode = "round") -> Type:
    _need_other(tile, target_type)
    return results.like(tile, target_type)


def _hops(call: Call, b: Builder) -> Expr | None:
    """A conversion that the vector unit does not have, hop by hop with the same mode."""
    tile, mode = call.arguments["tile"], call.arguments["mode"]
    chain = cast_chain(dtype_of(tile), call.arguments["target_type"], b.generation)
    if len(chain) == 1:
        return None
    for step in chain:
        tile = b.tile("cast", tile=tile, target_type=step, mode=mode)
    return tile


_SUMMARY = "elements converted to another dtype; mode rounds floats to integers"
define("tensor.cast", _tensor, kind="cast", spec="11", tile_form="tile.cast", summary=_SUMMARY)
define(
    "tile.cast",
    _tile,
    kind="cast",
    spec="11",
    lowering=Lowering("tcvt", ("tile",), {"mode": "mode"}),
    expand=_hops,
    summary=_SUMMARY,
)

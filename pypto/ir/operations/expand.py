"""Broadcast of a column, a row or a scalar over a tile (spec ops 9)."""

from __future__ import annotations

from functools import partial
from typing import Any

from pypto.ir.dtype import FP16, FP32, INT8, INT16, INT32
from pypto.ir.nodes import Call, Expr, TensorType, TileType, Type
from pypto.ir.operations import dims, results
from pypto.ir.operations.convert import to_dtype, working_dtype
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.kinds import scalar_dtype
from pypto.ir.operations.parameters import ElementScalar
from pypto.ir.operations.results import dtype_of, shape_of
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.scalars import scalar_cast
from pypto.ir.operations.show import show
from pypto.ir.operations.table import define

_FORMULAS = {
    "add": "x + v",
    "sub": "x - v",
    "mul": "x * v",
    "div": "x / v",
    "max": "max(x, v)",
    "min": "min(x, v)",
    "expdif": "exp(x - v)",
}
_ROW_ADD_DTYPES = (INT8, INT16, INT32, FP16, FP32)
_LINE_BYTES = 32


def _need_column(target: results.Shaped, vector: results.Shaped, name: str) -> None:
    results.need_rank(target, 2, name, at_least=True)
    results.need_rank(vector, 2, "row_vec", at_least=True)
    if dims.differ(vector.shape[-1], 1):
        raise OperandValueError(f"row_vec must have one column, got a {show(vector)}")
    if dims.differ(vector.shape[-2], target.shape[-2]):
        raise OperandValueError(
            f"row_vec has {dims.text(vector.shape[-2])} rows and {name} {dims.text(target.shape[-2])}; they must agree"
        )


def _need_row(target: results.Shaped, vector: results.Shaped, name: str) -> None:
    results.need_rank(target, 2, name, at_least=True)
    results.need_rank(vector, 2, "col_vec", at_least=True)
    if dims.differ(vector.shape[-2], 1):
        raise OperandValueError(f"col_vec must have one row, got a {show(vector)}")
    if dims.differ(vector.shape[-1], target.shape[-1]):
        raise OperandValueError(
            f"col_vec has {dims.text(vector.shape[-1])} columns and {name} {dims.text(target.shape[-1])}; "
            "they must agree"
        )


def _result(target: results.Shaped, vector: results.Shaped) -> Type:
    dtype = results.promote(target.dtype, vector.dtype)
    return results.fresh(target, target.shape, dtype, target.valid_shape if isinstance(target, TileType) else None)


def _row_tensor(tensor: TensorType, row_vec: TensorType) -> Type:
    _need_column(tensor, row_vec, "tensor")
    return _result(tensor, row_vec)


def _row_tile(tile: TileType, row_vec: TileType) -> Type:
    _need_column(tile, row_vec, "tile")
    return _result(tile, row_vec)


def _row_add_tile(tile: TileType, row_vec: TileType, tmp: TileType | None = None) -> Type:
    results.need_same_dtype(tile, row_vec, ("tile", "row_vec"))
    results.need_dtype(tile, _ROW_ADD_DTYPES, "tile")
    line = _LINE_BYTES // tile.dtype.get_byte()
    if len(row_vec.shape) < 2 or row_vec.shape[-1] not in (1, line):
        raise OperandValueError(f"row_vec must have 1 column or {line} (one 32-byte line), got a {show(row_vec)}")
    _need_column(tile, results.tile((*row_vec.shape[:-1], 1), row_vec.dtype), "tile")
    if dims.differ(row_vec.valid_shape[-2], tile.valid_shape[-2]):
        raise OperandValueError(
            f"row_vec is valid in {dims.text(row_vec.valid_shape[-2])} rows and tile in "
            f"{dims.text(tile.valid_shape[-2])}; they must agree"
        )
    return _result(tile, row_vec)


def _col_tensor(tensor: TensorType, col_vec: TensorType) -> Type:
    _need_row(tensor, col_vec, "tensor")
    return _result(tensor, col_vec)


def _col_tile(tile: TileType, col_vec: TileType) -> Type:
    _need_row(tile, col_vec, "tile")
    return _result(tile, col_vec)


def _row_target_tensor(target: TensorType, row_vec: TensorType) -> Type:
    _need_column(target, row_vec, "target")
    return _result(target, row_vec)


def _row_target_tile(target: TileType, row_vec: TileType) -> Type:
    _need_column(target, row_vec, "target")
    return _result(target, row_vec)


def _col_target_tile(target: TileType, col_vec: TileType) -> Type:
    _need_row(target, col_vec, "target")
    return _result(target, col_vec)


def _expands_tensor(target: TensorType, scalar: ElementScalar) -> Type:
    return results.fresh(target, target.shape, target.dtype)


def _expands_tile(target: TileType, scalar: ElementScalar) -> Type:
    return results.fresh(target, target.shape, results.promote(target.dtype, scalar_dtype(scalar)), target.valid_shape)


def _expand_clone(src: TensorType, target: TensorType) -> Type:
    results.need_same_dtype(src, target, ("src", "target"))
    for value, name in ((src, "src"), (target, "target")):
        results.need_rank(value, 3, name)
    grown = [axis for axis, (a, b) in enumerate(zip(src.shape, target.shape)) if dims.differ(a, b)]
    if len(grown) > 1 or any(src.shape[axis] != 1 for axis in grown):
        raise OperandValueError(
            f"src {dims.listing(src.shape)} must equal target {dims.listing(target.shape)} except for one axis of 1"
        )
    return target


# --- expansions -------------------------------------------------------------------------------------------------------


def _align(name: str, operands: tuple[str, str], call: Call, b: Builder) -> Expr | None:
    """Mixed dtypes are really promoted (spec ops 1.5); equal ones need no help."""
    dtype = dtype_of(call)
    given = {key: value for key, value in call.arguments.items() if value is not None}
    if all(dtype_of(given[key]) == dtype for key in operands):
        return None
    return b.tile(name, **{**given, **{key: to_dtype(given[key], dtype, b) for key in operands}})


def _row_add(call: Call, b: Builder) -> Expr | None:
    """A vector one 32-byte line wide repeats along the row: written as one column expansion per line."""
    tile, vector = call.arguments["tile"], call.arguments["row_vec"]
    line = shape_of(vector)[-1]
    cols = shape_of(tile)[-1]
    if line == 1:
        return None
    if cols == line:
        return b.tile("add", lhs=tile, rhs=vector)
    target = b.create_tile(shape_of(tile), dtype_of(tile))
    for start in range(0, cols, line):
        width = min(line, cols - start)
        piece = b.tile("slice", tile=vector, shape=(shape_of(tile)[0], width), offset=(0, 0))
        target = b.tile("assemble", target=target, source=piece, offset=(0, start))
    return b.tile("add", lhs=tile, rhs=target)


def _row_add_form(call: Call, b: Builder) -> Expr:
    """The tensor form takes dtypes the tile row does not (BF16): those go through the plain addition."""
    dtype = working_dtype(call)
    tensor, vector = (to_dtype(call.arguments[key], dtype, b) for key in ("tensor", "row_vec"))
    if dtype in _ROW_ADD_DTYPES:
        return b.tile("row_expand_add", tile=tensor, row_vec=vector)
    wide = b.create_tile(shape_of(tensor), dtype)
    return b.tile("add", lhs=tensor, rhs=b.tile("row_expand", target=wide, row_vec=vector))


def _fill(call: Call, b: Builder) -> Expr | None:
    dtype = dtype_of(call)
    target, scalar = call.arguments["target"], scalar_cast(call.arguments["scalar"], dtype)
    if dtype_of(target) == dtype and scalar is call.arguments["scalar"]:
        return None
    if dtype_of(target) != dtype:
        target = b.create_tile(shape_of(target), dtype)
    return b.tile("expands", target=target, scalar=scalar)


def _clone(call: Call, b: Builder) -> Expr:
    """One copy of ``src`` per index of the repeated axis; along the last axis the rows are expanded first."""
    src, target = call.arguments["src"], call.arguments["target"]
    shape, wanted = shape_of(src), shape_of(target)
    if shape[2] != wanted[2]:
        rows = b.tile("reshape", tile=src, shape=(shape[0] * shape[1], 1))
        wide = b.create_tile((shape[0] * shape[1], wanted[2]), dtype_of(src))
        src = b.tile("reshape", tile=b.tile("row_expand", target=wide, row_vec=rows), shape=wanted)
    axis = next((k for k in (0, 1) if shape[k] != wanted[k]), 0)
    copies = wanted[axis] // shape[axis]

    def one_copy(position: Expr) -> None:
        place = tuple(position if k == axis else 0 for k in range(3)) if copies > 1 else (0, 0, 0)
        if isinstance(target.type, TileType):
            b.tile("assemble", target=target, source=src, offset=place)
        else:
            b.tile("store", tile=src, offsets=place, output_tensor=target)

    b.repeat(copies, one_copy)
    return target


def _combine(direction: str, name: str) -> None:
    full = f"{direction}_expand_{name}"
    adds = full == "row_expand_add"
    index = "v[i,0]" if direction == "row" else "v[0,j]"
    vector = f"{direction}_vec"
    shown: dict[str, Any] = {"kind": "broadcast", "spec": "9", "summary": f"{_FORMULAS[name]} with {index}"}
    define(
        f"tensor.{full}",
        _row_tensor if direction == "row" else _col_tensor,
        tile_form=_row_add_form if adds else f"tile.{full}",
        **shown,
    )
    define(
        f"tile.{full}",
        _row_add_tile if adds else _row_tile if direction == "row" else _col_tile,
        lowering=Lowering(f"t{direction}expand{name}", ("tile", vector), scratch=("tmp",) if adds else ()),
        expand=_row_add if adds else partial(_align, full, ("tile", vector)),
        **shown,
    )


for _direction in ("row", "col"):
    for _name in _FORMULAS:
        _combine(_direction, _name)

define(
    "tensor.row_expand",
    _row_target_tensor,
    kind="broadcast",
    spec="9",
    tile_form="tile.row_expand",
    summary="v[i,0] in every column",
)
define(
    "tile.row_expand",
    _row_target_tile,
    kind="broadcast",
    spec="9",
    summary="v[i,0] in every column",
    lowering=Lowering("trowexpand", ("row_vec",)),
    expand=partial(_align, "row_expand", ("target", "row_vec")),
)
define(
    "tensor.col_expand",
    _col_tensor,
    kind="broadcast",
    spec="9",
    tile_form="tile.col_expand",
    summary="v[0,j] in every row",
)
define(
    "tile.col_expand",
    _col_target_tile,
    kind="broadcast",
    spec="9",
    summary="v[0,j] in every row",
    lowering=Lowering("tcolexpand", ("col_vec",)),
    expand=partial(_align, "col_expand", ("target", "col_vec")),
)
define(
    "tensor.expands",
    _expands_tensor,
    kind="broadcast",
    spec="9",
    tile_form="tile.expands",
    summary="every element = scalar",
)
define(
    "tile.expands",
    _expands_tile,
    kind="broadcast",
    spec="9",
    summary="every element = scalar",
    lowering=Lowering("texpands", ("scalar",)),
    expand=_fill,
)
define(
    "tensor.expand_clone",
    _expand_clone,
    promoted=("expand_clone",),
    kind="broadcast",
    spec="9",
    tile_form=_clone,
    stays_in_memory=("target",),
    summary="src copied into target, an axis of 1 repeated",
)

"""Reductions along rows and columns (spec ops 10)."""

from __future__ import annotations

from functools import partial

from pypto.ir.dtype import FP16, FP32, INT16, INT32
from pypto.ir.nodes import Call, Dim, Expr, TensorType, TileType, Type
from pypto.ir.operations import dims, results
from pypto.ir.operations.convert import to_dtype
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.results import dtype_of, shape_of
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.show import show
from pypto.ir.operations.table import define

_SUMMARIES = {"sum": "sum", "prod": "product", "max": "maximum", "min": "minimum"}
_ROW_MIN_DTYPES = (FP16, FP32, INT16, INT32)


def _reduced(source: results.Shaped, axis: int) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """Shape and valid shape with one axis reduced to 1; ``ValueError`` when there is provably nothing to reduce."""
    for position, extent in enumerate(source.valid_shape):
        if dims.equal(extent, 0):
            raise OperandValueError(f"axis {position} of the {show(source)} has no valid element")
    shape, valid = list(source.shape), list(source.valid_shape)
    shape[axis] = valid[axis] = 1
    return tuple(shape), tuple(valid)


def _axis(direction: str, source: results.Shaped) -> int:
    rank = len(source.shape)
    if direction == "row":
        return rank - 1
    return 0 if isinstance(source, TileType) else rank - 2


def _result(direction: str, source: results.Shaped, argument: bool) -> results.Shaped:
    flat = direction == "row" and isinstance(source, TensorType)
    results.need_rank(source, 1 if flat else 2, "the operand", at_least=True)
    shape, valid = _reduced(source, _axis(direction, source))
    return results.fresh(source, shape, INT32 if argument else source.dtype, valid)


def _need_scratch(tile: TileType, tmp: TileType, exact: bool) -> None:
    if tmp.dtype != tile.dtype or len(tmp.shape) != len(tile.shape):
        raise OperandValueError(f"tmp_tile must have the dtype and rank of the {show(tile)}, got a {show(tmp)}")
    for own, need in zip(tmp.shape, tile.shape):
        if own < need or (exact and own != need):
            relation = "exactly" if exact else "at least"
            raise OperandValueError(f"tmp_tile {dims.listing(tmp.shape)} must be {relation} {dims.listing(tile.shape)}")


def _tensor(_direction: str, _argument: bool, input: TensorType) -> Type:
    return _result(_direction, input, _argument)


def _row_tile(_name: str, tile: TileType, tmp_tile: TileType) -> Type:
    if _name == "min":
        results.need_dtype(tile, _ROW_MIN_DTYPES, "tile")
    _need_scratch(tile, tmp_tile, exact=False)
    return _result("row", tile, False)


def _row_argument(tile: TileType, tmp_tile: TileType) -> Type:
    _need_scratch(tile, tmp_tile, exact=True)
    return _result("row", tile, True)


def _col_argument(tile: TileType, tmp_tile: TileType) -> Type:
    return _result("col", tile, True)


def _col_tile(tile: TileType) -> Type:
    return _result("col", tile, False)


def _col_sum(tile: TileType, tmp_tile: TileType | None = None) -> Type:
    return _result("col", tile, False)


def _with_scratch(name: str, call: Call, b: Builder) -> Expr:
    """A tensor reduction in a kernel: the scratch tile that the instruction asks for is made here."""
    source = call.arguments["input"]
    dtype = dtype_of(source)
    if name == "row_min" and dtype.is_float() and dtype not in _ROW_MIN_DTYPES:
        return to_dtype(_reduce_tile(name, to_dtype(source, FP32, b), b), dtype, b)
    return _reduce_tile(name, source, b)


def _reduce_tile(name: str, source: Expr, b: Builder) -> Expr:
    return b.tile(name, tile=source, tmp_tile=b.create_tile(shape_of(source), dtype_of(source)))


def _columns(name: str, call: Call, b: Builder) -> Expr:
    """A tensor column reduction: axis -2, so every leading index is a block of rows of its own."""
    source = call.arguments["input"]
    shape = shape_of(source)
    needs_scratch = name.startswith("col_arg")
    if len(shape) == 2:
        return _with_scratch(name, call, b) if needs_scratch else b.tile(name, tile=source)
    rows, cols = shape[-2:]
    batch = results.static((dims.product(shape[:-2]),))[0]
    flat = b.tile("reshape", tile=source, shape=(batch * rows, cols))
    target = b.create_tile((batch, cols), INT32 if needs_scratch else dtype_of(source))
    for index in range(batch):
        block = b.tile("slice", tile=flat, shape=(rows, cols), offset=(index * rows, 0))
        extra = {"tmp_tile": b.create_tile((rows, cols), dtype_of(source))} if needs_scratch else {}
        target = b.tile("assemble", target=target, source=b.tile(name, tile=block, **extra), offset=(index, 0))
    return b.tile("reshape", tile=target, shape=(*shape[:-2], 1, cols))


def _first_axis(name: str, call: Call, b: Builder) -> Expr | None:
    """A tile with more axes reduces axis 0: as two axes, the rest of the axes are one."""
    tile = call.arguments["tile"]
    shape = shape_of(tile)
    if len(shape) == 2:
        return None
    flat = b.tile("reshape", tile=tile, shape=(shape[0], results.static((dims.product(shape[1:]),))[0]))
    extra = {"tmp_tile": flat} if name.startswith("col_arg") else {}
    return b.tile("reshape", tile=b.tile(name, tile=flat, **extra), shape=(1, *shape[1:]))


def _reductions() -> None:
    for name, noun in _SUMMARIES.items():
        row, col = f"row_{name}", f"col_{name}"
        across, down = f"{noun} of each row", f"{noun} of each column"
        define(
            f"tensor.{row}",
            partial(_tensor, "row", False),
            kind="reduce",
            spec="10",
            summary=across,
            tile_form=partial(_with_scratch, row),
        )
        define(
            f"tile.{row}",
            partial(_row_tile, name),
            kind="reduce",
            spec="10",
            summary=across,
            lowering=Lowering(f"trow{name}", ("tile",), scratch=("tmp_tile",), may_share=False),
        )
        define(
            f"tensor.{col}",
            partial(_tensor, "col", False),
            kind="reduce",
            spec="10",
            summary=down,
            tile_form=partial(_columns, col),
        )
        scratch = ("tmp_tile",) if name == "sum" else ()
        define(
            f"tile.{col}",
            _col_sum if scratch else _col_tile,
            kind="reduce",
            spec="10",
            summary=down,
            lowering=Lowering(f"tcol{name}", ("tile",), scratch=scratch),
            expand=partial(_first_axis, col),
        )


def _arguments() -> None:
    for name in ("argmax", "argmin"):
        row, col = f"row_{name}", f"col_{name}"
        noun = f"position of the first {_SUMMARIES[name[3:]]} of each"
        define(
            f"tensor.{row}",
            partial(_tensor, "row", True),
            kind="reduce",
            spec="10",
            summary=f"{noun} row",
            tile_form=partial(_with_scratch, row),
        )
        define(
            f"tile.{row}",
            _row_argument,
            kind="reduce",
            spec="10",
            summary=f"{noun} row",
            lowering=Lowering(f"trow{name}", ("tile",), scratch=("tmp_tile",), may_share=False),
        )
        define(
            f"tensor.{col}",
            partial(_tensor, "col", True),
            kind="reduce",
            spec="10",
            summary=f"{noun} column",
            tile_form=partial(_columns, col),
        )
        define(
            f"tile.{col}",
            _col_argument,
            kind="reduce",
            spec="10",
            summary=f"{noun} column",
            lowering=Lowering(f"tcol{name}", ("tile",), scratch=("tmp_tile",)),
            expand=partial(_first_axis, col),
        )


_reductions()
_arguments()

"""Comparison into packed predicates and selection by them (spec ops 6)."""

from __future__ import annotations

from pypto.ir.dtype import (
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    UINT32,
)  # fmt: skip
from pypto.ir.nodes import Call, Dim, Expr, TensorType, TileType, Type
from pypto.ir.operations import dims, results
from pypto.ir.operations.convert import to_dtype, working_dtype
from pypto.ir.operations.elementwise import spread
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.kinds import scalar_dtype
from pypto.ir.operations.parameters import Comparison, ElementOrTensor, ElementScalar, ExactElement
from pypto.ir.operations.results import dtype_of, shape_of
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.scalars import scalar_cast
from pypto.ir.operations.show import show
from pypto.ir.operations.table import define

_LINE_BYTES = 32
_SELECTED = (FP16, FP32, INT16, UINT16, INT32, UINT32, INT8, UINT8)
_MASKS = (INT8, UINT8, INT16, UINT16, INT32, UINT32)


def predicate(shape: tuple[Dim, ...], valid: tuple[Dim, ...]) -> TileType:
    """The packed predicate of a shape: one bit per element, rows of whole 32-byte lines."""
    rows, cols = results.static(shape[:-1]), results.static(shape[-1:])[0]
    width = -(-cols // (8 * _LINE_BYTES)) * _LINE_BYTES
    return results.tile((*rows, width), UINT8, valid=(*valid[:-1], dims.ceil_div(valid[-1], 8)))


def _cmp_tensor(lhs: TensorType, rhs: ElementOrTensor, cmp_type: Comparison = 0) -> Type:
    if isinstance(rhs, TensorType):
        return results.tensor(results.broadcast(lhs.shape, rhs.shape), results.promote(lhs.dtype, rhs.dtype))
    return results.tensor(lhs.shape, results.promote(lhs.dtype, scalar_dtype(rhs)))


def _cmp_tile(lhs: TileType, rhs: TileType, cmp_type: Comparison = 0) -> Type:
    shape = results.broadcast(lhs.shape, rhs.shape)
    valid = lhs.valid_shape if dims.all_equal(shape, lhs.shape) else shape
    return predicate(shape, valid)


def _cmps_tile(lhs: TileType, rhs: ElementScalar, cmp_type: Comparison = 0) -> Type:
    return predicate(lhs.shape, lhs.valid_shape)


def _need_mask(mask: TileType, source: TileType) -> None:
    results.need_dtype(mask, _MASKS, "mask")
    if mask.shape[:-1] != source.shape[:-1]:
        raise OperandValueError(f"mask must have the rows of the {show(source)}, got a {show(mask)}")
    need = dims.ceil_div(source.valid_shape[-1], 8)
    if dims.less(mask.shape[-1] * mask.dtype.get_byte(), need):
        raise OperandValueError(f"mask must hold {dims.text(need)} bytes per row, got a {show(mask)}")


def _sel(mask: TileType, lhs: TileType, rhs: TileType, tmp: TileType) -> Type:
    results.need_same_shape(lhs, rhs, ("lhs", "rhs"))
    _need_mask(mask, lhs)
    return results.like(lhs)


def _sels(mask: TileType, src: TileType, tmp: TileType, scalar: ExactElement) -> Type:
    results.need_dtype(src, _SELECTED, "src")
    results.need_rank(mask, 2, "mask")
    _need_mask(mask, src)
    return results.like(src)


# --- expansions -------------------------------------------------------------------------------------------------------


def _align(call: Call, b: Builder) -> Expr | None:
    """Operands of one dtype and shape, as the instruction needs them."""
    lhs, rhs = call.arguments["lhs"], call.arguments["rhs"]
    if dtype_of(lhs) == dtype_of(rhs) and shape_of(lhs) == shape_of(rhs):
        return None
    dtype = results.promote(dtype_of(lhs), dtype_of(rhs))
    shape = results.static(results.broadcast(shape_of(lhs), shape_of(rhs)))
    a, c = (spread(to_dtype(value, dtype, b), shape, b) for value in (lhs, rhs))
    return b.tile("cmp", lhs=a, rhs=c, cmp_type=call.arguments["cmp_type"])


def _align_scalar(call: Call, b: Builder) -> Expr | None:
    lhs, rhs = call.arguments["lhs"], call.arguments["rhs"]
    scalar = scalar_cast(rhs, dtype_of(lhs))
    return None if scalar is rhs else b.tile("cmps", lhs=lhs, rhs=scalar, cmp_type=call.arguments["cmp_type"])


def _align_selection(call: Call, b: Builder) -> Expr | None:
    given = call.arguments
    mask, rhs = _bytes(given["mask"], b), to_dtype(given["rhs"], dtype_of(given["lhs"]), b)
    if mask is given["mask"] and rhs is given["rhs"]:
        return None
    return b.tile("sel", mask=mask, lhs=given["lhs"], rhs=rhs, tmp=given["tmp"])


def _align_scalar_selection(call: Call, b: Builder) -> Expr | None:
    given = call.arguments
    mask, scalar = _bytes(given["mask"], b), scalar_cast(given["scalar"], dtype_of(given["src"]))
    if mask is given["mask"] and scalar is given["scalar"]:
        return None
    return b.tile("sels", mask=mask, src=given["src"], tmp=given["tmp"], scalar=scalar)


def _bytes(mask: Expr, b: Builder) -> Expr:
    """A mask of wider words as its bytes."""
    dtype = dtype_of(mask)
    return b.tile("reinterpret_view", data=mask, dtype=UINT8) if dtype.get_bit() > 8 else mask


def _zero_or_one(call: Call, b: Builder) -> Expr:
    """A tensor comparison in a kernel: 1 where the predicate holds, 0 elsewhere, in the declared dtype."""
    dtype = working_dtype(call)
    shape = results.static(shape_of(call))
    lhs, rhs = to_dtype(call.arguments["lhs"], dtype, b), call.arguments["rhs"]
    cmp_type = call.arguments["cmp_type"]
    if isinstance(rhs.type, TileType):
        a, c = spread(lhs, shape, b), spread(to_dtype(rhs, dtype, b), shape, b)
        mask = b.tile("cmp", lhs=a, rhs=c, cmp_type=cmp_type)
    else:
        mask = b.tile("cmps", lhs=lhs, rhs=scalar_cast(rhs, dtype), cmp_type=cmp_type)
    one, zero = (b.tile("full", shape=shape, dtype=dtype, value=value) for value in (1, 0))
    return b.tile("sel", mask=mask, lhs=one, rhs=zero, tmp=b.create_tile((1, _LINE_BYTES), UINT8))


define(
    "tensor.cmp", _cmp_tensor, kind="elementwise", spec="6", tile_form=_zero_or_one, summary="1 where a cmp b, else 0"
)
define(
    "tile.cmp",
    _cmp_tile,
    kind="elementwise",
    spec="6",
    scalar_form="tile.cmps",
    expand=_align,
    lowering=Lowering("tcmp", ("lhs", "rhs"), {"mode": "cmp_type"}),
    summary="packed predicate of a cmp b",
)
define(
    "tile.cmps",
    _cmps_tile,
    promoted=("cmps",),
    kind="elementwise",
    spec="6",
    expand=_align_scalar,
    lowering=Lowering("tcmps", ("lhs", "rhs"), {"mode": "cmp_type"}),
    summary="packed predicate of a cmp scalar",
)
define(
    "tile.sel",
    _sel,
    promoted=("sel",),
    kind="elementwise",
    spec="6",
    expand=_align_selection,
    lowering=Lowering("tsel", ("mask", "lhs", "rhs"), scratch=("tmp",)),
    summary="lhs where the bit is set, else rhs",
)
define(
    "tile.sels",
    _sels,
    promoted=("sels",),
    kind="elementwise",
    spec="6",
    expand=_align_scalar_selection,
    lowering=Lowering("tsels", ("mask", "src", "scalar"), scratch=("tmp",)),
    summary="src where the bit is set, else the scalar",
)

"""Element-wise arithmetic on two operands, scalar forms, three-operand and partial forms (spec ops 4, 8)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pypto.ir.dtype import BF16, FP16, FP32, INT8, INT16, INT32, DataType
from pypto.ir.nodes import Call, Dim, Expr, TensorType, TileType, Type
from pypto.ir.operations import dims, results
from pypto.ir.operations.convert import to_dtype, working_dtype
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.kinds import scalar_dtype
from pypto.ir.operations.parameters import ElementOrTensor, ElementScalar
from pypto.ir.operations.results import dtype_of, shape_of
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.scalars import scalar_cast
from pypto.ir.operations.show import show
from pypto.ir.operations.table import define

_DIVIDES = (INT16, INT32, FP16, FP32)
_SUBTRACTS = (INT8, INT16, INT32, FP16, FP32, BF16)
_FORMULAS = {
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "div": "a / b; integers truncate",
    "fmod": "a - trunc(a / b) * b",
    "maximum": "the larger of a and b",
    "minimum": "the smaller of a and b",
}
_MNEMONICS = {"maximum": "max", "minimum": "min"}
_EXPANDABLE = frozenset({"add", "sub", "mul", "div", "maximum", "minimum"})

# --- type rules -------------------------------------------------------------------------------------------------------


def tensor_result(lhs: TensorType, rhs: TensorType, dtype: DataType, keeps_valid: bool = True) -> TensorType:
    """Broadcast shape; a partial valid shape survives only between equals (spec ops 1.10)."""
    shape = results.broadcast(lhs.shape, rhs.shape)
    same = dims.all_equal(lhs.shape, rhs.shape) and dims.all_equal(lhs.valid_shape, rhs.valid_shape)
    return results.tensor(shape, dtype, lhs.valid_shape if same and keeps_valid else None)


def tile_result(lhs: TileType, rhs: TileType, dtype: DataType | None = None) -> TileType:
    """Broadcast shape with the left operand's valid shape, widened along the axes it is broadcast over."""
    shape = results.broadcast(lhs.shape, rhs.shape)
    lead = len(shape) - len(lhs.shape)
    valid: list[Dim] = list(shape[:lead])
    for extent, own, ask in zip(shape[lead:], lhs.shape, lhs.valid_shape):
        valid.append(ask if own == extent else extent)
    return results.tile(results.static(shape), dtype or results.promote(lhs.dtype, rhs.dtype), valid=valid)


def _tensors(lhs: TensorType, rhs: TensorType) -> Type:
    return tensor_result(lhs, rhs, results.promote(lhs.dtype, rhs.dtype))


def _tensor_or_scalar(lhs: TensorType, rhs: ElementOrTensor) -> Type:
    if isinstance(rhs, TensorType):
        return _tensors(lhs, rhs)
    return results.like(lhs, results.promote(lhs.dtype, scalar_dtype(rhs)))


def _tensor_scalar(lhs: TensorType, rhs: ElementScalar) -> Type:
    return results.like(lhs, results.promote(lhs.dtype, scalar_dtype(rhs)))


def _tensor_subs(lhs: TensorType, rhs: ElementScalar) -> Type:
    return results.like(lhs)


def _tensor_div(lhs: TensorType, rhs: TensorType, high_precision: bool = False) -> Type:
    results.need_dtype(lhs, _DIVIDES, "lhs")
    results.need_dtype(rhs, _DIVIDES, "rhs")
    if high_precision and not dims.all_equal(lhs.shape, rhs.shape):
        raise OperandValueError(f"high_precision=True needs equal shapes, got {show(lhs)} and {show(rhs)}")
    return _tensors(lhs, rhs)


def _tiles(lhs: TileType, rhs: TileType) -> Type:
    return tile_result(lhs, rhs)


def _tile_div(lhs: TileType, rhs: TileType, high_precision: bool = False) -> Type:
    results.need_dtype(lhs, _DIVIDES, "lhs")
    results.need_same_dtype(lhs, rhs, ("lhs", "rhs"))
    results.need_same_shape(lhs, rhs, ("lhs", "rhs"))
    results.need_same_valid(lhs, rhs, ("lhs", "rhs"))
    if high_precision and not lhs.dtype.is_float():
        raise OperandValueError(f"high_precision=True is for floats, lhs is {lhs.dtype.constant}")
    return results.like(lhs)


def _tile_scalar(lhs: TileType, rhs: ElementScalar) -> Type:
    return results.like(lhs)


def _tile_subs(lhs: TileType, rhs: ElementScalar) -> Type:
    results.need_dtype(lhs, _SUBTRACTS, "lhs")
    if scalar_dtype(rhs) not in _SUBTRACTS:
        legal = ", ".join(d.constant for d in _SUBTRACTS)
        raise OperandValueError(f"rhs is {scalar_dtype(rhs).constant}; legal: {legal}")
    return results.like(lhs)


def _rem(lhs: TileType, rhs: TileType, tmp: TileType) -> Type:
    return tile_result(lhs, rhs)


def _rems(lhs: TileType, rhs: ElementScalar, tmp: TileType) -> Type:
    return results.like(lhs, results.promote(lhs.dtype, scalar_dtype(rhs)))


def _three(lhs: TileType, rhs: TileType, rhs2: TileType) -> Type:
    return tile_result(tile_result(lhs, rhs), rhs2)


def _three_scalar(lhs: TileType, rhs: ElementScalar, rhs2: TileType) -> Type:
    return tile_result(lhs, rhs2)


def _need_part(lhs: TensorType | TileType, rhs: TensorType | TileType) -> None:
    results.need_same_dtype(lhs, rhs, ("the first operand", "the second"))


def _part_tensors(lhs: TensorType, rhs: TensorType) -> Type:
    _need_part(lhs, rhs)
    return tensor_result(lhs, rhs, lhs.dtype, keeps_valid=False)


def _part_tiles(src0: TileType, src1: TileType) -> Type:
    _need_part(src0, src1)
    results.need_same_shape(src0, src1, ("src0", "src1"))
    return results.like(src0)


# --- expansions -------------------------------------------------------------------------------------------------------


def align(name: str, call: Call, b: Builder) -> Expr | None:
    """Real promotion and broadcasting for two tiles; equal operands need no help (spec ops 1.5, 1.7)."""
    lhs, rhs = call.arguments["lhs"], call.arguments["rhs"]
    dtype = dtype_of(call)
    if dtype_of(lhs) == dtype_of(rhs) == dtype and shape_of(lhs) == shape_of(rhs):
        return None
    lhs, rhs = to_dtype(lhs, dtype, b), to_dtype(rhs, dtype, b)
    shape = shape_of(call)
    options = {key: value for key, value in call.arguments.items() if key not in ("lhs", "rhs")}
    if name in _EXPANDABLE and shape_of(lhs) == shape and len(shape) == 2 == len(shape_of(rhs)):
        suffix = {"maximum": "max", "minimum": "min"}.get(name, name)
        for axis, want in (("row", (shape[0], 1)), ("col", (1, shape[1]))):
            if shape_of(rhs) == want and shape != want:
                vector = {"row": "row_vec", "col": "col_vec"}[axis]
                return b.tile(f"{axis}_expand_{suffix}", **{"tile": lhs, vector: rhs})
    return b.tile(name, lhs=spread(lhs, shape, b), rhs=spread(rhs, shape, b), **options)


def spread(source: Expr, shape: Sequence[int], b: Builder) -> Expr:
    """A tile with unit axes copied out to a full two-axis shape."""
    own = shape_of(source)
    if own == tuple(shape):
        return source
    if len(shape) != 2:
        raise OperandValueError(
            f"broadcasting {dims.listing(own)} to {dims.listing(shape)} is only done for two axes; use pl.expand_clone"
        )
    rows, cols = shape
    if len(own) < 2:
        source = b.tile("reshape", tile=source, shape=(1,) * (2 - len(own)) + own)
        own = shape_of(source)
    dtype = dtype_of(source)
    if own[1] == 1 and cols > 1:
        target = b.create_tile((own[0], cols), dtype)
        source = b.tile("row_expand", target=target, row_vec=source)
    if own[0] == 1 and rows > 1:
        source = b.tile("col_expand", target=b.create_tile((rows, cols), dtype), col_vec=source)
    return source


def convert_scalar(name: str, call: Call, b: Builder) -> Expr | None:
    """The scalar in the dtype of the tile, the tile in the dtype of the result (spec ops 1.6)."""
    given = dict(call.arguments)
    dtype = dtype_of(call)
    tile = to_dtype(given["lhs"], dtype, b)
    scalar = scalar_cast(given["rhs"], dtype)
    if tile is given["lhs"] and scalar is given["rhs"]:
        return None
    return b.tile(name, **{**given, "lhs": tile, "rhs": scalar})


def promoted_form(name: str, call: Call, b: Builder) -> Expr:
    """A tensor form in a kernel: both operands really converted to the declared result dtype (spec ops 1.5)."""
    lhs, rhs = call.arguments["lhs"], call.arguments["rhs"]
    dtype = working_dtype(call)
    if not isinstance(rhs.type, (TensorType, TileType)):
        scalar_name = {"maximum": "maximums", "minimum": "minimums"}.get(name, name)
        return b.tile(scalar_name, lhs=to_dtype(lhs, dtype, b), rhs=scalar_cast(rhs, dtype))
    return b.tile(name, lhs=to_dtype(lhs, dtype, b), rhs=to_dtype(rhs, dtype, b))


def _div_form(call: Call, b: Builder) -> Expr:
    """Division broadcasts like the others although the tile row does not."""
    dtype = working_dtype(call)
    shape = results.static(shape_of(call))
    lhs, rhs = (to_dtype(call.arguments[key], dtype, b) for key in ("lhs", "rhs"))
    if shape_of(lhs) == shape and len(shape) == 2 == len(shape_of(rhs)) and dtype.is_float():
        if shape_of(rhs) == (shape[0], 1) and shape[1] > 1:
            return b.tile("row_expand_div", tile=lhs, row_vec=rhs)
        if shape_of(rhs) == (1, shape[1]) and shape[0] > 1:
            return b.tile("col_expand_div", tile=lhs, col_vec=rhs)
    high_precision = call.arguments["high_precision"]
    return b.tile("div", lhs=spread(lhs, shape, b), rhs=spread(rhs, shape, b), high_precision=high_precision)


# --- rows -------------------------------------------------------------------------------------------------------------


def _form(name: str) -> partial[Expr]:
    return partial(promoted_form, name)


def _pair(name: str, *, spec: str = "4") -> None:
    """``tensor.name``/``tile.name`` on two operands."""
    mnemonic = f"t{_MNEMONICS.get(name, name)}"
    divides = name == "div"
    attributes: dict[str, Any] = {"kind": "elementwise", "spec": spec, "summary": _FORMULAS[name]}
    selects = name in _MNEMONICS
    define(
        f"tensor.{name}",
        _tensor_div if divides else _tensor_or_scalar if selects else _tensors,
        tile_form=_div_form if divides else _form(name),
        scalar_form=None if selects else f"tensor.{name}s",
        **attributes,
    )
    define(
        f"tile.{name}",
        _tile_div if divides else _tiles,
        lowering=Lowering(mnemonic, ("lhs", "rhs"), may_share=name != "fmod"),
        expand=partial(align, name),
        scalar_form=f"tile.{name}s",
        **attributes,
    )


def _scalar(name: str, *, levels: Sequence[str] = ("tensor", "tile"), promoted: bool = False) -> None:
    """``tensor.names``/``tile.names`` on a value and a scalar."""
    base = name[:-1]
    attributes: dict[str, Any] = {"kind": "elementwise", "spec": "4", "summary": f"{_FORMULAS[base]} with a scalar b"}
    if "tensor" in levels:
        define(f"tensor.{name}", _tensor_subs if base == "sub" else _tensor_scalar, tile_form=_form(name), **attributes)
    define(
        f"tile.{name}",
        _tile_subs if base == "sub" else _tile_scalar,
        lowering=Lowering(f"t{_MNEMONICS.get(base, base)}s", ("lhs", "rhs"), may_share=base != "fmod"),
        expand=partial(convert_scalar, name),
        promoted=(name,) if promoted else (),
        **attributes,
    )


for _name in _FORMULAS:
    _pair(_name)
for _name in ("adds", "subs", "muls", "divs", "fmods"):
    _scalar(_name)
for _name in ("maximums", "minimums"):
    _scalar(_name, levels=("tile",), promoted=True)

define(
    "tile.rem",
    _rem,
    promoted=("rem",),
    kind="elementwise",
    spec="4",
    expand=partial(align, "rem"),
    lowering=Lowering("trem", ("lhs", "rhs"), scratch=("tmp",)),
    summary="a - floor(a / b) * b",
)
define(
    "tile.rems",
    _rems,
    promoted=("rems",),
    kind="elementwise",
    spec="4",
    expand=partial(convert_scalar, "rems"),
    lowering=Lowering("trems", ("lhs", "rhs"), scratch=("tmp",)),
    summary="a - floor(a / b) * b with a scalar b",
)


def _align_three(name: str, call: Call, b: Builder) -> Expr | None:
    dtype, shape = dtype_of(call), shape_of(call)
    given = dict(call.arguments)
    for key, value in given.items():
        if isinstance(value.type, TileType):
            given[key] = spread(to_dtype(value, dtype, b), shape, b)
        else:
            given[key] = scalar_cast(value, dtype)
    if all(given[key] is call.arguments[key] for key in given):
        return None
    return b.tile(name, **given)


for _name, _formula in (("addc", "a + b + c"), ("subc", "a - b - c")):
    for _suffix, _rule, _operand in (("", _three, "b"), ("s", _three_scalar, "a scalar b")):
        _full = f"{_name[:-1]}{_suffix}c"
        define(
            f"tile.{_full}",
            _rule,
            promoted=(_full,),
            kind="elementwise",
            spec="4",
            expand=partial(_align_three, _full),
            lowering=Lowering(f"t{_full}", ("lhs", "rhs", "rhs2")),
            summary=f"{_formula} with {_operand}, left to right",
        )

for _name in ("add", "mul", "max", "min"):
    _summary = f"{_name} where both operands are valid, the valid one elsewhere, 0 where neither is"
    define(
        f"tensor.part_{_name}",
        _part_tensors,
        kind="elementwise",
        spec="8",
        summary=_summary,
        tile_form=f"tile.part_{_name}",
    )
    define(
        f"tile.part_{_name}",
        _part_tiles,
        kind="elementwise",
        spec="8",
        summary=_summary,
        lowering=Lowering(f"tpart{_name}", ("src0", "src1")),
    )

"""Unary mathematics and activations (spec ops 5)."""

from __future__ import annotations

from functools import partial
from typing import Any

from pypto.ir.dtype import FP16, FP32, INT16, UINT16
from pypto.ir.nodes import Call, Expr, TensorType, TileType, Type
from pypto.ir.operations import results
from pypto.ir.operations.convert import to_dtype, working_dtype
from pypto.ir.operations.parameters import FloatElement
from pypto.ir.operations.results import dtype_of
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.table import define

_FORMULAS = {
    "neg": "-x",
    "abs": "|x|",
    "exp": "e ** x",
    "log": "ln x",
    "sqrt": "square root of x",
    "rsqrt": "1 / square root of x",
    "recip": "1 / x",
    "sin": "sin x",
    "cos": "cos x",
    "not_": "bitwise complement of x",
}
_FLOAT_OF_INT = frozenset({"exp", "sqrt", "rsqrt", "recip"})
_LEGAL = {"log": (FP16, FP32), "sin": (FP32,), "cos": (FP32,), "not_": (INT16, UINT16)}
_PRECISE = frozenset({"log", "recip"})
_NO_SHARING = frozenset({"recip", "rsqrt"})


def _check(name: str, source: results.Shaped, high_precision: bool = False) -> None:
    if name in _LEGAL:
        results.need_dtype(source, _LEGAL[name], "the operand")
    if high_precision:
        results.need_dtype(source, (FP16, FP32), "with high_precision=True the operand")


def _tensor_dtype(name: str, source: TensorType) -> Type:
    return results.like(source, FP32 if name in _FLOAT_OF_INT and source.dtype.is_int() else None)


def _tensor(_name: str, input: TensorType) -> Type:
    _check(_name, input)
    return _tensor_dtype(_name, input)


def _precise_tensor(_name: str, input: TensorType, high_precision: bool = False) -> Type:
    _check(_name, input, high_precision)
    return _tensor_dtype(_name, input)


def _tile(_name: str, tile: TileType) -> Type:
    _check(_name, tile)
    return results.like(tile)


def _precise_tile(_name: str, tile: TileType, high_precision: bool = False) -> Type:
    _check(_name, tile, high_precision)
    return results.like(tile)


def _tile_rsqrt(tile: TileType, tmp: TileType | None = None) -> Type:
    if tmp is not None:
        results.need_same_dtype(tile, tmp, ("tile", "tmp"))
        results.need_same_shape(tile, tmp, ("tile", "tmp"))
    return results.like(tile)


def _lrelu(tile: TileType, slope: FloatElement) -> Type:
    return results.like(tile)


def _prelu(tile: TileType, slope: TileType, tmp: TileType) -> Type:
    results.need_rank(tile, 2, "tile")
    results.need_dtype(tile, (FP16, FP32), "tile")
    results.need_same_dtype(tile, slope, ("tile", "slope"))
    results.need_same_shape(tile, slope, ("tile", "slope"))
    results.need_same_valid(tile, slope, ("tile", "slope"))
    return results.like(tile)


def _through_float(name: str, call: Call, b: Builder) -> Expr:
    """A tensor form in a kernel; integers become FP32 first where the result is declared FP32 (spec ops 1.12)."""
    source = call.arguments["input"]
    return b.tile(name, tile=to_dtype(source, working_dtype(call), b))


def _integer_tile(name: str, call: Call, b: Builder) -> Expr | None:
    """An integer tile keeps its dtype: computed in FP32, truncated back."""
    tile = call.arguments["tile"]
    if dtype_of(tile).is_float():
        return None
    precise = b.tile(name, tile=to_dtype(tile, FP32, b))
    return to_dtype(precise, dtype_of(tile), b, mode="trunc")


def _row(name: str) -> None:
    precise = name in _PRECISE
    shown: dict[str, Any] = {"kind": "elementwise", "spec": "7" if name == "not_" else "5", "summary": _FORMULAS[name]}
    tensor_rule = _precise_tensor if precise or name == "rsqrt" else _tensor
    define(f"tensor.{name}", partial(tensor_rule, name), tile_form=partial(_through_float, name), **shown)
    tile_rule = _tile_rsqrt if name == "rsqrt" else partial(_precise_tile if precise else _tile, name)
    scratch = ("tmp",) if name == "rsqrt" else ()
    define(
        f"tile.{name}",
        tile_rule,
        lowering=Lowering(f"t{name.rstrip('_')}", ("tile",), scratch=scratch, may_share=name not in _NO_SHARING),
        expand=partial(_integer_tile, name) if name in _FLOAT_OF_INT else None,
        **shown,
    )


for _formula in _FORMULAS:
    _row(_formula)

define(
    "tile.relu",
    partial(_tile, "relu"),
    promoted=("relu",),
    kind="elementwise",
    spec="5",
    lowering=Lowering("trelu", ("tile",)),
    summary="max(x, 0)",
)
define(
    "tile.lrelu",
    _lrelu,
    promoted=("lrelu",),
    kind="elementwise",
    spec="5",
    lowering=Lowering("tlrelu", ("tile", "slope")),
    summary="x where x > 0, else x * slope",
)
define(
    "tile.prelu",
    _prelu,
    promoted=("prelu",),
    kind="elementwise",
    spec="5",
    lowering=Lowering("tprelu", ("tile", "slope"), scratch=("tmp",), may_share=False),
    summary="x where x > 0, else x * slope[i,j]",
)

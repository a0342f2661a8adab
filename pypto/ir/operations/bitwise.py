"""Bitwise operations and shifts of integers (spec ops 7)."""

from __future__ import annotations

from functools import partial
from typing import Any

from pypto.ir.nodes import Call, Const, Expr, TensorType, TileType, Type
from pypto.ir.operations import dims, results
from pypto.ir.operations.convert import to_dtype, working_dtype
from pypto.ir.operations.elementwise import convert_scalar, spread, tile_result
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.kinds import scalar_dtype
from pypto.ir.operations.parameters import ElementScalar
from pypto.ir.operations.results import dtype_of, shape_of
from pypto.ir.operations.row import Builder, Lowering
from pypto.ir.operations.scalars import scalar_cast
from pypto.ir.operations.table import define

_FORMULAS = {"and_": "a & b", "or_": "a | b", "xor": "a ^ b", "shl": "a << b", "shr": "a >> b"}
_SHIFTS = frozenset({"shl", "shr"})
_NO_SHARING = frozenset({"ands", "ors", "xor", "xors"})


def _need_integers(*operands: results.Shaped) -> None:
    for operand in operands:
        if not operand.dtype.is_int():
            raise OperandValueError(f"needs integers, got {operand.dtype.constant}")


def _need_integer_scalar(scalar: Expr) -> None:
    if not scalar_dtype(scalar).is_int():
        raise OperandValueError(f"needs an integer scalar, got {scalar_dtype(scalar).constant}")


def _tensors(_name: str, lhs: TensorType, rhs: TensorType) -> Type:
    _need_integers(lhs, rhs)
    results.need_same_shape(lhs, rhs, ("lhs", "rhs"))
    dtype = lhs.dtype if _name in _SHIFTS else results.promote(lhs.dtype, rhs.dtype)
    same = _name != "xor" and dims.all_equal(lhs.valid_shape, rhs.valid_shape)
    return results.tensor(lhs.shape, dtype, lhs.valid_shape if same else None)


def _tensor_scalar(_name: str, lhs: TensorType, rhs: ElementScalar) -> Type:
    _need_integers(lhs)
    _need_integer_scalar(rhs)
    if _name in _SHIFTS and isinstance(rhs, Const) and int(rhs.value or 0) < 0:
        raise OperandValueError(f"the shift count is {rhs.value}; it must not be negative")
    return results.tensor(lhs.shape, lhs.dtype, None if _name == "xor" else lhs.valid_shape)


def _pair(name: str, lhs: TileType, rhs: TileType) -> Type:
    _need_integers(lhs, rhs)
    return tile_result(lhs, rhs, lhs.dtype if name in _SHIFTS else None)


def _tiles(_name: str, lhs: TileType, rhs: TileType) -> Type:
    return _pair(_name, lhs, rhs)


def _tiles_with_scratch(_name: str, lhs: TileType, rhs: TileType, tmp: TileType) -> Type:
    return _pair(_name, lhs, rhs)


def _tile_scalar(lhs: TileType, rhs: ElementScalar) -> Type:
    _need_integers(lhs)
    _need_integer_scalar(rhs)
    return results.like(lhs)


def _tile_scalar_with_scratch(lhs: TileType, rhs: ElementScalar, tmp: TileType) -> Type:
    return _tile_scalar(lhs, rhs)


def _align(name: str, call: Call, b: Builder) -> Expr | None:
    dtype, shape = dtype_of(call), shape_of(call)
    given = dict(call.arguments)
    for key in ("lhs", "rhs"):
        given[key] = spread(to_dtype(given[key], dtype, b), shape, b)
    if all(given[key] is call.arguments[key] for key in ("lhs", "rhs")):
        return None
    return b.tile(name, **given)


def _tensor_form(name: str, call: Call, b: Builder) -> Expr:
    """The tile row with the operands in the result dtype; the exclusive or gets its scratch tile."""
    dtype = working_dtype(call)
    lhs, rhs = to_dtype(call.arguments["lhs"], dtype, b), call.arguments["rhs"]
    rhs = to_dtype(rhs, dtype, b) if isinstance(rhs.type, TileType) else scalar_cast(rhs, dtype)
    scratch = {"tmp": b.create_tile(shape_of(lhs), dtype)} if name.startswith("xor") else {}
    return b.tile(name, lhs=lhs, rhs=rhs, **scratch)


def _rows(name: str) -> None:
    scalar = f"{name.rstrip('_')}s"
    scratch = ("tmp",) if name == "xor" else ()
    shown: dict[str, Any] = {"kind": "elementwise", "spec": "7", "summary": _FORMULAS[name]}
    define(
        f"tensor.{name}",
        partial(_tensors, name),
        scalar_form=f"tensor.{scalar}",
        tile_form=partial(_tensor_form, name),
        **shown,
    )
    define(f"tensor.{scalar}", partial(_tensor_scalar, name), tile_form=partial(_tensor_form, scalar), **shown)
    define(
        f"tile.{name}",
        partial(_tiles_with_scratch if scratch else _tiles, name),
        scalar_form=f"tile.{scalar}",
        expand=partial(_align, name),
        **shown,
        lowering=Lowering(f"t{scalar[:-1]}", ("lhs", "rhs"), scratch=scratch, may_share=name not in _NO_SHARING),
    )
    define(
        f"tile.{scalar}",
        _tile_scalar_with_scratch if scratch else _tile_scalar,
        expand=partial(convert_scalar, scalar),
        **shown,
        lowering=Lowering(f"t{scalar}", ("lhs", "rhs"), scratch=scratch, may_share=scalar not in _NO_SHARING),
    )


for _formula in _FORMULAS:
    _rows(_formula)

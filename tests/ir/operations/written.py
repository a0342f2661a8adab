"""Operands and calls as the parser hands them to the operation table."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import FP32, INDEX, DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.nodes import Dim, Expr, ScalarType, Var, literal
from pypto.ir.operations import build, results
from pypto.ir.operations.show import show

N = Var("n", ScalarType(INDEX))
M = Var("m", ScalarType(INDEX))


def tensor(*shape: Dim, dtype: DataType = FP32, valid: tuple[Dim, ...] | None = None, name: str = "x") -> Var:
    return Var(name, results.tensor(shape, dtype, valid))


def tile(
    *shape: int,
    dtype: DataType = FP32,
    valid: tuple[Dim, ...] | None = None,
    space: MemorySpace = MemorySpace.Vec,
    name: str = "t",
) -> Var:
    return Var(name, results.tile(shape, dtype, space, valid))


def scalar(dtype: DataType, name: str = "s") -> Var:
    return Var(name, ScalarType(dtype))


def call(spelling: str, *args: Any, **kwargs: Any) -> Expr:
    """``pl.tile.add(...)`` with positional numbers as literals and keyword numbers as they are."""
    *path, name = spelling.split(".")
    namespace = path[1] if len(path) > 1 else "pl"
    return build(namespace, name, [_positional(a) for a in args], {k: _keyword(v) for k, v in kwargs.items()})


def typed(spelling: str, *args: Any, **kwargs: Any) -> str:
    """The result type as error messages print it, with the memory of a tile outside ``Vec``."""
    kind = call(spelling, *args, **kwargs).type
    space = getattr(kind, "space", None)
    suffix = f" in {space.name}" if space not in (None, MemorySpace.Vec) else ""
    return show(kind) + suffix


def _positional(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(map(_positional, value))
    return literal(value) if type(value) in (bool, int, float) else value


def _keyword(value: Any) -> Any:
    return tuple(map(_positional, value)) if isinstance(value, (tuple, list)) else value

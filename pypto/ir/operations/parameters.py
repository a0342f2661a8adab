"""Parameters of operations and the annotations that type rules declare them with (spec ops 1.2).

A type rule is a Python function; its signature is the operation's signature and its annotations choose the kinds.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Annotated, Any, Union

from pypto.ir.dtype import FP32, INT32, DataType
from pypto.ir.enums import AtomicType, MemorySpace, PadValue, PipeType, TensorLayout, TileLayout
from pypto.ir.nodes import ArrayType, Const, Dim, Expr, OpaqueType, TensorType, TileType, Type
from pypto.ir.operations.errors import OperandTypeError, OperandValueError
from pypto.ir.operations.kinds import (
    Anything,
    Code,
    Dtype,
    Element,
    Extents,
    Flag,
    Index,
    Integer,
    Integers,
    Kind,
    Operand,
    Option,
    Pad,
    Scalar,
)  # fmt: skip

REQUIRED: Any = inspect.Parameter.empty

ElementScalar = Annotated[Expr, Element()]
ElementOrTensor = Annotated[Expr | TensorType, Element(accepts_operand=True)]
ExactElement = Annotated[Expr, Element(retype_all=True)]
FloatElement = Annotated[Expr, Element(FP32)]
AnyScalar = Annotated[Expr, Scalar()]
IndexScalar = Annotated[Dim, Index()]
OffsetScalar = Annotated[Dim, Index(())]
Dims = Annotated[tuple[Dim, ...], Extents()]
StaticDims = Annotated[tuple[int, ...], Extents(static=True, positive=True)]
PositiveDims = Annotated[tuple[Dim, ...], Extents(positive=True)]
Axis = Annotated[int, Integer()]
Axes = Annotated[tuple[int, ...], Integers()]
Word32 = Annotated[Expr, Scalar((), INT32)]
PadChoice = Annotated[PadValue, Pad()]
AccumulatePhase = Annotated[str, Option((str,), ("unspecified", "partial", "final"))]
Coalesce = Annotated[str, Code(("row", "elem"))]
OutOfRange = Annotated[str, Code(("undefined", "clamp", "wrap", "zero"))]
CastMode = Annotated[str, Code(("none", "rint", "round", "floor", "ceil", "trunc", "odd"))]
Comparison = Annotated[int, Code(("eq", "ne", "lt", "le", "gt", "ge"), as_number=True)]
ComparisonName = Annotated[str, Code(("eq", "ne", "lt", "le", "gt", "ge"))]

_KINDS: dict[Any, Kind] = {
    TensorType: Operand((TensorType,)),
    TileType: Operand((TileType,)),
    ArrayType: Operand((ArrayType,)),
    OpaqueType: Operand((OpaqueType,)),
    DataType: Dtype(),
    bool: Flag(),
    int: Option((int,)),
    float: Option((int, float)),
    str: Option((str,)),
    MemorySpace: Option((MemorySpace,)),
    TensorLayout: Option((TensorLayout,)),
    TileLayout: Option((TileLayout,)),
    AtomicType: Option((AtomicType,)),
    PipeType: Option((PipeType,)),
    Any: Anything(),
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of an operation; ``None`` is legal when it is the default or the annotation says so."""

    name: str
    kind: Kind
    default: Any = REQUIRED
    keyword_only: bool = False
    nullable: bool = False

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def text(self) -> str:
        """The parameter as it stands in a signature."""
        if self.required:
            return self.name
        return f"{self.name}={_default_text(self.default)}"

    def read(self, value: Any, paired: Type | None) -> Any:
        """The argument as stored; errors name the parameter."""
        if self.nullable and (value is None or (isinstance(value, Const) and value.value is None)):
            return None
        try:
            return self.kind.read(value, paired)
        except (OperandTypeError, OperandValueError) as error:
            raise type(error)(f"{self.name} {error}") from None

    def seen(self, stored: Any) -> Any:
        return None if stored is None and self.nullable else self.kind.seen(stored)


def parameters_of(rule: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters that a type rule declares; a ``partial`` hides the ones it binds."""
    bound = dict(getattr(rule, "keywords", {}))
    function = getattr(rule, "func", rule)
    hints = _hints(function)
    result = []
    for name, p in inspect.signature(rule).parameters.items():
        if name in bound or name.startswith("_"):
            continue
        kind, nullable = _kind_of(hints[name])
        keyword_only = p.kind is inspect.Parameter.KEYWORD_ONLY
        result.append(Parameter(name, kind, p.default, keyword_only, nullable or p.default is None))
    return tuple(result)


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Resolved annotations; the rules of a family share one function."""
    return typing.get_type_hints(function, include_extras=True)


def _kind_of(hint: Any) -> tuple[Kind, bool]:
    if typing.get_origin(hint) is Annotated:
        return hint.__metadata__[0], False
    if typing.get_origin(hint) in (Union, types.UnionType):
        members = [member for member in typing.get_args(hint) if member is not type(None)]
        nullable = len(members) < len(typing.get_args(hint))
        if len(members) == 1:
            return _kind_of(members[0])[0], nullable
        return Operand(tuple(members)), nullable
    return _KINDS[hint], False


def _default_text(value: Any) -> str:
    if isinstance(value, DataType):
        return f"pl.{value.constant}"
    if isinstance(value, MemorySpace):
        return f"pl.Mem.{value.name}"
    if isinstance(value, TensorLayout):
        return f"pl.{value.name}"
    if isinstance(value, IntEnum):
        return f"pl.{type(value).__name__}.{value.name}"
    return repr(value)

"""How the argument of one parameter is read: the rules of spec ops 1.2 and 1.6."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from pypto.ir.dtype import BOOL, INDEX, INT64, UINT64, DataType
from pypto.ir.enums import PadValue
from pypto.ir.nodes import ArrayType, Const, Dim, Expr, ScalarType, TensorType, TileType, Type, as_dim, as_expr, literal
from pypto.ir.operations.errors import OperandTypeError, OperandValueError
from pypto.ir.operations.scalars import convert_literal
from pypto.ir.operations.show import noun, show, with_article


class Kind(ABC):
    """How the argument of one parameter is read."""

    @abstractmethod
    def read(self, value: Any, paired: Type | None) -> Any:
        """The argument as the call stores it; ``paired`` is the type of the first tile or tensor operand."""

    def seen(self, stored: Any) -> Any:
        """What the type rule receives for a stored argument."""
        return stored


_OTHER_LEVEL = (
    "; pl.load, pl.tile.full and pl.create_tile make tiles, pl.full and pl.create_tensor make tensors, "
    "pl.store writes a tile into one"
)


@dataclass(frozen=True)
class Operand(Kind):
    """A tensor, tile, array or handle; the rule sees its type."""

    classes: tuple[type, ...]

    def read(self, value: Any, paired: Type | None) -> Any:
        if isinstance(value, Expr) and isinstance(value.type, self.classes):
            return value
        wanted = " or ".join(noun(c) for c in self.classes)
        if not isinstance(value, Expr):
            raise OperandTypeError(f"needs {with_article(wanted)}, got {value!r}")
        advice = _OTHER_LEVEL if {TileType, TensorType} & {type(value.type)} and len(self.classes) == 1 else ""
        raise OperandValueError(f"needs {with_article(wanted)}, got {with_article(show(value.type))}{advice}")

    def seen(self, stored: Any) -> Any:
        return stored.type


@dataclass(frozen=True)
class Element(Kind):
    """A scalar used with the elements of a tile or tensor (spec ops 1.6); the rule sees the expression."""

    literal: DataType | None = None
    accepts_operand: bool = False
    retype_all: bool = False

    def read(self, value: Any, paired: Type | None) -> Any:
        if self.accepts_operand and isinstance(value, Expr) and isinstance(value.type, (TensorType, TileType)):
            return value
        if isinstance(value, (bool, int, float)) or (value is None and isinstance(paired, ArrayType)):
            value = literal(value)
        expr = scalar_argument(value)
        paired_dtype = paired.dtype if isinstance(paired, (TensorType, TileType, ArrayType)) else None
        target = self.literal or paired_dtype
        if self.retype_all and isinstance(expr, Const) and target is not None:
            return _exact_literal(expr, target)
        return retype_literal(expr, target)

    def seen(self, stored: Any) -> Any:
        return stored.type if isinstance(stored.type, (TensorType, TileType)) else stored


@dataclass(frozen=True)
class Scalar(Kind):
    """A scalar whose dtype is one of ``dtypes`` (any when empty); a Python number takes ``literal``."""

    dtypes: tuple[DataType, ...] = ()
    literal: DataType | None = None

    def read(self, value: Any, paired: Type | None) -> Any:
        if isinstance(value, (bool, int, float)) and self.literal is not None:
            value = literal(value)
        expr = scalar_argument(value)
        if isinstance(expr, Const) and expr.dtype == INDEX and self.literal is not None and self.literal.is_int():
            expr = Const(convert_literal(expr.value, self.literal), self.literal, expr.span)
        dtype = scalar_dtype(expr)
        if self.dtypes and dtype not in self.dtypes:
            raise OperandValueError(f"needs a scalar of {_either(self.dtypes)}, got {dtype.constant}")
        return expr


@dataclass(frozen=True)
class Index(Kind):
    """An offset or extent; the rule sees an ``int`` when it is constant."""

    dtypes: tuple[DataType, ...] = (INT64, UINT64, INDEX)

    def read(self, value: Any, paired: Type | None) -> Any:
        return as_expr(index_argument(value, self.dtypes))

    def seen(self, stored: Any) -> Any:
        return as_dim(stored)


@dataclass(frozen=True)
class Extents(Kind):
    """A list of offsets or extents; the rule sees integers where they are constant."""

    static: bool = False
    positive: bool = False
    nullable_items: bool = False

    def read(self, value: Any, paired: Type | None) -> Any:
        items = value if isinstance(value, (tuple, list)) else (value,)
        dims = tuple(index_argument(item, ()) for item in items)
        for axis, dim in enumerate(dims):
            if self.static and not isinstance(dim, int):
                raise OperandValueError(
                    f"axis {axis} must be a compile-time integer; the part of a tile that is known at run time only is "
                    "its valid shape"
                )
            if self.positive and isinstance(dim, int) and dim <= 0:
                raise OperandValueError(f"axis {axis} is {dim}; an extent must be positive")
        return tuple(map(as_expr, dims))

    def seen(self, stored: Any) -> Any:
        return tuple(map(as_dim, stored))


@dataclass(frozen=True)
class Integer(Kind):
    """A compile-time integer that may also be written positionally (an axis)."""

    def read(self, value: Any, paired: Type | None) -> Any:
        if isinstance(value, Const) and value.dtype != BOOL:
            value = value.value
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
        raise OperandTypeError(f"needs a compile-time integer, got {describe(value)}")


@dataclass(frozen=True)
class Integers(Kind):
    """A list of compile-time integers kept as an option."""

    def read(self, value: Any, paired: Type | None) -> Any:
        if not isinstance(value, (tuple, list)):
            raise OperandTypeError(f"needs a list of compile-time integers, got {describe(value)}")
        return tuple(Integer().read(item, paired) for item in value)


@dataclass(frozen=True)
class Flag(Kind):
    """``True`` or ``False``, known when the program is compiled."""

    def read(self, value: Any, paired: Type | None) -> Any:
        if isinstance(value, Const) and isinstance(value.value, bool):
            return value.value
        if isinstance(value, bool):
            return value
        raise OperandTypeError(f"needs True or False, got {describe(value)}")


@dataclass(frozen=True)
class Option(Kind):
    """A compile-time value kept as an attribute; literals must be written as a keyword (spec ops 1.2)."""

    classes: tuple[type, ...]
    words: tuple[str, ...] = ()

    def read(self, value: Any, paired: Type | None) -> Any:
        _need_option(value)
        plain_bool = isinstance(value, bool) and bool not in self.classes
        if plain_bool or not isinstance(value, self.classes):
            names = " or ".join(noun(c) for c in self.classes)
            raise OperandTypeError(f"needs {with_article(names)}, got {value!r}")
        if self.words and value not in self.words:
            raise OperandValueError(f"is {value!r}; legal: {', '.join(map(repr, self.words))}")
        return value


@dataclass(frozen=True)
class Code(Kind):
    """A choice with a name and a number (cast mode, comparison, out-of-range rule); stored as ``names[number]``."""

    names: tuple[str, ...]
    as_number: bool = False

    def read(self, value: Any, paired: Type | None) -> Any:
        _need_option(value)
        legal = ", ".join(f"{name!r} ({number})" for number, name in enumerate(self.names))
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise OperandValueError(f"is {value!r}; legal: {legal}")
        if isinstance(value, str):
            if value not in self.names:
                raise OperandValueError(f"is {value!r}; legal: {legal}")
            value = self.names.index(value)
        if not 0 <= value < len(self.names):
            raise OperandValueError(f"is {value}; legal: {legal}")
        return int(value) if self.as_number else self.names[value]


@dataclass(frozen=True)
class Dtype(Kind):
    """A dtype, or its code as an integer."""

    def read(self, value: Any, paired: Type | None) -> Any:
        if isinstance(value, DataType):
            return value
        if isinstance(value, Const) and isinstance(value.value, int):
            value = value.value
        if isinstance(value, int) and not isinstance(value, bool):
            try:
                return DataType.from_code(int(value))
            except KeyError:
                raise OperandValueError(f"no dtype has the code {value}") from None
        raise OperandTypeError(f"needs a dtype such as pl.FP32, got {describe(value)}")


@dataclass(frozen=True)
class Pad(Kind):
    """``PadValue`` or its sugar ``0``, ``0.0``, ``inf``, ``-inf``."""

    def read(self, value: Any, paired: Type | None) -> Any:
        if isinstance(value, PadValue):
            return value
        if isinstance(value, Const):
            value = value.value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise OperandTypeError(f"needs a pl.PadValue or 0, inf, -inf, got {value!r}")
        for number, pad in ((0, PadValue.zero), (float("inf"), PadValue.max), (float("-inf"), PadValue.min)):
            if value == number:
                return pad
        raise OperandValueError(f"is {value}; legal: pl.PadValue.zero/max/min or the numbers 0, inf, -inf")


@dataclass(frozen=True)
class Anything(Kind):
    """Passed through; the rule checks it."""

    def read(self, value: Any, paired: Type | None) -> Any:
        return value


# --- arguments --------------------------------------------------------------------------------------------------------


def _need_option(value: Any) -> None:
    """A literal arrives as an expression only when it was written positionally (spec ops 1.2)."""
    if isinstance(value, Const):
        raise OperandTypeError("is a compile-time option: write it as a keyword")
    if isinstance(value, Expr):
        raise OperandTypeError(f"is a compile-time option, got {describe(value)}")


def describe(value: Any) -> str:
    """An argument for an error message."""
    if isinstance(value, Const):
        return repr(value.value)
    return with_article(show(value.type)) if isinstance(value, Expr) else repr(value)


def scalar_argument(value: Any) -> Expr:
    """``value`` when it is a scalar expression."""
    if not isinstance(value, Expr):
        raise OperandTypeError(f"needs a scalar expression, got {value!r}; write it positionally or as pl.const(...)")
    if not isinstance(value.type, ScalarType):
        raise OperandValueError(f"needs a scalar, got {with_article(show(value.type))}")
    return value


def scalar_dtype(expr: Expr) -> DataType:
    """The dtype of a scalar expression."""
    if not isinstance(expr.type, ScalarType):
        raise OperandValueError(f"needs a scalar, got {with_article(show(expr.type))}")
    return expr.type.dtype


def retype_literal(expr: Expr, target: DataType | None) -> Expr:
    """Spec ops 1.6: an untyped integer takes the dtype of its tile or tensor; a run-time INDEX must be cast."""
    dtype = scalar_dtype(expr)
    if dtype == target:
        return expr
    if isinstance(expr, Const) and dtype in (INDEX, BOOL) and expr.value is not None and target is not None:
        number = int(expr.value)
        return Const(float(number) if target.is_float() else number, target, expr.span)
    if dtype == INDEX and target != INDEX:
        name = target.constant if target is not None else "INT32"
        raise OperandValueError(f"is a run-time INDEX scalar; convert it with pl.cast(..., pl.{name}) first")
    return expr


def _exact_literal(expr: Const, target: DataType) -> Expr:
    """Any literal in the dtype of the elements; a fraction has no integer dtype."""
    if expr.value is None:
        raise OperandTypeError("needs a number, got None")
    if target.is_int() and float(expr.value) != int(expr.value):
        raise OperandValueError(f"is {expr.value}, which {target.constant} cannot hold")
    if target.is_float():
        return Const(float(expr.value), target, expr.span)
    bits = target.get_bit()
    word = int(expr.value) & ((1 << bits) - 1)
    return Const(word - (1 << bits) if target.is_signed_int() and word >> (bits - 1) else word, target, expr.span)


def index_argument(value: Any, dtypes: tuple[DataType, ...]) -> Dim:
    """An integer scalar as an extent; ``dtypes`` restricts run-time scalars when not empty."""
    if isinstance(value, bool) or (not isinstance(value, Expr) and not hasattr(value, "__index__")):
        raise OperandTypeError(f"needs an integer, got {value!r}")
    if not isinstance(value, Expr):
        return int(value)
    if not isinstance(value.type, ScalarType):
        raise OperandTypeError(f"needs an integer scalar, got {with_article(show(value.type))}")
    dtype = value.type.dtype
    if not dtype.is_int() or (dtypes and dtype not in dtypes):
        raise OperandValueError(f"needs a scalar of {_either(dtypes) or 'an integer dtype'}, got {dtype.constant}")
    return as_dim(value)


def _either(dtypes: tuple[DataType, ...]) -> str:
    return " or ".join(d.constant for d in dtypes)

"""Types as an author writes them: annotations, dynamic dimensions, views (spec language 2).

These objects exist while Python evaluates a signature; :mod:`pypto.language.parser.annotations` turns them into IR
types.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import INDEX, TASK_ID, DataType
from pypto.ir.enums import ParamDirection


class DimExpression:
    """An extent that is known only when the program runs; supports ``+ - * // %`` with integers and its like."""

    def __init__(self, expr: ir.Expr):
        self.expr = expr

    def _combine(self, op: str, left: Any, right: Any) -> DimExpression:
        return DimExpression(ir.Binary(op, dimension(left), dimension(right), INDEX))

    def __add__(self, other: Any) -> DimExpression:
        return self._combine("+", self, other)

    def __radd__(self, other: Any) -> DimExpression:
        return self._combine("+", other, self)

    def __sub__(self, other: Any) -> DimExpression:
        return self._combine("-", self, other)

    def __rsub__(self, other: Any) -> DimExpression:
        return self._combine("-", other, self)

    def __mul__(self, other: Any) -> DimExpression:
        return self._combine("*", self, other)

    def __rmul__(self, other: Any) -> DimExpression:
        return self._combine("*", other, self)

    def __floordiv__(self, other: Any) -> DimExpression:
        return self._combine("//", self, other)

    def __mod__(self, other: Any) -> DimExpression:
        return self._combine("%", self, other)

    def __bool__(self) -> bool:
        raise TypeError("a dynamic dimension has no truth value outside a kernel body")

    def __repr__(self) -> str:
        from pypto.ir.printer import print_expr

        return print_expr(self.expr)


class DynVar(DimExpression):
    """A symbolic dimension made by :func:`dynamic`; one name is one dimension within a program."""

    def __init__(self, name: str):
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"pl.dynamic takes a valid identifier, got {name!r}")
        super().__init__(ir.Symbol(name))
        self.name = name

    def __repr__(self) -> str:
        return f"DynVar({self.name!r})"


def dynamic(name: str) -> DynVar:
    """A dimension whose extent is only known when the program runs (spec language 2.7)."""
    return DynVar(name)


def dimension(value: Any) -> ir.Expr:
    """``value`` (integer, dynamic dimension or expression) as an IR expression; ``TypeError`` otherwise."""
    if isinstance(value, DimExpression):
        return value.expr
    if isinstance(value, ir.Expr):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return ir.index(value)
    raise TypeError(f"a shape element is an integer, a pl.dynamic dimension or arithmetic over them, got {value!r}")


@dataclass(frozen=True)
class TensorSpec:
    """``pl.Tensor[shape, dtype, …]``."""

    shape: tuple[Any, ...]
    dtype: DataType
    extras: tuple[Any, ...] = ()
    distributed: bool = False


@dataclass(frozen=True)
class TileSpec:
    """``pl.Tile[shape, dtype, …]``."""

    shape: tuple[Any, ...]
    dtype: DataType
    extras: tuple[Any, ...] = ()


@dataclass(frozen=True)
class ScalarSpec:
    """``pl.Scalar[dtype]``."""

    dtype: DataType


@dataclass(frozen=True)
class ArraySpec:
    """``pl.Array[extent, dtype]``."""

    extent: int
    dtype: DataType


@dataclass(frozen=True)
class TupleSpec:
    """``pl.Tuple[T1, T2]``."""

    items: tuple[Any, ...]


@dataclass(frozen=True)
class Directed:
    """A parameter type with its direction (``pl.Out[T]``, ``pl.InOut[T]``)."""

    direction: ParamDirection
    inner: Any


def _shape_and_rest(kind: str, items: Any, least: int) -> tuple[tuple[Any, ...], DataType, tuple[Any, ...]]:
    if not isinstance(items, tuple) or len(items) < least:
        raise TypeError(f"{kind} takes [shape, dtype], for example {kind}[[64, 64], pl.FP32]; got {items!r}")
    shape, dtype, rest = items[0], items[1], items[2:]
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"the shape of {kind} is a list of extents, got {shape!r}")
    if not isinstance(dtype, DataType):
        raise TypeError(f"the dtype of {kind} is a pl dtype such as pl.FP32, got {dtype!r}")
    return tuple(shape), dtype, tuple(rest)


class _TensorMeta(type):
    distributed = False

    def __getitem__(cls, items: Any) -> TensorSpec:
        return TensorSpec(*_shape_and_rest(f"pl.{cls.__name__}", items, 2), distributed=cls.distributed)

    def __call__(cls, *items: Any) -> TensorSpec:
        return cls[items]


class Tensor(metaclass=_TensorMeta):
    """N-dimensional array in global memory: ``pl.Tensor[[rows, cols], pl.FP32]``; bare in ``@pl.jit`` signatures."""


class _DistributedMeta(_TensorMeta):
    distributed = True


class DistributedTensor(metaclass=_DistributedMeta):
    """A window-bound tensor of a communication domain; same forms as :class:`Tensor`."""


class _TileMeta(type):
    def __getitem__(cls, items: Any) -> TileSpec:
        return TileSpec(*_shape_and_rest("pl.Tile", items, 2))

    def __call__(cls, *items: Any) -> TileSpec:
        return cls[items]


class Tile(metaclass=_TileMeta):
    """On-chip buffer with static extents: ``pl.Tile[[64, 64], pl.FP16, pl.Mem.Vec]``."""


class _ScalarMeta(type):
    def __getitem__(cls, dtype: Any) -> ScalarSpec:
        if not isinstance(dtype, DataType):
            raise TypeError(f"pl.Scalar takes a dtype such as pl.INT32, got {dtype!r}")
        return ScalarSpec(dtype)

    def __call__(cls, dtype: Any) -> ScalarSpec:
        return cls[dtype]


class Scalar(metaclass=_ScalarMeta):
    """A number: ``pl.Scalar[pl.INT32]``."""


class _ArrayMeta(type):
    def __getitem__(cls, items: Any) -> ArraySpec:
        if not isinstance(items, tuple) or len(items) != 2:
            raise TypeError(f"pl.Array takes [extent, dtype], got {items!r}")
        extent, dtype = items
        if not isinstance(extent, int) or isinstance(extent, bool) or extent <= 0:
            raise TypeError(f"the extent of pl.Array is a positive integer, got {extent!r}")
        if not isinstance(dtype, DataType) or dtype.is_float():
            raise TypeError(f"pl.Array holds integers, BOOL or TASK_ID, got {dtype!r}")
        return ArraySpec(extent, dtype)


class Array(metaclass=_ArrayMeta):
    """Fixed-length scalar storage: ``pl.Array[8, pl.TASK_ID]``."""


class _TupleMeta(type):
    def __getitem__(cls, items: Any) -> TupleSpec:
        return TupleSpec(items if isinstance(items, tuple) else (items,))

    def __call__(cls, items: Any) -> TupleSpec:
        return TupleSpec(tuple(items))


class Tuple(metaclass=_TupleMeta):
    """Several results: ``pl.Tuple[T1, T2]``."""


class _DirectionMeta(type):
    direction = ParamDirection.Out

    def __getitem__(cls, inner: Any) -> Directed:
        return Directed(cls.direction, inner)


class Out(metaclass=_DirectionMeta):
    """A parameter that is written; its prior contents are undefined."""


class _InOutMeta(_DirectionMeta):
    direction = ParamDirection.InOut


class InOut(metaclass=_InOutMeta):
    """A parameter that is read and written."""


@dataclass(frozen=True)
class View:
    """``pl.TensorView(...)`` or ``pl.TileView(...)``: keyword fields only."""

    kind: str
    fields: tuple[tuple[str, Any], ...]


_TENSOR_FIELDS = ("valid_shape", "stride", "layout", "pad")
_TILE_FIELDS = ("valid_shape", "stride", "start_offset", "blayout", "slayout", "fractal", "pad", "compact")


def _view(kind: str, legal: tuple[str, ...], args: tuple[Any, ...], fields: dict[str, Any]) -> View:
    if args:
        raise TypeError(f"pl.{kind} takes keywords only: {', '.join(legal)}")
    for name in fields:
        if name not in legal:
            raise TypeError(f"pl.{kind} has no field {name!r}; fields: {', '.join(legal)}")
    frozen = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    return View(kind, tuple(frozen.items()))


def TensorView(*args: Any, **fields: Any) -> View:
    """Strides, valid shape, layout and pad of a tensor (spec language 2.3)."""
    return _view("TensorView", _TENSOR_FIELDS, args, fields)


def TileView(*args: Any, **fields: Any) -> View:
    """View metadata of a tile (spec language 2.4)."""
    return _view("TileView", _TILE_FIELDS, args, fields)


class MemRef:
    """A declared allocation, or a reference to an existing one (spec language 2.6)."""

    def __init__(self, *args: Any, slots: int | None = None):
        if slots is not None and (not isinstance(slots, int) or isinstance(slots, bool) or slots < 1):
            raise TypeError(f"slots of pl.MemRef is a positive integer, got {slots!r}")
        self.args, self.slots = args, slots
        self.name: str | None = args[0] if len(args) == 1 and isinstance(args[0], str) else None

    @property
    def is_declaration(self) -> bool:
        """True for ``pl.MemRef()``, ``pl.MemRef("name")`` and the ``slots=`` forms."""
        return len(self.args) <= 1 and (not self.args or isinstance(self.args[0], str))

    def __getitem__(self, slot: Any) -> SlotRef:
        if self.slots is None:
            raise TypeError("a pl.MemRef without slots= has one slot and takes no index")
        if isinstance(slot, int) and not 0 <= slot < self.slots:
            raise TypeError(f"slot {slot} is outside 0..{self.slots - 1}")
        return SlotRef(self, dimension(slot))

    def __eq__(self, other: object) -> bool:
        """Two declarations are equal when they name the same allocation; unnamed ones are equal to themselves."""
        if not isinstance(other, MemRef):
            return NotImplemented
        if self.is_declaration and other.is_declaration:
            return self is other or (self.name is not None and (self.name, self.slots) == (other.name, other.slots))
        return self.args == other.args

    def __hash__(self) -> int:
        return hash((self.name, self.slots, len(self.args)))

    def __repr__(self) -> str:
        slots = f", slots={self.slots}" if self.slots else ""
        args = [repr(self.name)] if self.name is not None else list(map(repr, self.args))
        return f"pl.MemRef({', '.join(args)}{slots})".replace("(, ", "(")


@dataclass(frozen=True)
class SlotRef:
    """``declaration[k]`` in a tile annotation."""

    declaration: MemRef
    slot: ir.Expr

    def __repr__(self) -> str:
        from pypto.ir.printer import print_expr

        return f"{self.declaration!r}[{print_expr(self.slot)}]"


class _Marker:
    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"pl.{self._name}"


RUNTIME = _Marker("RUNTIME")
"""Leave a scalar parameter unspecialised (spec language 3.5)."""

Ptr = PtrType = _Marker("Ptr")
TaskId = ScalarSpec(TASK_ID)
IntLike = int | DimExpression | ir.Expr


class PrefetchAsyncContext:
    """Annotation: what ``pl.prefetch.make_context`` returns."""

    opaque_name = "PrefetchContext"


class AsyncSession:
    """Annotation: what ``pl.prefetch.session`` returns."""

    opaque_name = "PrefetchSession"


class AsyncEvent:
    """Annotation: what ``pl.prefetch.async_prefetch`` returns."""

    opaque_name = "PrefetchEvent"

"""The program representation: types, expressions, statements, functions.

Nodes are plain dataclasses compared by content; spans do not take part in comparison. Extents are ``int`` when static
and an :class:`Expr` otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pypto.ir.dtype import BOOL, FP32, INDEX, DataType
from pypto.ir.enums import ForKind, FunctionType, Level, MemorySpace, ParamDirection, Role, TensorLayout
from pypto.ir.span import UNKNOWN_SPAN, Span

# --- types ---


class Type:
    """Base of all types."""


@dataclass(frozen=True)
class NoneType(Type):
    """Type of an operation used for its effect only."""


@dataclass(frozen=True)
class ScalarType(Type):
    """A single element or index of one dtype."""

    dtype: DataType


@dataclass(frozen=True)
class TensorView:
    """Strides, valid shape, layout and pad of a tensor (spec language 2.3); empty tuples mean the implicit value."""

    valid_shape: tuple[Dim, ...] = ()
    stride: tuple[Dim, ...] = ()
    layout: TensorLayout = TensorLayout.ND
    pad: int = 0


@dataclass(frozen=True)
class TensorType(Type):
    """An N-dimensional array in GM; ``distributed`` marks a window-bound tensor."""

    shape: tuple[Dim, ...]
    dtype: DataType
    view: TensorView | None = None
    distributed: bool = False
    memref: Any = None

    @property
    def valid_shape(self) -> tuple[Dim, ...]:
        return self.view.valid_shape if self.view and self.view.valid_shape else self.shape

    @property
    def layout(self) -> TensorLayout:
        return self.view.layout if self.view else TensorLayout.ND


@dataclass(frozen=True)
class TileView:
    """View metadata of a tile (spec language 2.4); ``None``/empty means the implicit value of 7.3."""

    valid_shape: tuple[Dim, ...] = ()
    stride: tuple[Dim, ...] = ()
    start_offset: Dim | None = None
    blayout: int | None = None
    slayout: int | None = None
    fractal: int | None = None
    pad: int | None = None
    compact: int | None = None


@dataclass(frozen=True)
class TileType(Type):
    """An on-chip buffer; extents are static. ``space`` is ``None`` until it is inferred."""

    shape: tuple[int, ...]
    dtype: DataType
    space: MemorySpace | None = None
    view: TileView | None = None
    memref: Any = None

    @property
    def valid_shape(self) -> tuple[Dim, ...]:
        return self.view.valid_shape if self.view and self.view.valid_shape else self.shape


@dataclass(frozen=True)
class ArrayType(Type):
    """Fixed-length storage of integers, booleans or task ids in scalar memory."""

    extent: int
    dtype: DataType


@dataclass(frozen=True)
class TupleType(Type):
    """A fixed sequence of values, each of its own type."""

    items: tuple[Type, ...]


@dataclass(frozen=True)
class OpaqueType(Type):
    """Handle without arithmetic: ``CommCtx``, ``WindowBuffer``, prefetch contexts and events."""

    name: str


# --- expressions ---


class Expr:
    """Base of all expressions; every one has a ``type`` and a ``span``."""

    type: Type
    span: Span


@dataclass(frozen=True)
class Const(Expr):
    """A literal number. ``None`` as value is the invalid task id."""

    value: int | float | bool | None
    dtype: DataType
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)

    @property
    def type(self) -> Type:  # type: ignore[override]
        return ScalarType(self.dtype)


@dataclass(frozen=True)
class Symbol(Expr):
    """A dynamic extent (``pl.dynamic``)."""

    name: str
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)

    @property
    def type(self) -> Type:  # type: ignore[override]
        return ScalarType(INDEX)


@dataclass(frozen=True)
class Var(Expr):
    """A named value of the function.

    ``author`` is the name that the source text gives the value, where the compiler had to choose another one.
    """

    name: str
    type: Type
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)
    author: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Binary(Expr):
    """Scalar operator: ``+ - * / // % << >> == != < <= > >= and or min max``."""

    op: str
    left: Expr
    right: Expr
    dtype: DataType
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)

    @property
    def type(self) -> Type:  # type: ignore[override]
        return ScalarType(self.dtype)


@dataclass(frozen=True)
class Unary(Expr):
    """Scalar operator: ``- ~ not abs``."""

    op: str
    operand: Expr
    dtype: DataType
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)

    @property
    def type(self) -> Type:  # type: ignore[override]
        return ScalarType(self.dtype)


@dataclass(frozen=True)
class Cast(Expr):
    """Scalar conversion with C semantics."""

    operand: Expr
    dtype: DataType
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)

    @property
    def type(self) -> Type:  # type: ignore[override]
        return ScalarType(self.dtype)


@dataclass(frozen=True)
class TupleExpr(Expr):
    """A tuple built from its items."""

    items: tuple[Expr, ...]
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)

    @property
    def type(self) -> Type:  # type: ignore[override]
        return TupleType(tuple(item.type for item in self.items))


@dataclass(frozen=True)
class TupleItem(Expr):
    """One item of a tuple, by a constant index."""

    value: Expr
    index: int
    type: Type
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)


@dataclass(frozen=True)
class Call(Expr):
    """An operation of the table: ``op`` is its canonical name such as ``tile.add``.

    ``arguments`` maps parameter names to an :class:`Expr`, a tuple of expressions (shape and offset lists) or a Python
    value (dtype, enum member, bool, int, str, ``None``), in the order of the operation's signature.
    """

    op: str
    arguments: Mapping[str, Any]
    type: Type
    attrs: Mapping[str, Any] = field(default_factory=dict)
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash((self.op, tuple(self.arguments)))


@dataclass(frozen=True)
class FunctionCall(Expr):
    """A call of another function of the program: plain, ``submit`` or ``spmd_submit``.

    ``attrs`` keys: ``device``, ``deps`` (list of Expr), ``core_num``, ``sync_start``, ``allow_early_resolve``,
    ``predicate``, ``dumps``, ``no_dep`` (argument indices), ``arg_directions``.
    """

    callee: str
    args: tuple[Expr, ...]
    type: Type
    kind: str = "call"
    attrs: Mapping[str, Any] = field(default_factory=dict)
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash((self.callee, self.args, self.kind))


Dim = int | Expr

# --- statements ---


class Stmt:
    """Base of all statements."""

    span: Span
    comments: tuple[str, ...]


@dataclass(eq=True)
class Assign(Stmt):
    """Binds the value of an expression to a variable."""

    target: Var
    value: Expr
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(eq=True)
class TupleAssign(Stmt):
    """``a, b = value``; a target may itself be a tuple (``(result, tid) = pl.submit(...)``)."""

    targets: tuple[Any, ...]
    value: Expr
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(eq=True)
class Evaluate(Stmt):
    """A call for its effect."""

    value: Expr
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(eq=True)
class For(Stmt):
    """A counted loop. The state of ``init_values`` loops is plain assignments before and at the end of the body."""

    kind: ForKind
    var: Var
    start: Expr
    stop: Expr
    step: Expr
    body: list[Stmt]
    stage: int = 1
    attrs: dict[str, Any] = field(default_factory=dict)
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(eq=True)
class While(Stmt):
    """``while condition``, re-evaluated before each iteration."""

    condition: Expr
    body: list[Stmt]
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(eq=True)
class If(Stmt):
    """Two bodies, of which the condition chooses one."""

    condition: Expr
    then_body: list[Stmt]
    else_body: list[Stmt] = field(default_factory=list)
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(eq=True)
class Return(Stmt):
    """Leaves the function with its results."""

    values: tuple[Expr, ...]
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(eq=True)
class Break(Stmt):
    """Leaves the innermost loop."""

    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(eq=True)
class Continue(Stmt):
    """Goes on with the next iteration of the innermost loop."""

    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(eq=True)
class Scope(Stmt):
    """``with`` block or scope loop. ``kind``: ``at``, ``spmd``, ``cluster``, ``split_aiv``, ``auto``, ``manual``.

    ``attrs`` keys: ``level``, ``role``, ``deps``, ``no_dep_args``, ``dumps``, ``allow_early_resolve``, ``name_hint``,
    ``windowize``, ``split``, ``slot_num``, ``core_num``, ``sync_start``, ``predicate``, ``mode``.
    ``var`` is the block index or lane variable of the loop forms, ``task`` the variable bound by ``as``.
    """

    kind: str
    body: list[Stmt]
    attrs: dict[str, Any] = field(default_factory=dict)
    var: Var | None = None
    task: Var | None = None
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)


# --- functions and programs ---


@dataclass(eq=True)
class Param:
    """One parameter of a function: name, type and direction."""

    name: str
    type: Type
    direction: ParamDirection = ParamDirection.In
    value: Any = field(default=None, compare=False)
    """Number a scalar parameter was specialised to; the parameter itself stays in the signature."""
    author: str = field(default="", compare=False, repr=False)
    """Name the source text gives it, where the compiler had to choose another one."""


LANE_REGION_CHECKED = "split_aiv_region_validated"
"""Attribute of a kernel the compiler made of a scope with a ``pl.split_aiv`` region: the author did not declare it."""


@dataclass(eq=True)
class Function:
    """One function of a program. ``attrs`` keys: ``split``, ``auto_scope``, ``external_source``, ``windowize``, …"""

    name: str
    params: list[Param]
    body: list[Stmt]
    type: FunctionType = FunctionType.Opaque
    level: Level | None = None
    role: Role | None = None
    return_types: tuple[Type, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    takes_self: bool = True
    span: Span = field(default=UNKNOWN_SPAN, compare=False, repr=False)

    def as_python(self, prefix: str = "pl", concise: bool = False, format: bool = True) -> str:
        """Source text that parses back to an equal function (spec language 3.9)."""
        from pypto.ir.printer import python_print

        return python_print(self, prefix=prefix, concise=concise, format=format)

    @property
    def requires_runtime_binding(self) -> bool:
        """True for a HOST sub-worker without a body, which ``prepare(callbacks=...)`` must provide."""
        return bool(self.attrs.get("required"))

    def param(self, name: str) -> Param:
        """The parameter called ``name``; ``KeyError`` otherwise."""
        for p in self.params:
            if p.name == name:
                return p
        raise KeyError(name)


@dataclass(eq=True)
class Program:
    """A named set of functions; equality is structural."""

    name: str
    functions: dict[str, Function]
    attrs: dict[str, Any] = field(default_factory=dict, compare=False)

    def as_python(self, prefix: str = "pl", concise: bool = False, format: bool = True) -> str:
        """Source text that parses back to an equal program (spec language 3.9)."""
        from pypto.ir.printer import python_print

        return python_print(self, prefix=prefix, concise=concise, format=format)


# --- small constructors ---


def index(value: int, span: Span = UNKNOWN_SPAN) -> Const:
    """An INDEX literal."""
    return Const(value, INDEX, span)


def literal(value: bool | int | float | None, span: Span = UNKNOWN_SPAN) -> Const:
    """A literal with the default dtype of its Python type (spec language 2.1)."""
    from pypto.ir.dtype import TASK_ID

    if value is None:
        return Const(None, TASK_ID, span)
    if isinstance(value, bool):
        return Const(value, BOOL, span)
    return Const(value, INDEX if isinstance(value, int) else FP32, span)


def as_dim(value: Dim) -> Dim:
    """An extent: static integers become ``int``."""
    if isinstance(value, Const) and isinstance(value.value, int):
        return int(value.value)
    return value


def as_expr(value: Dim) -> Expr:
    """An extent as an expression."""
    return value if isinstance(value, Expr) else index(value)

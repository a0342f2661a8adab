"""State of the placement of one kernel: output statements, names, the values they stand for."""

from __future__ import annotations

from abc import ABC
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pypto.ir import nodes as ir
from pypto.ir import operations
from pypto.ir.enums import MemorySpace
from pypto.ir.errors import CompileError, Error
from pypto.ir.passes.place.values import Product, Value, Window
from pypto.ir.span import Span
from pypto.ir.walk import statements, targets


class Load(NamedTuple):
    """A window of GM and the memory it is loaded to."""

    base: str
    offsets: tuple[ir.Expr, ...]
    extents: tuple[ir.Dim, ...]
    dropped: tuple[int, ...]
    valid: tuple[ir.Dim, ...]
    space: MemorySpace


@dataclass
class OpenLoop:
    """Tile variables a loop carries: source name -> the variable that holds it between iterations."""

    carried: dict[str, ir.Var] = field(default_factory=dict)
    varying: dict[str, set[int]] = field(default_factory=dict)
    """Axes of a carried variable whose valid extent the body was seen to change."""


class PlacementState(ABC):  # noqa: B024 - its parts declare the abstract methods
    """Base of the placement parts."""

    def __init__(self, function: ir.Function, generation: Any, capacity: dict[str, int], share: bool = True):
        self.function, self.generation, self.capacity = function, generation, capacity
        self.share = share  # whether one load serves every use of a window
        self.shared = False  # whether one did
        self._taken = {p.name for p in function.params} | {
            v.name for s in statements(function.body) for v in targets(s)
        }
        self.out: list[ir.Stmt] = []
        self.emitter = operations.Emitter(self.out, self.fresh, generation, function.span)
        self.values: dict[str, Value] = {}
        self.loops: list[OpenLoop] = []
        self.drained: dict[ir.Var, ir.Expr] = {}  # product in Acc -> its copy for the vector side, made once
        self.loaded: dict[Load, ir.Expr] = {}  # what lies in GM -> its tile, while nothing has written there
        self.read_later: frozenset[str] = frozenset()  # names whose value may be read after the current statement
        self.span: Span = function.span
        self._assigned_often = _reassigned(function.body)
        self._sources = {p.name: p.author or p.name for p in function.params}
        self._sources |= {v.name: v.author or v.name for s in statements(function.body) for v in targets(s)}
        self.viewed: dict[str, str] = {}  # view register -> the tensor it is a view of
        self.permuted: set[str] = set()  # view registers whose rows are not adjacent
        self._named: dict[str, str] = {}
        self._passed_on: dict[str, str] = {}

    def fresh(self, base: str) -> str:
        """A variable name that the kernel does not use yet."""
        number, name = 0, base
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def emit(self, stmt: ir.Stmt) -> None:
        self.out.append(stmt)

    @contextmanager
    def at(self, span: Span) -> Iterator[None]:
        """Errors and new statements belong to ``span``."""
        saved, self.span = self.span, span if span.line else self.span
        self.emitter.span = self.span
        try:
            yield
        except Error:
            raise
        except (TypeError, ValueError, LookupError) as e:
            raise CompileError(str(e).strip("'\""), self.span) from e
        finally:
            self.span = self.emitter.span = saved

    @contextmanager
    def block(self) -> Iterator[list[ir.Stmt]]:
        """Collect statements into a nested block."""
        inner: list[ir.Stmt] = []
        saved, drained, loaded = self.out, self.drained, self.loaded
        self.out, self.drained, self.loaded = inner, dict(drained), dict(loaded)
        self.emitter.statements = inner
        try:
            yield inner
        finally:
            self.out = self.emitter.statements = saved
            self.drained = {tile: copy for tile, copy in drained.items() if tile in self.drained}
            self.loaded = {load: tile for load, tile in loaded.items() if load in self.loaded}

    # --- loads that serve again ---

    def forget(self, roots: Container[str] | None = None) -> None:
        """Loads of these tensors (of all) are no longer what lies in GM."""
        kept = self.loaded if roots is not None else {}
        self.loaded = {load: tile for load, tile in kept.items() if self.root_of(load.base) not in (roots or ())}

    # --- names ---

    def steady(self, expr: ir.Expr) -> ir.Expr:
        """``expr`` with a value that later assignments to its variables cannot change."""
        from pypto.ir.walk import walk

        changing = any(isinstance(e, ir.Var) and e.name in self._assigned_often for e in walk(expr))
        if not changing:
            return expr
        held = ir.Var(self.fresh("held"), expr.type, self.span)
        self.emit(ir.Assign(held, expr, self.span))
        return held

    def tile_variable(self, base: str, kind: ir.Type) -> ir.Var:
        """A new variable of type ``kind``."""
        return ir.Var(self.fresh(base), kind, self.span)

    def root_of(self, name: str) -> str:
        """The tensor that ``name`` is, or is a view of."""
        while name in self.viewed:
            name = self.viewed[name]
        return name

    # --- names of the source ---

    def bind_name(self, variable: str, name: str) -> None:
        """The placed ``variable`` (or ``variable[i]`` of a tuple) holds what the body calls ``name``."""
        self._named.setdefault(variable, self._sources.get(name, name))

    def derive_name(self, variable: ir.Expr, source: ir.Expr) -> None:
        """``variable`` is another place of the value in ``source``; a name of its own comes first."""
        if isinstance(variable, ir.Var) and isinstance(source, ir.Var) and variable != source:
            author = self.author_of(source.name)
            if author:
                self._passed_on.setdefault(variable.name, author)

    def author_of(self, name: str) -> str:
        """What the source calls the placed variable ``name``; nothing for an intermediate value."""
        return self._named.get(name) or self._sources.get(name) or self._passed_on.get(name, "")

    def describe(self, value: Value) -> str:
        from pypto.ir.printer import print_type

        return print_type(value.type)


def is_tile(value: Value) -> bool:
    """True for values that live on chip."""
    return isinstance(value, Product) or isinstance(value, ir.Expr) and isinstance(value.type, ir.TileType)


def is_window(value: Value) -> bool:
    """True for tensors in GM."""
    return isinstance(value, Window)


def _reassigned(body: list[ir.Stmt]) -> set[str]:
    """Scalar variables with more than one assignment, or one inside a loop."""
    counts: dict[str, int] = {}

    def visit(block: list[ir.Stmt], weight: int) -> None:
        from pypto.ir.walk import blocks

        for stmt in block:
            for variable in targets(stmt):
                if isinstance(variable.type, ir.ScalarType):
                    counts[variable.name] = counts.get(variable.name, 0) + weight
            inner = weight + 1 if isinstance(stmt, (ir.For, ir.While)) else weight
            for nested in blocks(stmt):
                visit(nested, inner)

    visit(body, 1)
    return {name for name, count in counts.items() if count > 1}

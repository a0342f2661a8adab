"""The builder that expansions write with: it collects typed assignments, expanding each operation on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pypto.ir.dtype import INDEX, DataType
from pypto.ir.enums import ForKind, MemorySpace
from pypto.ir.nodes import Assign, Call, Evaluate, Expr, For, If, NoneType, ScalarType, Stmt, Var, index
from pypto.ir.operations import calls, dims, scalars, table
from pypto.ir.operations.row import Generation, Operation
from pypto.ir.span import UNKNOWN_SPAN, Span


class Emitter:
    """Appends to ``statements``; ``fresh`` gives the name of each new value.

    Every operation is expanded until its own instruction serves, so the statements hold only calls that have a
    :class:`Lowering`, views and buffers.
    """

    def __init__(
        self,
        statements: list[Stmt],
        fresh: Callable[[str], str],
        generation: Generation = "a2a3",
        span: Span = UNKNOWN_SPAN,
    ):
        self.statements, self.fresh, self.generation, self.span = statements, fresh, generation, span

    def tile(self, op: str, **arguments: Any) -> Expr:
        """Append the tile operation ``op`` and return the value it defines."""
        row = table.row(op if "." in op else f"tile.{op}")
        made = calls.call(row, arguments, self.span)
        return self.expand(made) if isinstance(made, Call) else made

    def expand(self, call: Call) -> Expr:
        """Append ``call``, or what its row expands it into."""
        row = table.row(call.op)
        written = row.expand(call, self) if row.expand is not None else None
        return written if written is not None else self._assign(row, call)

    def in_kernel(self, call: Call) -> Expr:
        """Append the tile form of a tensor operation whose operands have been replaced by tiles."""
        row = table.row(call.op)
        if row.tile_form is None:
            raise ValueError(f"{call.op} has no tile form")
        if callable(row.tile_form):
            written = row.tile_form(call, self)
            if written is None:
                raise ValueError(f"the tile form of {call.op} wrote nothing")
            return written
        target = table.row(row.tile_form)
        return self.tile(target.name, **renamed(row, target, call))

    def create_tile(self, shape: Sequence[int], dtype: DataType, space: MemorySpace = MemorySpace.Vec) -> Expr:
        """Append an uninitialised tile."""
        return self.tile("create", shape=tuple(shape), dtype=dtype, target_memory=space)

    def scalar(self, op: str, left: Expr | int, right: Expr | int) -> Expr:
        """The scalar expression ``left op right`` in 64 bits."""
        a, b = (dims.as_index(side) for side in (left, right))
        return scalars.binary(op, a, b, self.span)

    def repeat(self, count: int, body: Callable[[Expr], None]) -> None:
        """Append a sequential loop over 0 ... count-1; a single iteration needs none."""
        if count == 1:
            body(index(0))
            return
        var = Var(self.fresh("row"), ScalarType(INDEX), self.span)
        outer, self.statements = self.statements, []
        body(var)
        written, self.statements = self.statements, outer
        bounds = (index(0), index(count), index(1))
        self.statements.append(For(ForKind.Sequential, var, *bounds, written, span=self.span))

    def either(self, condition: Expr, then: Callable[[], Expr], otherwise: Callable[[], Expr]) -> Expr:
        """Append ``if condition`` with two arms that update one value in place, and return that value."""
        arms: list[list[Stmt]] = []
        values = []
        outer = self.statements
        for write in (then, otherwise):
            self.statements = []
            values.append(write())
            arms.append(self.statements)
        self.statements = outer
        result = Var(self.fresh("either"), values[0].type, self.span)
        for arm, value in zip(arms, values):
            arm.append(Assign(result, value, self.span))
        self.statements.append(If(condition, arms[0], arms[1], span=self.span))
        return result

    def _assign(self, row: Operation, call: Call) -> Expr:
        if isinstance(call.type, NoneType):
            self.statements.append(Evaluate(call, self.span))
            return call
        target = Var(self.fresh(row.name.partition(".")[2]), call.type, self.span)
        self.statements.append(Assign(target, call, self.span))
        return target


def renamed(row: Operation, target: Operation, call: Call) -> dict[str, Any]:
    """A tensor row's arguments under the tile row's names: by name, and by position for the leading operands."""
    result = {}
    for mine, theirs in zip(row.parameters, target.parameters):
        if target.parameter(mine.name) is None and row.parameter(theirs.name) is None:
            result[theirs.name] = call.arguments[mine.name]
    for name, value in call.arguments.items():
        if target.parameter(name) is not None:
            result[name] = value
    return {name: value for name, value in result.items() if value is not None}

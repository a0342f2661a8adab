"""Which tensors a piece of code writes from end to end, so that what they held before is dead (spec language 2.8).

Counted are writes that happen in every run: stores to windows whose place is a sum of constants and of loop variables
with known ends, and calls of kernels that declare the tensor ``pl.Out``. What cannot be proven is not written whole.
"""

from __future__ import annotations

from pypto.ir import nodes as ir
from pypto.ir.enums import ForKind, ParamDirection
from pypto.ir.passes.affine import Affine, Offsets
from pypto.ir.passes.windows import WRITES, window_extents
from pypto.ir.walk import blocks, direct_expressions, statements, targets, walk


def writes_whole(name: str, kind: ir.TensorType, body: list[ir.Stmt], functions: dict[str, ir.Function]) -> bool:
    """Whether every run of ``body`` writes all elements of the tensor that the variable ``name`` holds before it.

    Windows side by side count as the box around them.
    """
    names = _names_of(name, body)
    return bool(names) and _Writes(kind, names, _offsets(body), functions).of(body)


def _offsets(body: list[ir.Stmt]) -> Offsets:
    """Offsets that do not follow variables with more than one value."""
    counts: dict[str, int] = {}
    for stmt in statements(body):
        for variable in targets(stmt):
            counts[variable.name] = counts.get(variable.name, 0) + 1
    return Offsets(None, {name for name, count in counts.items() if count > 1})


def _names_of(name: str, body: list[ir.Stmt]) -> set[str]:
    """Variables that always are the tensor; empty when one of them is something else elsewhere."""
    names, size = {name}, 0
    bound = [pair for stmt in statements(body) for pair in _bindings(stmt)]
    while len(names) != size:
        size = len(names)
        names |= {target for target, value in bound if value in names}
    return names if all(value in names for target, value in bound if target in names) else set()


def _bindings(stmt: ir.Stmt) -> list[tuple[str, str]]:
    """(variable, variable whose tensor it is now); the second is empty for another tensor."""
    if isinstance(stmt, ir.Assign):
        return [(stmt.target.name, _handed_on(stmt.value, 0))]
    if isinstance(stmt, ir.TupleAssign):
        return [(target.name, _handed_on(stmt.value, k)) for k, target in enumerate(stmt.targets)]
    return [(variable.name, "") for variable in targets(stmt)]


def _handed_on(value: ir.Expr, position: int) -> str:
    """The variable whose tensor result ``position`` of an expression is."""
    if isinstance(value, ir.Var):
        return value.name
    if isinstance(value, ir.Call) and value.op in WRITES:
        return _handed_on(value.arguments[WRITES[value.op].tensor], 0)
    if isinstance(value, ir.FunctionCall):
        returns = value.attrs.get("returns", ())
        source = returns[position] if position < len(returns) else None
        return _handed_on(value.args[source], 0) if source is not None and source < len(value.args) else ""
    return ""


class _Writes:
    """The box around all elements that are written in every run; its sides are (first, end) per axis."""

    def __init__(self, kind: ir.TensorType, names: set[str], offsets: Offsets, functions: dict[str, ir.Function]):
        self._kind, self._names, self._offsets, self._functions = kind, names, offsets, functions
        self._box: list[tuple[ir.Dim, ir.Dim]] | None = None
        self._whole = False

    def of(self, body: list[ir.Stmt]) -> bool:
        self._block(body)
        sides = self._box or []
        return self._whole or [side[1] for side in sides] == list(self._kind.shape) and all(s[0] == 0 for s in sides)

    def _block(self, body: list[ir.Stmt]) -> None:
        for stmt in body:
            if isinstance(stmt, ir.If | ir.While) or isinstance(stmt, ir.For) and not self._offsets.enter(stmt):
                continue
            if isinstance(stmt, ir.Scope) and stmt.var is not None:
                count = stmt.attrs.get("core_num") or ir.index(2 if stmt.kind == "split_aiv" else 1)
                self._offsets.enter(ir.For(ForKind.Sequential, stmt.var, ir.index(0), count, ir.index(1), []))
            if isinstance(stmt, ir.Assign) and isinstance(stmt.target.type, ir.ScalarType):
                self._offsets.define(stmt.target.name, stmt.value)
            for outer in direct_expressions(stmt):
                for expr in walk(outer):
                    self._expression(expr)
            for block in blocks(stmt):
                self._block(block)

    def _expression(self, expr: ir.Expr) -> None:
        if isinstance(expr, ir.FunctionCall):
            callee = self._functions.get(expr.callee)
            for parameter, argument in zip(callee.params if callee else (), expr.args):
                if parameter.direction == ParamDirection.Out and isinstance(argument, ir.Var):
                    self._whole |= argument.name in self._names
        elif isinstance(expr, ir.Call) and expr.op in WRITES and _handed_on(expr, 0) in self._names:
            box = self._window(expr)
            if box is not None:
                known = self._box or box
                self._box = [_around(a, b) for a, b in zip(known, box)]

    def _window(self, call: ir.Call) -> list[tuple[ir.Dim, ir.Dim]] | None:
        """The sides of the window of a store; ``None`` for one that may be anywhere."""
        form = WRITES[call.op]
        extents, offset = window_extents(call, form), call.arguments[form.offset]
        if extents is None or len(extents) != len(self._kind.shape) or len(offset) != len(extents):
            return None
        box: list[tuple[ir.Dim, ir.Dim]] = []
        for at, extent, whole in zip(offset, extents, self._kind.shape):
            first = self._offsets.read(at)
            if first == Affine() and extent == whole:
                box.append((0, whole))
                continue
            if first is None or not isinstance(extent, int):
                return None
            fixed, low, high = self._offsets.split(first)
            if fixed.terms:
                return None
            box.append((low, high + extent))
        return box


def _around(a: tuple[ir.Dim, ir.Dim], b: tuple[ir.Dim, ir.Dim]) -> tuple[ir.Dim, ir.Dim]:
    """The side around two; of one that reaches to a dynamic extent, which is a whole axis, that one."""
    if not isinstance(a[1], int):
        return a
    if not isinstance(b[1], int):
        return b
    return min(a[0], b[0]), max(a[1], b[1])  # type: ignore[type-var]

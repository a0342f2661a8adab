"""Traversals and rewrites of IR: every expression, every statement, substitution of variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from pypto.ir import nodes as ir

Rewrite = Callable[[ir.Expr], ir.Expr]


def children(expr: ir.Expr) -> Iterator[ir.Expr]:
    """Direct operands of ``expr``."""
    if isinstance(expr, ir.Binary):
        yield expr.left
        yield expr.right
    elif isinstance(expr, (ir.Unary, ir.Cast)):
        yield expr.operand
    elif isinstance(expr, ir.TupleExpr):
        yield from expr.items
    elif isinstance(expr, ir.TupleItem):
        yield expr.value
    elif isinstance(expr, ir.Call):
        for value in expr.arguments.values():
            yield from flatten(value)
    elif isinstance(expr, ir.FunctionCall):
        yield from expr.args
        for value in expr.attrs.values():
            yield from flatten(value)


def flatten(value: Any) -> Iterator[ir.Expr]:
    """Expressions inside an argument value (possibly a nested tuple)."""
    if isinstance(value, ir.Expr):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from flatten(item)


def walk(expr: ir.Expr) -> Iterator[ir.Expr]:
    """``expr`` and everything below it, operands first."""
    for child in children(expr):
        yield from walk(child)
    yield expr


def direct_expressions(stmt: ir.Stmt) -> Iterator[ir.Expr]:
    """Expressions of one statement itself, without nested blocks."""
    if isinstance(stmt, (ir.Assign, ir.TupleAssign, ir.Evaluate)):
        yield stmt.value
    elif isinstance(stmt, ir.For):
        yield from (stmt.start, stmt.stop, stmt.step)
    elif isinstance(stmt, (ir.While, ir.If)):
        yield stmt.condition
    elif isinstance(stmt, ir.Return):
        yield from stmt.values
    elif isinstance(stmt, ir.Scope):
        for value in stmt.attrs.values():
            yield from flatten(value)


def blocks(stmt: ir.Stmt) -> Iterator[list[ir.Stmt]]:
    """Nested statement lists of ``stmt``."""
    if isinstance(stmt, (ir.For, ir.While, ir.Scope)):
        yield stmt.body
    elif isinstance(stmt, ir.If):
        yield stmt.then_body
        yield stmt.else_body


def statements(body: list[ir.Stmt]) -> Iterator[ir.Stmt]:
    """Every statement of ``body``, nested ones included, in program order."""
    for stmt in body:
        yield stmt
        for block in blocks(stmt):
            yield from statements(block)


def has_lane_region(body: list[ir.Stmt]) -> bool:
    """True when ``body`` holds a ``pl.split_aiv`` region, at any depth (spec language 5.5)."""
    return any(isinstance(s, ir.Scope) and s.kind == "split_aiv" for s in statements(body))


def expressions_of(stmt: ir.Stmt) -> Iterator[ir.Expr]:
    """Every expression at or below ``stmt``."""
    for inner in statements([stmt]):
        for expr in direct_expressions(inner):
            yield from walk(expr)


def targets(stmt: ir.Stmt) -> Iterator[ir.Var]:
    """Variables that ``stmt`` itself assigns (loop variables excluded)."""
    if isinstance(stmt, ir.Assign):
        yield stmt.target
    elif isinstance(stmt, ir.TupleAssign):
        yield from (t for t in stmt.targets if isinstance(t, ir.Var))
    elif isinstance(stmt, ir.Scope) and stmt.task is not None:
        yield stmt.task


# --- rewriting ---


def rewrite_value(value: Any, change: Rewrite) -> Any:
    """``value`` with :func:`rewrite` applied to the expressions inside."""
    if isinstance(value, ir.Expr):
        return rewrite(value, change)
    if isinstance(value, tuple):
        return tuple(rewrite_value(v, change) for v in value)
    if isinstance(value, list):
        return [rewrite_value(v, change) for v in value]
    return value


def rewrite_type(kind: ir.Type, change: Rewrite) -> ir.Type:
    """``kind`` with the expressions of its extents rewritten."""
    if isinstance(kind, ir.TensorType):
        view = kind.view
        if view is not None:
            view = replace(view, valid_shape=_dims(view.valid_shape, change), stride=_dims(view.stride, change))
        return replace(kind, shape=_dims(kind.shape, change), view=view)
    if isinstance(kind, ir.TileType):
        if kind.view is not None:
            kind = replace(kind, view=replace(kind.view, valid_shape=_dims(kind.view.valid_shape, change)))
        slot = getattr(kind.memref, "slot", None)
        return replace(kind, memref=replace(kind.memref, slot=rewrite(slot, change))) if slot is not None else kind
    if isinstance(kind, ir.TupleType):
        return ir.TupleType(tuple(rewrite_type(t, change) for t in kind.items))
    return kind


def _dims(shape: tuple[ir.Dim, ...], change: Rewrite) -> tuple[ir.Dim, ...]:
    return tuple(ir.as_dim(rewrite(d, change)) if isinstance(d, ir.Expr) else d for d in shape)


def rewrite(expr: ir.Expr, change: Rewrite) -> ir.Expr:
    """Rebuild ``expr`` bottom-up, passing every node through ``change``."""
    if isinstance(expr, ir.Binary):
        expr = replace(expr, left=rewrite(expr.left, change), right=rewrite(expr.right, change))
    elif isinstance(expr, (ir.Unary, ir.Cast)):
        expr = replace(expr, operand=rewrite(expr.operand, change))
    elif isinstance(expr, ir.TupleExpr):
        expr = replace(expr, items=tuple(rewrite(i, change) for i in expr.items))
    elif isinstance(expr, ir.TupleItem):
        expr = replace(expr, value=rewrite(expr.value, change), type=rewrite_type(expr.type, change))
    elif isinstance(expr, ir.Call):
        arguments = {k: rewrite_value(v, change) for k, v in expr.arguments.items()}
        expr = replace(expr, arguments=arguments, type=rewrite_type(expr.type, change))
    elif isinstance(expr, ir.FunctionCall):
        attrs = {k: rewrite_value(v, change) for k, v in expr.attrs.items()}
        args = tuple(rewrite(a, change) for a in expr.args)
        expr = replace(expr, args=args, attrs=attrs, type=rewrite_type(expr.type, change))
    elif isinstance(expr, ir.Var):
        expr = replace(expr, type=rewrite_type(expr.type, change))
    return change(expr)


def rewrite_body(body: list[ir.Stmt], change: Rewrite) -> list[ir.Stmt]:
    """A copy of ``body`` with every expression and every assigned variable passed through ``change``."""
    return [rewrite_statement(stmt, change) for stmt in body]


def _variable(var: ir.Var, change: Rewrite) -> ir.Var:
    renamed = rewrite(var, change)
    return renamed if isinstance(renamed, ir.Var) else var


def _optional(var: ir.Var | None, change: Rewrite) -> ir.Var | None:
    return None if var is None else _variable(var, change)


def rewrite_statement(stmt: ir.Stmt, change: Rewrite) -> ir.Stmt:
    """A copy of one statement, nested blocks included."""
    if isinstance(stmt, ir.Assign):
        return replace(stmt, target=_variable(stmt.target, change), value=rewrite(stmt.value, change))
    if isinstance(stmt, ir.TupleAssign):
        return replace(
            stmt, targets=tuple(_variable(t, change) for t in stmt.targets), value=rewrite(stmt.value, change)
        )
    if isinstance(stmt, ir.Evaluate):
        return replace(stmt, value=rewrite(stmt.value, change))
    if isinstance(stmt, ir.For):
        return replace(
            stmt,
            var=_variable(stmt.var, change),
            start=rewrite(stmt.start, change),
            stop=rewrite(stmt.stop, change),
            step=rewrite(stmt.step, change),
            body=rewrite_body(stmt.body, change),
        )
    if isinstance(stmt, ir.While):
        return replace(stmt, condition=rewrite(stmt.condition, change), body=rewrite_body(stmt.body, change))
    if isinstance(stmt, ir.If):
        return replace(
            stmt,
            condition=rewrite(stmt.condition, change),
            then_body=rewrite_body(stmt.then_body, change),
            else_body=rewrite_body(stmt.else_body, change),
        )
    if isinstance(stmt, ir.Return):
        return replace(stmt, values=tuple(rewrite(v, change) for v in stmt.values))
    if isinstance(stmt, ir.Scope):
        return replace(
            stmt,
            body=rewrite_body(stmt.body, change),
            attrs={k: rewrite_value(v, change) for k, v in stmt.attrs.items()},
            var=_optional(stmt.var, change),
            task=_optional(stmt.task, change),
        )
    return replace(stmt)  # type: ignore[type-var]


def substitution(mapping: dict[str, ir.Expr]) -> Rewrite:
    """A rewrite that replaces variables and symbols by name."""

    def change(expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, (ir.Var, ir.Symbol)) and expr.name in mapping:
            return mapping[expr.name]
        return expr

    return change

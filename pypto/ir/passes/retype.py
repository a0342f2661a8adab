"""Types of tensor variables after statements were copied or dropped: each use has the view of the last assignment.

A variable may be bound to views of one shape with different strides. Where a loop is written out or a branch is gone,
another assignment may come before a use than in the source.
"""

from __future__ import annotations

from dataclasses import replace

from pypto.ir import nodes as ir
from pypto.ir import operations
from pypto.ir.walk import blocks, rewrite


def retyped(body: list[ir.Stmt], views: dict[str, ir.TensorType] | None = None) -> list[ir.Stmt]:
    """``body`` with the types of tensor variables in program order; ``views`` holds those known so far."""
    known = {} if views is None else views
    return [_statement(stmt, known) for stmt in body]


def _statement(stmt: ir.Stmt, known: dict[str, ir.TensorType]) -> ir.Stmt:
    def change(expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Var):
            return replace(expr, type=known.get(expr.name, expr.type))
        return _inferred(expr) if isinstance(expr, ir.Call) else expr

    if isinstance(stmt, ir.Assign):
        value = rewrite(stmt.value, change)
        if isinstance(stmt.target.type, ir.TensorType) and isinstance(value.type, ir.TensorType):
            known[stmt.target.name] = value.type
            return replace(stmt, target=replace(stmt.target, type=value.type), value=value)
        return replace(stmt, value=value)
    if isinstance(stmt, (ir.TupleAssign, ir.Evaluate)):
        return replace(stmt, value=rewrite(stmt.value, change))
    if isinstance(stmt, ir.Return):
        return replace(stmt, values=tuple(rewrite(v, change) for v in stmt.values))
    if isinstance(stmt, ir.If):
        then_body, else_body = (retyped(block, known) for block in blocks(stmt))
        return replace(stmt, then_body=then_body, else_body=else_body)
    if isinstance(stmt, (ir.For, ir.While, ir.Scope)):
        return replace(stmt, body=retyped(stmt.body, known))
    return stmt


def _inferred(call: ir.Call) -> ir.Expr:
    """``call`` with the result type its operands give it."""
    if not isinstance(call.type, ir.TensorType):
        return call
    row = operations.find(call.op)
    if row is None:
        return call
    result = row.infer(**{p.name: p.seen(call.arguments[p.name]) for p in row.parameters})
    return replace(call, type=result) if isinstance(result, ir.TensorType) and result != call.type else call

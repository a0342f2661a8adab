"""Replicate ``pl.unroll`` loops and drop branches whose condition is constant."""

from __future__ import annotations

from dataclasses import replace

from pypto.ir import nodes as ir
from pypto.ir.enums import ForKind
from pypto.ir.errors import CompileError
from pypto.ir.passes.retype import retyped
from pypto.ir.simplify import fold, simplified
from pypto.ir.walk import Rewrite, rewrite_body, substitution

LARGEST_EXPANSION = 65_536
"""Copies of one body beyond which the loop is refused instead of filling the memory of the host."""


def unroll(program: ir.Program) -> ir.Program:
    """Every ``pl.unroll`` loop written out, constants folded, dead branches gone."""
    functions = {n: replace(f, body=_written_out(rewrite_body(f.body, fold))) for n, f in program.functions.items()}
    return replace(program, functions=functions)


def _written_out(body: list[ir.Stmt]) -> list[ir.Stmt]:
    result = _block(body)
    return result if result == body else retyped(result)


def _block(body: list[ir.Stmt]) -> list[ir.Stmt]:
    return [s for stmt in body for s in _statement(stmt)]


def _statement(stmt: ir.Stmt) -> list[ir.Stmt]:
    if isinstance(stmt, ir.For) and stmt.kind == ForKind.Unroll:
        return _copies(stmt)
    if isinstance(stmt, ir.If):
        condition = simplified(stmt.condition)
        if isinstance(condition, ir.Const):
            return _block(stmt.then_body if condition.value else stmt.else_body)
        return [replace(stmt, condition=condition, then_body=_block(stmt.then_body), else_body=_block(stmt.else_body))]
    if isinstance(stmt, (ir.For, ir.While, ir.Scope)):
        return [replace(stmt, body=_block(stmt.body))]
    return [stmt]


def _copies(loop: ir.For) -> list[ir.Stmt]:
    bounds = [simplified(b) for b in (loop.start, loop.stop, loop.step)]
    numbers = [int(b.value) for b in bounds if isinstance(b, ir.Const) and b.value is not None]
    if len(numbers) != 3 or numbers[2] == 0:
        raise CompileError("the bounds of pl.unroll are not known at compile time", loop.span)
    values = range(*numbers)
    if len(values) > LARGEST_EXPANSION:
        raise CompileError(
            f"pl.unroll makes {len(values)} copies; at most {LARGEST_EXPANSION} are written out", loop.span
        )
    copies: list[ir.Stmt] = []
    for value in values:
        copies += _block(rewrite_body(loop.body, _constant(loop.var.name, ir.Const(value, loop.var.type.dtype))))  # type: ignore[attr-defined]
    return copies


def _constant(name: str, value: ir.Const) -> Rewrite:
    change = substitution({name: value})
    return lambda expr: fold(change(expr))

"""Replicate ``pl.unroll`` loops and drop branches whose condition is constant."""

from __future__ import annotations

from dataclasses import replace

from pypto.ir import nodes as ir
from pypto.ir.enums import ForKind
from pypto.ir.errors import CompileError
from pypto.ir.passes.copies import free_suffix, loop_locals, loop_variables, renaming
from pypto.ir.passes.retype import retyped
from pypto.ir.simplify import fold, simplified
from pypto.ir.walk import Rewrite, rewrite_body, statements, substitution, targets

LARGEST_EXPANSION = 65_536
"""Copies of one body beyond which the loop is refused instead of filling the memory of the host."""


def unroll(program: ir.Program) -> ir.Program:
    """Every ``pl.unroll`` loop written out, constants folded, dead branches gone."""
    return replace(program, functions={name: _written_out(f) for name, f in program.functions.items()})


def _written_out(function: ir.Function) -> ir.Function:
    body = rewrite_body(function.body, fold)
    result = _block(body, {p.name for p in function.params})
    return replace(function, body=result if result == body else retyped(result))


def _block(body: list[ir.Stmt], defined: set[str]) -> list[ir.Stmt]:
    """``defined``: variables that have a value before ``body``."""
    defined, result = set(defined), []
    for stmt in body:
        result += _statement(stmt, defined)
        defined |= {v.name for s in statements([stmt]) for v in targets(s)}
    return result


def _statement(stmt: ir.Stmt, defined: set[str]) -> list[ir.Stmt]:
    if isinstance(stmt, ir.For) and stmt.kind == ForKind.Unroll:
        return _copies(stmt, defined)
    if isinstance(stmt, ir.If):
        condition = simplified(stmt.condition)
        if isinstance(condition, ir.Const):
            return _block(stmt.then_body if condition.value else stmt.else_body, defined)
        then_body, else_body = (_block(block, defined) for block in (stmt.then_body, stmt.else_body))
        return [replace(stmt, condition=condition, then_body=then_body, else_body=else_body)]
    if isinstance(stmt, (ir.For, ir.While, ir.Scope)):
        return [replace(stmt, body=_block(stmt.body, defined))]
    return [stmt]


def _copies(loop: ir.For, defined: set[str]) -> list[ir.Stmt]:
    bounds = [simplified(b) for b in (loop.start, loop.stop, loop.step)]
    numbers = [int(b.value) for b in bounds if isinstance(b, ir.Const) and b.value is not None]
    if len(numbers) != 3 or numbers[2] == 0:
        raise CompileError("the bounds of pl.unroll are not known at compile time", loop.span)
    values = range(*numbers)
    if len(values) > LARGEST_EXPANSION:
        raise CompileError(
            f"pl.unroll makes {len(values)} copies; at most {LARGEST_EXPANSION} are written out", loop.span
        )
    own = {**loop_locals(loop.body, defined), **{v.name: v for v in loop_variables(loop.body)}}
    copies: list[ir.Stmt] = []
    for number, value in enumerate(values):
        body = rewrite_body(loop.body, _constant(loop.var.name, ir.Const(value, loop.var.type.dtype)))  # type: ignore[attr-defined]
        if number and own:
            body = rewrite_body(body, renaming(own, free_suffix(f"_u{number}", own, loop)))
        copies += _block(body, defined)
    return copies


def _constant(name: str, value: ir.Const) -> Rewrite:
    change = substitution({name: value})
    return lambda expr: fold(change(expr))

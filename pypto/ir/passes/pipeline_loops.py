"""Write out the copies of ``pl.pipeline`` loops (spec language 4.3).

The main loop advances by ``stage`` steps and holds one copy of the body per stage; a remainder loop runs what is left.
Each copy becomes a ``stage`` scope, which tells the memory planner to give it buffers of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from pypto.ir import nodes as ir
from pypto.ir.dtype import INDEX
from pypto.ir.enums import ForKind
from pypto.ir.simplify import fold, simplified
from pypto.ir.walk import rewrite_body, statements, substitution


def pipeline_loops(program: ir.Program) -> ir.Program:
    """Every pipeline loop as ordinary loops over stage scopes."""
    numbers = itertools.count()
    functions = {n: replace(f, body=_block(f.body, numbers)) for n, f in program.functions.items()}
    return replace(program, functions=functions)


def _block(body: list[ir.Stmt], numbers: Iterator[int]) -> list[ir.Stmt]:
    return [s for stmt in body for s in _statement(stmt, numbers)]


def _statement(stmt: ir.Stmt, numbers: Iterator[int]) -> list[ir.Stmt]:
    if isinstance(stmt, ir.If):
        return [replace(stmt, then_body=_block(stmt.then_body, numbers), else_body=_block(stmt.else_body, numbers))]
    if isinstance(stmt, (ir.For, ir.While, ir.Scope)):
        inner = replace(stmt, body=_block(stmt.body, numbers))
        if isinstance(inner, ir.For) and inner.kind == ForKind.Pipeline:
            jumps = any(isinstance(s, (ir.Break, ir.Continue)) for s in statements(inner.body))
            if inner.stage > 1 and not jumps:
                return _staged(inner, next(numbers))
            return [replace(inner, kind=ForKind.Sequential)]
        return [inner]
    return [stmt]


def _binary(op: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return simplified(ir.Binary(op, left, right, INDEX))


def _trips(loop: ir.For) -> ir.Expr:
    """Number of iterations, never negative."""
    distance = _binary("-", loop.stop, loop.start)
    step = loop.step
    descending = isinstance(step, ir.Const) and step.value is not None and step.value < 0
    rounding = _binary("+", step, ir.index(1)) if descending else _binary("-", step, ir.index(1))
    trips = _binary("//", _binary("+", distance, rounding), step)
    return simplified(ir.Binary("max", trips, ir.index(0), INDEX))


def _staged(loop: ir.For, number: int) -> list[ir.Stmt]:
    stage = loop.stage
    whole = _binary("*", _binary("//", _trips(loop), ir.index(stage)), ir.index(stage))
    boundary = _binary("+", loop.start, _binary("*", whole, loop.step))
    copies: list[ir.Stmt] = []
    for copy in range(stage):
        copies += _copy(loop, copy, number)
    main = replace(
        loop,
        kind=ForKind.Sequential,
        stop=boundary,
        step=_binary("*", loop.step, ir.index(stage)),
        body=copies,
        stage=1,
    )
    rest = replace(loop, kind=ForKind.Sequential, start=boundary, stage=1)
    if isinstance(boundary, ir.Const) and isinstance(loop.stop, ir.Const):
        done = boundary.value >= loop.stop.value if _positive(loop.step) else boundary.value <= loop.stop.value  # type: ignore[operator]
        if done:
            return [main]
    return [main, rest]


def _positive(step: ir.Expr) -> bool:
    return not (isinstance(step, ir.Const) and step.value is not None and step.value < 0)


def _copy(loop: ir.For, copy: int, number: int) -> list[ir.Stmt]:
    if copy == 0:
        return [ir.Scope("stage", loop.body, {"loop": number, "stage": 0}, span=loop.span)]
    variable = ir.Var(f"{loop.var.name}_s{copy}", loop.var.type, loop.span)
    offset = _binary("*", loop.step, ir.index(copy))
    change = substitution({loop.var.name: variable})
    body = rewrite_body(loop.body, lambda e: fold(change(e)))
    value = simplified(ir.Binary("+", loop.var, offset, loop.var.type.dtype))  # type: ignore[attr-defined]
    return [
        ir.Assign(variable, value, loop.span),
        ir.Scope("stage", body, {"loop": number, "stage": copy}, span=loop.span),
    ]

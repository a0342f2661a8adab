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
from pypto.ir.errors import CompileError
from pypto.ir.passes.copies import free_suffix, loop_locals, loop_variables, renaming
from pypto.ir.simplify import fold, simplified
from pypto.ir.walk import rewrite_body, statements, substitution, targets


def pipeline_loops(program: ir.Program) -> ir.Program:
    """Every pipeline loop as ordinary loops over stage scopes."""
    numbers = itertools.count()
    functions = {
        n: replace(f, body=_block(f.body, numbers, {p.name for p in f.params})) for n, f in program.functions.items()
    }
    return replace(program, functions=functions)


def _block(body: list[ir.Stmt], numbers: Iterator[int], defined: set[str]) -> list[ir.Stmt]:
    """``defined``: variables that have a value before ``body``."""
    result: list[ir.Stmt] = []
    defined = set(defined)
    for stmt in body:
        result += _statement(stmt, numbers, defined)
        defined |= {v.name for s in statements([stmt]) for v in targets(s)}
    return result


def _statement(stmt: ir.Stmt, numbers: Iterator[int], defined: set[str]) -> list[ir.Stmt]:
    if isinstance(stmt, ir.If):
        branches = [_block(body, numbers, defined) for body in (stmt.then_body, stmt.else_body)]
        return [replace(stmt, then_body=branches[0], else_body=branches[1])]
    if isinstance(stmt, (ir.For, ir.While, ir.Scope)):
        inner = replace(stmt, body=_block(stmt.body, numbers, defined))
        if isinstance(inner, ir.For) and inner.kind == ForKind.Pipeline:
            jumps = any(isinstance(s, (ir.Break, ir.Continue)) for s in statements(inner.body))
            if inner.stage > 1:
                _refuse_declarations(inner)
            if inner.stage > 1 and not jumps:
                return _staged(inner, next(numbers), defined)
            return [replace(inner, kind=ForKind.Sequential)]
        return [inner]
    return [stmt]


def _refuse_declarations(loop: ir.For) -> None:
    """Copies of a body would share the allocation that the author declared for one (spec language 2.6)."""
    for stmt in statements(loop.body):
        for variable in targets(stmt):
            memref = getattr(variable.type, "memref", None)
            declaration = getattr(memref, "declaration", memref)
            if getattr(declaration, "is_declaration", False):
                raise CompileError(
                    f"the tile {variable.name!r} names a declared allocation inside pl.pipeline, whose body is copied "
                    f"{loop.stage} times",
                    stmt.span if stmt.span.line else loop.span,
                    "use pl.range with slots (ring[i % 2]), or leave the allocation to the compiler",
                )


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


def _staged(loop: ir.For, number: int, defined: set[str]) -> list[ir.Stmt]:
    stage = loop.stage
    whole = _binary("*", _binary("//", _trips(loop), ir.index(stage)), ir.index(stage))
    boundary = _binary("+", loop.start, _binary("*", whole, loop.step))
    copies: list[ir.Stmt] = []
    for copy in range(stage):
        copies += _copy(loop, copy, number, defined)
    main = replace(
        loop,
        kind=ForKind.Sequential,
        stop=boundary,
        step=_binary("*", loop.step, ir.index(stage)),
        body=copies,
        stage=1,
    )
    rest = _remainder(replace(loop, kind=ForKind.Sequential, start=boundary, stage=1), defined)
    if isinstance(boundary, ir.Const) and isinstance(loop.stop, ir.Const):
        done = boundary.value >= loop.stop.value if _positive(loop.step) else boundary.value <= loop.stop.value  # type: ignore[operator]
        if done:
            return [main]
    return [main, rest]


def _remainder(loop: ir.For, defined: set[str]) -> ir.For:
    """``loop`` under names of its own: two loops never bind the same local variable."""
    own = {v.name: v for s in statements(loop.body) for v in targets(s) if v.name not in defined}
    own.update((v.name, v) for v in [loop.var, *loop_variables(loop.body)])
    change = renaming(own, free_suffix("_rest", own, loop))
    return replace(loop, var=change(loop.var), body=rewrite_body(loop.body, change))  # type: ignore[arg-type]


def _positive(step: ir.Expr) -> bool:
    return not (isinstance(step, ir.Const) and step.value is not None and step.value < 0)


def _copy(loop: ir.For, copy: int, number: int, defined: set[str]) -> list[ir.Stmt]:
    if copy == 0:
        return [ir.Scope("stage", loop.body, {"loop": number, "stage": 0}, span=loop.span)]
    loops = {**loop_locals(loop.body, defined), **{v.name: v for v in loop_variables(loop.body)}}
    suffix = free_suffix(f"_s{copy}", [loop.var.name, *loops], loop)
    variable = ir.Var(f"{loop.var.name}{suffix}", loop.var.type, loop.span)
    offset = _binary("*", loop.step, ir.index(copy))
    change = substitution({loop.var.name: variable})
    inner = renaming(loops, suffix)
    body = rewrite_body(loop.body, lambda e: fold(inner(change(e))))
    value = simplified(ir.Binary("+", loop.var, offset, loop.var.type.dtype))  # type: ignore[attr-defined]
    return [
        ir.Assign(variable, value, loop.span),
        ir.Scope("stage", body, {"loop": number, "stage": copy}, span=loop.span),
    ]

"""``TypeChecked``: the types of a program fit together (spec language 8.3, codes 101 to 108).

The parser builds programs whose types fit; programs made or changed with the node classes are checked here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import BOOL
from pypto.ir.span import Span
from pypto.ir.walk import direct_expressions, statements, walk

Misfit = tuple[str, Span]


def misfits(function: ir.Function, program: ir.Program) -> Iterator[Misfit]:
    """What does not fit, as text and place."""
    for stmt in statements(function.body):
        yield from _statement(stmt, function)
        for expr in direct_expressions(stmt):
            for inner in walk(expr):
                if isinstance(inner, ir.FunctionCall) and inner.callee in program.functions:
                    yield from _call(inner, program.functions[inner.callee])


def _statement(stmt: ir.Stmt, function: ir.Function) -> Iterator[Misfit]:
    if isinstance(stmt, ir.Assign):
        yield from _fits(f"{stmt.target.name!r}", stmt.target.type, stmt.value.type, stmt.span)
    elif isinstance(stmt, ir.TupleAssign) and isinstance(stmt.value.type, ir.TupleType):
        if len(stmt.targets) != len(stmt.value.type.items):
            yield f"{len(stmt.targets)} targets for {len(stmt.value.type.items)} values", stmt.span
        for target, kind in zip(stmt.targets, stmt.value.type.items):
            if isinstance(target, ir.Var):
                yield from _fits(f"{target.name!r}", target.type, kind, stmt.span)
    elif isinstance(stmt, (ir.If, ir.While)):
        if stmt.condition.type != ir.ScalarType(BOOL):
            yield f"the condition is {_text(stmt.condition.type)}, not a BOOL scalar", stmt.span
    elif isinstance(stmt, ir.For):
        for name, bound in (("start", stmt.start), ("stop", stmt.stop), ("step", stmt.step)):
            if not isinstance(bound.type, ir.ScalarType) or not bound.type.dtype.is_int():
                yield f"the {name} of the loop is {_text(bound.type)}, not an integer scalar", stmt.span
    elif isinstance(stmt, ir.Return) and function.return_types and len(stmt.values) == len(function.return_types):
        for position, (kind, value) in enumerate(zip(function.return_types, stmt.values)):
            yield from _fits(f"result {position} of {function.name!r}", kind, value.type, stmt.span)


def _call(call: ir.FunctionCall, callee: ir.Function) -> Iterator[Misfit]:
    if len(call.args) > len(callee.params):
        yield f"{callee.name} takes {len(callee.params)} arguments, got {len(call.args)}", call.span
    for parameter, value in zip(callee.params, call.args):
        yield from _fits(f"parameter {parameter.name!r} of {callee.name}", parameter.type, value.type, call.span)


def _fits(what: str, want: ir.Type, have: ir.Type, span: Span) -> Iterator[Misfit]:
    if not _same(want, have):
        yield f"{what} is {_text(want)} and gets {_text(have)}", span


def _same(want: ir.Type, have: ir.Type) -> bool:
    """Equal kind, dtype, rank and static extents; integer scalars convert to each other."""
    if isinstance(want, ir.ScalarType) and isinstance(have, ir.ScalarType):
        return want.dtype == have.dtype or want.dtype.is_int() and have.dtype.is_int()
    if isinstance(want, ir.TensorType) and isinstance(have, ir.TensorType):
        return want.dtype == have.dtype and _shapes_fit(want.shape, have.shape)
    if isinstance(want, ir.TileType) and isinstance(have, ir.TileType):
        return want.dtype == have.dtype and _shapes_fit(want.shape, have.shape)
    if isinstance(want, ir.ArrayType) and isinstance(have, ir.ArrayType):
        return want == have
    return type(want) is type(have)


def _shapes_fit(want: tuple[Any, ...], have: tuple[Any, ...]) -> bool:
    known = ((a, b) for a, b in zip(want, have) if isinstance(a, int) and isinstance(b, int))
    return len(want) == len(have) and all(a == b for a, b in known)


def _text(kind: ir.Type) -> str:
    if isinstance(kind, ir.ScalarType):
        return f"a scalar {kind.dtype.constant}"
    if isinstance(kind, (ir.TensorType, ir.TileType)):
        noun = "tensor" if isinstance(kind, ir.TensorType) else "tile"
        shape = ", ".join(str(d) if isinstance(d, int) else getattr(d, "name", "?") for d in kind.shape)
        return f"a {noun} [{shape}] {kind.dtype.constant}"
    if isinstance(kind, ir.ArrayType):
        return f"an array [{kind.extent}] {kind.dtype.constant}"
    return {ir.TupleType: "a tuple", ir.NoneType: "nothing"}.get(type(kind), "a handle")

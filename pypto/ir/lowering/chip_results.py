"""Tensors that a chip program makes and returns: the host provides their memory (spec distributed 1.9).

The tensor becomes an output parameter of the chip program; where the host calls it, a new tensor of zeros is passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from pypto.ir import nodes as ir
from pypto.ir.accesses import Accesses
from pypto.ir.enums import FunctionType, ParamDirection
from pypto.ir.errors import CompileError
from pypto.ir.lowering.orchestrators import is_orchestrator
from pypto.ir.walk import blocks, expressions_of, rewrite_type, statements, targets

RESULT = "result"
"""Attribute of a creation in a HOST body that may stand anywhere: the memory of a chip program's result."""


def with_result_outputs(program: ir.Program) -> ir.Program:
    """``program`` in which no chip program that the host calls returns a tensor of its own."""
    hosts = [f for f in program.functions.values() if is_orchestrator(f)]
    called = {e.callee for f in hosts for s in f.body for e in expressions_of(s) if isinstance(e, ir.FunctionCall)}
    changed: dict[str, ir.Function] = {}
    for name in called & set(program.functions):
        function = program.functions[name]
        if function.type == FunctionType.Orchestration and None in function.attrs.get("returns", ()):
            changed[name] = _with_outputs(function, program.functions)
    if not changed:
        return program
    functions = {**program.functions, **changed}
    for host in hosts:
        calls = _Calls(program.functions, changed)
        functions[host.name] = replace(host, body=list(calls.block(host.body)))
    return replace(program, functions=functions)


def _with_outputs(function: ir.Function, functions: dict[str, ir.Function]) -> ir.Function:
    last = function.body[-1] if function.body else None
    if not isinstance(last, ir.Return):
        raise CompileError(f"{function.name}: a chip program that returns a tensor returns at its end", function.span)
    accesses = Accesses().visit(function.body, functions)
    created = {name: s for s in statements(function.body) if (name := _created(s))}
    params, returns = list(function.params), list(function.attrs["returns"])
    first_scalar = next((i for i, p in enumerate(params) if isinstance(p.type, ir.ScalarType)), len(params))
    taken: set[str] = set()
    for position, source in enumerate(function.attrs["returns"]):
        if source is not None:
            continue
        root = accesses.root(last.values[position])
        if root is None or root not in created or root in taken:
            raise CompileError(
                f"{function.name}: result {position} is neither an output parameter nor a tensor that it creates",
                last.span,
                "return what pl.create_tensor made, or declare an output parameter",
            )
        taken.add(root)
        kind = next(targets(created[root])).type
        params.insert(first_scalar, ir.Param(root, kind, ParamDirection.Out))
        returns = [r + 1 if r is not None and r >= first_scalar else r for r in returns]
        returns[position] = first_scalar
        first_scalar += 1
    attrs = {**function.attrs, "returns": tuple(returns)}
    return replace(function, params=params, body=_without(function.body, taken), attrs=attrs)


def _created(stmt: ir.Stmt) -> str:
    """The name of the tensor that ``stmt`` creates, "" when it creates none."""
    made = isinstance(stmt, ir.Assign) and isinstance(stmt.value, ir.Call) and stmt.value.op == "tensor.create"
    return next(targets(stmt)).name if made else ""


def _without(body: list[ir.Stmt], names: set[str]) -> list[ir.Stmt]:
    """``body`` without the statements that create ``names``."""
    kept: list[ir.Stmt] = []
    for stmt in body:
        if _created(stmt) in names:
            continue
        if isinstance(stmt, ir.If):
            then, other = (_without(block, names) for block in blocks(stmt))
            stmt = replace(stmt, then_body=then, else_body=other)
        elif isinstance(stmt, (ir.For, ir.While, ir.Scope)):
            stmt = replace(stmt, body=_without(stmt.body, names))
        kept.append(stmt)
    return kept


class _Calls:
    """Passes the memory of results where a host calls chip programs that now take it."""

    def __init__(self, before: dict[str, ir.Function], changed: dict[str, ir.Function]):
        self.before, self.changed, self.number = before, changed, count()

    def block(self, body: list[ir.Stmt]) -> Iterator[ir.Stmt]:
        for stmt in body:
            call = getattr(stmt, "value", None)
            if isinstance(call, ir.FunctionCall) and call.callee in self.changed:
                yield from self._call(stmt, call)
            elif isinstance(stmt, ir.If):
                then, other = (list(self.block(inner)) for inner in blocks(stmt))
                yield replace(stmt, then_body=then, else_body=other)
            elif isinstance(stmt, (ir.For, ir.While, ir.Scope)):
                yield replace(stmt, body=list(self.block(stmt.body)))
            else:
                yield stmt

    def _call(self, stmt: ir.Stmt, call: ir.FunctionCall) -> Iterator[ir.Stmt]:
        old, new = self.before[call.callee], self.changed[call.callee]
        extents = _extents(old, call)
        known = {p.name for p in old.params}
        given = iter(call.args)
        arguments: list[ir.Expr] = []
        for parameter in new.params:
            if parameter.name in known:
                arguments.append(next(given))
                continue
            kind = rewrite_type(parameter.type, lambda e: extents.get(e.name, e) if isinstance(e, ir.Symbol) else e)
            assert isinstance(kind, ir.TensorType)
            memory = ir.Var(f"{call.callee}_result_{next(self.number)}", kind, call.span)
            made = ir.Call(
                "tensor.create",
                {"shape": tuple(map(ir.as_expr, kind.shape)), "dtype": kind.dtype},
                kind,
                {RESULT: True},
                call.span,
            )
            yield ir.Assign(memory, made, call.span)
            arguments.append(memory)
        attrs = {**call.attrs, "returns": new.attrs["returns"]}
        yield replace(stmt, value=replace(call, args=tuple(arguments), attrs=attrs))  # type: ignore[type-var]


def _extents(callee: ir.Function, call: ir.FunctionCall) -> dict[str, ir.Expr]:
    """What the dynamic extents of ``callee`` are in ``call``."""
    found: dict[str, ir.Expr] = {}
    for parameter, argument in zip(callee.params, call.args):
        if isinstance(parameter.type, ir.TensorType) and isinstance(argument.type, ir.TensorType):
            for extent, given in zip(parameter.type.shape, argument.type.shape):
                if isinstance(extent, ir.Symbol):
                    found.setdefault(extent.name, ir.as_expr(given))
    return found


__all__ = ["RESULT", "with_result_outputs"]

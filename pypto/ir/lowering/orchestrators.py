"""Orchestrators that call orchestrators: a plain call, no task (spec distributed 1.3).

One host runs here, so an orchestrator above it drives that one host: the calls down to level HOST are plain, too. All
of them become one body before its windows and dispatches are looked at. A kernel that the host calls itself gets the
chip orchestration that launches it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from pypto.ir import nodes as ir
from pypto.ir.enums import FunctionType, Level, Role
from pypto.ir.errors import CompileError, ParserTypeError
from pypto.ir.walk import expressions_of, rewrite_body, statements, walk

HOST_NUMBER = 3
DEVICE = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


def is_orchestrator(function: ir.Function) -> bool:
    """Whether ``function`` runs on the host, and is no sub-worker."""
    return function.level is not None and function.level.number >= HOST_NUMBER and function.attrs.get("python") is None


def host_orchestrator(program: ir.Program) -> ir.Function:
    """The one orchestrator that no other calls, with those that it calls in its body."""
    found = {name: f for name, f in program.functions.items() if is_orchestrator(f)}
    called = {callee for f in found.values() for callee in _callees(f) if callee != f.name}
    tops = [f for name, f in found.items() if name not in called]
    if len(tops) != 1:
        names = ", ".join(f.name for f in (tops or found.values())) or "none"
        raise CompileError(f"program {program.name!r} needs exactly one HOST orchestrator, it has {names}")
    return replace(tops[0], body=list(_Calls(found).merged(tops[0].body, (tops[0].name,))))


def inline_orchestrations(program: ir.Program) -> ir.Program:
    """``program`` with the chip orchestrations that others call in the bodies of their callers."""
    found = {name: f for name, f in program.functions.items() if f.type == FunctionType.Orchestration}
    callers = [f for f in found.values() if any(callee in found for callee in _callees(f))]
    if not callers:
        return program
    merged = {f.name: replace(f, body=list(_Calls(found).merged(f.body, (f.name,)))) for f in callers}
    return replace(program, functions={**program.functions, **merged})


def with_chip_programs(program: ir.Program) -> ir.Program:
    """``program`` with a chip orchestration around every kernel that an orchestrator of the host calls."""
    functions = dict(program.functions)

    def change(expr: ir.Expr) -> ir.Expr:
        kernel = program.functions.get(expr.callee) if isinstance(expr, ir.FunctionCall) else None
        if not isinstance(expr, ir.FunctionCall) or kernel is None or kernel.type not in DEVICE:
            return expr
        if "device" in expr.attrs:
            raise ParserTypeError(
                f"{kernel.name!r} is a kernel and does not accept keyword argument 'device'",
                expr.span,
                "call the @pl.jit (Orchestration) function that launches it",
            )
        wrapper = _around(kernel, expr)
        functions.setdefault(wrapper.name, wrapper)
        return replace(expr, callee=wrapper.name)

    for name, function in program.functions.items():
        if is_orchestrator(function):
            functions[name] = replace(function, body=rewrite_body(function.body, change))
    return program if functions == program.functions else replace(program, functions=functions)


def _around(kernel: ir.Function, call: ir.FunctionCall) -> ir.Function:
    """A chip orchestration with the parameters of ``kernel``, which launches it."""
    span, returns = kernel.span, tuple(call.attrs.get("returns", ()))
    arguments = tuple(ir.Var(p.name, p.type, span) for p in kernel.params)
    launch = ir.FunctionCall(kernel.name, arguments, call.type, "call", {"returns": returns}, span)
    results = tuple(arguments[r] for r in returns if r is not None)
    body: list[ir.Stmt]
    if not results:
        body = [ir.Evaluate(launch, span)]
    else:
        bind = ir.Assign(results[0], launch, span) if len(results) == 1 else ir.TupleAssign(results, launch, span)
        body = [bind, ir.Return(results, span)]
    return ir.Function(
        f"{kernel.name}_on_chip",
        list(kernel.params),
        body,
        FunctionType.Orchestration,
        Level.CHIP,
        Role.Orchestrator,
        kernel.return_types,
        {"returns": returns, "declares_return": bool(results)},
        kernel.takes_self,
        span,
    )


def _callees(function: ir.Function) -> Iterator[str]:
    for stmt in statements(function.body):
        for expr in expressions_of(stmt):
            for inner in walk(expr):
                if isinstance(inner, ir.FunctionCall):
                    yield inner.callee


class _Calls:
    def __init__(self, orchestrators: dict[str, ir.Function]):
        self.orchestrators, self.number = orchestrators, count(1)

    def merged(self, body: list[ir.Stmt], around: tuple[str, ...]) -> Iterator[ir.Stmt]:
        """``body`` with the bodies of the orchestrators it calls; ``around``: those it stands in."""
        for stmt in body:
            call = getattr(stmt, "value", None)
            callee = self.orchestrators.get(call.callee) if isinstance(call, ir.FunctionCall) else None
            if isinstance(call, ir.FunctionCall) and callee is not None:
                if callee.name in around:
                    raise CompileError(f"{callee.name!r} calls itself", call.span)
                yield from self._inlined(stmt, call, callee, around)
            elif isinstance(stmt, (ir.For, ir.While, ir.Scope)):
                yield replace(stmt, body=list(self.merged(stmt.body, around)))
            elif isinstance(stmt, ir.If):
                yield replace(
                    stmt,
                    then_body=list(self.merged(stmt.then_body, around)),
                    else_body=list(self.merged(stmt.else_body, around)),
                )
            else:
                yield stmt

    def _inlined(
        self, stmt: ir.Stmt, call: ir.FunctionCall, callee: ir.Function, around: tuple[str, ...]
    ) -> Iterator[ir.Stmt]:
        if "device" in call.attrs:
            raise CompileError(f"{callee.name!r} is called where it stands; device= names a chip", call.span)
        renaming = _Renaming(callee, call, next(self.number))
        yield from renaming.bound
        body = rewrite_body(callee.body, renaming)
        values: tuple[ir.Expr, ...] = ()
        if body and isinstance(body[-1], ir.Return):
            last = body.pop()
            assert isinstance(last, ir.Return)
            values = last.values
        if any(isinstance(inner, ir.Return) for inner in statements(body)):
            raise CompileError(
                f"{callee.name!r} returns before its end; an orchestrator called here may not", call.span
            )
        yield from self.merged(body, (*around, callee.name))
        targets = (
            stmt.targets if isinstance(stmt, ir.TupleAssign) else (stmt.target,) if isinstance(stmt, ir.Assign) else ()
        )
        if len(targets) > len(values):
            raise CompileError(f"{callee.name!r} returns {len(values)} values, {len(targets)} are taken", call.span)
        for target, value in zip(targets, values):
            yield from self.merged([ir.Assign(target, value, call.span)], (*around, callee.name))


class _Renaming:
    """Parameters become arguments, dynamic extents those of the arguments, other names fresh ones."""

    def __init__(self, callee: ir.Function, call: ir.FunctionCall, number: int):
        self.suffix = f"_{callee.name}_{number}"
        self.known: dict[str, ir.Expr] = {}
        self.extents: dict[str, ir.Expr] = {}
        self.bound: list[ir.Stmt] = []
        for parameter, argument in zip(callee.params, call.args):
            if isinstance(argument, ir.Call):  # a parameter may be assigned to, a view may not
                view, argument = argument, ir.Var(parameter.name + self.suffix, argument.type, argument.span)
                self.bound.append(ir.Assign(argument, view, view.span))
            self.known[parameter.name] = argument
            if isinstance(parameter.type, ir.TensorType) and isinstance(argument.type, ir.TensorType):
                for extent, given in zip(parameter.type.shape, argument.type.shape):
                    if isinstance(extent, ir.Symbol):
                        self.extents.setdefault(extent.name, ir.as_expr(given))

    def __call__(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Symbol):
            return self.extents.get(expr.name, expr)
        if isinstance(expr, ir.Var):
            return self.known.get(expr.name) or replace(
                expr, name=expr.name + self.suffix, author=expr.author or expr.name
            )
        if isinstance(expr, ir.Call) and expr.op == "pld.tensor.alloc_window_buffer":
            return replace(expr, arguments={**expr.arguments, "name": f"{expr.arguments['name']}{self.suffix}"})
        return expr


__all__ = ["host_orchestrator", "inline_orchestrations", "is_orchestrator", "with_chip_programs"]

"""Members of a Group share its parameters: a member called with other arguments gets a copy of its own."""

from __future__ import annotations

from dataclasses import replace

from pypto.ir import nodes as ir
from pypto.ir.enums import FunctionType
from pypto.ir.errors import CompileError
from pypto.ir.walk import rewrite_body, statements, substitution, targets


def shared_members(program: ir.Program) -> ir.Program:
    """Every call inside a Group passes exactly the Group's parameters."""
    functions = dict(program.functions)
    for name, function in program.functions.items():
        if function.type == FunctionType.Group:
            body = [_shared(stmt, function, functions) for stmt in function.body]
            functions[name] = replace(function, body=body)
    ordered = {n: functions[n] for n in functions if n not in program.functions}
    return replace(program, functions={**ordered, **{n: functions[n] for n in program.functions}})


def _shared(stmt: ir.Stmt, group: ir.Function, functions: dict[str, ir.Function]) -> ir.Stmt:
    call = getattr(stmt, "value", None)
    if not isinstance(call, ir.FunctionCall):
        return stmt
    wanted = [p.name for p in group.params]
    given = [a.name if isinstance(a, ir.Var) else None for a in call.args]
    if given == wanted:
        return stmt
    member = _member(functions[call.callee], call, group)
    functions[member.name] = member
    args = tuple(ir.Var(p.name, p.type, call.span) for p in group.params)
    shared = replace(call, callee=member.name, args=args, attrs={**call.attrs, "returns": ()})
    if {v.name for v in targets(stmt)} <= set(wanted):
        return ir.Evaluate(replace(shared, type=ir.NoneType()), stmt.span)  # the parameters hold the results
    return replace(stmt, value=shared)  # type: ignore[type-var]


def _member(callee: ir.Function, call: ir.FunctionCall, group: ir.Function) -> ir.Function:
    """``callee`` over the parameters of ``group``."""
    names = {p.name for p in group.params}
    mapping: dict[str, ir.Expr] = {}
    for variable in (v for s in statements(callee.body) for v in targets(s)):
        if variable.name in names:
            mapping[variable.name] = replace(
                variable, name=f"{variable.name}_of_{callee.name}", author=variable.author or variable.name
            )
    for parameter, value in zip(callee.params, call.args):
        if not isinstance(value, (ir.Var, ir.Const, ir.Symbol)):
            raise CompileError(f"an argument of {callee.name!r} inside a group is a name or a literal", call.span)
        mapping[parameter.name] = value
    body = rewrite_body(callee.body, substitution(mapping))
    attrs = {**{k: v for k, v in callee.attrs.items() if k != "declares_return"}, "returns": ()}
    body = [s for s in body if not isinstance(s, ir.Return)]
    return replace(
        callee,
        name=f"{group.name}_{callee.name}",
        params=[replace(p) for p in group.params],
        body=body,
        attrs=attrs,
        return_types=(),
    )

"""Results that a kernel computes become output parameters (spec language 6.2, 5.6)."""

from __future__ import annotations

from dataclasses import replace

from pypto.ir import nodes as ir
from pypto.ir import operations
from pypto.ir.enums import FunctionType, ParamDirection
from pypto.ir.errors import CompileError
from pypto.ir.walk import blocks

KERNELS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


def explicit_returns(program: ir.Program) -> ir.Program:
    """Every kernel returns versions of its output parameters only; callers allocate what was returned by value."""
    added: dict[str, list[ir.Param]] = {}
    functions: dict[str, ir.Function] = {}
    for name, function in program.functions.items():
        if function.type in KERNELS and any(r is None for r in function.attrs.get("returns", ())):
            function, added[name] = _with_outputs(function)
        functions[name] = function
    if added:
        functions = {n: replace(f, body=_calls(f.body, added, functions)) for n, f in functions.items()}
    return replace(program, functions=functions)


def _with_outputs(function: ir.Function) -> tuple[ir.Function, list[ir.Param]]:
    """``function`` with one Out parameter per returned fresh value."""
    returns = list(function.attrs["returns"])
    params, extra = list(function.params), []
    last = function.body[-1]
    if not isinstance(last, ir.Return):
        raise CompileError(f"{function.name}: a kernel returns at its end", function.span)
    body, values = list(function.body[:-1]), list(last.values)
    for position, source in enumerate(returns):
        if source is not None:
            continue
        kind = _tensor_type(values[position].type, function)
        parameter = ir.Param(f"result{position}", kind, ParamDirection.Out)
        variable = ir.Var(parameter.name, kind, last.span)
        body.append(ir.Evaluate(_write(variable, values[position]), last.span))
        values[position] = variable
        returns[position] = len(params)
        params.append(parameter)
        extra.append(parameter)
    body.append(replace(last, values=tuple(values)))
    types = tuple(v.type for v in values)
    attrs = {**function.attrs, "returns": tuple(returns)}
    return replace(function, params=params, body=body, attrs=attrs, return_types=types), extra


def _tensor_type(kind: ir.Type, function: ir.Function) -> ir.TensorType:
    if isinstance(kind, ir.TensorType):
        return kind
    if isinstance(kind, ir.TileType):
        return ir.TensorType(kind.shape, kind.dtype)
    raise CompileError(
        f"{function.name} returns a value that is not a tensor; only tensors leave a kernel", function.span
    )


def _write(target: ir.Var, value: ir.Expr) -> ir.Expr:
    zeros = tuple(ir.index(0) for _ in target.type.shape)  # type: ignore[attr-defined]
    if isinstance(value.type, ir.TileType):
        return operations.build("tile", "store", [value, zeros, target], {}, target.span)
    return operations.build("tensor", "assemble", [target, value, zeros], {}, target.span)


def _calls(body: list[ir.Stmt], added: dict[str, list[ir.Param]], functions: dict[str, ir.Function]) -> list[ir.Stmt]:
    result: list[ir.Stmt] = []
    for stmt in body:
        for block in blocks(stmt):
            block[:] = _calls(block, added, functions)
        call = getattr(stmt, "value", None)
        if isinstance(call, ir.FunctionCall) and call.callee in added:
            created, call = _with_arguments(call, added[call.callee], functions[call.callee], len(result))
            result += created
            stmt = replace(stmt, value=call)  # type: ignore[type-var]
        result.append(stmt)
    return result


def _with_arguments(
    call: ir.FunctionCall, extra: list[ir.Param], callee: ir.Function, number: int
) -> tuple[list[ir.Stmt], ir.FunctionCall]:
    """Allocate the outputs that ``call`` leaves to the caller."""
    created: list[ir.Stmt] = []
    args = list(call.args)
    for parameter in extra:
        kind = parameter.type
        assert isinstance(kind, ir.TensorType)
        variable = ir.Var(f"{callee.name}_{parameter.name}_{call.span.line}_{number}", kind, call.span)
        created.append(
            ir.Assign(
                variable, operations.build("tensor", "create", [kind.shape, kind.dtype], {}, call.span), call.span
            )
        )
        args.append(variable)
    attrs = {**call.attrs, "returns": callee.attrs["returns"]}
    return created, replace(call, args=tuple(args), attrs=attrs)

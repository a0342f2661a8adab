"""A program that is one kernel gets the orchestration that launches it (spec language 3.7)."""

from __future__ import annotations

from dataclasses import replace

from pypto.ir import nodes as ir
from pypto.ir.enums import FunctionType, Level, Role

ENTRY_TYPES = (FunctionType.Orchestration, FunctionType.Graph)
KERNELS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


def with_entry(program: ir.Program) -> ir.Program:
    """Add the generated orchestration where there is none and exactly one kernel."""
    functions = program.functions
    hosted = any(f.level is not None and f.level.number >= 3 for f in functions.values())
    if hosted or any(f.type in ENTRY_TYPES for f in functions.values()):
        return program
    kernels = [f for f in functions.values() if f.type in KERNELS]
    if len(kernels) != 1 or len(functions) != 1:
        return program
    return replace(program, functions={**functions, f"{kernels[0].name}_entry": _launcher(kernels[0])})


def _launcher(kernel: ir.Function) -> ir.Function:
    args = tuple(ir.Var(p.name, p.type, kernel.span) for p in kernel.params)
    returns = kernel.attrs.get("returns", ())
    outputs = [args[i] for i in returns if i is not None]
    call_type: ir.Type = ir.NoneType()
    if outputs:
        call_type = outputs[0].type if len(outputs) == 1 else ir.TupleType(tuple(o.type for o in outputs))
    call = ir.FunctionCall(kernel.name, args, call_type, "call", {"returns": returns}, kernel.span)
    body: list[ir.Stmt] = (
        [ir.Evaluate(call, kernel.span)] if len(outputs) != 1 else [ir.Assign(outputs[0], call, kernel.span)]
    )
    if len(outputs) > 1:
        body = [ir.TupleAssign(tuple(outputs), call, kernel.span)]
    body.append(ir.Return(tuple(outputs), kernel.span))
    return ir.Function(
        f"{kernel.name}_entry",
        [replace(p) for p in kernel.params],
        body,
        FunctionType.Orchestration,
        Level.CHIP,
        Role.Orchestrator,
        tuple(o.type for o in outputs),
        {"returns": returns, **({"declares_return": True} if kernel.attrs.get("declares_return") else {})},
        True,
        kernel.span,
    )

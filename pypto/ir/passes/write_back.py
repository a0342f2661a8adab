"""``t = pl.scatter_update(t, ...)`` of a tensor in GM updates it in place (spec ops 1.11).

The operations compute a new value on chip. Where the name of a tensor in GM is bound to its own update, the value is
written to the tensor, as ``t[:] = ...`` does.
"""

from __future__ import annotations

from dataclasses import replace

from pypto.ir import nodes as ir
from pypto.ir import operations
from pypto.ir.accesses import Accesses
from pypto.ir.enums import FunctionType, Level
from pypto.ir.walk import statements, targets

IN_PLACE = ("tensor.scatter", "tensor.scatter_update")
DEVICE = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


def write_back(program: ir.Program) -> ir.Program:
    """Write updates in place in every kernel and core scope of ``program``."""
    return replace(program, functions={name: _function(f) for name, f in program.functions.items()})


def _function(function: ir.Function) -> ir.Function:
    given = {p.name for p in function.params if isinstance(p.type, ir.TensorType)}
    if function.type in DEVICE:
        return replace(function, body=_core(function.body, given))
    return replace(function, body=_orchestration(function.body, given))


def _orchestration(body: list[ir.Stmt], tensors: set[str]) -> list[ir.Stmt]:
    """``tensors``: those in GM before ``body``."""
    result: list[ir.Stmt] = []
    tensors = set(tensors)
    for stmt in body:
        if isinstance(stmt, ir.Scope) and _is_core(stmt):
            result.append(replace(stmt, body=_core(stmt.body, tensors)))
        elif isinstance(stmt, ir.If):
            then_body, else_body = (_orchestration(block, tensors) for block in (stmt.then_body, stmt.else_body))
            result.append(replace(stmt, then_body=then_body, else_body=else_body))
        elif isinstance(stmt, (ir.For, ir.While, ir.Scope)):
            result.append(replace(stmt, body=_orchestration(stmt.body, tensors)))
        else:
            result.append(stmt)
        tensors |= {v.name for s in statements([stmt]) for v in targets(s) if isinstance(v.type, ir.TensorType)}
    return result


def _is_core(scope: ir.Scope) -> bool:
    core = scope.kind == "at" and scope.attrs.get("level") == Level.CORE_GROUP
    return core or scope.kind in ("spmd", "cluster", "split_aiv")


def _core(body: list[ir.Stmt], tensors: set[str]) -> list[ir.Stmt]:
    return _Core(Accesses().visit(body), tensors).block(body)


class _Core:
    """Rewrites the body of one kernel; ``tensors`` are those in GM."""

    def __init__(self, accesses: Accesses, tensors: set[str]):
        self._accesses, self._tensors = accesses, tensors

    def block(self, body: list[ir.Stmt]) -> list[ir.Stmt]:
        return [self._statement(stmt) for stmt in body]

    def _statement(self, stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.If):
            return replace(stmt, then_body=self.block(stmt.then_body), else_body=self.block(stmt.else_body))
        if isinstance(stmt, (ir.For, ir.While, ir.Scope)):
            return replace(stmt, body=self.block(stmt.body))
        if isinstance(stmt, ir.Assign) and self._updates_itself(stmt):
            zeros = tuple(ir.index(0) for _ in stmt.target.type.shape)  # type: ignore[attr-defined]
            tensor = stmt.value.arguments["input"]  # type: ignore[attr-defined]
            return replace(
                stmt, value=operations.build("tensor", "assemble", [tensor, stmt.value, zeros], {}, stmt.span)
            )
        return stmt

    def _updates_itself(self, stmt: ir.Assign) -> bool:
        call = stmt.value
        if not isinstance(call, ir.Call) or call.op not in IN_PLACE:
            return False
        root = self._accesses.root(call.arguments["input"])
        return root in self._tensors and stmt.target.name == root

"""Scopes of level CHIP in a HOST orchestrator become chip programs that it dispatches (spec distributed 1.4).

``device=`` cannot be written on a scope: its dispatches go round the chips in the order they are submitted (1.6).
A core scope that stands in a HOST body by itself is a chip program of one kernel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from pypto.ir import nodes as ir
from pypto.ir.accesses import Accesses
from pypto.ir.enums import FunctionType, Level, ParamDirection, Role
from pypto.ir.errors import CompileError, ParserTypeError
from pypto.ir.liveness import live_behind
from pypto.ir.passes.outline import Outliner, _result_type, _with_symbols
from pypto.ir.passes.whole_writes import writes_whole
from pypto.ir.walk import expressions_of, statements, targets

HOST_NUMBER: Final = 3
CORE_SCOPES: Final = ("spmd", "cluster", "split_aiv")
_ROLES: Final = {Role.Orchestrator: "orch", Role.SubWorker: "subworker"}


def outline_chips(program: ir.Program) -> ir.Program:
    """``program`` with a chip orchestration and its call for every CHIP scope of its HOST orchestrators."""
    functions: dict[str, ir.Function] = {}
    taken = set(program.functions)
    for name, function in program.functions.items():
        if function.level is not None and function.level.number >= HOST_NUMBER and not function.attrs.get("python"):
            outliner = ChipOutliner(function, program.functions, taken)
            body = outliner.outlined()
            functions.update(outliner.created)
            functions[name] = replace(function, body=body) if outliner.created else function
        else:
            functions[name] = function
    return replace(program, functions=functions)


def scope_label(level: Level, role: Role | None) -> str:
    """``<level>[_<role>]`` in the name of an outlined function."""
    text = level.name.lower().replace("_", "")
    return text if role is None else f"{text}_{_ROLES[role]}"


class ChipOutliner(Outliner):
    """Outlines the chip scopes of one HOST orchestrator."""

    def outlined(self) -> list[ir.Stmt]:
        """Its body with calls in place of the scopes; ``created`` holds the chip programs."""
        body = self.function.body
        return self._block(body, live_behind(body, set()))

    def _scope(self, scope: ir.Scope, after: set[str]) -> list[ir.Stmt]:
        level = scope.attrs.get("level")
        core = scope.kind in CORE_SCOPES or level == Level.CORE_GROUP
        if scope.kind == "at" and not core and level != Level.CHIP:
            if level is None or level.number < HOST_NUMBER:
                raise CompileError(
                    f"a HOST orchestrator dispatches to chips; a scope of level {level} has no place in it",
                    scope.span,
                    "write pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator)",
                )
        elif core:
            return self._chip(scope, [scope], scope_label(Level.CHIP, Role.Orchestrator), "", after)
        elif scope.kind == "at":
            self._check(scope)
            label = scope_label(Level.CHIP, scope.attrs.get("role"))
            return self._chip(scope, scope.body, label, scope.attrs.get("name_hint") or "", after)
        return [replace(scope, body=self._nested(scope.body, after))]

    @staticmethod
    def _check(scope: ir.Scope) -> None:
        told = [k for k in ("deps", "allow_early_resolve", "no_dep_args", "dumps", "windowize") if scope.attrs.get(k)]
        if scope.task is not None or told:
            what = f"{told[0]}=" if told else "a task id"
            raise CompileError(
                f"{what} belongs to the tasks of a chip; a HOST orchestrator orders its dispatches by the tensors "
                "they read and write",
                scope.span,
            )

    def _chip(
        self, scope: ir.Scope, body: list[ir.Stmt], label: str, hint: str, after: set[str]
    ) -> list[ir.Stmt]:  # fmt: skip
        """The call of a new chip program with ``body``, and what the code behind it calls its results."""
        _check_calls(body, self.functions)
        body, made = self._without_creations(body, after)
        accesses = Accesses().visit(body, self.functions)
        captured = self._captured(body)
        assigned = {v.name: v.type for s in statements(body) for v in targets(s)}
        self._check_results(assigned, accesses, captured, after, scope)
        params, args = self._params(captured, accesses, scope)
        params = [self._keeps_the_rest(param, body) for param in params]
        written = tuple(i for i, p in enumerate(params) if p.direction != ParamDirection.In)
        name = self._name(hint, label)
        self.created[name] = self._program(name, params, body, written, scope)
        kind = _result_type([params[i].type for i in written])
        call = ir.FunctionCall(name, tuple(args), kind, "call", {"returns": written}, scope.span)
        results = [self._defined_var(args[i]) for i in written]
        return [*made, *self._bound(call, results, scope), *self._aliases(assigned, accesses, captured, after, scope)]

    def _keeps_the_rest(self, param: ir.Param, body: list[ir.Stmt]) -> ir.Param:
        """A tensor of which the scope writes a part, or perhaps nothing, keeps the rest: it goes to the chip first."""
        if param.direction != ParamDirection.Out or not isinstance(param.type, ir.TensorType):
            return param
        whole = writes_whole(param.name, param.type, body, self.functions)
        return param if whole else replace(param, direction=ParamDirection.InOut)

    def _program(
        self, name: str, params: list[ir.Param], body: list[ir.Stmt], written: tuple[int, ...], scope: ir.Scope
    ) -> ir.Function:
        returns = tuple(ir.Var(params[i].name, params[i].type, scope.span) for i in written)
        attrs: dict[str, Any] = {"returns": written, "declares_return": True}
        if self.function.attrs.get("auto_scope") is False:
            attrs["auto_scope"] = False
        program = ir.Function(
            name,
            params,
            [*body, ir.Return(returns, scope.span)],
            FunctionType.Orchestration,
            Level.CHIP,
            Role.Orchestrator,
            tuple(value.type for value in returns),
            attrs,
            True,
            scope.span,
        )
        return _with_symbols(program)

    def _without_creations(self, body: list[ir.Stmt], after: set[str]) -> tuple[list[ir.Stmt], list[ir.Stmt]]:
        """``body`` without the tensors it creates for the code behind it, which the host creates instead."""
        kept: list[ir.Stmt] = []
        made: list[ir.Stmt] = []
        for stmt in body:
            created = (
                isinstance(stmt, ir.Assign) and isinstance(stmt.value, ir.Call) and stmt.value.op == "tensor.create"
            )
            if created and stmt.target.name in after and stmt.target.name not in self._defined:  # type: ignore[attr-defined]
                made.append(stmt)
                self._defined[stmt.target.name] = stmt.target.type  # type: ignore[attr-defined]
            else:
                kept.append(stmt)
        return kept, made

    @staticmethod
    def _check_results(
        assigned: dict[str, ir.Type], accesses: Accesses, captured: dict[str, ir.Type], after: set[str], scope: ir.Scope
    ) -> None:
        for name in assigned:
            root = accesses.roots.get(name, name)
            if name in after and root not in captured:
                raise CompileError(
                    f"{name!r} is computed in a chip scope and read behind it; only what is written into a tensor "
                    "leaves a chip",
                    scope.span,
                    "create the tensor with pl.create_tensor before the scope, or write to an output",
                )


def _check_calls(body: list[ir.Stmt], functions: dict[str, ir.Function]) -> None:
    """Calls that a chip cannot make."""
    for stmt in body:
        for expr in expressions_of(stmt):
            if not isinstance(expr, ir.FunctionCall):
                continue
            if "device" in expr.attrs:
                raise ParserTypeError(
                    f"{expr.callee!r} is called on the chip of a scope and does not accept keyword argument 'device'",
                    expr.span,
                    "dispatch it from the HOST body, outside the scope",
                )
            callee = functions.get(expr.callee)
            if callee is not None and callee.level is not None and callee.level.number >= HOST_NUMBER:
                raise CompileError(
                    f"{expr.callee!r} runs on the host and cannot be called on a chip",
                    expr.span,
                    "call it from the HOST body, outside the scope",
                )


__all__ = ["outline_chips", "scope_label"]

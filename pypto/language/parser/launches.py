"""Launches that yield a task id: ``pl.submit`` and ``pl.spmd_submit`` (spec language 6.2)."""

from __future__ import annotations

import ast
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import TASK_ID
from pypto.ir.enums import ParamDirection
from pypto.language.parser.calls import Calls, attribute_chain

LAUNCH_KEYWORDS = ("deps", "dumps", "allow_early_resolve", "predicate", "attrs")


class Launches(Calls):
    """Parses the calls that put a task into the graph and return its id."""

    def _pl_submit(self, node: ast.Call) -> ir.Expr:
        return self.launch("submit", node)

    def _pl_spmd_submit(self, node: ast.Call) -> ir.Expr:
        return self.launch("spmd_submit", node)

    def launch(self, kind: str, node: ast.Call) -> ir.FunctionCall:
        """``pl.submit`` and ``pl.spmd_submit``: the result is a tuple (results…, task id)."""
        chain = attribute_chain(node.args[0]) if node.args else None
        if chain is None or chain[0] != "self" or len(chain) != 2:
            self.syntax(f"the first argument of pl.{kind} is self.<function>", node)
        attrs: dict[str, Any] = {}
        legal = LAUNCH_KEYWORDS if kind == "submit" else (*LAUNCH_KEYWORDS, "core_num", "sync_start")
        for keyword in node.keywords:
            if keyword.arg not in legal:
                self.type_error(f"pl.{kind} has no keyword {keyword.arg!r}; legal: {', '.join(legal)}", node)
            attrs.update(self._launch_keyword(keyword))
        if kind == "spmd_submit" and "core_num" not in attrs:
            self.syntax("pl.spmd_submit needs core_num=", node)
        args, unordered = self._call_arguments(node.args[1:])
        if unordered:
            attrs["no_dep"] = unordered
        function = self._method(chain[1], args, node)
        args = args + self._omitted_outputs(function, len(args), node)
        call = self.call_function(function, args, node, attrs, kind)
        results = (
            call.type.items
            if isinstance(call.type, ir.TupleType)
            else ()
            if isinstance(call.type, ir.NoneType)
            else (call.type,)
        )
        return ir.FunctionCall(
            call.callee, call.args, ir.TupleType((*results, ir.ScalarType(TASK_ID))), kind, call.attrs, call.span
        )

    def _omitted_outputs(self, function: ir.Function, given: int, node: ast.AST) -> list[ir.Expr]:
        """Tensors the runtime allocates for trailing outputs that the call leaves out."""
        created: list[ir.Expr] = []
        for parameter in function.params[given:]:
            if parameter.direction == ParamDirection.In or not isinstance(parameter.type, ir.TensorType):
                break
            name = self.names.fresh(f"{function.name}_{parameter.name}")
            value = self.operation("tensor", "create", [parameter.type.shape, parameter.type.dtype], {}, node)
            variable = ir.Var(name, value.type, self.span(node))
            self.emit(ir.Assign(variable, value, self.span(node)))
            created.append(variable)
        return created

    def _launch_keyword(self, keyword: ast.keyword) -> dict[str, Any]:
        name, value = keyword.arg or "", keyword.value
        if name == "deps":
            return {"deps": tuple(self.deps(value))}
        if name == "predicate":
            return {"predicate": self.predicate(value)}
        if name == "core_num":
            return {"core_num": self.core_num(value)}
        if name == "attrs":
            return self._printed_attrs(value)
        if name == "dumps":
            return {"dumps": self.plain_names(value, "dumps")}
        return {name: self.flag(value, name)}

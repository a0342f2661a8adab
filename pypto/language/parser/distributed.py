"""Calls of ``pld``: where they may stand, and what the parser itself makes of them (spec distributed 2)."""

from __future__ import annotations

import ast
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.enums import FunctionType
from pypto.ir.errors import InvalidOperationError, ParserSyntaxError
from pypto.ir.operations.distributed import SHORT_NAMES, canonical
from pypto.language.parser.calls import attribute_chain
from pypto.language.parser.scopes import Scopes

CATEGORIES = ("system", "tensor", "tile")
HOST_ONLY = ("pld.system.world_size", "pld.tensor.alloc_window_buffer", "pld.tensor.window")
ANYWHERE = ("pld.system.get_comm_ctx", "pld.system.rank", "pld.system.nranks")
COLLECTIVES = (
    "pld.tensor.allreduce",
    "pld.tensor.barrier",
    "pld.tensor.broadcast",
    "pld.tensor.allgather",
    "pld.tensor.reduce_scatter",
    "pld.tensor.all_to_all",
    "pld.tensor.all_to_all_v",
)
TRANSFERS = ("pld.tensor.put", "pld.tensor.get", "pld.tile.put", "pld.tile.get")


class RankCalls(Scopes):
    """Parses ``pld.*`` calls."""

    def rank_call(self, names: list[str], node: ast.Call) -> ir.Expr:
        """The call ``pld.<names>(...)``."""
        namespace, name = self._spelled(names, node)
        self._check_place(canonical(namespace, name), node)
        call = self._operation_call(namespace, name, node)
        if not isinstance(call, ir.Call):
            return call
        if call.op in COLLECTIVES:
            from pypto.language.host_collectives import host_collective

            return host_collective(self, call, node) if self.on_host() else self._expanded(call, node)
        return self._expanded(call, node) if call.op in TRANSFERS else call

    def _spelled(self, names: list[str], node: ast.Call) -> tuple[str, str]:
        if len(names) == 1:
            if names[0] not in SHORT_NAMES:
                legal = ", ".join(f"pld.{n}" for n in SHORT_NAMES)
                self.fail(
                    InvalidOperationError,
                    f"pld.{names[0]} does not exist; the short names are {legal}",
                    node,
                    self._long_form(names[0]),
                )
            return "pld", names[0]
        if len(names) != 2 or names[0] not in CATEGORIES:
            self.fail(InvalidOperationError, f"pld.{names[0]} is no category; legal: {', '.join(CATEGORIES)}", node)
        return f"pld.{names[0]}", names[1]

    @staticmethod
    def _long_form(name: str) -> str | None:
        from pypto.ir.operations import table

        found = next((f"pld.{c}.{name}" for c in CATEGORIES if table.find(f"pld.{c}.{name}")), None)
        return None if found is None else f"write {found}"

    def _check_place(self, op: str, node: ast.Call) -> None:
        spelling = op.replace("pld.tensor.", "pld.").replace("pld.system.", "pld.") if op in HOST_ONLY else op
        if op in HOST_ONLY:
            if not self.on_host():
                self.syntax(f"{spelling} can only be called in HOST orchestration context", node)
        elif op in COLLECTIVES:
            if not self.on_host() and not self.in_device_code():
                self._outside(spelling, node)
        elif op not in ANYWHERE and not self.in_device_code():
            self._outside(spelling, node)

    def _outside(self, spelling: str, node: ast.Call) -> None:
        if self.options.type in (FunctionType.Inline, FunctionType.Opaque) and self.options.level is None:
            return
        self.fail(
            InvalidOperationError,
            f"{spelling} runs on a core and stands in orchestration code",
            node,
            "put it into an InCore function or inside 'with pl.at(level=pl.Level.CORE_GROUP):'",
        )

    # --- windows ------------------------------------------------------------------------------------------------------

    def _assign_single(self, name: str, value_node: ast.expr, node: ast.stmt) -> None:
        if not self._allocates(value_node):
            super()._assign_single(name, value_node, node)
            return
        assert isinstance(value_node, ast.Call)
        if any(k.arg == "name" for k in value_node.keywords):
            self.syntax(
                "pld.alloc_window_buffer takes its name from the variable it is assigned to; leave name= out", node
            )
        self._check_place("pld.tensor.alloc_window_buffer", value_node)
        try:
            call = self._operation_call("pld", "alloc_window_buffer", value_node)
        except InvalidOperationError as error:
            raise ParserSyntaxError(error.message, error.span, error.hint) from error
        assert isinstance(call, ir.Call)
        names = self.attrs.setdefault("window_buffers", [])
        if name in names:
            self.syntax(f"window buffer {name!r} is already declared in this program", node)
        names.append(name)
        named = ir.Call(call.op, {**call.arguments, "name": name}, call.type, call.attrs, call.span)
        self.assign_name(name, named, node)

    def _expr_Call(self, node: ast.Call) -> ir.Expr:
        if self._allocates(node):
            self.syntax(
                "pld.alloc_window_buffer is assigned to one plain name: buf = pld.alloc_window_buffer(...)", node
            )
        return super()._expr_Call(node)

    @staticmethod
    def _allocates(node: ast.expr) -> bool:
        chain = attribute_chain(node.func) if isinstance(node, ast.Call) else None
        return bool(chain) and chain[0] == "pld" and chain[-1] == "alloc_window_buffer"  # type: ignore[index]

    # --- what is written in the language itself -----------------------------------------------------------------------

    def _expanded(self, call: ir.Call, node: ast.Call) -> ir.Expr:
        """A transfer or collective as the statements it stands for, all at the place of the call."""
        from pypto.language.collectives import expansions

        saved, self.call_site = self.call_site, self.call_site or self.span(node)
        try:
            steps, result = expansions(self._for_builtin(call))
            for body, args in steps:
                self.expand_definition(body.definition(), args, node)
        finally:
            self.call_site = saved
        return result if result is not None else ir.Call("system.nothing", {}, ir.NoneType(), {}, self.span(node))

    def _for_builtin(self, call: ir.Call) -> ir.Call:
        """Marks the call in the kernel of a HOST collective, where more is legal."""
        builtin = self.source.filename.endswith("host_collectives.py")
        return ir.Call(call.op, call.arguments, call.type, {**call.attrs, "host": True}, call.span) if builtin else call

    call_site: Any = None

    def span(self, node: ast.AST) -> Any:
        return self.call_site or super().span(node)


__all__ = ["COLLECTIVES", "RankCalls", "TRANSFERS"]

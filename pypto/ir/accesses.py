"""Which tensors a piece of code reads and writes, followed through views and rebindings."""

from __future__ import annotations

from dataclasses import dataclass, field

from pypto.ir import nodes as ir
from pypto.ir.enums import ParamDirection
from pypto.ir.walk import blocks, direct_expressions, flatten

DESTINATION = {
    "tile.store": "output_tensor",
    "tensor.assemble": "target",
    "tensor.write": "tensor",
    "tile.mscatter": "output_tensor",
    "tensor.expand_clone": "target",
    "pld.tile.remote_store": "target",
    "pld.tensor.remote_store": "target",
    "pld.system.notify": "target",
    "system.syncall": "gm_workspace",
}
"""Operation -> parameter naming the GM tensor it writes."""
VIEWS = {
    "tensor.slice": "tensor",
    "tensor.reshape": "tensor",
    "tensor.transpose": "tensor",
    "tensor.view": "tensor",
    "tensor.reinterpret_view": "data",
    "tensor.set_validshape": "tensor",
}
"""Operation -> parameter whose memory the result shares."""


@dataclass
class Accesses:
    """Names of root variables that are read and written; ``roots`` maps every tensor variable to its root."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    roots: dict[str, str] = field(default_factory=dict)

    def root(self, expr: ir.Expr) -> str | None:
        """The variable whose memory ``expr`` is or shares; ``None`` for fresh values."""
        if isinstance(expr, ir.Var):
            return self.roots.get(expr.name, expr.name)
        if isinstance(expr, ir.Call):
            name = DESTINATION.get(expr.op) or VIEWS.get(expr.op)
            operand = expr.arguments.get(name) if name else None
            if operand is None and expr.op in VIEWS:
                operand = next(iter(expr.arguments.values()), None)
            return self.root(operand) if isinstance(operand, ir.Expr) else None
        if isinstance(expr, ir.FunctionCall):
            returns = expr.attrs.get("returns", ())
            if len(returns) == 1 and returns[0] is not None and returns[0] < len(expr.args):
                return self.root(expr.args[returns[0]])
        return None

    # --- walking ---

    def visit(self, body: list[ir.Stmt], functions: dict[str, ir.Function] | None = None) -> Accesses:
        """Add the accesses of ``body``, in program order."""
        for stmt in body:
            for expr in direct_expressions(stmt):
                self._expr(expr, functions or {})
            if isinstance(stmt, ir.Assign):
                self._bind(stmt.target, self.root(stmt.value))
            elif isinstance(stmt, ir.TupleAssign):
                self._bind_tuple(stmt)
            for block in blocks(stmt):
                self.visit(block, functions)
        return self

    def _bind(self, target: ir.Var, root: str | None) -> None:
        if root is not None and root != target.name:
            self.roots[target.name] = root
        elif root is None:
            self.roots.pop(target.name, None)

    def _bind_tuple(self, stmt: ir.TupleAssign) -> None:
        returns = stmt.value.attrs.get("returns", ()) if isinstance(stmt.value, ir.FunctionCall) else ()
        for position, target in enumerate(stmt.targets):
            source = returns[position] if position < len(returns) else None
            if source is not None and isinstance(stmt.value, ir.FunctionCall) and source < len(stmt.value.args):
                self._bind(target, self.root(stmt.value.args[source]))

    def _expr(self, expr: ir.Expr, functions: dict[str, ir.Function]) -> None:
        if isinstance(expr, ir.Call):
            self._call(expr, functions)
        elif isinstance(expr, ir.FunctionCall):
            self._function_call(expr, functions)
        elif isinstance(expr, ir.Var):
            return
        else:
            from pypto.ir.walk import children

            for child in children(expr):
                self._operand(child, functions)

    def _operand(self, expr: ir.Expr, functions: dict[str, ir.Function]) -> None:
        """A value that is consumed: reading its memory."""
        self._expr(expr, functions)
        if isinstance(expr.type, ir.TensorType):
            root = self.root(expr)
            if root is not None:
                self.reads.add(root)

    def _call(self, call: ir.Call, functions: dict[str, ir.Function]) -> None:
        destination, view = DESTINATION.get(call.op), VIEWS.get(call.op)
        for name, value in call.arguments.items():
            for operand in flatten(value):
                if name == destination:
                    self._expr(operand, functions)
                    root = self.root(operand)
                    if root is not None:
                        self.writes.add(root)
                        if int(call.arguments.get("atomic") or 0) or call.op == "system.syncall":
                            self.reads.add(root)
                elif name == view or (view and name in ("tensor", "input", "data")) or call.op == "tensor.dim":
                    self._expr(operand, functions)
                else:
                    self._operand(operand, functions)

    def _function_call(self, call: ir.FunctionCall, functions: dict[str, ir.Function]) -> None:
        callee = functions.get(call.callee)
        for position, argument in enumerate(call.args):
            self._expr(argument, functions)
            root = self.root(argument) if isinstance(argument.type, ir.TensorType) else None
            if root is None:
                continue
            direction = callee.params[position].direction if callee else ParamDirection.InOut
            if direction != ParamDirection.Out:
                self.reads.add(root)
            if direction != ParamDirection.In:
                self.writes.add(root)

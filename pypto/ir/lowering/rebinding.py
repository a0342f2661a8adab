"""Parameters whose name an orchestration body gives to another tensor."""

from __future__ import annotations

from pypto.ir import nodes as ir
from pypto.ir.accesses import Accesses
from pypto.ir.walk import statements


def rebound_params(function: ir.Function) -> set[str]:
    """Tensor parameters whose name is bound to another tensor somewhere in the body."""
    names = {p.name for p in function.params if isinstance(p.type, ir.TensorType)}
    accesses = Accesses().visit(function.body)
    found: set[str] = set()
    for stmt in statements(function.body):
        if isinstance(stmt, ir.Assign) and stmt.target.name in names and accesses.root(stmt.value) != stmt.target.name:
            found.add(stmt.target.name)
        elif isinstance(stmt, ir.TupleAssign) and isinstance(stmt.value, ir.FunctionCall):
            returns = stmt.value.attrs.get("returns", ())
            for target, source in zip(stmt.targets, returns):
                if (
                    target.name in names
                    and source is not None
                    and accesses.root(stmt.value.args[source]) != target.name
                ):
                    found.add(target.name)
    return found

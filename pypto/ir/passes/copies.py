"""Names of the copies of a loop body: what exists in one iteration only is another variable in every copy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pypto.ir import nodes as ir
from pypto.ir.walk import Rewrite, statements, targets


def loop_locals(body: list[ir.Stmt], defined: set[str]) -> dict[str, ir.Var]:
    """Variables bound in ``body`` that cannot be read behind the block that binds them (spec language 4.2)."""
    bound = {v.name: v for s in statements(body) for v in targets(s)}
    return {name: variable for name, variable in bound.items() if name not in _visible(body) | defined}


def _visible(body: list[ir.Stmt]) -> set[str]:
    """Names readable behind ``body``: those of loops and of one branch only are not."""
    found: set[str] = set()
    for stmt in body:
        found |= {v.name for v in targets(stmt)}
        if isinstance(stmt, ir.If):
            found |= _visible(stmt.then_body) & _visible(stmt.else_body)
        elif isinstance(stmt, ir.Scope):
            found |= _visible(stmt.body)
    return found


def loop_variables(body: list[ir.Stmt]) -> list[ir.Var]:
    """Variables of the loops at or below ``body``."""
    return [s.var for s in statements(body) if isinstance(s, ir.For)]


def free_suffix(wanted: str, renamed: Iterable[str], loop: ir.For) -> str:
    """``wanted``, repeated until no name of ``loop`` ends up equal to another: an inner pipeline left some behind."""
    taken = {v.name for s in statements(loop.body) for v in targets(s)} | {v.name for v in loop_variables([loop])}
    suffix = wanted
    while any(f"{name}{suffix}" in taken for name in renamed):
        suffix += wanted
    return suffix


def renaming(variables: dict[str, ir.Var], suffix: str) -> Rewrite:
    """A rewrite that appends ``suffix`` to the names of ``variables``."""

    def change(expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Var) and expr.name in variables:
            return replace(expr, name=f"{expr.name}{suffix}", author=expr.author or expr.name)
        return expr

    return change

"""Which variables are read later before they are assigned again, at every statement of a body."""

from __future__ import annotations

from collections.abc import Iterator

from pypto.ir import nodes as ir
from pypto.ir.walk import direct_expressions, targets, walk


def live_behind(body: list[ir.Stmt], after: set[str], escape: set[str] | None = None) -> list[set[str]]:
    """For each statement of ``body`` the variables that are live behind it.

    ``after``: variables live behind the body; ``escape``: those live where ``break`` and ``continue`` lead.
    """
    live, result = set(after), []
    for stmt in reversed(body):
        result.append(set(live))
        live = live_before(stmt, live, escape or set())
    return result[::-1]


def live_before(stmt: ir.Stmt, live: set[str], escape: set[str]) -> set[str]:
    """The variables live before ``stmt``, given those live behind it."""
    if isinstance(stmt, (ir.For, ir.While)):
        return live_at_head(stmt, live)
    if isinstance(stmt, ir.If):
        return _head(stmt.then_body, live, escape) | _head(stmt.else_body, live, escape) | _reads(stmt)
    if isinstance(stmt, ir.Scope):
        inner = _head(stmt.body, live - _names(stmt), escape)
        return inner - ({stmt.var.name} if stmt.var is not None else set()) | _reads(stmt)
    if isinstance(stmt, ir.Return):
        return _reads(stmt)
    if isinstance(stmt, (ir.Break, ir.Continue)):
        return live | escape
    return live - _names(stmt) | _reads(stmt)


def live_at_head(loop: ir.For | ir.While, live: set[str]) -> set[str]:
    """The variables live where an iteration begins or the loop ends; ``live``: those live behind the loop."""
    own = {loop.var.name} if isinstance(loop, ir.For) else set()
    head, grown = set(live) | _reads(loop), True
    while grown:
        inner = head | (_head(loop.body, head, head) - own)
        grown, head = inner != head, inner
    return head


def _head(body: list[ir.Stmt], live: set[str], escape: set[str]) -> set[str]:
    for stmt in reversed(body):
        live = live_before(stmt, live, escape)
    return live


def _names(stmt: ir.Stmt) -> set[str]:
    return {variable.name for variable in targets(stmt)}


def _reads(stmt: ir.Stmt) -> set[str]:
    return set(_variables(stmt))


def _variables(stmt: ir.Stmt) -> Iterator[str]:
    for expr in direct_expressions(stmt):
        yield from (e.name for e in walk(expr) if isinstance(e, ir.Var))

"""Which names a loop must carry and the branches of an ``if`` must agree on: those whose value may still be read."""

from __future__ import annotations

from pypto.ir import nodes as ir
from pypto.ir.walk import direct_expressions, targets, walk

Names = frozenset[str]
_NONE: Names = frozenset()


class ExposedNames:
    """Backward liveness of names over the structured statements of one body."""

    def __init__(self, body: list[ir.Stmt]):
        self._at_head: dict[int, Names] = {}
        self._after: dict[int, Names] = {}
        self._loops: list[tuple[Names, Names]] = []  # (live at continue, live at break)
        self._block(body, _NONE)

    def at_head(self, loop: ir.For | ir.While) -> Names:
        """Names whose value at the start of an iteration of ``loop`` is read in it, in a later one or after it."""
        return self._at_head[id(loop)]

    def after(self, stmt: ir.Stmt) -> Names:
        """Names whose value may be read after ``stmt``."""
        return self._after[id(stmt)]

    def _block(self, body: list[ir.Stmt], live: Names) -> Names:
        for stmt in reversed(body):
            live = self._statement(stmt, live)
        return live

    def _statement(self, stmt: ir.Stmt, live: Names) -> Names:
        read = frozenset(e.name for x in direct_expressions(stmt) for e in walk(x) if isinstance(e, ir.Var))
        self._after[id(stmt)] = live
        if isinstance(stmt, ir.If):
            return self._block(stmt.then_body, live) | self._block(stmt.else_body, live) | read
        if isinstance(stmt, (ir.For, ir.While)):
            return self._loop(stmt, live, read)
        if isinstance(stmt, ir.Return):
            return read
        if isinstance(stmt, (ir.Break, ir.Continue)) and self._loops:
            return self._loops[-1][isinstance(stmt, ir.Break)]
        if isinstance(stmt, ir.Scope):
            live = self._block(stmt.body, live)
        return (live - frozenset(t.name for t in targets(stmt))) | read

    def _loop(self, loop: ir.For | ir.While, after: Names, read: Names) -> Names:
        """Iterate to the fixed point: what the next iteration reads is live at the end of this one."""
        head = after | read if isinstance(loop, ir.While) else after
        while True:
            self._loops.append((head, after))
            grown = head | self._block(loop.body, head)
            self._loops.pop()
            if grown == head:
                break
            head = grown
        self._at_head[id(loop)] = head
        return head | read

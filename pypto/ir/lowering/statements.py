"""Statement after statement, with the place of each for the errors that its lowering raises."""

from __future__ import annotations

from pypto.ir import nodes as ir
from pypto.ir.errors import CompileError, Error
from pypto.ir.span import UNKNOWN_SPAN, Span


class StatementLowering:
    """Hands every statement to the method of its kind, ``_on_assign`` to ``_on_while``.

    A ``TypeError``, ``ValueError`` or ``LookupError`` of a rule becomes a ``CompileError`` at the statement.
    """

    def __init__(self) -> None:
        self.span: Span = UNKNOWN_SPAN

    def _statements(self, body: list[ir.Stmt]) -> None:
        for stmt in body:
            saved, self.span = self.span, stmt.span if stmt.span.line else self.span
            try:
                self._statement(stmt)
            except Error:
                raise
            except (TypeError, ValueError, LookupError) as e:
                raise CompileError(str(e).strip("'\""), self.span) from e
            self.span = saved

    def _statement(self, stmt: ir.Stmt) -> None:
        getattr(self, f"_on_{type(stmt).__name__.lower()}")(stmt)

"""Errors of the language (spec language 8.1): each carries the place and shows the source line with a caret."""

from __future__ import annotations

from collections.abc import Mapping

from pypto.ir.span import Span

REPEATED_BELOW = 50
"""Messages shorter than this stand beside the carets too (spec language 8.5)."""


class Error(Exception):
    """Base of the errors raised by verification and by passes."""

    def __init__(self, message: str, span: Span | None = None, hint: str | None = None, note: str | None = None):
        self.message, self.span, self.hint, self.note = message, span, hint, note
        super().__init__(self._render())

    def _render(self) -> str:
        lines = [self.message]
        if self.span is not None and self.span.line:
            lines.append(self.span.excerpt(label=self.message if len(self.message) < REPEATED_BELOW else ""))
        lines += self._second_place()
        if self.hint:
            lines.append(f"   = help: {self.hint}")
        if self.note:
            lines.append(f"   = note: {self.note}")
        return "\n".join(lines)

    def _second_place(self) -> list[str]:
        """Lines about another place that the error is about, before the help."""
        return []


class InternalError(Error, RuntimeError):
    """A violated invariant of the compiler; not caused by the program."""


class ParserError(Error):
    """Base of everything that is wrong with a program's text."""


class ParserSyntaxError(ParserError):
    """Malformed use of a construct, or an unsupported form."""


class ParserTypeError(ParserError, TypeError):
    """Missing or mismatching annotation, wrong operand kind, dtype or argument count."""


class UndefinedVariableError(ParserError, NameError):
    """Unknown name or unknown ``self.`` method."""


class SSAViolationError(ParserError):
    """Second assignment in strict mode; ``previous`` is the place of the first."""

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        hint: str | None = None,
        note: str | None = None,
        previous: Span | None = None,
    ):
        self.previous = previous
        super().__init__(message, span, hint, note)

    def _second_place(self) -> list[str]:
        if self.previous is None or not self.previous.line:
            return []
        block = self.previous.excerpt(context=1, label="assigned first here")
        return [f"    {line}".rstrip() for line in block.splitlines()]


class UnsupportedFeatureError(ParserError):
    """Python syntax that the language does not have."""


class InvalidOperationError(ParserError, ValueError):
    """Unknown operation, or one used against its contract; carries the operation's own message."""


class CompileError(Error, ValueError):
    """A rule that only lowering can check: capacity, data path, cast without a path."""


class DomainError(CompileError, InternalError):
    """Windows that do not fit the ranks they go to.

    Programs written for the reference implementation may expect an ``InternalError`` here (spec distributed 1.6, 2.4).
    """


class PartialCodegenError(CompileError, RuntimeError):
    """Several functions of a program could not be generated (spec language 8.1, runtime 3.5).

    ``failures`` maps their names to their errors, ``files`` the paths of what was generated to its text.
    """

    def __init__(self, failures: Mapping[str, CompileError], files: Mapping[str, str]):
        self.failures, self.files = dict(failures), dict(files)
        table = "\n\n".join(f"{name}: {error}" for name, error in self.failures.items())
        count = f"{len(self.failures)} function{'s' if len(self.failures) > 1 else ''}"
        super().__init__(f"{count} cannot be generated\n\n{table}")

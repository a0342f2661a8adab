"""Places in source text: what an error points at."""

from __future__ import annotations

import linecache
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A position in a file: 1-based ``line``, 0-based ``column`` (end column 0: unknown)."""

    filename: str
    line: int
    column: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"

    def source_line(self) -> str | None:
        """The text of the line, or ``None`` when the file cannot be read."""
        text = linecache.getline(self.filename, self.line)
        return text.rstrip("\n") if text else None

    def excerpt(self, context: int = 2, label: str = "") -> str:
        """The place, the source line within ``context`` lines, carets under the construct and ``label`` beside them.

        Spec language 8.5.
        """
        text = self.source_line()
        if text is None:
            return f"  --> {self}"
        numbers = range(max(1, self.line - context), self.line + context + 1)
        lines = {n: linecache.getline(self.filename, n).rstrip("\n") for n in numbers}
        shown = [n for n in numbers if n <= self.line or lines[n]]
        gutter = len(str(max(shown)))
        pad = " " * gutter
        rows = [f"{pad}--> {self.filename}:{self.line}:{self.column + 1}", f"{pad} |"]
        for number in shown:
            rows.append(f"{number:>{gutter}} | {lines[number]}".rstrip())
            if number == self.line:
                rows.append(f"{pad} | {' ' * self.column}{'^' * self._width(text)} {label}".rstrip())
        return "\n".join([*rows, f"{pad} |"])

    def _width(self, text: str) -> int:
        """Characters the carets cover: the construct, or one when its end is unknown or on another line."""
        if self.end_column <= self.column:
            return 1
        return max(1, min(self.end_column, len(text)) - self.column)


UNKNOWN_SPAN = Span("<unknown>", 0)

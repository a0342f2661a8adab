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

    def excerpt(self) -> str:
        """The place, the source line and a caret under the construct."""
        text = self.source_line()
        if text is None:
            return f"  --> {self}"
        width = max(1, self.end_column - self.column) if self.end_column > self.column else 1
        gutter = f"{self.line}"
        pad = " " * len(gutter)
        return (
            f"{pad}--> {self.filename}:{self.line}:{self.column + 1}\n"
            f"{pad} |\n"
            f"{gutter} | {text}\n"
            f"{pad} | {' ' * self.column}{'^' * min(width, max(1, len(text) - self.column))}"
        )


UNKNOWN_SPAN = Span("<unknown>", 0)

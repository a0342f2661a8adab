"""Source text of decorated objects as a syntax tree with true positions."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pypto.ir.span import Span

COMMAND_FILE = "<python -c>"
"""File name of source that came with ``python -c``."""


@dataclass(frozen=True)
class Source:
    """The definition of one function or class: its tree, file and the offsets that were removed by dedenting."""

    tree: ast.FunctionDef | ast.ClassDef
    filename: str
    first_line: int
    indent: int
    text: str

    def span(self, node: ast.AST) -> Span:
        """Where ``node`` stands in the file."""
        line = getattr(node, "lineno", 1)
        end = getattr(node, "end_col_offset", 0) if getattr(node, "end_lineno", line) == line else 0
        return Span(
            self.filename,
            line + self.first_line - 1,
            self._characters(line, getattr(node, "col_offset", 0)) + self.indent,
            self._characters(line, end) + self.indent if end else 0,
        )

    def _characters(self, line: int, offset: int) -> int:
        """Characters in the first ``offset`` bytes of ``line``: syntax trees count bytes, people characters."""
        if self.text.isascii():
            return offset
        return len(self.text.splitlines()[line - 1].encode()[:offset].decode(errors="ignore"))


def source_of(target: Callable[..., Any] | type) -> Source:
    """The source of ``target``; ``OSError`` when Python cannot retrieve it (spec language 3.1)."""
    lines, first, filename = _lines_of(target)
    text = "".join(lines)
    dedented = textwrap.dedent(text)
    indent = len(lines[0]) - len(lines[0].lstrip())
    tree = ast.parse(dedented).body[0]
    if not isinstance(tree, (ast.FunctionDef, ast.ClassDef)):
        raise OSError(f"the source of {target!r} is not a function or class definition")
    return Source(tree, filename, max(first, 1), indent, dedented)


def _lines_of(target: Callable[..., Any] | type) -> tuple[list[str], int, str]:
    """Source lines of ``target``, the number of the first one, and the file."""
    try:
        lines, first = inspect.getsourcelines(target)
        return lines, first, inspect.getsourcefile(target) or "<unknown>"
    except (OSError, TypeError) as e:
        command = _command_text(target)
        if command is not None:
            first = inspect.unwrap(target).__code__.co_firstlineno
            return inspect.getblock(command[first - 1 :]), first, COMMAND_FILE
        name = getattr(target, "__name__", target)
        raise OSError(f"the source of {name!r} cannot be read; define it in a file or use pl.parse") from e


def _command_text(target: Any) -> list[str] | None:
    """The program given with ``python -c``, when ``target`` is part of it."""
    code = getattr(inspect.unwrap(target), "__code__", None)
    inside = code is not None and code.co_filename == "<string>" and target.__module__ == "__main__"
    if not inside or sys.argv[:1] != ["-c"] or "-c" not in sys.orig_argv[:-1]:
        return None
    text = sys.orig_argv[sys.orig_argv.index("-c") + 1]
    lines = [line + "\n" for line in text.splitlines()]
    linecache.cache[COMMAND_FILE] = (len(text), None, lines, COMMAND_FILE)
    return lines


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """``body`` without leading bare strings."""
    kept = list(body)
    while kept and isinstance(kept[0], ast.Expr) and isinstance(kept[0].value, ast.Constant):
        if not isinstance(kept[0].value.value, str):
            break
        kept.pop(0)
    return kept

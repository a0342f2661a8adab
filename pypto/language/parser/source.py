"""Source text of decorated objects as a syntax tree with true positions."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pypto.ir.span import Span


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
            getattr(node, "col_offset", 0) + self.indent,
            (end or 0) + self.indent if end else 0,
        )


def source_of(target: Callable[..., Any] | type) -> Source:
    """The source of ``target``; ``OSError`` when Python cannot retrieve it (spec language 3.1)."""
    try:
        lines, first = inspect.getsourcelines(target)
    except (OSError, TypeError) as e:
        name = getattr(target, "__name__", target)
        raise OSError(f"the source of {name!r} cannot be read; define it in a file or use pl.parse") from e
    text = "".join(lines)
    dedented = textwrap.dedent(text)
    indent = len(lines[0]) - len(lines[0].lstrip())
    tree = ast.parse(dedented).body[0]
    if not isinstance(tree, (ast.FunctionDef, ast.ClassDef)):
        raise OSError(f"the source of {target!r} is not a function or class definition")
    filename = inspect.getsourcefile(target) or "<unknown>"
    return Source(tree, filename, max(first, 1), indent, dedented)


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """``body`` without leading bare strings."""
    kept = list(body)
    while kept and isinstance(kept[0], ast.Expr) and isinstance(kept[0].value, ast.Constant):
        if not isinstance(kept[0].value.value, str):
            break
        kept.pop(0)
    return kept

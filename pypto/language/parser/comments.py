"""Comment lines of a source text and the statements they belong to (spec language 4.1)."""

from __future__ import annotations

import io
import tokenize
from functools import lru_cache
from typing import NamedTuple

_LAYOUT = frozenset((tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER))


class Comment(NamedTuple):
    """A line that is a comment only. ``code_line`` is the last line with code before it."""

    line: int
    column: int
    code_line: int
    text: str


@lru_cache(maxsize=64)
def comments_of(text: str) -> tuple[Comment, ...]:
    """The comment lines between the statements of ``text``, in order; lines count from 1."""
    if "#" not in text:
        return ()
    found, depth, code_line = [], 0, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        line, column = token.start
        if token.type == tokenize.COMMENT:
            if depth == 0 and line != code_line:
                found.append(Comment(line, column, code_line, token.string[1:].strip()))
        elif token.type not in _LAYOUT:
            code_line = token.end[0]
            if token.type == tokenize.OP:
                depth += (token.string in "([{") - (token.string in ")]}")
    return tuple(found)

"""Tokens of the kernel text, and how a mistake in one is shown (docs/architecture.md 1.1)."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import NoReturn

from pypto.sim.syntax import Position, Register

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*)
    |(?P<string>"[^"\n]*")
    |(?P<shape>(?:\d+|\?)(?:\s*x\s*(?:\d+|\?))*\s*x\s*[A-Za-z]\w*)
    |(?P<number>[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)(?![\w.]))
    |(?P<place>@\d+:\d+)
    |(?P<kernel>@[A-Za-z_][\w.$]*)
    |(?P<register>%[\w.$]+)
    |(?P<word>[A-Za-z_][\w.]*)
    |(?P<mark>[\[\]{},:<>=])""",
    re.VERBOSE,
)


class TextError(ValueError):
    """A kernel text that cannot be read or assembled; the message shows file, line and caret."""

    def __init__(self, message: str, file: str, text: str, position: Position):
        self.file, self.line, self.column = file, position.line, position.column
        lines = text.splitlines()
        shown = f"{file}:{position.line}:{position.column}: {message}"
        if 1 <= position.line <= len(lines):
            line = lines[position.line - 1].replace("\t", " ")
            caret = " " * (position.column - 1) + "^" * max(1, min(position.width, len(line) - position.column + 1))
            shown += f"\n  {line}\n  {caret}"
        super().__init__(shown)


@dataclass(frozen=True)
class Token:
    """One word of a kernel's text, its kind and the index of its first character."""

    kind: str
    text: str
    start: int


_END = "end of the file"
_DIGITS = 18  # integers of so many digits fit 64 bits


class Reader:
    """The tokens of one text, a place among them, and how to complain about it."""

    def __init__(self, text: str, file: str):
        self.text, self.file = text, file
        self._line_starts = [0] + [m.end() for m in re.finditer("\n", text)]
        self.tokens = self._scan()
        self.at = 0

    def _scan(self) -> list[Token]:
        tokens, at, text = [], 0, self.text
        match = _TOKEN.match
        while at < len(text):
            found = match(text, at)
            if found is None:
                self.complain(f"unexpected character {text[at]!r}", Token("mark", text[at], at))
            if found.lastgroup != "blank":
                token = Token(found.lastgroup or "", found.group(), at)
                if len(token.text) > _DIGITS and token.kind in ("number", "shape", "place"):
                    self._check_size(token)
                tokens.append(token)
            at = found.end()
        tokens.append(Token("end", _END, len(text)))
        return tokens

    def _check_size(self, token: Token) -> None:
        integers = re.findall(r"(?<![\d.eE])\d+(?![\d.eE])", token.text)
        too_large = next((digits for digits in integers if int(digits) >= 2**64), None)
        if too_large is not None:
            self.complain(f"{too_large} does not fit 64 bits", token)

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def position(self, token: Token | None = None) -> Position:
        token = token or self.token
        line = bisect_right(self._line_starts, token.start)
        return Position(line, token.start - self._line_starts[line - 1] + 1, len(token.text))

    def complain(self, message: str, token: Token | None = None) -> NoReturn:
        raise TextError(message, self.file, self.text, self.position(token))

    def take(self) -> Token:
        token = self.tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def next_is(self, text: str) -> bool:
        return self.tokens[self.at].text == text and self.tokens[self.at].kind != "string"

    def accept(self, text: str) -> bool:
        if self.next_is(text):
            self.at += 1
            return True
        return False

    def expect(self, text: str, where: str) -> Token:
        if not self.next_is(text):
            self.complain(f"expected '{text}' {where}, found {shown_token(self.token)}")
        return self.take()

    def expect_kind(self, kind: str, what: str) -> Token:
        if self.token.kind != kind:
            self.complain(f"expected {what}, found {shown_token(self.token)}")
        return self.take()

    def integer(self, what: str) -> int:
        token = self.expect_kind("number", what)
        if not re.fullmatch(r"[-+]?\d+", token.text):
            self.complain(f"expected {what}, an integer, found '{token.text}'", token)
        return int(token.text)

    def register(self, what: str) -> Register:
        return Register(self.expect_kind("register", what).text[1:])


def shown_token(token: Token) -> str:
    """A token as a message quotes it."""
    return token.text if token.kind == "end" else f"'{token.text}'"

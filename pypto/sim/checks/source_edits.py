"""The author's source as a tree: where tasks are submitted, and edited lines that bind and name their ids.

Spec language 5.4, 6.2, 6.3.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

_LOOPS: Final = (ast.For, ast.While)
_BLOCKS: Final = ("body", "orelse", "finalbody")


@dataclass(frozen=True)
class Head:
    """The statement that submits a task: ``with pl.at``, ``with pl.spmd``, ``for … in pl.spmd``, ``pl.submit``, or the
    call of a kernel."""

    statement: ast.With | ast.For | ast.Assign | ast.Expr
    call: ast.Call

    @property
    def is_call(self) -> bool:
        """Whether it is a plain call of a kernel, whose id only a scope around it can bind."""
        return not isinstance(self.statement, ast.With | ast.For) and _kernel(self.call) != ""

    @property
    def bound(self) -> str:
        """The variable that holds the task id, or nothing."""
        if isinstance(self.statement, ast.With):
            name = self.statement.items[0].optional_vars
        elif self.is_call:
            name = None
        elif isinstance(self.statement, ast.Assign) and isinstance(self.statement.targets[0], ast.Tuple):
            name = self.statement.targets[0].elts[-1]
        else:
            name = None
        return name.id if isinstance(name, ast.Name) else ""

    @property
    def deps(self) -> ast.expr | None:
        """The value of ``deps=``."""
        return next((k.value for k in self.call.keywords if k.arg == "deps"), None)


class Source:
    """One file, or several behind each other: lines, trees, and the path from the root to every statement.

    Lines are counted through all files; ``at`` and ``place`` translate.
    """

    def __init__(self, *files: str) -> None:
        self.file = files[0]
        self.lines: list[str] = []
        self.paths: dict[ast.stmt, tuple[ast.AST, ...]] = {}
        self._starts: dict[str, int] = {}
        for file in files:
            lines, start = linecache.getlines(file), len(self.lines)
            tree = ast.parse("".join(lines))
            self._starts[file] = start
            self._walk(ast.increment_lineno(tree, start), ())
            self.lines += lines if len(files) == 1 else [*lines, "\n"]  # room for a new last line

    def at(self, file: str, line: int) -> int:
        """The number of a line of ``file`` here."""
        return self._starts[file] + line

    def place(self, line: int) -> str:
        """``file:line`` of a line."""
        file = max((f for f in self._starts if self._starts[f] < line), key=self._starts.__getitem__)
        return f"{Path(file).name}:{line - self._starts[file]}"

    def _walk(self, node: ast.AST, path: tuple[ast.AST, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self.paths[child] = (*path, node)
                self._walk(child, (*path, node))

    def defines_twice(self, name: str) -> bool:
        """Whether several files have a function of this name."""
        found = [s.lineno for s in self.paths if isinstance(s, ast.FunctionDef) and s.name == name]
        return len({self.place(line).rpartition(":")[0] for line in found}) > 1

    def head(self, line: int) -> Head | None:
        """The submission whose statement starts at ``line``; of a call alone in a scope, the scope."""
        for statement in self.paths:
            if statement.lineno == line:
                call = _call_of(statement)
                around = self.paths[statement][-1]
                scope = _call_of(around) if isinstance(around, ast.With) else None
                if call is not None and isinstance(around, ast.With) and scope is not None and _kernel(call):
                    statement, call = around, scope
                if call is not None:
                    return Head(statement, call)  # type: ignore[arg-type]
        return None

    def function(self, statement: ast.stmt) -> ast.AST | None:
        """The innermost function around a statement."""
        inside = [node for node in self.paths[statement] if isinstance(node, ast.FunctionDef)]
        return inside[-1] if inside else None

    def loops(self, statement: ast.stmt) -> list[ast.stmt]:
        """The loops of the orchestration around a statement, outermost first."""
        function = self.function(statement)
        path = self.paths[statement]
        inner = path[path.index(function) :] if function in path else path
        return [node for node in inner if isinstance(node, _LOOPS)]

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements next to one."""
        parent = self.paths[statement][-1]
        return next(b for name in _BLOCKS if statement in (b := getattr(parent, name, [])))


def _call_of(statement: ast.stmt) -> ast.Call | None:
    if isinstance(statement, ast.With):
        call: ast.expr | None = statement.items[0].context_expr
        names: tuple[str, ...] = ("at", "spmd")
    elif isinstance(statement, ast.For):
        call, names = statement.iter, ("spmd",)
    elif isinstance(statement, ast.Assign | ast.Expr):
        call, names = statement.value, ("submit", "spmd_submit")
    else:
        return None
    if isinstance(call, ast.Call) and _kernel(call):
        return call
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in names:
        return call
    return None


def _kernel(call: ast.Call) -> str:
    """The kernel (or helper) that a call like ``f(x)`` or ``self.f(x)`` names."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    func = call.func
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self":
        return func.attr
    return ""


@dataclass
class Scope:
    """``with pl.spmd(1, deps=[...]) as name:`` around the call of a kernel: one block, as the call alone is."""

    name: str = ""
    deps: list[str] = field(default_factory=list)

    def head(self) -> str:
        """Its first line."""
        deps = f", deps=[{', '.join(self.deps)}]" if self.deps else ""
        return f"with pl.spmd(1{deps}) as {self.name}:"


def fresh_name(function: ast.AST | None, base: str) -> str:
    """A name like ``base`` that a function does not use."""
    used = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)} if function is not None else set()
    base, number = re.sub(r"\W", "_", base), 1
    name = base
    while name in used:
        number += 1
        name = f"{base}_{number}"
    return name


@dataclass
class Edits:
    """Insertions into the lines of a file, and new lines in front of some."""

    source: Source
    awaited: str = ""  # what the second task waits for
    _inserted: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    _before: dict[int, list[str]] = field(default_factory=dict)
    _replaced: dict[int, str] = field(default_factory=dict)
    _cut: dict[int, tuple[int, int]] = field(default_factory=dict)
    _scopes: dict[ast.stmt, Scope] = field(default_factory=dict)

    def scope(self, statement: ast.stmt) -> Scope:
        """The scope that is put around a statement."""
        return self._scopes.setdefault(statement, Scope())

    def insert(self, line: int, column: int, text: str) -> None:
        """Put ``text`` at a position; ``column`` counts bytes, as the tree does."""
        self._inserted.setdefault(line, []).append((column, text))

    def before(self, statement_line: int, text: str, like: int) -> None:
        """A new line in front of ``statement_line``, indented like line ``like``."""
        self._before.setdefault(statement_line, []).append(self._indent(like) + text)

    def replace(self, line: int, old: str, new: str) -> bool:
        """Replace a piece of a line that has it once."""
        text = self.source.lines[line - 1]
        if text.count(old) != 1:
            return False
        self._replaced[line] = text.replace(old, new)
        return True

    def replace_head(self, line: int, column: int, old: str) -> None:
        """``for b in`` at a position becomes ``with``."""
        self._cut[line] = (column, len(old.encode()))

    def _indent(self, line: int) -> str:
        text = self.source.lines[line - 1]
        return text[: len(text) - len(text.lstrip())]

    def __iter__(self) -> Iterator[str]:
        """The edited lines as ``file:line: text``; new ones as ``before file:line: text``."""
        place, heads = self.source.place, {s.lineno: scope for s, scope in self._scopes.items()}
        inner = {line for s in self._scopes for line in range(s.lineno, (s.end_lineno or s.lineno) + 1)}
        changed = {*self._inserted, *self._replaced, *self._cut, *inner}
        for line in sorted({*changed, *self._before}):
            for text in self._before.get(line, ()):
                yield f"before {place(line)}: {text}"
            if line in heads:
                yield f"before {place(line)}: {self._indent(line)}{heads[line].head()}"
            if line in changed:
                yield f"{place(line)}: {'    ' if line in inner else ''}{self._edited(line)}"

    def _edited(self, line: int) -> str:
        text = self._replaced.get(line, self.source.lines[line - 1]).rstrip("\n").encode()
        for column, piece in sorted(self._inserted.get(line, ()), reverse=True):
            text = text[:column] + piece.encode() + text[column:]
        if line in self._cut:
            column, length = self._cut[line]
            text = text[:column] + b"with " + text[column + length :]
        return text.decode()


class Piece(NamedTuple):
    """Bytes [``start``, ``end``) of a line, and what stands there instead."""

    line: int
    start: int
    end: int
    text: str

    @classmethod
    def of(cls, node: ast.expr, text: str) -> Piece | None:
        """In place of an expression; ``None`` for one on several lines."""
        if node.end_lineno != node.lineno or node.end_col_offset is None:
            return None
        return cls(node.lineno, node.col_offset, node.end_col_offset, text)


def replaced(source: Source, pieces: Iterable[Piece | None]) -> list[str]:
    """The lines with ``pieces``, as ``file:line: text``; nothing when one of them is ``None``."""
    found, lines = list(pieces), dict[int, bytes]()
    if None in found:
        return []
    for piece in sorted((p for p in found if p is not None), key=lambda p: (p.line, -p.start)):
        text = lines.get(piece.line, source.lines[piece.line - 1].rstrip("\n").encode())
        lines[piece.line] = text[: piece.start] + piece.text.encode() + text[piece.end :]
    return [f"{source.place(number)}: {line.decode()}" for number, line in sorted(lines.items())]


@lru_cache(maxsize=16)
def _parsed(files: tuple[str, ...], texts: tuple[str, ...]) -> Source | None:
    try:
        return Source(*files)
    except (SyntaxError, ValueError):
        return None


def source_of(*files: str) -> Source | None:
    """The parsed files, or nothing when one cannot be read."""
    texts = tuple("".join(linecache.getlines(file)) for file in files)
    return _parsed(files, texts) if files and all(texts) else None


def wait_for(edits: Edits, head: Head, name: str, own: str = "") -> bool:
    """Add ``name`` to the ``deps`` of a submission; False when its form takes none."""
    if head.is_call:
        scope = edits.scope(head.statement)
        scope.name, scope.deps = scope.name or own or name, [*scope.deps, name]
        return True
    deps, call = head.deps, head.call
    if isinstance(deps, (ast.List, ast.Tuple)):
        line, column = deps.end_lineno or 0, (deps.end_col_offset or 0) - 1
        edits.insert(line, column, f", {name}" if deps.elts else name)
    elif deps is not None:
        return False
    else:
        last = max(
            (*call.args, *(k.value for k in call.keywords)), key=lambda value: (value.end_lineno, value.end_col_offset)
        )
        edits.insert(last.end_lineno or 0, last.end_col_offset or 0, f", deps=[{name}]")
    if isinstance(head.statement, ast.Assign) or head.bound:
        return True
    if isinstance(head.statement, ast.For) or isinstance(call.func, ast.Attribute) and call.func.attr == "spmd":
        bind_as(edits, head, own or name)
    return True


def bind_as(edits: Edits, head: Head, name: str) -> None:
    """Bind the task id of a submission; the iterating form of ``pl.spmd`` becomes the one with ``as``."""
    statement, call = head.statement, head.call
    if head.is_call:
        edits.scope(statement).name = name
        return
    edits.insert(call.end_lineno or 0, call.end_col_offset or 0, f" as {name}")
    if isinstance(statement, ast.For) and isinstance(statement.target, ast.Name):
        text = edits.source.lines[statement.lineno - 1].encode()
        head_text = text[statement.col_offset : call.col_offset].decode()
        edits.replace_head(statement.lineno, statement.col_offset, head_text)
        body = statement.body[0]
        edits.before(body.lineno, f"{statement.target.id} = pl.get_block_idx()", body.lineno)


def sequential_edits(file: str, line: int) -> list[str]:
    """The loop around the task submitted at ``line`` as one whose iterations follow each other."""
    source = source_of(file)
    head = source.head(line) if source is not None else None
    if source is None or head is None:
        return []
    edits = Edits(source)
    parallel = [loop for loop in source.loops(head.statement) if is_parallel(loop)]
    done = bool(parallel) and edits.replace(parallel[-1].lineno, "pl.parallel(", "pl.range(")
    return list(edits) if done else []


def is_parallel(loop: ast.stmt) -> bool:
    """Whether the loop is a ``pl.parallel``."""
    call = loop.iter if isinstance(loop, ast.For) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "parallel"


def inout_edits(file: str, function: str, parameter: str) -> list[str]:
    """The input ``parameter`` of a kernel declared as ``pl.InOut``, so that its readers are recorded."""
    source = source_of(file)
    if source is None:
        return []
    for node in source.paths:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            for argument in node.args.args:
                kind = argument.annotation
                if argument.arg == parameter and isinstance(kind, ast.Subscript) and _is_tensor(kind):
                    edits = Edits(source)
                    edits.insert(kind.lineno, kind.col_offset, "pl.InOut[")
                    edits.insert(kind.end_lineno or 0, kind.end_col_offset or 0, "]")
                    return list(edits)
    return []


def _is_tensor(kind: ast.Subscript) -> bool:
    return isinstance(kind.value, ast.Attribute) and kind.value.attr == "Tensor"

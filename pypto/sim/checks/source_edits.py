"""Edits of the author's source that order two tasks: bind the id of one, name it in ``deps`` of the other.

Works on the syntax tree of the file that the tasks are submitted from (spec language 6.2, 6.3). What it cannot edit
safely it leaves to words.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

_LOOPS: Final = (ast.For, ast.While)
_BLOCKS: Final = ("body", "orelse", "finalbody")


@dataclass(frozen=True)
class Head:
    """The statement that submits a task: ``with pl.at``, ``with pl.spmd``, ``for … in pl.spmd`` or a ``pl.submit``."""

    statement: ast.With | ast.For | ast.Assign
    call: ast.Call

    @property
    def bound(self) -> str:
        """The variable that holds the task id, or nothing."""
        if isinstance(self.statement, ast.With):
            name = self.statement.items[0].optional_vars
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
    """One file: its lines, its tree, and the path from the root to every statement."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines = linecache.getlines(file)
        self.paths: dict[ast.stmt, tuple[ast.AST, ...]] = {}
        self._walk(ast.parse("".join(self.lines)), ())

    def _walk(self, node: ast.AST, path: tuple[ast.AST, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self.paths[child] = (*path, node)
                self._walk(child, (*path, node))

    def head(self, line: int) -> Head | None:
        """The submission whose statement starts at ``line``."""
        for statement in self.paths:
            if statement.lineno == line:
                call = _call_of(statement)
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
    elif isinstance(statement, ast.Assign):
        call, names = statement.value, ("submit", "spmd_submit")
    else:
        return None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in names:
        return call
    return None


@dataclass
class Edits:
    """Insertions into the lines of a file, and new lines in front of some."""

    source: Source
    awaited: str = ""  # what the second task waits for
    _inserted: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    _before: dict[int, list[str]] = field(default_factory=dict)
    _replaced: dict[int, str] = field(default_factory=dict)
    _cut: dict[int, tuple[int, int]] = field(default_factory=dict)

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
        name = Path(self.source.file).name
        for line in sorted({*self._inserted, *self._before, *self._replaced, *self._cut}):
            for text in self._before.get(line, ()):
                yield f"before {name}:{line}: {text}"
            if line in self._inserted or line in self._replaced or line in self._cut:
                yield f"{name}:{line}: {self._edited(line)}"

    def _edited(self, line: int) -> str:
        text = self._replaced.get(line, self.source.lines[line - 1]).rstrip("\n").encode()
        for column, piece in sorted(self._inserted.get(line, ()), reverse=True):
            text = text[:column] + piece.encode() + text[column:]
        if line in self._cut:
            column, length = self._cut[line]
            text = text[:column] + b"with " + text[column + length :]
        return text.decode()


@lru_cache(maxsize=16)
def _parsed(file: str, text: str) -> Source | None:
    try:
        return Source(file)
    except (SyntaxError, ValueError):
        return None


def source_of(file: str) -> Source | None:
    """The parsed file, or nothing when it cannot be read."""
    text = "".join(linecache.getlines(file))
    return _parsed(file, text) if text else None


def wait_edits(file: str, first: tuple[int, str], second: tuple[int, str], carried: bool) -> tuple[str, list[str]]:
    """What to add to ``deps`` of the task ``second`` so that it waits for ``first``, and the edited lines.

    Both tasks are (line, name). Nothing when words have to do.

    ``carried``: the task submitted first belongs to an earlier trip round a loop than its last submission before the
    second one.
    """
    source = source_of(file)
    heads = [source.head(line) for line, _ in (first, second)] if source is not None else []
    if source is None or heads[0] is None or heads[1] is None:
        return "", []
    if source.function(heads[0].statement) is not source.function(heads[1].statement):
        return "", []
    edits = _Waits(source, heads[0], heads[1], first[1], second[1]).edits(carried)
    return ("", []) if edits is None else (edits.awaited, list(edits))


@dataclass
class _Waits:
    """Lets ``second`` wait for ``first``."""

    source: Source
    first: Head
    second: Head
    first_task: str
    second_task: str

    def edits(self, carried: bool) -> Edits | None:
        edits, source = Edits(self.source), self.source
        a, b = self.first.statement, self.second.statement
        loops_a, loops_b = source.loops(a), source.loops(b)
        common = [x for x, y in zip(loops_a, loops_b) if x is y]
        inner = loops_a[len(common) :]
        if a.lineno >= b.lineno or carried and common:
            return self._carried(edits, common) if common else None
        if inner:
            return self._collected(edits, inner)
        name = self._bind(edits)
        if source.paths[a] != source.paths[b][: len(source.paths[a])] or source.block(a) is not self._around(a, b):
            outer = self._outermost(a, b)
            edits.before(outer.lineno, f"{name} = None", outer.lineno)
        return edits if self._wait(edits, name) else None

    def _around(self, a: ast.stmt, b: ast.stmt) -> list[ast.stmt]:
        """The block that holds ``a``, seen from ``b``: the one of the ancestor of ``b`` at that depth."""
        depth = len(self.source.paths[a])
        path = (*self.source.paths[b], b)
        at = path[depth] if depth < len(path) else b
        return self.source.block(at)  # type: ignore[arg-type]

    def _outermost(self, a: ast.stmt, b: ast.stmt) -> ast.stmt:
        """The statement around ``a`` that stands beside one around ``b``."""
        of_a, of_b = (*self.source.paths[a], a), (*self.source.paths[b], b)
        return next(x for x, y in zip(of_a, of_b) if x is not y)  # type: ignore[return-value]

    # --- the id of the first task

    def _fresh(self, base: str) -> str:
        """A name that the function does not use."""
        function = self.source.function(self.first.statement)
        used = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)} if function is not None else set()
        base, number = re.sub(r"\W", "_", base), 1
        name = base
        while name in used:
            number += 1
            name = f"{base}_{number}"
        return name

    def _bind(self, edits: Edits) -> str:
        """Bind the id of the first task unless its author did."""
        if self.first.bound:
            return self.first.bound
        name = self._fresh(f"{self.first_task}_id")
        _bind_as(edits, self.first, name)
        return name

    def _carried(self, edits: Edits, common: list[ast.stmt]) -> Edits | None:
        """The id goes round the outermost common loop: it is ``None`` on the first trip."""
        loop = common[0]
        name = self._bind(edits)
        for parallel in filter(_is_parallel, common):
            if not edits.replace(parallel.lineno, "pl.parallel(", "pl.range("):
                return None
        if not _assigned_before(self.source, loop, name):
            edits.before(loop.lineno, f"{name} = None", loop.lineno)
        a, b = self.first.statement, self.second.statement
        if a.lineno < b.lineno:
            earlier = self._fresh(f"earlier_{name}")
            edits.before(a.lineno, f"{earlier} = {name}", a.lineno)
            return edits if self._wait(edits, earlier) else None
        if self.source.loops(a)[len(common) :] and a is not b and not _wait_for(edits, self.first, name):
            return None  # several of them per trip: they follow each other
        return edits if self._wait(edits, name) else None

    def _collected(self, edits: Edits, inner: list[ast.stmt]) -> Edits | None:
        """All tasks of a loop: their ids in an array, or one after the other when their number is not known."""
        a, loop = self.first.statement, inner[0]
        known = self._array_of(a)
        if known:
            return edits if self._wait(edits, known) else None
        name, trips = self._bind(edits), _trips(loop) if len(inner) == 1 else None
        after = _statement_behind(self.source, a)
        if trips is None or after is None:
            edits.before(loop.lineno, f"{name} = None", loop.lineno)
            return edits if _wait_for(edits, self.first, name) and self._wait(edits, name) else None
        count, index = trips
        ids = self._fresh(f"{self.first_task}_ids")
        edits.before(loop.lineno, f"{ids} = pl.array.create({count}, pl.TASK_ID)", loop.lineno)
        edits.before(after, f"{ids}[{index}] = {name}", a.lineno)
        return edits if self._wait(edits, ids) else None

    def _array_of(self, a: ast.stmt) -> str:
        """The array that collects the ids of the first task already."""
        for statement in self.source.block(a):
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name) and self.first.bound:
                target = statement.targets[0]
                same = statement.value.id == self.first.bound
                if same and isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    return target.value.id
        return ""

    # --- the second task

    def _wait(self, edits: Edits, name: str) -> bool:
        edits.awaited = name
        return _wait_for(edits, self.second, name, self._fresh(f"{self.second_task}_id"))


def _wait_for(edits: Edits, head: Head, name: str, own: str = "") -> bool:
    """Add ``name`` to the ``deps`` of a submission; False when its form takes none."""
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
        _bind_as(edits, head, own or name)
    return True


def _bind_as(edits: Edits, head: Head, name: str) -> None:
    """Bind the task id of a scope; the iterating form of ``pl.spmd`` becomes the one with ``as``."""
    statement, call = head.statement, head.call
    edits.insert(call.end_lineno or 0, call.end_col_offset or 0, f" as {name}")
    if isinstance(statement, ast.For) and isinstance(statement.target, ast.Name):
        text = edits.source.lines[statement.lineno - 1].encode()
        head_text = text[statement.col_offset : call.col_offset].decode()
        edits.replace_head(statement.lineno, statement.col_offset, head_text)
        body = statement.body[0]
        edits.before(body.lineno, f"{statement.target.id} = pl.get_block_idx()", body.lineno)


def _assigned_before(source: Source, loop: ast.stmt, name: str) -> bool:
    """Whether a name has a value where a loop begins."""
    function = source.function(loop)
    before = (n for n in ast.walk(function) if isinstance(n, ast.Assign) and n.lineno < loop.lineno) if function else ()
    return any(isinstance(t, ast.Name) and t.id == name for statement in before for t in statement.targets)


def _statement_behind(source: Source, statement: ast.stmt) -> int | None:
    """The line behind a statement, in front of which a new one of the same block can stand."""
    line = (statement.end_lineno or statement.lineno) + 1
    return line if line <= len(source.lines) else None


def _trips(loop: ast.stmt) -> tuple[int, str] | None:
    """(number of trips, number of the trip) of a loop over constants."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name) or not isinstance(loop.iter, ast.Call):
        return None
    numbers = [a.value for a in loop.iter.args if isinstance(a, ast.Constant) and isinstance(a.value, int)]
    if len(numbers) != len(loop.iter.args) or not numbers:
        return None
    start, stop = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    step = numbers[2] if len(numbers) > 2 else 1
    count = len(range(start, stop, step)) if step else 0
    index = loop.target.id if start == 0 else f"({loop.target.id} - {start})"
    return (count, index if step == 1 else f"{index} // {step}") if count else None


def sequential_edits(file: str, line: int) -> list[str]:
    """The loop around the task submitted at ``line`` as one whose iterations follow each other."""
    source = source_of(file)
    head = source.head(line) if source is not None else None
    if source is None or head is None:
        return []
    edits = Edits(source)
    parallel = [loop for loop in source.loops(head.statement) if _is_parallel(loop)]
    done = bool(parallel) and edits.replace(parallel[-1].lineno, "pl.parallel(", "pl.range(")
    return list(edits) if done else []


def _is_parallel(loop: ast.stmt) -> bool:
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

"""Edits of the author's source that order two tasks: bind the id of one, name it in ``deps`` of the other.

Works on the syntax tree of the file that the tasks are submitted from (spec language 6.2, 6.3). What it cannot edit
safely it leaves to words.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from pypto.sim.checks.helper_edits import helper_edits
from pypto.sim.checks.source_edits import Edits, Head, Source, bind_as, fresh_name, is_parallel, source_of, wait_for

Task = tuple[str, int, str]
"""File and line of a submission, and the name of the task."""


def edits_of_files(files: Sequence[str], first: Task, second: Task, carried: bool, entry: str) -> tuple[str, list[str]]:
    """As :func:`wait_edits`, for tasks whose submissions, or the calls of their helpers, may be in several files."""
    found: tuple[str, list[str]] = "", []
    if first[0] == second[0]:
        found = wait_edits(first[0], first[1:], second[1:], carried, entry)
    source = source_of(*files) if not found[1] and len(files) > 1 else None
    if source is None:
        return found
    heads = [source.head(source.at(file, line)) for file, line, _ in (first, second)]
    if heads[0] is None or heads[1] is None:
        return found
    edits = helper_edits(source, heads[0], heads[1], (first[2], second[2]), entry)
    return found if edits is None else (edits.awaited, list(edits))


def wait_edits(
    file: str, first: tuple[int, str], second: tuple[int, str], carried: bool, entry: str = ""
) -> tuple[str, list[str]]:
    """What to add to ``deps`` of the task ``second`` so that it waits for ``first``, and the edited lines.

    Both tasks are (line, name). Nothing when words have to do.

    ``carried``: the task submitted first belongs to an earlier trip round a loop than its last submission before the
    second one. ``entry``: name of the function that was compiled.
    """
    source = source_of(file)
    heads = [source.head(line) for line, _ in (first, second)] if source is not None else []
    if source is None or heads[0] is None or heads[1] is None:
        return "", []
    edits = None
    if source.function(heads[0].statement) is source.function(heads[1].statement):
        edits = _Waits(source, heads[0], heads[1], first[1], second[1]).edits(carried)
    if edits is None:
        edits = helper_edits(source, heads[0], heads[1], (first[1], second[1]), entry)
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
        return fresh_name(self.source.function(self.first.statement), base)

    def _bind(self, edits: Edits) -> str:
        """Bind the id of the first task unless its author did."""
        if self.first.bound:
            return self.first.bound
        name = self._fresh(f"{self.first_task}_id")
        bind_as(edits, self.first, name)
        return name

    def _carried(self, edits: Edits, common: list[ast.stmt]) -> Edits | None:
        """The id goes round the outermost common loop: it is ``None`` on the first trip."""
        loop = common[0]
        name = self._bind(edits)
        for parallel in filter(is_parallel, common):
            if not edits.replace(parallel.lineno, "pl.parallel(", "pl.range("):
                return None
        if not _assigned_before(self.source, loop, name):
            edits.before(loop.lineno, f"{name} = None", loop.lineno)
        a, b = self.first.statement, self.second.statement
        if a.lineno < b.lineno:
            earlier = self._fresh(f"earlier_{name}")
            edits.before(a.lineno, f"{earlier} = {name}", a.lineno)
            return edits if self._wait(edits, earlier) else None
        if self.source.loops(a)[len(common) :] and a is not b and not wait_for(edits, self.first, name):
            return None  # several of them per trip: they follow each other
        return edits if self._wait(edits, name) else None

    def _collected(self, edits: Edits, inner: list[ast.stmt]) -> Edits | None:
        """All tasks of a loop: their ids in an array, or one after the other when their number is not known."""
        a, loop = self.first.statement, inner[0]
        known = self._array_of(a)
        if known and known not in self._awaited():
            return edits if self._wait_for_all(edits, known) else None
        name, trips = self._bind(edits), _trips(loop) if len(inner) == 1 else None
        after = _statement_behind(self.source, a)
        if trips is None or after is None:
            edits.before(loop.lineno, f"{name} = None", loop.lineno)
            return edits if wait_for(edits, self.first, name) and self._wait(edits, name) else None
        count, index = trips
        ids = self._fresh(f"{self.first_task}_ids")
        edits.before(loop.lineno, f"{ids} = pl.array.create({count}, pl.TASK_ID)", loop.lineno)
        edits.before(after, f"{ids}[{index}] = {name}", a.lineno)
        return edits if self._wait_for_all(edits, ids) else None

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

    def _awaited(self) -> list[str]:
        """Ids and whole arrays that the second task waits for already."""
        entries = self.second.deps.elts if isinstance(self.second.deps, ast.List | ast.Tuple) else []
        return [entry.id for entry in entries if isinstance(entry, ast.Name)]

    def _wait_for_all(self, edits: Edits, ids: str) -> bool:
        """Wait for a whole array; beside elements of one, which may not be mixed with it, for an empty task."""
        entries = self.second.deps.elts if isinstance(self.second.deps, ast.List | ast.Tuple) else []
        if not any(isinstance(entry, ast.Subscript | ast.ListComp) for entry in entries):
            return self._wait(edits, ids)
        gate, line = self._fresh(f"{self.first_task}_gate"), self.second.statement.lineno
        edits.before(line, f"{gate} = pl.system.task_dummy(deps=[{ids}])", line)
        return self._wait(edits, gate)

    def _wait(self, edits: Edits, name: str) -> bool:
        edits.awaited = name
        return wait_for(edits, self.second, name, self._fresh(f"{self.second_task}_id"))


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

"""Edits that order tasks of which at least one is submitted by a helper: the id is returned by it or passed to it.

A helper (``pl.jit.inline``, ``pl.inline``) is spliced into its callers (spec language 3.8), so an id may be one of its
results and a parameter of type ``pl.Scalar[pl.TASK_ID]`` one of its arguments (6.3).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from pypto.sim.checks.source_edits import Edits, Head, Source, bind_as, fresh_name, wait_for


def helper_edits(source: Source, first: Head, second: Head, tasks: tuple[str, str], entry: str) -> Edits | None:
    """Lets ``second`` wait for ``first``; ``None`` where words have to do.

    ``entry``: name of the function that was compiled, for helpers that several functions call.
    """
    makes, takes = (source.function(head.statement) for head in (first, second))
    if not isinstance(makes, ast.FunctionDef) or not isinstance(takes, ast.FunctionDef):
        return None
    if any(source.defines_twice(helper.name) for helper in (makes, takes)):
        return None
    calls = {helper: _calls(source, helper) for helper in {makes, takes}}
    callers = [source.function(call) for helper in calls for call in calls[helper]]
    outers = {f for f in (*callers, makes, takes) if isinstance(f, ast.FunctionDef) and not calls.get(f)}
    named = [f for f in outers if len(outers) == 1 or f.name == entry]
    if len(named) != 1:
        return None
    reached = [makes is named[0] or _called_in(source, calls[makes], named[0])]
    reached.append(takes is named[0] or _called_in(source, calls[takes], named[0]))
    return _Threaded(source, first, second, tasks, named[0], makes, takes, calls).edits() if all(reached) else None


def _called_in(source: Source, calls: list[ast.stmt], function: ast.FunctionDef) -> bool:
    return any(source.function(call) is function for call in calls)


def _calls(source: Source, helper: ast.FunctionDef) -> list[ast.stmt]:
    """The statements that are calls of ``helper``."""
    return [
        s
        for s in source.paths
        if isinstance(s, ast.Assign | ast.Expr) and isinstance(s.value, ast.Call) and _named(s.value) == helper.name
    ]


def _named(call: ast.Call) -> str:
    func = call.func
    return func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""


@dataclass
class _Threaded:
    """One variable of ``outer`` carries the id from the task of ``makes`` to the one of ``takes``."""

    source: Source
    first: Head
    second: Head
    tasks: tuple[str, str]
    outer: ast.FunctionDef
    makes: ast.FunctionDef
    takes: ast.FunctionDef
    calls: dict[ast.FunctionDef, list[ast.stmt]]

    @cached_property
    def name(self) -> str:
        """Of the id, in every function."""
        if self.first.bound:
            return self.first.bound
        return fresh_name(self.makes, fresh_name(self.outer, f"{self.tasks[0]}_id"))

    def edits(self) -> Edits | None:
        edits = Edits(self.source, awaited=self.name)
        if not self.first.bound:
            bind_as(edits, self.first, self.name)
        given, got = self._sites(self.makes, self.first), self._sites(self.takes, self.second)
        chained = self._many(given, got)
        passes = {self.takes} | ({self.makes} if chained else set())
        done = not chained or wait_for(edits, self.first, self.name)
        done = done and wait_for(edits, self.second, self.name, fresh_name(self.takes, f"{self.tasks[1]}_id"))
        done = done and (self.makes is self.outer or self._give_back(edits))
        done = done and all(helper is self.outer or self._pass(edits, helper) for helper in passes)
        if passes - {self.outer} or chained or self._nested(given, got):
            first = min((*given, *got), key=lambda statement: statement.lineno)
            at = self._outermost(first)
            edits.before(at.lineno, f"{self.name} = None", at.lineno)
        return edits if done else None

    def _sites(self, function: ast.FunctionDef, head: Head) -> list[ast.stmt]:
        """Where ``outer`` submits the task of ``head``."""
        if function is self.outer:
            return [head.statement]
        return [call for call in self.calls[function] if self.source.function(call) is self.outer]

    def _many(self, given: list[ast.stmt], got: list[ast.stmt]) -> bool:
        """Whether several first tasks may have to be awaited: they follow each other then."""
        if self.makes is self.takes:
            return False  # every call waits for the one before it
        loops = [loop for site in given for loop in self.source.loops(site)]
        return len(given) > 1 or any(loop not in self.source.loops(site) for site in got for loop in loops)

    def _nested(self, given: list[ast.stmt], got: list[ast.stmt]) -> bool:
        """Whether the first task may not have been submitted when the second is."""
        blocks = [self.source.block(site) for site in (*given, *got)]
        return any(block is not blocks[0] for block in blocks) or min(s.lineno for s in got) < min(
            s.lineno for s in given
        )

    def _outermost(self, statement: ast.stmt) -> ast.stmt:
        """The statement of the body of ``outer`` that holds ``statement``."""
        return next(s for s in self.outer.body if s is statement or s in self.source.paths[statement])

    def _give_back(self, edits: Edits) -> bool:
        """The helper returns the id, too."""
        returns = [n for n in ast.walk(self.makes) if isinstance(n, ast.Return)]
        last = self.makes.body[-1]
        if self.makes.returns is not None or returns not in ([], [last]):
            return False
        value = returns[0].value if returns else None
        if value is not None:
            end = value.elts[-1] if isinstance(value, ast.Tuple) and value.elts else value
            edits.insert(end.end_lineno or 0, end.end_col_offset or 0, f", {self.name}")
        elif returns:
            edits.insert(last.end_lineno or 0, last.end_col_offset or 0, f" {self.name}")
        else:
            line = (last.end_lineno or last.lineno) + 1
            if line > len(self.source.lines):
                return False
            edits.before(line, f"return {self.name}", last.lineno)
        return all(self._take(edits, call, value is not None) for call in self.calls[self.makes])

    def _take(self, edits: Edits, call: ast.stmt, more: bool) -> bool:
        """A call takes the id, behind the other results when there are ``more``."""
        if isinstance(call, ast.Expr):
            edits.insert(call.lineno, call.col_offset, f"{self.name} = ")
            return not more
        target = call.targets[0] if isinstance(call, ast.Assign) else None
        if target is None:
            return False
        end = target.elts[-1] if isinstance(target, ast.Tuple) else target
        edits.insert(end.end_lineno or 0, end.end_col_offset or 0, f", {self.name}")
        return more

    def _pass(self, edits: Edits, helper: ast.FunctionDef) -> bool:
        """The helper takes the id as its last argument."""
        if not helper.args.args:
            return False
        last = helper.args.args[-1]
        kind = ": pl.Scalar[pl.TASK_ID]" if last.annotation is not None else ""
        edits.insert(last.end_lineno or 0, last.end_col_offset or 0, f", {self.name}{kind}")
        for statement in self.calls[helper]:
            call = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
            if not isinstance(call, ast.Call) or not call.args or call.keywords:
                return False
            known = self.name if self.source.function(statement) is self.outer else None
            edits.insert(call.args[-1].end_lineno or 0, call.args[-1].end_col_offset or 0, f", {known}")
        return True

"""Task ids a ``pl.parallel`` loop of a manual scope rebinds stand for the tasks of all iterations (spec language 6.3).

Such a variable gets an array beside it: outside the loop the array holds the one task (or none) the variable names;
inside, iterations read the array as it was on entry and fill the next one, one slot each. ``deps=`` on the variable
then names the array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pypto.ir import nodes as ir
from pypto.ir.dtype import INDEX, TASK_ID
from pypto.ir.enums import ForKind, FunctionType
from pypto.ir.errors import CompileError
from pypto.ir.simplify import fold
from pypto.ir.walk import blocks, rewrite, statements, targets

ORCHESTRATION = (FunctionType.Orchestration, FunctionType.Graph)


def fan_task_ids(program: ir.Program) -> ir.Program:
    """Give every fanned task id of the orchestration functions its array."""
    functions = {
        name: _fanned(function) if function.type in ORCHESTRATION else function
        for name, function in program.functions.items()
    }
    return replace(program, functions=functions)


def _fanned(function: ir.Function) -> ir.Function:
    fans: dict[str, int] = {}
    for loop, defined in _fan_loops(function.body, set(), False):
        for name in sorted(_rebound(loop.body) & defined):
            fans[name] = max(fans.get(name, 0), _trips(loop, name))
    if not fans:
        return function
    return replace(function, body=_Fans(function, fans).run())


def _fan_loops(body: list[ir.Stmt], defined: set[str], manual: bool) -> Iterator[tuple[ir.For, set[str]]]:
    """Parallel loops inside manual scopes, with the task ids that have a value where each begins."""
    defined = set(defined)
    for stmt in body:
        inside = manual or isinstance(stmt, ir.Scope) and stmt.kind == "manual"
        if isinstance(stmt, ir.For) and stmt.kind == ForKind.Parallel and manual:
            yield stmt, set(defined)
        for block in blocks(stmt):
            yield from _fan_loops(block, defined, inside)
        defined |= {v.name for s in statements([stmt]) for v in targets(s) if _is_task(v)}


def _is_task(variable: ir.Var) -> bool:
    return variable.type == ir.ScalarType(TASK_ID)


def _rebound(body: list[ir.Stmt]) -> set[str]:
    return {v.name for s in statements(body) for v in targets(s) if _is_task(v)}


def _trips(loop: ir.For, name: str) -> int:
    bounds = [ir.as_dim(b) for b in (loop.start, loop.stop, loop.step)]
    if not all(isinstance(b, int) for b in bounds):
        raise CompileError(
            f"the task id {name!r} is rebound in a pl.parallel loop of run-time length",
            loop.span,
            "collect the ids in a pl.array, or give the loop constant bounds",
        )
    if any(isinstance(s, ir.For) and s.kind == ForKind.Parallel and name in _rebound(s.body) for s in loop.body):
        raise CompileError(
            f"the task id {name!r} is rebound in nested pl.parallel loops", loop.span, "collect the ids in a pl.array"
        )
    return len(range(*bounds))  # type: ignore[arg-type]


class _Fans:
    """Rewrites one function; ``fans`` gives the slots of each fanned variable."""

    def __init__(self, function: ir.Function, fans: dict[str, int]):
        self._body, self._fans = function.body, fans
        self._taken = {v.name for s in statements(function.body) for v in targets(s)}
        self._arrays = {name: ir.Var(self._name(f"{name}_all"), _array(slots)) for name, slots in fans.items()}
        self._fresh: set[str] = set()  # variables the current iteration has assigned

    def run(self) -> list[ir.Stmt]:
        created = [ir.Assign(array, _create(array)) for array in self._arrays.values()]
        return [*created, *self._block(self._body, None)]

    def _name(self, base: str) -> str:
        while base in self._taken:
            base = f"{base}_"
        self._taken.add(base)
        return base

    def _block(self, body: list[ir.Stmt], fanning: set[str] | None) -> list[ir.Stmt]:
        """``fanning``: the variables of the enclosing fan loop, ``None`` outside one."""
        result: list[ir.Stmt] = []
        for stmt in body:
            if isinstance(stmt, ir.For) and stmt.kind == ForKind.Parallel and (names := self._of(stmt)):
                result += self._loop(stmt, names)
                continue
            result.append(self._statement(stmt, fanning))
            for variable in targets(stmt):
                if variable.name not in self._fans:
                    continue
                if fanning is not None and variable.name in fanning:
                    self._fresh.add(variable.name)
                else:
                    result += self._single(variable)
        return result

    def _of(self, loop: ir.For) -> list[str]:
        return sorted(_rebound(loop.body) & set(self._fans))

    def _statement(self, stmt: ir.Stmt, fanning: set[str] | None) -> ir.Stmt:
        if isinstance(stmt, (ir.Assign, ir.TupleAssign, ir.Evaluate)):
            return replace(stmt, value=rewrite(stmt.value, self._widened))
        if isinstance(stmt, (ir.For, ir.While, ir.Scope)):
            return replace(stmt, body=self._block(stmt.body, fanning))
        if isinstance(stmt, ir.If):
            return replace(
                stmt,
                then_body=self._block(stmt.then_body, fanning),
                else_body=self._block(stmt.else_body, fanning),
            )
        return stmt

    def _widened(self, expr: ir.Expr) -> ir.Expr:
        """``expr`` with the entries of its dependency list naming arrays."""
        if isinstance(expr, ir.FunctionCall) and "deps" in expr.attrs:
            return replace(expr, attrs={**expr.attrs, "deps": self._entries(expr.attrs["deps"])})
        if isinstance(expr, ir.Call) and expr.op == "system.task_dummy":
            return replace(expr, arguments={**expr.arguments, "deps": self._entries(expr.arguments["deps"])})
        return expr

    def _entries(self, deps: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        return tuple(
            self._arrays[e.name] if isinstance(e, ir.Var) and e.name in self._fans and e.name not in self._fresh else e
            for e in deps
        )

    def _single(self, variable: ir.Var) -> list[ir.Stmt]:
        """The array names the one task of ``variable``."""
        array = self._arrays[variable.name]
        return [
            ir.Assign(array, _create(array), variable.span),
            ir.Assign(array, _updated(array, ir.index(0), variable), variable.span),
        ]

    def _loop(self, loop: ir.For, names: list[str]) -> list[ir.Stmt]:
        following = {name: replace(self._arrays[name], name=self._name(f"{name}_next")) for name in names}
        saved, self._fresh = self._fresh, set()
        body = self._block(loop.body, set(names))
        self._fresh = saved
        from_start = fold(ir.Binary("-", loop.var, loop.start, INDEX))
        slot = fold(ir.Binary("//", from_start, loop.step, INDEX))
        for name in names:
            variable = ir.Var(name, ir.ScalarType(TASK_ID), loop.span)
            body.append(ir.Assign(following[name], _updated(following[name], slot, variable), loop.span))
        before = [ir.Assign(array, _create(array), loop.span) for array in following.values()]
        after = [ir.Assign(self._arrays[name], following[name], loop.span) for name in names]
        return [*before, replace(loop, body=body), *after]


def _array(slots: int) -> ir.ArrayType:
    return ir.ArrayType(max(slots, 1), TASK_ID)


def _create(array: ir.Var) -> ir.Call:
    kind = array.type
    assert isinstance(kind, ir.ArrayType)
    return ir.Call("array.create", {"extent": kind.extent, "dtype": TASK_ID}, kind)


def _updated(array: ir.Var, index: ir.Expr, value: ir.Expr) -> ir.Call:
    return ir.Call("array.update_element", {"array": array, "index": index, "value": value}, array.type)

"""Task ids a ``pl.parallel`` loop of a manual scope rebinds stand for the tasks of all iterations (spec language 6.3).

Such a variable gets an array beside it. Outside the loop the array holds the tasks the variable stands for; inside,
every iteration starts from what the variable stood for on entry and fills a slot of the next array with what it stands
for at its end. ``deps=`` on the variable names the array; everything else that needs one id gets a dummy task that
waits for the whole array.

An iteration reads the array of the entry until it assigns the variable. Where that point is not the same on every path
(a branch or an inner loop assigns it), and in loops inside such a loop, the iteration starts by assigning one task
that waits for those of the entry, so that there is an id on every path.
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
    return len(range(*bounds))  # type: ignore[arg-type]


def _assigned_at_once(loop: ir.For, name: str) -> bool:
    """Whether the first statement of the body that assigns ``name`` does so itself, not in a branch or a loop."""
    for stmt in loop.body:
        if name in {v.name for v in targets(stmt)}:
            return True
        if name in _rebound([stmt]):
            return False
    return False


class _Fans:
    """Rewrites one function; ``fans`` gives the slots of each fanned variable."""

    def __init__(self, function: ir.Function, fans: dict[str, int]):
        self._body, self._fans = function.body, fans
        self._taken = {v.name for s in statements(function.body) for v in targets(s)}
        self._arrays = {name: ir.Var(self._name(f"{name}_all"), _array(slots)) for name, slots in fans.items()}
        self._single: set[str] = set()
        """Variables that name one task here; the others stand for their array."""
        self._inside: set[str] = set()
        """Variables an enclosing loop fans."""

    def run(self) -> list[ir.Stmt]:
        created = [ir.Assign(array, _create(array)) for array in self._arrays.values()]
        return [*created, *self._block(self._body)]

    def _name(self, base: str) -> str:
        while base in self._taken:
            base = f"{base}_"
        self._taken.add(base)
        return base

    def _block(self, body: list[ir.Stmt]) -> list[ir.Stmt]:
        result: list[ir.Stmt] = []
        for stmt in body:
            names = self._fanned_by(stmt)
            result += self._loop(stmt, names) if names and isinstance(stmt, ir.For) else self._statement(stmt)
        return result

    def _fanned_by(self, stmt: ir.Stmt) -> list[str]:
        if not isinstance(stmt, ir.For) or stmt.kind != ForKind.Parallel:
            return []
        return [name for name in sorted(_rebound(stmt.body) & set(self._fans)) if _trips(stmt, name)]

    def _statement(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        if isinstance(stmt, (ir.For, ir.While)):
            self._single -= self._spread_in(stmt.body)
            before = set(self._single)
            looped = replace(stmt, body=self._block(stmt.body))
            self._single &= before
            return [looped]
        if isinstance(stmt, ir.Scope):
            return [replace(stmt, body=self._block(stmt.body))]
        if isinstance(stmt, ir.If):
            return [self._branches(stmt)]
        joins, stmt = self._reading(stmt)
        after = [s for v in targets(stmt) if v.name in self._fans for s in self._assigned(v)]
        return [*joins, stmt, *after]

    def _spread_in(self, body: list[ir.Stmt]) -> set[str]:
        """Variables outside fanning loops that a loop below ``body`` fans."""
        return {name for s in statements(body) for name in self._fanned_by(s)} - self._inside

    def _branches(self, stmt: ir.If) -> ir.If:
        before = set(self._single)
        then_body = self._block(stmt.then_body)
        after_then, self._single = self._single, before
        else_body = self._block(stmt.else_body)
        self._single &= after_then
        return replace(stmt, then_body=then_body, else_body=else_body)

    def _assigned(self, variable: ir.Var) -> list[ir.Stmt]:
        """``variable`` names one task from here on, and so does its array outside a fanning loop."""
        self._single.add(variable.name)
        if variable.name in self._inside:
            return []
        array = self._arrays[variable.name]
        return [
            ir.Assign(array, _create(array), variable.span),
            ir.Assign(array, _updated(array, ir.index(0), variable), variable.span),
        ]

    # --- reading ---

    def _reading(self, stmt: ir.Stmt) -> tuple[list[ir.Stmt], ir.Stmt]:
        """``stmt`` with its dependency lists naming arrays, behind the dummy tasks that its other reads need."""
        if not isinstance(stmt, (ir.Assign, ir.TupleAssign, ir.Evaluate)):
            return [], stmt
        joins: dict[str, ir.Var] = {}

        def one(expr: ir.Expr) -> ir.Expr:
            if not isinstance(expr, ir.Var) or expr.name not in self._fans or expr.name in self._single:
                return expr
            if expr.name not in joins:
                joins[expr.name] = ir.Var(self._name(f"{expr.name}_join"), expr.type, stmt.span)
            return joins[expr.name]

        value = rewrite(rewrite(stmt.value, self._widened), one)
        before: list[ir.Stmt] = [_joined(joins[name], self._arrays[name]) for name in joins]
        return before, replace(stmt, value=value)

    def _widened(self, expr: ir.Expr) -> ir.Expr:
        """``expr`` with the entries of its dependency list naming arrays."""
        if isinstance(expr, ir.FunctionCall) and "deps" in expr.attrs:
            return replace(expr, attrs={**expr.attrs, "deps": self._entries(expr.attrs["deps"])})
        if isinstance(expr, ir.Call) and expr.op == "system.task_dummy":
            return replace(expr, arguments={**expr.arguments, "deps": self._entries(expr.arguments["deps"])})
        return expr

    def _entries(self, deps: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        return tuple(
            self._arrays[e.name] if isinstance(e, ir.Var) and e.name in self._fans and e.name not in self._single else e
            for e in deps
        )

    # --- loops ---

    def _loop(self, loop: ir.For, names: list[str]) -> list[ir.Stmt]:
        nested = {name for name in names if name in self._inside}
        entries = {
            name: ir.Var(self._name(f"{name}_entry"), ir.ScalarType(TASK_ID), loop.span)
            for name in names
            if name in nested or not _assigned_at_once(loop, name)
        }
        before = [self._entry(name, entry) for name, entry in entries.items()]
        following = {
            name: ir.Var(self._name(f"{name}_next"), _array(_trips(loop, name)) if name in nested else array.type)
            for name, array in ((name, self._arrays[name]) for name in names)
        }
        saved, inside = set(self._single), set(self._inside)
        self._inside = inside | set(names)
        self._single = saved - set(names) | set(entries)
        starts = [ir.Assign(_task(name, loop), entry, loop.span) for name, entry in entries.items()]
        body = [*starts, *self._block(loop.body), *self._filled(loop, following)]
        self._inside, self._single = inside, saved - set(names) | nested
        created = [ir.Assign(array, _create(array), loop.span) for array in following.values()]
        after = [
            _joined(_task(name, loop), following[name])
            if name in nested
            else ir.Assign(self._arrays[name], following[name], loop.span)
            for name in names
        ]
        return [*before, *created, replace(loop, body=body), *after]

    def _entry(self, name: str, entry: ir.Var) -> ir.Assign:
        """One task that waits for what ``name`` stands for before the loop."""
        if name in self._single:
            return ir.Assign(entry, ir.Var(name, entry.type, entry.span), entry.span)
        return _joined(entry, self._arrays[name])

    @staticmethod
    def _filled(loop: ir.For, following: dict[str, ir.Var]) -> list[ir.Stmt]:
        """An iteration's slot of each next array."""
        slot = fold(ir.Binary("//", fold(ir.Binary("-", loop.var, loop.start, INDEX)), loop.step, INDEX))
        return [
            ir.Assign(array, _updated(array, slot, _task(name, loop)), loop.span) for name, array in following.items()
        ]


def _task(name: str, loop: ir.For) -> ir.Var:
    return ir.Var(name, ir.ScalarType(TASK_ID), loop.span)


def _joined(target: ir.Var, array: ir.Var) -> ir.Assign:
    call = ir.Call("system.task_dummy", {"deps": (array,)}, ir.ScalarType(TASK_ID), {}, target.span)
    return ir.Assign(target, call, target.span)


def _array(slots: int) -> ir.ArrayType:
    return ir.ArrayType(max(slots, 1), TASK_ID)


def _create(array: ir.Var) -> ir.Call:
    kind = array.type
    assert isinstance(kind, ir.ArrayType)
    return ir.Call("array.create", {"extent": kind.extent, "dtype": TASK_ID}, kind)


def _updated(array: ir.Var, index: ir.Expr, value: ir.Expr) -> ir.Call:
    return ir.Call("array.update_element", {"array": array, "index": index, "value": value}, array.type)

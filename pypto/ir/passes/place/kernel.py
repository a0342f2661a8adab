"""Placement of one kernel: statements, loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from pypto.ir import nodes as ir
from pypto.ir.dtype import INDEX
from pypto.ir.enums import FunctionType, MemorySpace
from pypto.ir.errors import CompileError
from pypto.ir.passes.place.exposed import ExposedNames
from pypto.ir.passes.place.operations import Operations
from pypto.ir.passes.place.state import OpenLoop, is_tile, is_window
from pypto.ir.passes.place.values import Product, Value, Window, whole
from pypto.ir.walk import blocks, expressions_of, statements, targets

Placed = TypeVar("Placed")
Fits = Callable[[ir.Function], bool]
Varying = dict[str, set[int]]
"""Source variable -> axes whose valid extent a loop changes."""
KERNELS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


def place(
    program: ir.Program, generation: str, capacity: dict[str, int], fits: Fits = lambda function: True
) -> ir.Program:
    """Place every kernel of ``program``; ``capacity`` gives the bytes of each memory space by its text name.

    ``fits`` says whether the buffers of a placed kernel fit the chip.
    """
    functions = {}
    for name, function in program.functions.items():
        ready = (
            function.type in KERNELS
            and not function.attrs.get("external")
            and "external_source" not in function.attrs
            and not function.attrs.get("placed")
        )
        functions[name] = _placed(function, generation, capacity, fits) if ready else function
    return replace(program, functions=functions)


def _placed(function: ir.Function, generation: str, capacity: dict[str, int], fits: Fits) -> ir.Function:
    """With one load for every use of a window, unless buffers that live so long do not fit."""
    placer = KernelPlacer(function, generation, capacity)
    result = placer.run()
    if not placer.shared or fits(result):
        return result
    return KernelPlacer(function, generation, capacity, share=False).run()


class KernelPlacer(Operations):
    """Places the body of one function."""

    def run(self) -> ir.Function:
        for parameter in self.function.params:
            if isinstance(parameter.type, ir.TensorType):
                self.values[parameter.name] = whole(ir.Var(parameter.name, parameter.type, self.function.span))
        self._stages = 0
        body = _marked_accumulators(self.function.body)
        self._exposed = ExposedNames(body)
        self._block(body)
        self._name_targets()
        attrs = {k: v for k, v in self.function.attrs.items() if k != "returns"}
        return replace(
            self.function,
            body=self.out,
            attrs={**attrs, "returns": self.function.attrs.get("returns", ()), "placed": True},
        )

    def _name_targets(self) -> None:
        """Every placed value keeps the name that the source gives it."""

        def named(target: ir.Var) -> ir.Var:
            if isinstance(target.type, ir.TupleType):
                names = (self.author_of(f"{target.name}[{i}]") for i in range(len(target.type.items)))
                return replace(target, author=",".join(names))
            return replace(target, author=self.author_of(target.name))

        for stmt in statements(self.out):
            if isinstance(stmt, ir.Assign):
                stmt.target = named(stmt.target)
            elif isinstance(stmt, ir.TupleAssign):
                stmt.targets = tuple(named(target) for target in stmt.targets)

    @contextmanager
    def stage(self, number: int, loop: str) -> Iterator[None]:
        """Statements of one of two alternating copies: the memory planner keeps their buffers apart."""
        with self.block() as body:
            yield
        self.emit(ir.Scope("stage", body, {"loop": loop, "stage": number}, span=self.span))

    # --- statements ---

    def _block(self, body: list[ir.Stmt]) -> None:
        for stmt in body:
            with self.at(stmt.span):
                self.read_later = self._exposed.after(stmt)
                getattr(self, f"_on_{type(stmt).__name__.lower()}")(stmt)

    def _on_assign(self, stmt: ir.Assign) -> None:
        value = self.value(stmt.value)
        self._bind(stmt.target, value)

    def _bind(self, target: ir.Var, value: Value) -> None:
        if isinstance(value, ir.Expr) and isinstance(value.type, (ir.ScalarType, ir.ArrayType, ir.OpaqueType)):
            self.values.pop(target.name, None)
            self.emit(ir.Assign(replace(target, type=value.type), value, self.span))
            return
        if isinstance(value, ir.Expr) and isinstance(value.type, ir.NoneType):
            raise CompileError(f"{target.name!r} is assigned an operation without a value", self.span)
        base = value.base if isinstance(value, Window) else value
        if isinstance(base, ir.Var):
            self.bind_name(base.name, target.name)
        elif isinstance(base, ir.TupleItem) and isinstance(base.value, ir.Var):
            self.bind_name(f"{base.value.name}[{base.index}]", target.name)
        self.values[target.name] = value

    def _on_tupleassign(self, stmt: ir.TupleAssign) -> None:
        value = self.value(stmt.value)
        if isinstance(value, ir.TupleExpr):
            for target, item in zip(stmt.targets, value.items):
                self._bind(target, item)
            return
        for position, (target, kind) in enumerate(zip(stmt.targets, value.type.items)):
            self._bind(target, ir.TupleItem(value, position, kind, self.span))

    def _on_evaluate(self, stmt: ir.Evaluate) -> None:
        value = self.value(stmt.value)
        if isinstance(value, ir.Call) and value.op.startswith(("tensor.read", "tile.read")):
            return

    def _on_return(self, stmt: ir.Return) -> None:
        results: list[ir.Expr] = []
        for position, expr in enumerate(stmt.values):
            value = self.value(expr)
            if is_tile(value):
                raise CompileError(
                    f"result {position} of {self.function.name} is a value on chip",
                    self.span,
                    "write it to an Out parameter",
                )
            results.append(value.base if isinstance(value, Window) else value)
        self.emit(ir.Return(tuple(results), self.span))

    def _on_break(self, stmt: ir.Break) -> None:
        self._close_loop()
        self.emit(ir.Break(self.span))

    def _on_continue(self, stmt: ir.Continue) -> None:
        self._close_loop()
        self.emit(ir.Continue(self.span))

    def _on_scope(self, stmt: ir.Scope) -> None:
        if stmt.kind in ("at", "cluster", "auto", "spmd"):
            self._block(stmt.body)
            return
        with self.block() as body:
            if stmt.kind == "split_aiv":
                self.forget()  # a lane loads for itself
            if stmt.kind == "split_aiv" and stmt.var is not None:
                lane = ir.Call("tile.get_subblock_idx", {}, stmt.var.type, {}, self.span)
                self.emit(ir.Assign(stmt.var, lane, self.span))
            self._block(stmt.body)
        self.emit(replace(stmt, body=body))

    # --- loops ---

    def _on_for(self, stmt: ir.For) -> None:
        bounds = [self.scalar(b) for b in (stmt.start, stmt.stop, stmt.step)]
        self._forget_written_in(stmt.body)

        def attempt(varying: Varying) -> tuple[list[ir.Stmt], OpenLoop]:
            loop = self._open_loop(stmt, varying)
            with self.block() as body:
                self._block(stmt.body)
                self._close_loop()
            return body, loop

        body, loop = self._settled(attempt)
        self._leave_loop(loop)
        self.emit(replace(stmt, start=bounds[0], stop=bounds[1], step=bounds[2], body=body))

    def _on_while(self, stmt: ir.While) -> None:
        self._forget_written_in(stmt.body)

        def attempt(varying: Varying) -> tuple[tuple[ir.Expr, list[ir.Stmt]], OpenLoop]:
            loop = self._open_loop(stmt, varying)
            with self.block() as head:
                condition = self.scalar(stmt.condition)
            self.out.extend(head)
            with self.block() as body:
                self._block(stmt.body)
                self._close_loop()
                if head:
                    with self.block() as again:
                        self.scalar(stmt.condition)
                    body.extend(again)
            return (condition, body), loop

        (condition, body), loop = self._settled(attempt)
        self._leave_loop(loop)
        self.emit(replace(stmt, condition=condition, body=body))

    def _settled(self, attempt: Callable[[Varying], tuple[Placed, OpenLoop]]) -> tuple[Placed, OpenLoop]:
        """Place a loop, again whenever its body turned out to change the valid shape of something it carries."""
        varying: Varying = {}
        mark, before = len(self.out), dict(self.values)
        drained, loaded = dict(self.drained), dict(self.loaded)
        while True:
            placed, loop = attempt(varying)
            fresh = {n: axes | varying.get(n, set()) for n, axes in loop.varying.items()}
            if all(axes <= varying.get(n, set()) for n, axes in fresh.items()):
                return placed, loop
            varying = {**varying, **fresh}
            self.loops.pop()
            del self.out[mark:]
            self.values, self.drained, self.loaded = dict(before), dict(drained), dict(loaded)

    def _forget_written_in(self, body: list[ir.Stmt]) -> None:
        """What a loop writes is loaded anew in every iteration."""
        from pypto.ir.accesses import Accesses

        expressions = (e for stmt in body for e in expressions_of(stmt))
        if any(isinstance(e, ir.Call) and e.op.startswith(("system.", "pld.")) for e in expressions):
            self.forget()
            return
        written = Accesses().visit(body).writes
        values = (self.values.get(name, name) for name in written)
        self.forget({self.root_of(v.base.name if isinstance(v, Window) else str(v)) for v in values})

    def _open_loop(self, stmt: ir.For | ir.While, varying: Varying) -> OpenLoop:
        """Give tile variables that the body rebinds and somebody reads later a place that survives an iteration.

        ``varying`` lists the axes of a variable whose valid extent differs between iterations: scalars hold these.
        """
        loop = OpenLoop()
        for name in self._rebound(stmt):
            current = self.values[name]
            if is_window(current) and not self._becomes_tile(name, stmt.body):
                continue
            tile = self.on_chip(current, self._space_of(current))
            if not isinstance(tile, ir.Var):
                continue
            kind = self._with_extents(name, tile.type, varying.get(name, set()))
            holder = self.tile_variable(f"{name}_carried", kind)
            self.bind_name(holder.name, name)
            self._store_carried(holder, tile)
            self.values[name] = holder
            loop.carried[name] = holder
        self.loops.append(loop)
        return loop

    def _with_extents(self, name: str, kind: ir.Type, axes: set[int]) -> ir.Type:
        """``kind`` with a new scalar as the valid extent of each of ``axes``."""
        if not axes or not isinstance(kind, ir.TileType):
            return kind
        extents = tuple(
            ir.Var(self.fresh(f"{name}_valid{axis}"), ir.ScalarType(INDEX), self.span) if axis in axes else extent
            for axis, extent in enumerate(kind.valid_shape)
        )
        return replace(kind, view=replace(kind.view or ir.TileView(), valid_shape=extents))

    @staticmethod
    def _space_of(value: Value) -> MemorySpace:
        space = getattr(value.type, "space", None)
        return space if isinstance(space, MemorySpace) else MemorySpace.Vec

    def _rebound(self, loop: ir.For | ir.While) -> list[str]:
        assigned = dict.fromkeys(v.name for s in statements(loop.body) for v in targets(s))
        kept = self._exposed.at_head(loop)
        held = [n for n in assigned if n in kept and n in self.values]
        return [n for n in held if is_tile(self.values[n]) or is_window(self.values[n])]

    def _becomes_tile(self, name: str, body: list[ir.Stmt]) -> bool:
        """True when ``body`` assigns ``name`` a value that is computed rather than a version of a tensor in GM."""
        from pypto.ir.accesses import Accesses

        accesses = Accesses().visit(body)
        for stmt in statements(body):
            if isinstance(stmt, ir.Assign) and stmt.target.name == name:
                root = accesses.root(stmt.value)
                origin = self.values.get(root) if root else None
                if root is None or not is_window(origin):
                    return True
        return False

    def _close_loop(self) -> None:
        """Bring the carried variables of the innermost loop up to date at the end of an iteration."""
        if not self.loops:
            return
        loop = self.loops[-1]
        updates: list[tuple[ir.Var, ir.Expr]] = []
        for name, holder in loop.carried.items():
            current = self.values.get(name)
            if isinstance(current, Product) or is_window(current):
                current = self.on_chip(current, self._space_of(holder))
            if isinstance(current, ir.Expr) and current != holder:
                tile = self.to_space(current, self._space_of(holder))
                loop.varying.setdefault(name, set()).update(_differing_axes(holder.type, tile.type))
                updates.append((holder, tile))
        for holder, tile in self._ordered(updates):
            self._store_carried(holder, tile)

    def _ordered(self, updates: list[tuple[ir.Var, ir.Expr]]) -> list[tuple[ir.Var, ir.Expr]]:
        """``updates`` as a simultaneous assignment: what a later one still reads is copied first."""
        result = list(updates)
        for position, (holder, tile) in enumerate(result):
            earlier = {h.name for h, _ in result[:position]}
            if isinstance(tile, ir.Var) and tile.name in earlier:
                copy = self.tile_variable(f"{tile.name}_before", tile.type)
                self.derive_name(copy, tile)
                self.emit(ir.Assign(copy, tile, self.span))
                result[position] = (holder, copy)
        return result

    def _store_carried(self, holder: ir.Var, current: ir.Expr) -> None:
        kind, have = holder.type, current.type
        if isinstance(kind, ir.TileType) and isinstance(have, ir.TileType):
            for wanted, extent in zip(kind.valid_shape, have.valid_shape):
                if isinstance(wanted, ir.Var) and wanted != extent:
                    self.emit(ir.Assign(wanted, ir.as_expr(extent), self.span))
        self.emit(ir.Assign(holder, current, self.span))

    def _leave_loop(self, loop: OpenLoop) -> None:
        self.loops.pop()
        for name, holder in loop.carried.items():
            self.values[name] = holder

    # --- branches ---

    def _on_if(self, stmt: ir.If) -> None:
        condition = self.scalar(stmt.condition)
        before = dict(self.values)
        with self.block() as then_body:
            self._block(stmt.then_body)
        then_values = self.values
        self.values = dict(before)
        with self.block() as else_body:
            self._block(stmt.else_body)
        else_values = self.values
        needed = self._exposed.after(stmt)
        if _ends(stmt.then_body) or _ends(stmt.else_body):
            self.values = else_values if _ends(stmt.then_body) else then_values
        else:
            self._merge(before, needed, then_values, else_values, then_body, else_body)
        self.emit(ir.If(condition, then_body, else_body, span=self.span))

    def _merge(
        self,
        before: dict[str, Value],
        needed: frozenset[str],
        then_values: dict[str, Value],
        else_values: dict[str, Value],
        then_body: list[ir.Stmt],
        else_body: list[ir.Stmt],
    ) -> None:
        merged = dict(before)
        for name in then_values:
            first, second = then_values[name], else_values.get(name)
            if second is None or first is second or first == second or name not in needed:
                merged[name] = first
                continue
            merged[name] = self._joined(name, first, second, then_body, else_body)
        self.values = merged

    def _joined(
        self, name: str, first: Value, second: Value, then_body: list[ir.Stmt], else_body: list[ir.Stmt]
    ) -> Value:
        if (
            isinstance(first, Window)
            and isinstance(second, Window)
            and first.base == second.base
            and first.extents == second.extents
            and first.offsets == second.offsets
        ):
            return first
        space = self._space_of(first if is_tile(first) else second)
        tiles: list[ir.Expr] = []
        for value, body in ((first, then_body), (second, else_body)):
            with self.block() as tail:
                tiles.append(self.on_chip(value, space))
            body.extend(tail)
        kind = self._with_extents(name, tiles[0].type, _differing_axes(tiles[0].type, tiles[1].type))
        holder = self.tile_variable(f"{name}_joined", kind)
        self.bind_name(holder.name, name)
        for tile, body in zip(tiles, (then_body, else_body)):
            with self.block() as tail:
                self._store_carried(holder, tile)
            body.extend(tail)
        return holder


def _differing_axes(first: ir.Type, second: ir.Type) -> set[int]:
    """Axes on which two tiles of one shape have different valid extents."""
    if not isinstance(first, ir.TileType) or not isinstance(second, ir.TileType):
        return set()
    pairs = zip(first.valid_shape, second.valid_shape)
    return {axis for axis, (a, b) in enumerate(pairs) if a != b}


def _ends(body: list[ir.Stmt]) -> bool:
    """True when a branch never reaches its end."""
    return bool(body) and isinstance(body[-1], (ir.Break, ir.Continue, ir.Return))


def _marked_accumulators(body: list[ir.Stmt]) -> list[ir.Stmt]:
    """Tensors created to accumulate matrix products belong in Acc from the start."""
    accumulators: set[str] = set()
    for stmt in statements(body):
        for expr in expressions_of(stmt) if not list(blocks(stmt)) else ():
            if isinstance(expr, ir.Call) and expr.op in ("tensor.matmul_acc", "tile.matmul_acc"):
                acc: Any = expr.arguments.get("acc")
                if isinstance(acc, ir.Var):
                    accumulators.add(acc.name)
    for stmt in statements(body):
        if not isinstance(stmt, ir.Assign) or stmt.target.name not in accumulators:
            continue
        if isinstance(stmt.value, ir.Call) and stmt.value.op == "tensor.create":
            stmt.value = replace(stmt.value, attrs={**stmt.value.attrs, "accumulator": True})
    return body

"""Split the vector part of a mixed kernel over both vector cores of its cluster (``pl.split``, spec language 5.2).

Every tile in the vector memory is either halved along the split axis, one half per lane, or held whole by both lanes.
Holding it whole is always right, so halving is the default and whatever needs a whole tile spreads that need to the
tiles it is tied to: reductions along the axis, odd extents, partly valid tiles, operations without a rule. A store of
a whole tile and a scalar write are done by lane 0 alone. Kernels that read from GM what their vector side wrote there,
or have other effects that two lanes would repeat, stay on one lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir import operations
from pypto.ir.dtype import BOOL, INDEX
from pypto.ir.enums import FunctionType, MemorySpace, SplitMode
from pypto.ir.simplify import fold
from pypto.ir.walk import blocks, direct_expressions, statements, targets, walk

LANES = 2
LOCAL_KINDS = ("elementwise", "broadcast", "cast", "reduce")
"""Kinds of operations whose result at a position needs its operands at that position, or at a whole line of it."""
PURE_KINDS = (*LOCAL_KINDS, "memory", "transform", "gather", "sort")
SOURCES = {"tile.load": "shapes", "tile.full": "shape", "tile.create": "shape"}
"""Operations that make a tile from nothing in the vector memory, with the argument that states its extents."""
ROW_BYTES = 32
"""A row of a vector tile is a multiple of this (spec language 7.3)."""


def split_lanes(program: ir.Program) -> ir.Program:
    """Split every kernel of ``program`` that asks for it and has something to split."""
    functions = {
        name: _split(function) if _asks(function) else function for name, function in program.functions.items()
    }
    return replace(program, functions=functions)


def _asks(function: ir.Function) -> bool:
    mode = function.attrs.get("split", SplitMode.NONE)
    fresh = function.attrs.get("placed") and not function.attrs.get("dual_aiv_dispatch")
    return bool(fresh and mode != SplitMode.NONE and function.type == FunctionType.InCore)


def _split(function: ir.Function) -> ir.Function:
    axis = -2 if function.attrs["split"] == SplitMode.UP_DOWN else -1
    groups = Groups(function.body, axis)
    if not groups.possible:
        return function
    lane = ir.Var(_unused("lane", function), ir.ScalarType(INDEX), function.span)
    index = ir.Call("tile.get_subblock_idx", {}, lane.type, {}, function.span)
    body = [ir.Assign(lane, index, function.span), *_Halves(groups, axis, lane).block(function.body)]
    return replace(function, body=body, attrs={**function.attrs, "dual_aiv_dispatch": True})


def _unused(base: str, function: ir.Function) -> str:
    taken = {p.name for p in function.params} | {v.name for s in statements(function.body) for v in targets(s)}
    taken |= {s.var.name for s in statements(function.body) if isinstance(s, ir.For)}
    while base in taken:
        base = f"{base}_"
    return base


def on_vector(kind: ir.Type) -> bool:
    """True for tiles in the vector memory."""
    return isinstance(kind, ir.TileType) and kind.space in (None, MemorySpace.Vec)


def on_cube(kind: ir.Type) -> bool:
    """True for tiles in a memory of the cube core."""
    return isinstance(kind, ir.TileType) and not on_vector(kind)


def crossing(call: ir.Call) -> str | None:
    """``down`` for a move from the cube to the vector memory, ``up`` for the way back, else ``None``."""
    if call.op != "tile.move":
        return None
    source, target = call.arguments["tile"].type, call.type
    if on_cube(source) and on_vector(target):
        return "down"
    return "up" if on_vector(source) and on_cube(target) else None


class Groups:
    """Which tiles are tied together, and which groups must stay whole."""

    def __init__(self, body: list[ir.Stmt], axis: int):
        self.axis = axis
        self._parent: dict[str, str] = {}
        self._whole: set[str] = set()
        self._single = True  # nothing that two lanes would wrongly do twice
        self._crossed: list[str] = []
        self._loaded: set[str] = set()
        self._stored: set[str] = set()
        for stmt in statements(body):
            self._visit(stmt)
        whole = {self._root(name) for name in self._whole}
        self.halved = {name for name in self._parent if self._root(name) not in whole}

    @property
    def possible(self) -> bool:
        """True when some value that changes sides is halved and no effect would be repeated."""
        return self._single and not self._loaded & self._stored and any(n in self.halved for n in self._crossed)

    def _root(self, name: str) -> str:
        while self._parent.setdefault(name, name) != name:
            name = self._parent[name]
        return name

    # --- constraints ---

    def _visit(self, stmt: ir.Stmt) -> None:
        for expr in direct_expressions(stmt):
            for inner in walk(expr):
                if isinstance(inner, ir.Var) and on_vector(inner.type):
                    self._note(inner)
                self._note_element(inner)
        if isinstance(stmt, ir.Assign):
            self._assign(stmt.target, stmt.value)
        elif isinstance(stmt, (ir.TupleAssign, ir.Evaluate)):
            self._keep_whole(*direct_expressions(stmt))
            self._single &= not _has_effect(stmt.value)
        elif isinstance(stmt, ir.Scope) and stmt.kind == "split_aiv":
            self._single = False
        else:
            self._keep_whole(*direct_expressions(stmt))

    def _note_element(self, expr: ir.Expr) -> None:
        """Scalar accesses of GM: lane 0 writes, so nothing written may be read back."""
        if isinstance(expr, ir.Call) and expr.op in ("tensor.read", "tensor.write"):
            names = self._loaded if expr.op == "tensor.read" else self._stored
            names.add(next(v.name for v in expr.arguments.values() if isinstance(v, ir.Var)))

    def _note(self, variable: ir.Var) -> None:
        kind = variable.type
        assert isinstance(kind, ir.TileType)
        self._root(variable.name)
        if not _divisible(kind, self.axis):
            self._whole.add(variable.name)

    def _tie(self, first: ir.Var, second: ir.Var) -> None:
        self._parent[self._root(first.name)] = self._root(second.name)

    def _keep_whole(self, *exprs: ir.Expr) -> None:
        for expr in exprs:
            self._whole |= {e.name for e in walk(expr) if isinstance(e, ir.Var) and on_vector(e.type)}

    def _assign(self, target: ir.Var, value: ir.Expr) -> None:
        if on_vector(target.type):
            self._note(target)
        if isinstance(value, ir.Var):
            if on_vector(target.type):
                self._tie(target, value)
        elif isinstance(value, ir.Call):
            self._call(target, value)
        else:
            self._keep_whole(value)

    def _call(self, target: ir.Var, call: ir.Call) -> None:
        way = crossing(call)
        row = operations.find(call.op)
        if way is not None:
            self._crossed.append(target.name if way == "down" else call.arguments["tile"].name)
        elif call.op == "tile.store":
            self._store(call)
        elif call.op in SOURCES:
            self._source(target, call)
        elif row is not None and row.kind in LOCAL_KINDS and on_vector(target.type):
            self._local(target, call)
        elif call.op == "tile.move" and on_vector(target.type):
            self._tie(target, call.arguments["tile"])
        else:
            self._other(target, call)

    def _store(self, call: ir.Call) -> None:
        tile, tensor = call.arguments["tile"], call.arguments["output_tensor"]
        if on_vector(tile.type):
            self._stored.add(tensor.name)

    def _source(self, target: ir.Var, call: ir.Call) -> None:
        if call.op == "tile.load" and on_vector(target.type):
            self._loaded.add(call.arguments["tensor"].name)
            if call.arguments.get("clamp"):
                self._keep_whole(target)

    def _local(self, target: ir.Var, call: ir.Call) -> None:
        operands = [v for v in call.arguments.values() if isinstance(v, ir.Expr) and isinstance(v.type, ir.TileType)]
        extents = {id(v): v.type.shape[self.axis] for v in (*operands, target)}  # type: ignore[attr-defined]
        longest = max(extents.values())
        if any(e not in (1, longest) for e in extents.values()) or not all(isinstance(o, ir.Var) for o in operands):
            self._keep_whole(target, *operands)
            return
        tied = [v for v in (*operands, target) if extents[id(v)] == longest and isinstance(v, ir.Var)]
        for other in tied[1:]:
            self._tie(tied[0], other)
        if extents[id(target)] != longest:
            self._keep_whole(*tied)

    def _other(self, target: ir.Var, call: ir.Call) -> None:
        self._keep_whole(target, call)
        effect = not on_cube(target.type) and _has_effect(call)
        self._single &= not effect


def _divisible(kind: ir.TileType, axis: int) -> bool:
    """True when both lanes get an equal, wholly valid part with aligned rows."""
    extent, rows = kind.shape[axis], kind.shape[-1] * kind.dtype.get_bit() // 8
    flat = all(d == 1 for d in kind.shape[:-2])
    aligned = axis == -2 or rows // LANES % ROW_BYTES == 0
    return len(kind.shape) >= 2 and flat and extent % LANES == 0 and kind.valid_shape == kind.shape and aligned


def static(extent: Any) -> int:
    """A compile-time extent, given as a number or a literal."""
    value = ir.as_dim(extent)
    assert isinstance(value, int)
    return value


def _has_effect(expr: ir.Expr) -> bool:
    """True for operations that do more than compute a value on their own core."""
    if not isinstance(expr, ir.Call):
        return isinstance(expr, ir.FunctionCall)
    row = operations.find(expr.op)
    pure = row is not None and row.kind in PURE_KINDS and expr.op != "tile.mscatter"
    return not pure and expr.op != "system.nothing" and not isinstance(expr.type, ir.ScalarType)


class _Halves:
    """Rewrites the body: halved tiles lose half their extent, crossings become lane transfers."""

    def __init__(self, groups: Groups, axis: int, lane: ir.Var):
        self._groups, self._axis, self._lane = groups, axis, lane
        self._mode = SplitMode.UP_DOWN if axis == -2 else SplitMode.LEFT_RIGHT

    def block(self, body: list[ir.Stmt]) -> list[ir.Stmt]:
        """``body`` as both lanes run it."""
        return [result for stmt in body for result in self._statement(stmt)]

    def _statement(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        if isinstance(stmt, ir.Assign):
            yield self._assign(stmt)
        elif isinstance(stmt, ir.If):
            yield replace(stmt, then_body=self.block(stmt.then_body), else_body=self.block(stmt.else_body))
        elif list(blocks(stmt)):
            yield replace(stmt, body=self.block(stmt.body))  # type: ignore[attr-defined, type-var]
        elif isinstance(stmt, ir.Evaluate) and isinstance(stmt.value, ir.Call) and stmt.value.op == "tensor.write":
            yield self._once(stmt)
        else:
            yield stmt

    def _variable(self, variable: ir.Var) -> ir.Var:
        halved = variable.name in self._groups.halved and on_vector(variable.type)
        return replace(variable, type=self._half(variable.type)) if halved else variable

    def _half(self, kind: ir.Type) -> ir.TileType:
        assert isinstance(kind, ir.TileType)
        view = None if kind.view is None else replace(kind.view, valid_shape=())
        return replace(kind, shape=self._halved_shape(kind.shape), view=None if view == ir.TileView() else view)

    def _halved_shape(self, shape: tuple[Any, ...]) -> tuple[Any, ...]:
        result = list(shape)
        result[self._axis] = static(result[self._axis]) // LANES
        return tuple(result)

    def _assign(self, stmt: ir.Assign) -> ir.Stmt:
        target, value = self._variable(stmt.target), stmt.value
        if isinstance(value, ir.Var):
            return replace(stmt, target=target, value=self._variable(value))
        if not isinstance(value, ir.Call):
            return stmt
        way = crossing(value)
        if way is not None:
            return replace(stmt, target=target, value=self._transfer(way, value, target))
        if value.op == "tile.store" and on_vector(value.arguments["tile"].type):
            return self._store(stmt, value)
        return replace(stmt, target=target, value=self._call(value, target))

    def _transfer(self, way: str, call: ir.Call, target: ir.Var) -> ir.Call:
        tile = call.arguments["tile"]
        halved = (target if way == "down" else tile).name in self._groups.halved
        mode = int(self._mode if halved else SplitMode.NONE)
        op = "tile.aiv_shard" if way == "down" else "tile.aic_gather"
        return ir.Call(op, {"x": self._variable(tile), "split": mode}, target.type, {}, call.span)

    def _call(self, call: ir.Call, target: ir.Var) -> ir.Call:
        arguments: dict[str, Any] = {
            k: self._variable(v) if isinstance(v, ir.Var) else v for k, v in call.arguments.items()
        }
        if not on_vector(target.type) or target.name not in self._groups.halved:
            return replace(call, arguments=arguments)
        if call.op in SOURCES:
            name = SOURCES[call.op]
            half = self._halved_shape(arguments[name])
            arguments[name] = tuple(
                ir.index(d) if isinstance(old, ir.Expr) and isinstance(d, int) else d
                for d, old in zip(half, call.arguments[name])
            )
            if call.op == "tile.load":
                arguments["offsets"] = self._offsets(arguments["offsets"], static(half[self._axis]))
                arguments["valid_shape"] = None
        return replace(call, arguments=arguments, type=target.type)

    def _offsets(self, offsets: tuple[ir.Expr, ...], half: int) -> tuple[ir.Expr, ...]:
        placed = list(offsets)
        own = ir.Binary("*", self._lane, ir.index(half), INDEX)
        placed[self._axis] = fold(ir.Binary("+", ir.as_expr(placed[self._axis]), own, INDEX))
        return tuple(placed)

    def _once(self, stmt: ir.Stmt) -> ir.Stmt:
        """``stmt`` on lane 0 only."""
        return ir.If(ir.Binary("==", self._lane, ir.index(0), BOOL), [stmt], span=stmt.span)

    def _store(self, stmt: ir.Assign, call: ir.Call) -> ir.Stmt:
        tile = call.arguments["tile"]
        if tile.name not in self._groups.halved:
            return self._once(stmt)
        half = self._variable(tile)
        assert isinstance(half.type, ir.TileType)
        offsets = self._offsets(call.arguments["offsets"], half.type.shape[self._axis])
        return replace(stmt, value=replace(call, arguments={**call.arguments, "tile": half, "offsets": offsets}))

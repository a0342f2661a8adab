"""``windowize=True``: a kernel that touches one static window of a tensor gets that window as its argument.

Dependency inference then sees the window only (spec language 5.2). A tensor qualifies when every use of it is a slice,
load, store, assemble or element access whose place is a sum of values fixed for the kernel and of loop variables with
known ends; the window is the box around all of them. Whatever cannot be proven keeps the whole tensor.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir import operations
from pypto.ir.dtype import INDEX
from pypto.ir.operations.results import strides
from pypto.ir.passes.affine import Affine, Offsets, symbols
from pypto.ir.walk import (
    blocks,
    children,
    direct_expressions,
    expressions_of,
    flatten,
    rewrite,
    rewrite_body,
    statements,
    substitution,
    targets,
)


@dataclass(frozen=True)
class _Form:
    """The arguments of an operation that touches a window of a tensor."""

    tensor: str
    offset: str
    shape: str | None = None
    source: str | None = None
    """Operand whose extents are the window's when ``shape`` is not given."""


READS = {
    "tensor.slice": _Form("tensor", "offset", "shape"),
    "tile.load": _Form("tensor", "offsets", "shapes"),
    "tensor.read": _Form("tensor", "indices"),
}
WRITES = {
    "tensor.assemble": _Form("target", "offset", source="source"),
    "tile.store": _Form("output_tensor", "offsets", "shapes", "tile"),
    "tensor.write": _Form("tensor", "indices"),
}


def externalise_windows(program: ir.Program) -> ir.Program:
    """Narrow the tensor parameters of every kernel marked ``windowize``, and what its callers pass."""
    functions = dict(program.functions)
    for name, kernel in program.functions.items():
        if not kernel.attrs.get("windowize"):
            continue
        found = _provable(kernel)
        attrs = {k: v for k, v in kernel.attrs.items() if k != "windowize"}
        functions[name] = replace(_narrowed(kernel, found), attrs=attrs)
        if found:
            for caller, function in list(functions.items()):
                functions[caller] = _Caller(function, functions[name], kernel, found).run()
    return replace(program, functions=functions)


# --- what a kernel touches --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Window:
    """Box of one tensor parameter, in terms of the kernel's parameters; ``names`` are its variables in the kernel."""

    offset: tuple[Affine, ...]
    shape: tuple[ir.Dim, ...]
    names: frozenset[str]
    type: ir.TensorType


def _provable(kernel: ir.Function) -> dict[str, Window]:
    counts: dict[str, int] = {}
    for stmt in statements(kernel.body):
        for variable in targets(stmt):
            counts[variable.name] = counts.get(variable.name, 0) + 1
    given = {p.name for p in kernel.params}
    changing = {name for name, count in counts.items() if count > 1 or name in given}
    offsets = Offsets(given - changing, changing)
    found = {}
    for parameter in kernel.params:
        if isinstance(parameter.type, ir.TensorType):
            window = _Survey(parameter.name, parameter.type, kernel.body, offsets).window()
            if window is not None:
                found[parameter.name] = window
    return {name: window for name, window in found.items() if _bound(kernel, found, name)}


def _bound(kernel: ir.Function, found: dict[str, Window], name: str) -> bool:
    """Whether the symbols of the kernel are still extents of some argument without the whole tensor ``name``."""
    known = {p.name for p in kernel.params}
    for parameter in kernel.params:
        if isinstance(parameter.type, ir.TensorType):
            shape = found[parameter.name].shape if parameter.name in found else parameter.type.shape
            known |= {extent.name for extent in shape if isinstance(extent, ir.Symbol)}
    used = {s for extent in flatten(found[name].type.shape) for s in symbols(extent)}
    return used <= known


class _Survey:
    """The accesses of one tensor parameter in a kernel body."""

    def __init__(self, name: str, kind: ir.TensorType, body: list[ir.Stmt], offsets: Offsets):
        self._type, self._body, self._offsets = kind, body, offsets
        self._names = _names_of(name, body)
        self._boxes: list[list[tuple[Affine, int, int] | None]] = []  # None: the whole extent
        self._fails = False
        self._always = True  # every access so far happens in every run of the kernel

    def window(self) -> Window | None:
        """The box around all accesses, or ``None`` when it is the whole tensor or cannot be proven."""
        if not self._names:
            return None
        self._block(self._body, True)
        if self._fails or not self._boxes:
            return None
        offset: list[Affine] = []
        shape: list[ir.Dim] = []
        for axis, extent in enumerate(self._type.shape):
            joined = self._joined(axis, extent)
            if joined is None:
                return None
            offset.append(joined[0])
            shape.append(joined[1])
        if tuple(shape) == self._type.shape:
            return None
        return Window(tuple(offset), tuple(shape), frozenset(self._names), self._type)

    def _joined(self, axis: int, extent: ir.Dim) -> tuple[Affine, ir.Dim] | None:
        """First element and extent of the box along ``axis``."""
        parts = [box[axis] for box in self._boxes]
        if any(part is None for part in parts):
            return Affine(), extent
        known = [part for part in parts if part is not None]
        fixed, low, high = known[0][0], min(p[1] for p in known), max(p[2] for p in known)
        if any(part[0].terms != fixed.terms for part in known):
            return None
        inside = not fixed.terms and isinstance(extent, int) and low >= 0 and high <= extent
        if not inside and (not self._always or not fixed.terms):
            return None
        return fixed.plus(Affine({}, low)), high - low

    def _block(self, body: list[ir.Stmt], always: bool) -> None:
        for stmt in body:
            inner = always and not isinstance(stmt, (ir.If, ir.While))
            if isinstance(stmt, ir.For):
                inner = self._offsets.enter(stmt) and inner
            if isinstance(stmt, ir.Assign) and isinstance(stmt.target.type, ir.ScalarType):
                self._offsets.define(stmt.target.name, stmt.value)
            renames = isinstance(stmt, (ir.Assign, ir.Return))
            for expr in direct_expressions(stmt):
                if not (renames and isinstance(expr, ir.Var)):
                    self._expr(expr, always)
            for block in blocks(stmt):
                self._block(block, inner)

    def _expr(self, expr: ir.Expr, always: bool) -> None:
        if isinstance(expr, ir.Var):
            self._fails |= expr.name in self._names
            return
        form = (READS.get(expr.op) or WRITES.get(expr.op)) if isinstance(expr, ir.Call) else None
        if form is None or not isinstance(expr, ir.Call) or not _is_whole(expr.arguments[form.tensor], self._names):
            for inner in children(expr):
                self._expr(inner, always)
            return
        self._access(expr, form)
        self._always &= always
        for name, value in expr.arguments.items():
            for inner in flatten(value):
                if name != form.tensor or not isinstance(inner, ir.Var):
                    self._expr(inner, always)

    def _access(self, call: ir.Call, form: _Form) -> None:
        offset = call.arguments[form.offset]
        extents = window_extents(call, form)
        if extents is None or len(extents) != len(self._type.shape) or len(offset) != len(extents):
            self._fails = True
            return
        box: list[tuple[Affine, int, int] | None] = []
        for at, extent, whole in zip(offset, extents, self._type.shape):
            first = self._offsets.read(at)
            if first == Affine() and extent == whole:
                box.append(None)
            elif first is not None and isinstance(extent, int):
                fixed, low, high = self._offsets.split(first)
                box.append((fixed, low, high + extent))
            else:
                self._fails = True
                return
        self._boxes.append(box)


def window_extents(call: ir.Call, form: _Form) -> tuple[ir.Dim, ...] | None:
    """Extents of the window of an access; ``None`` when it may reach outside (clamped or partially valid)."""
    arguments = call.arguments
    if arguments.get("clamp") or arguments.get("valid_shape") is not None:
        return None
    shape = arguments.get(form.shape) if form.shape else None
    if shape is not None:
        return tuple(map(_plain, shape))
    if form.source is None:
        return (1,) * len(arguments[form.offset])
    kind = arguments[form.source].type
    if kind.valid_shape != tuple(kind.shape):
        return None
    return tuple(map(_plain, kind.shape))


def _plain(extent: Any) -> ir.Dim:
    return ir.as_dim(extent) if isinstance(extent, ir.Expr) else extent


def _names_of(parameter: str, body: list[ir.Stmt]) -> set[str]:
    """Variables that always are the whole tensor ``parameter``; empty when one of them is something else elsewhere."""
    names, size = {parameter}, 0
    assigned = [s for s in statements(body) if isinstance(s, (ir.Assign, ir.TupleAssign))]
    while len(names) != size:
        size = len(names)
        names |= {s.target.name for s in assigned if isinstance(s, ir.Assign) and _is_whole(s.value, names)}
    for stmt in assigned:
        if {v.name for v in targets(stmt)} & names and not _is_whole(stmt.value, names):
            return set()
    return names


def _is_whole(value: Any, names: set[str] | frozenset[str]) -> bool:
    if isinstance(value, ir.Var):
        return value.name in names
    if isinstance(value, ir.Call) and value.op in WRITES:
        return _is_whole(value.arguments[WRITES[value.op].tensor], names)
    return False


# --- the kernel -------------------------------------------------------------------------------------------------------


def _window_type(window: Window) -> ir.TensorType:
    view = window.type.view or ir.TensorView()
    view = replace(view, stride=strides(window.type), valid_shape=())
    return replace(window.type, shape=window.shape, view=view)


def _narrowed(kernel: ir.Function, found: dict[str, Window]) -> ir.Function:
    """The kernel with window parameters; offsets count from the window's start."""
    result = kernel
    for name, window in found.items():
        kind = _window_type(window)
        body = rewrite_body(result.body, _moved(window, kind))
        params = [replace(p, type=kind) if p.name == name else p for p in result.params]
        result = replace(result, params=params, body=body)
    types = {p.name: p.type for p in result.params}
    returns = kernel.attrs.get("returns", ())
    kinds = tuple(
        kind if source is None else types[kernel.params[source].name]
        for source, kind in zip(returns, kernel.return_types)
    )
    return replace(result, return_types=kinds)


def _moved(window: Window, kind: ir.TensorType) -> Any:
    def change(expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Var) and expr.name in window.names:
            return replace(expr, type=kind)
        form = (READS.get(expr.op) or WRITES.get(expr.op)) if isinstance(expr, ir.Call) else None
        if form is None or not isinstance(expr, ir.Call) or not _is_whole(expr.arguments[form.tensor], window.names):
            return expr
        offset = tuple(_less(at, start) for at, start in zip(expr.arguments[form.offset], window.offset))
        result = kind if expr.op in WRITES and isinstance(expr.type, ir.TensorType) else expr.type
        return replace(expr, arguments={**expr.arguments, form.offset: offset}, type=result)

    return change


def _less(at: Any, start: Affine) -> Any:
    read = Offsets().read(at)
    if read is None:
        return ir.Binary("-", at, start.expression(), INDEX)
    return read.plus(start, -1).expression()


# --- its callers ------------------------------------------------------------------------------------------------------


@dataclass
class _Caller:
    """Rewrites the calls of one kernel in one function."""

    function: ir.Function
    kernel: ir.Function
    before: ir.Function
    """The kernel as it was."""
    found: dict[str, Window]
    taken: set[str] = field(default_factory=set)

    def run(self) -> ir.Function:
        calls = (e for s in self.function.body for e in expressions_of(s) if isinstance(e, ir.FunctionCall))
        if not any(call.callee == self.kernel.name for call in calls):
            return self.function
        self.taken = {v.name for s in statements(self.function.body) for v in targets(s)}
        self.taken |= {p.name for p in self.function.params}
        return replace(self.function, body=self._block(self.function.body))

    def _block(self, body: list[ir.Stmt]) -> list[ir.Stmt]:
        result: list[ir.Stmt] = []
        for stmt in body:
            call = getattr(stmt, "value", None)
            if isinstance(call, ir.FunctionCall) and call.callee == self.kernel.name:
                result += self._call(stmt, call)
            elif isinstance(stmt, ir.If):
                result.append(
                    replace(stmt, then_body=self._block(stmt.then_body), else_body=self._block(stmt.else_body))
                )
            elif isinstance(stmt, (ir.For, ir.While, ir.Scope)):
                result.append(replace(stmt, body=self._block(stmt.body)))
            else:
                result.append(stmt)
        return result

    def _call(self, stmt: ir.Stmt, call: ir.FunctionCall) -> list[ir.Stmt]:
        args, views, windows = list(call.args), [], {}
        given = substitution({p.name: a for p, a in zip(self.before.params, call.args)})
        for position, parameter in enumerate(self.before.params):
            window = self.found.get(parameter.name)
            if window is None:
                continue
            offset = tuple(rewrite(o.expression(), given) for o in window.offset)
            shape = tuple(rewrite(e, given) if isinstance(e, ir.Expr) else ir.index(e) for e in window.shape)
            view = operations.build("tensor", "slice", [args[position], shape, offset], {}, stmt.span)
            author = getattr(args[position], "name", "")
            variable = ir.Var(self._name(args[position]), view.type, stmt.span, author)
            views.append(ir.Assign(variable, view, stmt.span))
            windows[position] = args[position]
            args[position] = variable
        return [*views, *self._bound(stmt, call, tuple(args), windows)]

    def _name(self, argument: ir.Expr) -> str:
        base = f"{argument.name}_window" if isinstance(argument, ir.Var) else "window"
        name, number = base, 0
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name

    def _bound(
        self, stmt: ir.Stmt, call: ir.FunctionCall, args: tuple[ir.Expr, ...], windows: dict[int, ir.Expr]
    ) -> list[ir.Stmt]:
        """The call itself; a result that is a window is bound to the view, the tensor keeps its name."""
        bound = [stmt.target] if isinstance(stmt, ir.Assign) else list(getattr(stmt, "targets", ()))
        after: list[ir.Stmt] = []
        kinds = list(call.type.items) if isinstance(call.type, ir.TupleType) else [call.type]
        for position, source in enumerate(call.attrs.get("returns", ())):
            if source not in windows:
                continue
            kinds[position] = args[source].type
            if position < len(bound):
                if bound[position] != windows[source]:
                    after.append(ir.Assign(bound[position], windows[source], stmt.span))
                bound[position] = args[source]
        kind = ir.TupleType(tuple(kinds)) if isinstance(call.type, ir.TupleType) else kinds[0]
        launch = replace(call, args=args, type=kind, attrs=self._attrs(call, args))
        if isinstance(stmt, ir.Assign):
            return [replace(stmt, target=bound[0], value=launch), *after]
        if isinstance(stmt, ir.TupleAssign):
            return [replace(stmt, targets=tuple(bound), value=launch), *after]
        return [replace(stmt, value=launch), *after]  # type: ignore[type-var]

    @staticmethod
    def _attrs(call: ir.FunctionCall, args: tuple[ir.Expr, ...]) -> dict[str, Any]:
        """Launch attributes; tensors to dump are named by what is passed."""
        passed = {a.name: b.name for a, b in zip(call.args, args) if isinstance(a, ir.Var) and isinstance(b, ir.Var)}
        attrs = dict(call.attrs)
        if attrs.get("dumps"):
            attrs["dumps"] = tuple(passed.get(name, name) for name in attrs["dumps"])
        return attrs

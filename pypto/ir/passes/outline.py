"""Turn core scopes into InCore functions and the block they stood in into a call (spec language 5.6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.accesses import Accesses
from pypto.ir.dtype import INDEX, TASK_ID
from pypto.ir.enums import FunctionType, Level, ParamDirection, Role
from pypto.ir.errors import CompileError
from pypto.ir.liveness import live_at_head, live_behind
from pypto.ir.walk import (
    direct_expressions,
    flatten,
    has_lane_region,
    rewrite_body,
    rewrite_type,
    statements,
    substitution,
    targets,
    walk,
)

OUTLINED_FROM = (FunctionType.Opaque, FunctionType.Orchestration, FunctionType.Graph)
LAUNCH_ATTRS = ("deps", "sync_start", "allow_early_resolve", "predicate", "core_num")


def outline(program: ir.Program) -> ir.Program:
    """Outline every core scope of the orchestration functions of ``program``."""
    functions: dict[str, ir.Function] = {}
    taken = set(program.functions)
    for name, function in program.functions.items():
        if function.type in OUTLINED_FROM and not function.attrs.get("python"):
            outliner = Outliner(function, program.functions, taken)
            outlined = outliner.run()
            functions.update(outliner.created)
            functions[name] = outlined
        else:
            functions[name] = function
    return replace(program, functions=functions)


class Outliner:
    """Outlines the scopes of one function."""

    def __init__(self, function: ir.Function, functions: dict[str, ir.Function], taken: set[str]):
        self.function, self.functions, self._taken = function, functions, taken
        self.created: dict[str, ir.Function] = {}
        self._count: dict[str, int] = {}
        self._defined: dict[str, ir.Type] = {p.name: p.type for p in function.params}
        self._authors = {p.name: p.author for p in function.params}
        self._authors |= {v.name: v.author for s in statements(function.body) for v in targets(s) if v.author}

    def run(self) -> ir.Function:
        body = self._block(self.function.body, live_behind(self.function.body, set()))
        kind = self.function.type
        level, role = self.function.level, self.function.role
        if (
            kind == FunctionType.Opaque
            and self.created
            and (self.function.level is None or self.function.level.number < 3)
        ):
            kind, level, role = FunctionType.Orchestration, Level.CHIP, Role.Orchestrator
        return replace(self.function, body=body, type=kind, level=level, role=role)

    # --- blocks ---

    def _block(self, body: list[ir.Stmt], later: list[set[str]]) -> list[ir.Stmt]:
        """``later[i]`` names what is read behind statement ``i`` of ``body`` before it is assigned again."""
        result: list[ir.Stmt] = []
        for stmt, after in zip(body, later):
            result += self._statement(stmt, after)
            for variable in targets(stmt):
                self._defined[variable.name] = variable.type
        return result

    def _nested(self, body: list[ir.Stmt], after: set[str]) -> list[ir.Stmt]:
        return self._block(body, live_behind(body, after, after))

    def _statement(self, stmt: ir.Stmt, after: set[str]) -> list[ir.Stmt]:
        if isinstance(stmt, ir.Scope):
            return self._scope(stmt, after)
        if isinstance(stmt, (ir.For, ir.While)):
            again = live_at_head(stmt, after)
            if isinstance(stmt, ir.For):
                self._defined[stmt.var.name] = stmt.var.type
            return [replace(stmt, body=self._nested(stmt.body, again))]
        if isinstance(stmt, ir.If):
            return [
                replace(
                    stmt, then_body=self._nested(stmt.then_body, after), else_body=self._nested(stmt.else_body, after)
                )
            ]
        return [stmt]

    def _scope(self, scope: ir.Scope, after: set[str]) -> list[ir.Stmt]:
        if scope.kind == "at" and scope.attrs["level"] == Level.CORE_GROUP:
            return self._outline(scope, scope.body, scope.attrs, after, "incore")
        if scope.kind == "spmd":
            return self._spmd(scope, after)
        if scope.kind == "cluster":
            return self._cluster(scope, after)
        if scope.kind == "split_aiv":
            inner = replace(scope)
            return self._outline(scope, [inner], {}, after, "incore")
        if scope.kind == "at":
            return self._nested(scope.body, after)
        return [replace(scope, body=self._nested(scope.body, after))]

    def _spmd(self, scope: ir.Scope, after: set[str]) -> list[ir.Stmt]:
        dispatch = self._single_call(scope.body)
        if dispatch is not None and scope.var is None and "split" not in scope.attrs:
            return self._launched_call(scope, dispatch)
        body, attrs = scope.body, dict(scope.attrs)
        if len(body) == 1 and isinstance(body[0], ir.Scope) and body[0].kind == "at":
            attrs = {**body[0].attrs, **attrs}
            body = body[0].body
        if scope.var is not None:
            body = [_block_index(scope.var, scope), *body]
        return self._outline(scope, body, attrs, after, "incore")

    @staticmethod
    def _single_call(body: list[ir.Stmt]) -> ir.Stmt | None:
        calls = [s for s in body if isinstance(getattr(s, "value", None), ir.FunctionCall)]
        return calls[0] if len(calls) == 1 and len(body) == 1 else None

    def _launched_call(self, scope: ir.Scope, stmt: ir.Stmt) -> list[ir.Stmt]:
        """``with pl.spmd(n): x = self.kernel(...)``: the call itself becomes the launch."""
        call: ir.FunctionCall = stmt.value  # type: ignore[attr-defined]
        attrs = {**call.attrs, **{k: v for k, v in scope.attrs.items() if k in LAUNCH_ATTRS}}
        launched = self._launch(call.callee, call.args, call.type, attrs, scope)
        if isinstance(stmt, ir.Assign):
            return self._bound(launched, [stmt.target], scope)
        if isinstance(stmt, ir.TupleAssign):
            return self._bound(launched, list(stmt.targets), scope)
        return self._bound(launched, [], scope)

    def _cluster(self, scope: ir.Scope, after: set[str]) -> list[ir.Stmt]:
        """The scopes of a cluster become one kernel, whose cube and vector parts are separated later."""
        if any(isinstance(getattr(s, "value", None), ir.FunctionCall) for s in statements(scope.body)):
            return self._grouped_calls(scope, after)
        body, attrs = _flattened(scope.body), dict(scope.attrs)
        for inner in scope.body:
            if isinstance(inner, ir.Scope):
                attrs = {**{k: v for k, v in inner.attrs.items() if k != "level"}, **attrs}
        return self._outline(scope, body, attrs, after, "cluster")

    def _grouped_calls(self, scope: ir.Scope, after: set[str]) -> list[ir.Stmt]:
        """A cluster of kernel calls becomes one Group of these kernels."""
        body = _flattened(scope.body)
        accesses = Accesses().visit(body, self.functions)
        captured = self._captured(body)
        params, args = self._params(captured, accesses, scope)
        written = tuple(i for i, p in enumerate(params) if p.direction != ParamDirection.In)
        name = self._name(scope.attrs.get("name_hint") or "", "cluster")
        types = tuple(params[i].type for i in written)
        returns = tuple(ir.Var(params[i].name, params[i].type, scope.span) for i in written)
        self.created[name] = ir.Function(
            name,
            params,
            [*body, ir.Return(returns, scope.span)],
            FunctionType.Group,
            Level.CORE_GROUP,
            Role.SubWorker,
            types,
            {"returns": written, "declares_return": True},
            True,
            scope.span,
        )
        call = self._launch(name, tuple(args), _result_type(list(types)), {"returns": written}, scope)
        return self._bound(call, [self._defined_var(args[i]) for i in written], scope)

    # --- one scope ---

    def _outline(
        self, scope: ir.Scope, body: list[ir.Stmt], attrs: dict[str, Any], after: set[str], label: str
    ) -> list[ir.Stmt]:
        accesses = Accesses().visit(body)
        captured = self._captured(body)
        assigned = {v.name: v.type for s in statements(body) for v in targets(s)}
        created = self._created_outputs(assigned, accesses, captured, after, scope)
        params, args = self._params(captured, accesses, scope)
        written = [i for i, p in enumerate(params) if p.direction != ParamDirection.In]
        tail: list[ir.Stmt] = []
        before: list[ir.Stmt] = []
        renamed: list[ir.Stmt] = []
        for name, kind in created.items():
            holder = f"{name}_out"
            own = name if name not in captured else self._fresh(f"{name}_next")
            result = ir.Var(own, kind, scope.span, self._author(name))
            written.append(len(params))
            params.append(ir.Param(holder, kind, ParamDirection.Out, author=self._author(name)))
            args.append(result)
            before.append(ir.Assign(result, _create(kind, scope), scope.span))
            tail.append(
                ir.Evaluate(_assemble(ir.Var(holder, kind, scope.span), ir.Var(name, kind, scope.span)), scope.span)
            )
            self._defined[name] = self._defined[result.name] = kind
            if result.name != name:
                renamed.append(ir.Assign(ir.Var(name, kind, scope.span), result, scope.span))
        returns = tuple(ir.Var(params[i].name, params[i].type, scope.span) for i in written)
        kernel_attrs = {k: v for k, v in attrs.items() if k in ("split", "slot_num", "windowize")}
        kernel_attrs["returns"] = tuple(written)
        kernel_attrs["declares_return"] = True
        if has_lane_region(body):
            kernel_attrs[ir.LANE_REGION_CHECKED] = True
        name = self._name(attrs.get("name_hint") or "", label)
        kernel = ir.Function(
            name,
            params,
            [*body, *tail, ir.Return(returns, scope.span)],
            FunctionType.InCore,
            Level.CHIP_DIE,
            Role.SubWorker,
            tuple(p.type for i, p in enumerate(params) if i in written),
            kernel_attrs,
            True,
            scope.span,
        )
        self.created[name] = _with_symbols(kernel)
        launch = {k: v for k, v in attrs.items() if k in LAUNCH_ATTRS}
        launch["returns"] = tuple(written)
        launch.update(self._name_lists(attrs, args))
        kind = _result_type([params[i].type for i in written])
        call = self._launch(name, tuple(args), kind, launch, scope)
        results = [self._defined_var(args[i]) for i in written]
        aliases = self._aliases(assigned, accesses, captured, after, scope)
        return [*before, *self._bound(call, results, scope), *renamed, *aliases]

    def _author(self, name: str) -> str:
        """What the source calls the variable ``name``."""
        return self._authors.get(name) or name

    def _fresh(self, base: str) -> str:
        number, name = 0, base
        while name in self._defined:
            number += 1
            name = f"{base}_{number}"
        return name

    def _name_lists(self, attrs: dict[str, Any], args: list[ir.Expr]) -> dict[str, Any]:
        position = {a.name: i for i, a in enumerate(args) if isinstance(a, ir.Var)}
        found: dict[str, Any] = {}
        if attrs.get("no_dep_args"):
            found["no_dep"] = tuple(position[n] for n in attrs["no_dep_args"] if n in position)
        if attrs.get("dumps"):
            found["dumps"] = attrs["dumps"]
        return found

    @staticmethod
    def _defined_var(arg: ir.Expr) -> ir.Var:
        assert isinstance(arg, ir.Var)
        return arg

    def _launch(
        self, callee: str, args: tuple[ir.Expr, ...], kind: ir.Type, attrs: dict[str, Any], scope: ir.Scope
    ) -> ir.FunctionCall:
        special = scope.task is not None or any(k in attrs for k in (*LAUNCH_ATTRS, "dumps"))
        form = "call" if not special else "spmd_submit" if "core_num" in attrs else "submit"
        if form != "call":
            items = kind.items if isinstance(kind, ir.TupleType) else () if isinstance(kind, ir.NoneType) else (kind,)
            kind = ir.TupleType((*items, ir.ScalarType(TASK_ID)))
        return ir.FunctionCall(callee, args, kind, form, attrs, scope.span)

    def _bound(self, call: ir.FunctionCall, results: list[ir.Var], scope: ir.Scope) -> list[ir.Stmt]:
        if call.kind != "call":
            task = scope.task or ir.Var(f"{call.callee}_task{len(self._defined)}", ir.ScalarType(TASK_ID), scope.span)
            self._defined[task.name] = task.type
            return [ir.TupleAssign((*results, task), call, scope.span)]
        if not results:
            return [ir.Evaluate(call, scope.span)]
        if len(results) == 1:
            return [ir.Assign(results[0], call, scope.span)]
        return [ir.TupleAssign(tuple(results), call, scope.span)]

    # --- captured values ---

    def _captured(self, body: list[ir.Stmt]) -> dict[str, ir.Type]:
        """Variables of the enclosing function that ``body`` mentions, and free symbols.

        In order of first use, after those that stand in extents: a parameter is declared before the types that use it.
        """
        found: dict[str, ir.Type] = {}
        for stmt in statements(body):
            for expr in direct_expressions(stmt):
                for inner in walk(expr):
                    self._note(inner, found)
            for target in targets(stmt):
                self._note(target, found)
        for kind in list(found.values()):
            self._note_type(kind, found)
        parts = (e for kind in found.values() for extent in _extents(kind) for e in walk(extent))
        extents = {e.name for e in parts if isinstance(e, (ir.Var, ir.Symbol))}
        return {name: found[name] for name in sorted(found, key=lambda name: name not in extents)}

    def _note(self, expr: ir.Expr, found: dict[str, ir.Type]) -> None:
        if isinstance(expr, ir.Var) and expr.name in self._defined and expr.name not in found:
            found[expr.name] = self._defined[expr.name]
        if isinstance(expr, ir.Symbol):
            found.setdefault(expr.name, ir.ScalarType(INDEX))
        if isinstance(expr, (ir.Call, ir.Var)):
            self._note_type(expr.type, found)

    def _note_type(self, kind: ir.Type, found: dict[str, ir.Type]) -> None:
        for extent in _extents(kind):
            for inner in walk(extent):
                if isinstance(inner, (ir.Var, ir.Symbol)):
                    self._note(inner, found)

    def _params(
        self, captured: dict[str, ir.Type], accesses: Accesses, scope: ir.Scope
    ) -> tuple[list[ir.Param], list[ir.Expr]]:
        params: list[ir.Param] = []
        args: list[ir.Expr] = []
        bound = {
            e.name
            for k in captured.values()
            if isinstance(k, ir.TensorType)
            for e in k.shape
            if isinstance(e, ir.Symbol)
        }
        for name, kind in captured.items():
            if isinstance(kind, (ir.TileType, ir.ArrayType)):
                raise CompileError(
                    f"{name!r} is {_kind_name(kind)} and cannot enter a core scope from outside", scope.span
                )
            is_symbol = name not in self._defined
            if is_symbol and name in bound:
                continue
            direction = ParamDirection.In
            if isinstance(kind, ir.TensorType) and name in accesses.writes:
                direction = ParamDirection.InOut if name in accesses.reads else ParamDirection.Out
            params.append(ir.Param(name, kind, direction, author=self._author(name)))
            args.append(ir.Symbol(name, scope.span) if is_symbol else ir.Var(name, kind, scope.span))
        return params, args

    def _created_outputs(
        self,
        assigned: dict[str, ir.Type],
        accesses: Accesses,
        captured: dict[str, ir.Type],
        after: set[str],
        scope: ir.Scope,
    ) -> dict[str, ir.Type]:
        """Tensors computed in the scope and read after it: the caller allocates them."""
        created: dict[str, ir.Type] = {}
        for name, kind in assigned.items():
            if name not in after or name in captured and not _replaced(name, accesses, scope):
                continue
            if accesses.roots.get(name) in captured:
                continue
            if isinstance(kind, ir.TensorType):
                created[name] = kind
            elif not (isinstance(kind, ir.ScalarType) and kind.dtype == TASK_ID):
                raise CompileError(
                    f"{name!r} is {_kind_name(kind)} computed in a core scope and cannot be read outside it",
                    scope.span,
                    "write it to a tensor inside the scope and read the tensor",
                )
        return created

    def _aliases(
        self,
        assigned: dict[str, ir.Type],
        accesses: Accesses,
        captured: dict[str, ir.Type],
        after: set[str],
        scope: ir.Scope,
    ) -> list[ir.Stmt]:
        """Names bound in the scope to versions of captured tensors, for the code after it."""
        result: list[ir.Stmt] = []
        for name, kind in assigned.items():
            root = accesses.roots.get(name)
            if (
                name in after
                and root in captured
                and root != name
                and name not in captured
                and isinstance(kind, ir.TensorType)
            ):
                result.append(
                    ir.Assign(ir.Var(name, kind, scope.span), ir.Var(root, captured[root], scope.span), scope.span)
                )
                self._defined[name] = kind
        return result

    def _name(self, hint: str, label: str) -> str:
        if hint:
            candidates: Iterator[str] = iter([hint, f"{self.function.name}_{hint}"])
            name = next((c for c in candidates if c not in self._taken), None)
            number = 0
            while name is None or name in self._taken:
                name = f"{self.function.name}_{hint}_{number}"
                number += 1
        else:
            number = self._count.get(label, 0)
            while f"{self.function.name}_{label}_{number}" in self._taken:
                number += 1
            self._count[label] = number + 1
            name = f"{self.function.name}_{label}_{number}"
        self._taken.add(name)
        return name


def _with_symbols(kernel: ir.Function) -> ir.Function:
    """``kernel`` with the scalars that are extents of its tensors as dynamic extents (spec language 2.7)."""
    shapes = (extent for p in kernel.params if isinstance(p.type, ir.TensorType) for extent in flatten(p.type.shape))
    scalars = {p.name for p in kernel.params if p.type == ir.ScalarType(INDEX)}
    extents = {e.name for extent in shapes for e in walk(extent) if isinstance(e, ir.Var)} & scalars
    extents -= {v.name for s in statements(kernel.body) for v in targets(s)}
    if not extents:
        return kernel
    change = substitution({name: ir.Symbol(name) for name in extents})
    return replace(
        kernel,
        params=[replace(p, type=rewrite_type(p.type, change)) for p in kernel.params],
        body=rewrite_body(kernel.body, change),
        return_types=tuple(rewrite_type(kind, change) for kind in kernel.return_types),
    )


def _replaced(name: str, accesses: Accesses, scope: ir.Scope) -> bool:
    """True when the scope binds the captured ``name`` to a value of its own rather than writing into it."""
    if name in accesses.roots:
        return False
    for stmt in statements(scope.body):
        if isinstance(stmt, ir.Assign) and stmt.target.name == name and accesses.root(stmt.value) is None:
            return True
    return False


def _flattened(body: list[ir.Stmt]) -> list[ir.Stmt]:
    """``body`` with the scopes of a cluster opened; the loop form of ``pl.spmd`` binds its block index."""
    result: list[ir.Stmt] = []
    for stmt in body:
        if not isinstance(stmt, ir.Scope) or stmt.kind not in ("at", "spmd"):
            result.append(stmt)
            continue
        if stmt.var is not None:
            result.append(_block_index(stmt.var, stmt))
        result += _flattened(stmt.body)
    return result


def _block_index(variable: ir.Var, scope: ir.Scope) -> ir.Assign:
    index = ir.Call("tile.get_block_idx", {}, ir.ScalarType(INDEX), {}, scope.span)
    return ir.Assign(variable, index, scope.span)


def _extents(kind: ir.Type) -> Iterator[ir.Expr]:
    if isinstance(kind, ir.TensorType):
        yield from flatten(kind.shape)
        yield from flatten(kind.valid_shape)
        if kind.view is not None:
            yield from flatten(kind.view.stride)
    elif isinstance(kind, ir.TileType):
        yield from flatten(kind.valid_shape)


def _create(kind: ir.Type, scope: ir.Scope) -> ir.Expr:
    from pypto.ir import operations

    assert isinstance(kind, ir.TensorType)
    return operations.build("tensor", "create", [kind.shape, kind.dtype], {}, scope.span)


def _assemble(target: ir.Var, source: ir.Var) -> ir.Expr:
    from pypto.ir import operations

    zeros = tuple(ir.index(0) for _ in target.type.shape)  # type: ignore[attr-defined]
    return operations.build("tensor", "assemble", [target, source, zeros], {}, target.span)


def _result_type(kinds: list[ir.Type]) -> ir.Type:
    if not kinds:
        return ir.NoneType()
    return kinds[0] if len(kinds) == 1 else ir.TupleType(tuple(kinds))


def _kind_name(kind: ir.Type) -> str:
    names = {ir.TileType: "a tile", ir.ArrayType: "an array", ir.ScalarType: "a scalar"}
    return names.get(type(kind), "a value")

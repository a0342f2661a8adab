"""Assignments of a body and the names they bind (spec language 4.2)."""

from __future__ import annotations

import ast
from abc import abstractmethod
from typing import Any, NoReturn

from pypto.ir import nodes as ir
from pypto.ir.dtype import INDEX
from pypto.ir.enums import MemorySpace
from pypto.ir.errors import InvalidOperationError, SSAViolationError
from pypto.language.parser.annotations import to_type
from pypto.language.parser.calls import attribute_chain, with_type
from pypto.language.parser.launches import Launches
from pypto.language.typing import MemRef


class Assignments(Launches):
    """Parses assignments, plain, annotated and of tuples."""

    siblings: list[dict[str, str]]
    tuples: dict[str, ir.TupleExpr]
    declarations: dict[str, MemRef]
    spaces: dict[str | int, MemorySpace | None]

    def _stmt_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            self.syntax("chained assignment is not part of the language", node)
        target = node.targets[0]
        if self._is_dynamic_declaration(node.value):
            return
        if self._yield_assignment(target, node.value, node):
            return
        if isinstance(target, ast.Name):
            self._assign_single(target.id, node.value, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._assign_tuple(target, node)
        elif isinstance(target, ast.Subscript):
            self.subscript_write(target, self.expression(node.value), node)
        else:
            self.syntax("an assignment target is a name, a tuple of names or a subscript", target)

    def _is_dynamic_declaration(self, node: ast.expr) -> bool:
        chain = attribute_chain(node.func) if isinstance(node, ast.Call) else None
        return bool(chain and chain[-1] == "dynamic" and self.options.jit)

    def _yield_assignment(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> bool:
        chain = attribute_chain(value.func) if isinstance(value, ast.Call) else None
        if not chain or chain[-1] != "yield_":
            return False
        self.yields(target, value, node)  # type: ignore[arg-type]
        return True

    @abstractmethod
    def yields(self, target: ast.expr | None, call: ast.Call, node: ast.stmt) -> None:
        """``pl.yield_`` at the end of a block; defined by the part for control flow."""

    def _assign_single(self, name: str, value_node: ast.expr, node: ast.stmt) -> None:
        if isinstance(value_node, ast.Call) and attribute_chain(value_node.func) in (
            ["pl", "submit"],
            ["pl", "spmd_submit"],
        ):
            self._store_tuple(name, self.expression(value_node), node)
            return
        value = self.expression(value_node)
        if isinstance(value.type, ir.TupleType):
            self._store_tuple(name, value, node)
            return
        self.assign_name(name, value, node)

    def _store_tuple(self, name: str, value: ir.Expr, node: ast.stmt) -> None:
        """A tuple kept under one name: each element gets a variable of its own."""
        holder = ir.Var(self.names.fresh(name), value.type, self.span(node))
        self.tuples[holder.name] = self._element_variables(name, value, node)
        self.names.shadow(name, holder)

    def _element_variables(self, name: str, value: ir.Expr, node: ast.stmt) -> ir.TupleExpr:
        """``value`` with every element, at any depth, in a variable."""
        span = self.span(node)
        if not isinstance(value, ir.TupleExpr):
            kinds = value.type.items  # type: ignore[attr-defined]
            variables = tuple(self._element(name, i, kind, node) for i, kind in enumerate(kinds))
            self.emit(ir.TupleAssign(variables, value, span))
            self._track_tuple_roots(variables, value)
            return ir.TupleExpr(variables, span)
        items: list[ir.Expr] = []
        for position, item in enumerate(value.items):
            if isinstance(item.type, ir.TupleType):
                items.append(self._element_variables(f"{name}_{position}", item, node))
                continue
            variable = self._element(name, position, item.type, node)
            self.emit(ir.Assign(variable, item, span))
            root = self.root_of(item)
            if root:
                self.roots[variable.name] = root
            if isinstance(item, ir.Const) and item.value is not None:
                self.specialised[variable.name] = item.value
            items.append(item if isinstance(item, ir.Const) else variable)
        return ir.TupleExpr(tuple(items), span)

    def _element(self, name: str, position: int, kind: ir.Type, node: ast.stmt) -> ir.Var:
        """A variable for element ``position`` of the tuple ``name``."""
        return ir.Var(self.names.fresh(f"{name}_{position}"), kind, self.span(node), f"{name}[{position}]")

    def _expr_Name(self, node: ast.Name) -> ir.Expr:
        value = super()._expr_Name(node)
        if isinstance(value, ir.Var) and value.name in self.tuples:
            return self.tuples[value.name]
        return value

    def _track_tuple_roots(self, variables: tuple[Any, ...], value: ir.Expr) -> None:
        for position, variable in enumerate(variables):
            if isinstance(variable, ir.Var):
                root = self.root_of(ir.TupleItem(value, position, variable.type))
                if root:
                    self.roots[variable.name] = root

    def _assign_tuple(self, target: ast.Tuple | ast.List, node: ast.Assign) -> None:
        value = self.expression(node.value)
        if not isinstance(value.type, ir.TupleType):
            self.syntax(f"{self.describe(value.type)} is no tuple and cannot be unpacked", node)
        submit = isinstance(value, ir.FunctionCall) and value.kind != "call"
        nested = (
            submit and len(target.elts) == 2 and (isinstance(target.elts[0], ast.Tuple) or len(value.type.items) != 2)
        )
        names = self._flat_targets(target, nested, node)
        if len(names) != len(value.type.items):
            fail = self.type_error if submit else self.syntax
            fail(f"{len(names)} targets for {len(value.type.items)} values", node)
        if isinstance(value, ir.TupleExpr):
            held = (
                [self._held(item, name, node) for name, item in zip(names, value.items)]
                if len(names) > 1
                else list(value.items)
            )
            for name, item in zip(names, held):
                self.assign_name(name, item, node)
            return
        variables = tuple(self._target(name, kind, node) for name, kind in zip(names, value.type.items))
        self.emit(ir.TupleAssign(variables, value, self.span(node)))
        self._track_tuple_roots(variables, value)

    def _held(self, item: ir.Expr, name: str, node: ast.stmt) -> ir.Expr:
        """``item``, about to become ``name``, kept in a variable: a simultaneous assignment reads old values."""
        if isinstance(item, (ir.Const, ir.Symbol)):
            return item
        variable = ir.Var(self.names.fresh(f"{name}_next"), item.type, self.span(node), name)
        self.emit(ir.Assign(variable, item, self.span(node)))
        root = self.root_of(item)
        if root:
            self.roots[variable.name] = root
        return variable

    def _flat_targets(self, target: ast.Tuple | ast.List, nested: bool, node: ast.stmt) -> list[str]:
        names: list[str] = []
        for element in target.elts:
            if isinstance(element, ast.Name):
                names.append(element.id)
            elif nested and isinstance(element, (ast.Tuple, ast.List)):
                names += self._flat_targets(element, False, node)
            else:
                self.syntax("tuple targets are plain names", element)
        return names

    def _stmt_AnnAssign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.syntax("an annotated assignment has a plain name", node)
        if node.value is None:
            self.syntax("an annotated name needs a value", node)
        if self._yield_assignment(node.target, node.value, node):
            return
        self._name_declarations(node.annotation)
        annotation = self.evaluate(node.annotation)
        if isinstance(node.value, ast.Call) and attribute_chain(node.value.func) in (
            ["pl", "tile", "alloc"],
            ["pl", "tensor", "alloc"],
        ):
            self.expression(node.value)
            return
        try:
            wanted = to_type(annotation)
        except TypeError as e:
            self.type_error(str(e), node.annotation)
        self._need_one_space(wanted, node)
        value = self.expression(self._typed_pop(node.value, wanted))
        refined = self._refined(value, wanted, node)
        keeps = isinstance(value, ir.Var) and isinstance(refined.type, ir.TileType)
        self.assign_name(node.target.id, value if keeps else refined, node, refined.type)

    def _name_declarations(self, annotation: ast.expr) -> None:
        """``x = pl.MemRef()`` declares an allocation called ``x`` (spec language 2.6)."""
        for node in ast.walk(annotation):
            value = self.environment.get(node.id) if isinstance(node, ast.Name) else None
            if not isinstance(node, ast.Name) or not isinstance(value, MemRef) or not value.is_declaration:
                continue
            name = value.name or node.id
            if not value.args and name != node.id:
                self.type_error(f"one pl.MemRef() is reached as {name!r} and as {node.id!r}", node)
            other = self.declarations.setdefault(name, value)
            if other is not value:
                self.type_error(f"two pl.MemRef declarations are called {name!r}", node)
            value.name = name

    def _need_one_space(self, wanted: ir.Type, node: ast.AnnAssign) -> None:
        """All tiles of one declared allocation are in one memory space (spec language 2.6)."""
        memref = getattr(wanted, "memref", None)
        declaration = getattr(memref, "declaration", memref)
        if not isinstance(wanted, ir.TileType) or declaration is None or not declaration.is_declaration:
            return
        space = self.spaces.setdefault(declaration.name or id(declaration), wanted.space)
        if space != wanted.space:
            self.type_error(
                f"the allocation {declaration.name!r} holds tiles in {space}; this one is in {wanted.space}",
                node,
                "declare one allocation per memory space",
            )

    def _typed_pop(self, node: ast.expr, wanted: ir.Type) -> ast.expr:
        """A pop takes its type from the annotation of its target (spec ops 17)."""
        chain = attribute_chain(node.func) if isinstance(node, ast.Call) else None
        if not chain or not chain[-1].startswith("tpop_from_") or not isinstance(wanted, ir.TileType):
            return node
        assert isinstance(node, ast.Call)
        if any(k.arg == "shape" for k in node.keywords):
            return node
        text = f"f(shape={list(wanted.shape)}, dtype=pl.{wanted.dtype.constant})"
        added = ast.parse(text, mode="eval").body
        assert isinstance(added, ast.Call)
        for part in ast.walk(added):
            ast.copy_location(part, node)
        return ast.copy_location(ast.Call(node.func, node.args, node.keywords + added.keywords), node)

    def _refined(self, value: ir.Expr, wanted: ir.Type, node: ast.AnnAssign) -> ir.Expr:
        """``value`` with the annotation's fields; a mismatch is a ``ParserTypeError`` (spec language 4.2)."""
        have = value.type
        clash = f"the value is {self.describe(have)}, the annotation says {self.describe(wanted)}"
        if isinstance(wanted, ir.ScalarType) and isinstance(have, ir.ScalarType):
            return self._refined_scalar(value, wanted, clash, node)
        if type(wanted) is not type(have):
            self.type_error(clash, node)
        if isinstance(wanted, (ir.TensorType, ir.TileType)) and isinstance(have, (ir.TensorType, ir.TileType)):
            same = wanted.dtype == have.dtype and len(wanted.shape) == len(have.shape)
            same = same and all(
                a == b for a, b in zip(wanted.shape, have.shape) if isinstance(a, int) and isinstance(b, int)
            )
            if not same:
                self.type_error(clash, node)
        if isinstance(wanted, ir.TileType) and isinstance(have, ir.TileType):
            merged = ir.TileType(
                have.shape,
                have.dtype,
                wanted.space or have.space,
                wanted.view or have.view,
                wanted.memref or have.memref,
            )
            return with_type(value, merged)
        return value

    def _refined_scalar(self, value: ir.Expr, wanted: ir.ScalarType, clash: str, node: ast.AnnAssign) -> ir.Expr:
        have = value.type.dtype  # type: ignore[attr-defined]
        if have == wanted.dtype:
            return value
        if isinstance(value, ir.Const) and have.is_int() and wanted.dtype.is_int():
            return ir.Const(value.value, wanted.dtype, value.span)
        if have.is_int() and wanted.dtype.is_int() and INDEX in (have, wanted.dtype):
            return ir.Cast(value, wanted.dtype, value.span)
        self.type_error(clash, node)

    # --- binding ---

    def _no_value(self, name: str, node: ast.AST) -> NoReturn:
        value = getattr(node, "value", None)
        called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
        if called and not called.startswith(("pl.", "pld.")):
            self.fail(
                InvalidOperationError,
                f"{called.removeprefix('self.')} returns nothing that could be assigned to {name!r}",
                node,
                "end it with a return statement that names its outputs, or call it as a statement",
            )
        self.fail(InvalidOperationError, f"{called or 'this operation'} has no value to assign", node)

    def _target(self, name: str, kind: ir.Type, node: ast.AST) -> ir.Var:
        """The variable that assigning a value of type ``kind`` to ``name`` binds (spec language 4.2)."""
        if isinstance(kind, ir.NoneType):
            self._no_value(name, node)
        existing = self.names.lookup(name)
        if existing is None:
            internal = next((s[name] for s in reversed(self.siblings) if name in s), None) or self.names.fresh(name)
            variable = ir.Var(internal, kind, self.span(node), name)
            self.names.shadow(name, variable)
            return variable
        if self.options.strict_ssa and self.names.depth_of(name) == 0:
            message = f"{name!r} is assigned twice (first at {existing.span})"
            raise SSAViolationError(message, self.span(node), previous=existing.span)
        if not same_kind(existing.type, kind):
            if self.names.depth_of(name) != 0 or not (self.options.jit or self.splices):
                self.type_error(
                    f"{name!r} is {self.describe(existing.type)} and cannot be rebound to {self.describe(kind)}",
                    node,
                    "pick another name for the new value",
                )
            variable = ir.Var(self.names.fresh(name), kind, self.span(node), name)
        else:
            variable = ir.Var(existing.name, kind, self.span(node), name)
        self.specialised.pop(existing.name, None)
        self.names.bind(name, variable)
        return variable

    def assign_name(self, name: str, value: ir.Expr, node: ast.AST, kind: ir.Type | None = None) -> None:
        """Bind ``name`` to ``value``, as a value of type ``kind`` when an annotation says more."""
        variable = self._target(name, kind or value.type, node)
        root = self.root_of(value)
        self.emit(ir.Assign(variable, value, self.span(node)))
        if isinstance(value, ir.Const) and value.value is not None and self.assigned_once(name):
            self.specialised[variable.name] = value.value
        if root and root != variable.name:
            self.roots[variable.name] = root
        elif not root:
            self.roots.pop(variable.name, None)


def same_kind(a: ir.Type, b: ir.Type) -> bool:
    """True when a name of type ``a`` may be rebound to a value of type ``b``: same kind, dtype and shape."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (ir.TensorType, ir.TileType)) and isinstance(b, (ir.TensorType, ir.TileType)):
        same = all(x == y for x, y in zip(a.shape, b.shape) if isinstance(x, int) and isinstance(y, int))
        return a.dtype == b.dtype and len(a.shape) == len(b.shape) and same
    if isinstance(a, ir.ScalarType) and isinstance(b, ir.ScalarType):
        return a.dtype == b.dtype or (a.dtype.is_int() and b.dtype.is_int() and INDEX in (a.dtype, b.dtype))
    return a == b

"""Calls in a body: operations, functions of the program, inline functions (spec language 4.9, 3.3, 3.8, 6.2)."""

from __future__ import annotations

import ast
import difflib
from abc import abstractmethod
from dataclasses import replace
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import ALL_DTYPES, BOOL, BY_CONSTANT, TASK_ID, DataType
from pypto.ir.enums import ArgDirection, ParamDirection
from pypto.ir.errors import InvalidOperationError, UndefinedVariableError
from pypto.language.parser.dependencies import Dependencies, strip_casts
from pypto.language.parser.expressions import _ABSENT

NAMESPACES = ("tensor", "tile", "system", "array", "prefetch")
_NO_DEP = (["pl", "no_dep"], ["pl", "tensor", "no_dep"])
NOT_VALUES = (
    "range",
    "parallel",
    "unroll",
    "pipeline",
    "while_",
    "spmd",
    "split_aiv",
    "at",
    "cluster",
    "scope",
    "manual_scope",
)


def attribute_chain(node: ast.expr) -> list[str] | None:
    """``pl.tile.add`` as ``["pl", "tile", "add"]``; ``None`` for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return [node.id, *reversed(parts)]


class Calls(Dependencies):
    """Parses ``ast.Call`` nodes."""

    def _expr_Call(self, node: ast.Call) -> ir.Expr:
        chain = attribute_chain(node.func)
        if chain is None:
            self.unsupported("this call form is not part of the language", node)
        if len(chain) == 1:
            return self._bare_call(chain[0], node)
        if chain[0] == "self" and len(chain) == 2:
            return self.method_call(chain[1], node)
        if chain[-1] == "get_byte" and not node.args:
            return ir.index(self._dtype_by_name(chain, node).get_byte(), self.span(node))
        if chain[0] == "pl":
            return self._language_call(chain[1:], node)
        if chain[0] == "pld":
            return self.rank_call(chain[1:], node)
        value = self.python_value(node.func)
        if value is not _ABSENT and getattr(value, "is_inline_macro", False):
            return self.expand_macro(value, node)
        self.unsupported(f"{ast.unparse(node.func)!r} cannot be called in a body", node)

    def _dtype_by_name(self, chain: list[str], node: ast.Call) -> DataType:
        dtype = BY_CONSTANT.get(chain[-2])
        if dtype is None:
            known = ", ".join(d.constant for d in ALL_DTYPES)
            self.type_error(f"{chain[-2]!r} is not a dtype; known: {known}", node)
        return dtype

    # --- pl.* ---

    def _language_call(self, names: list[str], node: ast.Call) -> ir.Expr:
        special = getattr(self, f"_pl_{names[0]}", None) if len(names) == 1 else None
        if names == ["array", "create"]:
            return self._array_create(node)
        if names == ["system", "task_dummy"]:
            return self._task_dummy(node)
        if special is not None:
            return special(node)
        if names[0] in NOT_VALUES:
            self.syntax(f"pl.{names[0]} is a loop or scope construct and has no value", node)
        namespace = names[0] if len(names) == 2 and names[0] in NAMESPACES else "pl"
        return self._operation_call(namespace, ".".join(names[1:] if namespace != "pl" else names), node)

    def _operation_call(self, namespace: str, name: str, node: ast.Call) -> ir.Expr:
        if name in ("tensor.dim", "dim") or (namespace == "tensor" and name == "dim"):
            return self._dim(node)
        args = [self.argument(a, False) for a in node.args]
        kwargs = {}
        attrs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.unsupported("'**' unpacking is not part of the language", node)
            if keyword.arg == "attrs":
                attrs = self._printed_attrs(keyword.value)
            else:
                kwargs[keyword.arg] = self.argument(keyword.value, True)
        if name in ("aiv_shard", "aic_gather") and "split" not in kwargs:
            kwargs.update(self.region_split())
        result = self._with_attrs(namespace, name, args, kwargs, attrs, node)
        self.check_placement(result, node)
        return result

    def _with_attrs(
        self, namespace: str, name: str, args: list[Any], kwargs: dict[str, Any], attrs: dict[str, Any], node: ast.Call
    ) -> ir.Expr:
        """An operation with printed ``attrs``; operands that a product reads transposed are typed that way."""
        turned = list(args)
        for key, operand in (("a_trans", len(args) - 2), ("b_trans", len(args) - 1)):
            if attrs.get(key) and operand >= 0 and isinstance(args[operand].type, ir.TileType):
                turned[operand] = with_type(args[operand], _transposed(args[operand].type))
        made = self.operation(namespace, name, turned, kwargs, node)
        if not attrs or not isinstance(made, ir.Call):
            return made
        originals = {id(t): a for t, a in zip(turned, args)}
        arguments = {k: originals.get(id(v), v) for k, v in made.arguments.items()}
        return ir.Call(made.op, arguments, made.type, attrs, made.span)

    @abstractmethod
    def rank_call(self, names: list[str], node: ast.Call) -> ir.Expr:
        """A call of ``pld``; defined by the part for programs over several ranks."""

    def in_device_code(self) -> bool:
        """True where tile and tensor computation is legal; defined by the scope part."""
        return False

    def region_split(self) -> dict[str, Any]:
        """The split code of the innermost ``pl.split_aiv`` region; defined by the scope part."""
        return {}

    def check_placement(self, value: ir.Expr, node: ast.AST) -> None:
        """Refuse compute outside a core scope; defined by the scope part."""

    def _dim(self, node: ast.Call) -> ir.Expr:
        result = self.operation(
            "tensor",
            "dim",
            [self.argument(a, False) for a in node.args],
            {k.arg: self.argument(k.value, True) for k in node.keywords if k.arg},
            node,
        )
        if isinstance(result, ir.Call):
            shape = result.arguments["tensor"].type.shape
            axis = result.arguments["axis"]
            axis = axis.value if isinstance(axis, ir.Const) else axis
            extent = shape[axis]
            if isinstance(extent, int):
                return ir.index(extent, self.span(node))
            if isinstance(extent, ir.Symbol):
                return extent
        return result

    def _pl_const(self, node: ast.Call) -> ir.Expr:
        if len(node.args) != 2 or node.keywords:
            self.type_error("pl.const takes exactly two positional arguments: pl.const(value, dtype)", node)
        value = self.constant(node.args[0])
        if value is _ABSENT:
            self.type_error("the value of pl.const is a numeric literal", node.args[0])
        dtype = self.dtype_argument(node.args[1])
        number = float(value) if dtype.is_float() else bool(value) if dtype == BOOL else int(value)
        return ir.Const(number, dtype, self.span(node))

    def _pl_no_dep(self, node: ast.Call) -> ir.Expr:
        self.fail(
            InvalidOperationError, "pl.no_dep marks an argument of a kernel call and has no value of its own", node
        )

    def _pl_yield_(self, node: ast.Call) -> ir.Expr:
        self.syntax("pl.yield_ is a statement or the right-hand side of an assignment at the end of a block", node)

    def _pl_cond(self, node: ast.Call) -> ir.Expr:
        self.syntax("pl.cond is the first statement of a pl.while_ body and nothing else", node)

    def _pl_cast(self, node: ast.Call) -> ir.Expr:
        return self._operation_call("pl", "cast", node)

    def _array_create(self, node: ast.Call) -> ir.Expr:
        values = [*node.args, *(k.value for k in node.keywords)]
        if len(values) != 2:
            self.type_error("pl.array.create takes (extent, dtype)", node)
        extent = self.constant(values[0])
        if not isinstance(extent, int) or isinstance(extent, bool) or extent <= 0:
            self.type_error("the extent of pl.array.create is a positive compile-time integer", node)
        dtype = self.dtype_argument(values[1])
        if not dtype.is_int() and dtype not in (BOOL, TASK_ID):
            self.type_error(f"the elements of a pl.Array are integers, BOOL or TASK_ID, not {dtype}", values[1])
        return ir.Call(
            "array.create", {"extent": extent, "dtype": dtype}, ir.ArrayType(extent, dtype), {}, self.span(node)
        )

    def _task_dummy(self, node: ast.Call) -> ir.Expr:
        if node.args:
            self.fail(InvalidOperationError, "pl.system.task_dummy takes deps= by keyword", node)
        if len(node.keywords) != 1 or node.keywords[0].arg != "deps":
            self.type_error("pl.system.task_dummy needs deps=[...]", node)
        deps = tuple(self.deps(node.keywords[0].value))
        return ir.Call("system.task_dummy", {"deps": deps}, ir.ScalarType(TASK_ID), {}, self.span(node))

    # --- functions ---

    def _bare_call(self, name: str, node: ast.Call) -> ir.Expr:
        if self.names.lookup(name) is not None:
            self.type_error(f"{name!r} is a value, not a function", node)
        target = self.environment.get(name, _ABSENT)
        if target is _ABSENT:
            import builtins

            if hasattr(builtins, name):
                self.unsupported(
                    f"the Python builtin {name!r} is not part of the language",
                    node,
                    f"use pl.{name}" if name in ("min", "max", "range", "abs") else None,
                )
            self.undefined(name, node)
        if getattr(target, "is_inline_macro", False):
            return self.expand_macro(target, node)
        if getattr(target, "is_jit_function", False):
            return self.jit_call(name, target, node)
        if isinstance(target, ir.Function):
            args = self._positional(node)
            function = self.context.dependency(name, target, args, self.span(node))
            return self.call_function(function, args, node)
        self.unsupported(f"{name!r} cannot be called in a body", node)

    def on_host(self) -> bool:
        """True in a function at HOST level or above."""
        return self.options.level is not None and self.options.level.number >= 3

    def jit_call(self, name: str, target: Any, node: ast.Call) -> ir.Expr:
        """A bare-name call of another jit function: keywords are moved into parameter order (spec language 3.3)."""
        device = None
        bound: dict[str, ast.expr] = {}
        names = target.parameter_names
        if len(node.args) > len(names):
            self.type_error(f"{name} takes {len(names)} arguments ({', '.join(names)}), got {len(node.args)}", node)
        bound.update(zip(names, node.args))
        for keyword in node.keywords:
            if keyword.arg == "device":
                device = self.expression(keyword.value)
            elif keyword.arg is not None and keyword.arg in names and keyword.arg not in bound:
                bound[keyword.arg] = keyword.value
            else:
                self.type_error(f"{name} has no parameter {keyword.arg!r}; parameters: {', '.join(names)}", node)
        missing = [p for p in names if p not in bound]
        if missing:
            self.type_error(f"{name} is called without {', '.join(missing)}", node)
        args = [self.expression(bound[p]) for p in names]
        if target.kind == "inline" or target.kind == "opaque" and not self.on_host():
            return self.expand_definition(target.definition(), args, node)
        function = self.context.dependency(name, target, args, self.span(node))
        attrs = {} if device is None else {"device": device}
        return self.call_function(function, args, node, attrs)

    def _positional(self, node: ast.Call) -> list[ir.Expr]:
        if node.keywords:
            self.type_error("this call takes positional arguments only", node)
        return [self.expression(a) for a in node.args]

    def method_call(self, name: str, node: ast.Call) -> ir.Expr:
        """``self.name(...)``."""
        attrs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg == "device":
                attrs["device"] = self.expression(keyword.value)
            elif keyword.arg == "attrs":
                attrs.update(self._printed_attrs(keyword.value))
            elif keyword.arg in ("deps", "dumps", "core_num", "sync_start", "predicate", "allow_early_resolve"):
                self.type_error(
                    f"{keyword.arg}= is not legal on self.{name}(...)", node, "use pl.submit or a pl.at / pl.spmd scope"
                )
            else:
                self.type_error(f"self.{name}(...) takes positional arguments only", node)
        args, unordered = self._call_arguments(node.args)
        if unordered:
            attrs["no_dep"] = unordered
        definition = self.context.splice(name, self.on_host())
        if definition is not None:
            return self.expand_definition(definition, args, node)
        return self.call_function(self._method(name, args, node), args, node, attrs)

    def _printed_attrs(self, node: ast.expr) -> dict[str, Any]:
        if not isinstance(node, ast.Dict):
            self.syntax("attrs= takes a dict literal", node)
        result: dict[str, Any] = {}
        for key, value in zip(node.keys, node.values):
            if isinstance(key, ast.Constant) and key.value == "arg_directions":
                result["arg_directions"] = self._arg_directions(value)
            elif isinstance(key, ast.Constant):
                result[str(key.value)] = self.argument(value, True)
        return result

    def _arg_directions(self, node: ast.expr) -> tuple[ArgDirection, ...]:
        found = tuple(self.python_value(e) for e in getattr(node, "elts", ()))
        if not found or not all(isinstance(d, ArgDirection) for d in found):
            self.type_error("arg_directions is a list of pl.adir members, one per argument", node)
        return found

    def _call_arguments(self, nodes: list[ast.expr]) -> tuple[list[ir.Expr], tuple[int, ...]]:
        args: list[ir.Expr] = []
        unordered: list[int] = []
        for node in nodes:
            if isinstance(node, ast.Call) and attribute_chain(node.func) in _NO_DEP:
                if len(node.args) != 1:
                    self.type_error("pl.no_dep takes one tensor", node)
                unordered.append(len(args))
                node = node.args[0]
            args.append(self.expression(node))
        return args, tuple(unordered)

    def _method(self, name: str, args: list[ir.Expr], node: ast.AST) -> ir.Function:
        function = self.context.method(name, args)
        if function is None:
            near = difflib.get_close_matches(name, list(self.context.method_names()), 1)
            self.fail(
                UndefinedVariableError,
                f"the program has no function {name!r}",
                node,
                f"did you mean self.{near[0]}?" if near else None,
            )
        return function

    def call_function(
        self,
        function: ir.Function,
        args: list[ir.Expr],
        node: ast.AST,
        attrs: dict[str, Any] | None = None,
        kind: str = "call",
    ) -> ir.FunctionCall:
        """A call of ``function`` with its argument kinds checked and its result type worked out."""
        missing = len(function.params) - len(args)
        omitted = function.params[len(args) :] if missing > 0 else []
        may_omit = kind != "call" and all(p.direction != ParamDirection.In for p in omitted)
        if missing < 0 or (missing > 0 and not may_omit):
            wanted = ", ".join(p.name for p in function.params)
            self.type_error(f"{function.name} takes {len(function.params)} arguments ({wanted}), got {len(args)}", node)
        for parameter, value in zip(function.params, args):
            self._check_argument(function, parameter, value, node)
        self._check_outputs(function, args, node)
        attrs = dict(attrs or {})
        stated = attrs.get("arg_directions")
        if stated is not None and len(stated) != len(args):
            self.type_error(f"arg_directions has {len(stated)} entries for {len(args)} arguments", node)
        attrs["returns"] = function.attrs.get("returns", ())
        return ir.FunctionCall(
            function.name, tuple(args), self._result_type(function, args), kind, attrs, self.span(node)
        )

    def _check_outputs(self, function: ir.Function, args: list[ir.Expr], node: ast.AST) -> None:
        """Two outputs in one piece of memory: what is in it afterwards would depend on the kernel's timing."""
        writes: list[tuple[ir.Param, ir.Expr]] = []
        for parameter, value in zip(function.params, args):
            if parameter.direction == ParamDirection.In or not isinstance(value.type, ir.TensorType):
                continue
            for other, held in writes:
                if held == value:
                    self.type_error(
                        f"{function.name} writes parameters {other.name!r} and {parameter.name!r}, and both get the "
                        "same tensor",
                        node,
                        "pass a tensor of its own, or a slice of its own, for each",
                    )
            writes.append((parameter, value))

    def _check_argument(self, function: ir.Function, parameter: ir.Param, value: ir.Expr, node: ast.AST) -> None:
        want, have = parameter.type, value.type
        if isinstance(want, ir.ScalarType) != isinstance(have, ir.ScalarType):
            self.type_error(
                f"{function.name}: parameter {parameter.name!r} is {self.describe(want)}, got {self.describe(have)}",
                node,
            )
        if isinstance(want, ir.TensorType) and isinstance(have, ir.TensorType):
            clash = (
                want.dtype != have.dtype
                or len(want.shape) != len(have.shape)
                or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(want.shape, have.shape))
            )
            if clash:
                self.type_error(
                    f"{function.name}: parameter {parameter.name!r} is {self.describe(want)}, "
                    f"got {self.describe(have)}",
                    node,
                )

    def _result_type(self, function: ir.Function, args: list[ir.Expr]) -> ir.Type:
        types: list[ir.Type] = []
        returns = function.attrs.get("returns", ())
        for position, kind in enumerate(function.return_types):
            source = returns[position] if position < len(returns) else None
            types.append(args[source].type if source is not None and source < len(args) else kind)
        if not types:
            return ir.NoneType()
        return types[0] if len(types) == 1 else ir.TupleType(tuple(types))

    # --- inline expansion ---

    def expand_macro(self, macro: Any, node: ast.Call) -> ir.Expr:
        """``@pl.inline``: re-parse the body against the actual arguments."""
        return self.expand_definition(macro.definition(), self._positional(node), node)

    @abstractmethod
    def expand_definition(self, definition: Any, args: list[ir.Expr], node: ast.AST) -> ir.Expr:
        """Expand an inline function here; defined by the function parser."""


def _transposed(kind: ir.TileType) -> ir.TileType:
    *lead, rows, cols = kind.shape
    *front, valid_rows, valid_cols = kind.valid_shape
    whole = (valid_rows, valid_cols) == (rows, cols)
    view = None if whole else ir.TileView(valid_shape=(*front, valid_cols, valid_rows))
    return replace(kind, shape=(*lead, cols, rows), view=view)


def with_type(value: ir.Expr, kind: ir.Type) -> ir.Expr:
    """``value`` with another type."""
    if isinstance(value, ir.Call):
        return ir.Call(value.op, value.arguments, kind, value.attrs, value.span)
    if isinstance(value, ir.Var):
        return ir.Var(value.name, kind, value.span)
    return value


__all__ = ["Calls", "attribute_chain", "strip_casts"]

"""IR as source text that parses back to an equal program (spec language 3.9)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import BOOL, FP32, INDEX, DataType
from pypto.ir.enums import ForKind, FunctionType, ParamDirection, TensorLayout, TileLayout

PRECEDENCE = {
    "or": 1,
    "and": 2,
    "not": 3,
    "==": 4,
    "!=": 4,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "<<": 5,
    ">>": 5,
    "+": 6,
    "-": 6,
    "*": 7,
    "/": 7,
    "//": 7,
    "%": 7,
    "unary": 8,
    "atom": 9,
}
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
INDENT = "    "
ARGUMENT_DIRECTIONS = ("scalar", "input", "output", "output_existing", "inout", "no_dep")
DERIVED_ATTRIBUTES = (
    "auto_scope",
    "declares_return",
    "external",
    "external_source",
    "python",
    "required",
    "returns",
    "source",
)
"""Function attributes that the signature, the decorator or the body says already."""
LOOP_NAMES = {
    ForKind.Sequential: "range",
    ForKind.Parallel: "parallel",
    ForKind.Unroll: "unroll",
    ForKind.Pipeline: "pipeline",
}


def python_print(
    node: ir.Program | ir.Function | ir.Expr,
    prefix: str = "pl",
    concise: bool = False,
    format: bool = True,
    explicit_layout: bool = False,
) -> str:
    """Source text of a program, function or expression. ``concise`` drops annotations on locals."""
    printer = Printer(prefix, concise)
    if isinstance(node, ir.Program):
        return printer.program(node)
    if isinstance(node, ir.Function):
        return "\n".join(printer.function(node, "", False)) + "\n"
    return printer.expr(node)


def print_expr(expr: ir.Expr) -> str:
    """One expression as source text."""
    return Printer("pl", True).expr(expr)


def print_type(kind: ir.Type) -> str:
    """One type as an author writes it."""
    return Printer("pl", True).type(kind)


class Printer:
    """Renders nodes with one prefix and one level of detail."""

    def __init__(self, prefix: str, concise: bool):
        self.prefix, self.concise = prefix, concise

    # --- types ---

    def dtype(self, dtype: DataType) -> str:
        return f"{self.prefix}.{dtype.constant}"

    def dims(self, shape: tuple[ir.Dim, ...]) -> str:
        return "[" + ", ".join(self.dim(d) for d in shape) + "]"

    def dim(self, dim: ir.Dim) -> str:
        return str(dim) if isinstance(dim, int) else self.expr(dim)

    def type(self, kind: ir.Type) -> str:
        if isinstance(kind, ir.ScalarType):
            return f"{self.prefix}.Scalar[{self.dtype(kind.dtype)}]"
        if isinstance(kind, ir.TensorType):
            return self._tensor(kind)
        if isinstance(kind, ir.TileType):
            return self._tile(kind)
        if isinstance(kind, ir.ArrayType):
            return f"{self.prefix}.Array[{kind.extent}, {self.dtype(kind.dtype)}]"
        if isinstance(kind, ir.TupleType):
            return f"{self.prefix}.Tuple[{', '.join(self.type(t) for t in kind.items) or '()'}]"
        return kind.name if isinstance(kind, ir.OpaqueType) else "None"

    def _tensor(self, kind: ir.TensorType) -> str:
        head = "pld.DistributedTensor" if kind.distributed else f"{self.prefix}.Tensor"
        parts = [self.dims(kind.shape), self.dtype(kind.dtype)]
        view = kind.view
        if view is not None:
            plain = view == ir.TensorView(layout=view.layout)
            parts.append(
                f"{self.prefix}.{view.layout.name}"
                if plain and view.layout != TensorLayout.DN
                else self._tensor_view(view)
            )
        return f"{head}[{', '.join(parts)}]"

    def _tensor_view(self, view: ir.TensorView) -> str:
        fields = []
        if view.valid_shape:
            fields.append(f"valid_shape={self.dims(view.valid_shape)}")
        if view.stride:
            fields.append(f"stride={self.dims(view.stride)}")
        fields.append(f"layout={self.prefix}.TensorLayout.{view.layout.name}")
        if view.pad:
            fields.append(f"pad={self.prefix}.PadValue({view.pad})")
        return f"{self.prefix}.TensorView({', '.join(fields)})"

    def _tile(self, kind: ir.TileType) -> str:
        parts = [self.dims(kind.shape), self.dtype(kind.dtype)]
        if kind.memref is not None and not isinstance(kind.memref, tuple):
            parts.append(repr(kind.memref))
        if kind.space is not None:
            parts.append(f"{self.prefix}.Mem.{kind.space.name}")
        if kind.view is not None:
            parts.append(self._tile_view(kind.view))
        return f"{self.prefix}.Tile[{', '.join(parts)}]"

    def _tile_view(self, view: ir.TileView) -> str:
        fields = []
        if view.valid_shape:
            fields.append(f"valid_shape={self.dims(view.valid_shape)}")
        if view.stride:
            fields.append(f"stride={self.dims(view.stride)}")
        for name in ("blayout", "slayout"):
            value = getattr(view, name)
            if value is not None:
                fields.append(f"{name}={self.prefix}.TileLayout.{TileLayout(value).name}")
        for name in ("fractal", "pad", "compact"):
            value = getattr(view, name)
            if value is not None:
                fields.append(f"{name}={int(value)}")
        return f"{self.prefix}.TileView({', '.join(fields)})"

    # --- expressions ---

    def expr(self, expr: ir.Expr) -> str:
        return self._expr(expr)[0]

    def _expr(self, expr: ir.Expr) -> tuple[str, int]:
        """Text and precedence."""
        if isinstance(expr, ir.Const):
            return self._const(expr)
        if isinstance(expr, (ir.Var, ir.Symbol)):
            return expr.name, PRECEDENCE["atom"]
        if isinstance(expr, ir.Binary):
            return self._binary(expr)
        if isinstance(expr, ir.Unary):
            return self._unary(expr)
        if isinstance(expr, ir.Cast):
            return f"{self.prefix}.cast({self.expr(expr.operand)}, {self.dtype(expr.dtype)})", PRECEDENCE["atom"]
        if isinstance(expr, ir.TupleExpr):
            inner = ", ".join(self.expr(i) for i in expr.items)
            return f"({inner}{',' if len(expr.items) == 1 else ''})", PRECEDENCE["atom"]
        if isinstance(expr, ir.TupleItem):
            return f"{self.expr(expr.value)}[{expr.index}]", PRECEDENCE["atom"]
        if isinstance(expr, ir.Call):
            return self._call(expr), PRECEDENCE["atom"]
        if isinstance(expr, ir.FunctionCall):
            return self._function_call(expr), PRECEDENCE["atom"]
        return f"<{type(expr).__name__}>", PRECEDENCE["atom"]

    def _const(self, expr: ir.Const) -> tuple[str, int]:
        value, dtype = expr.value, expr.dtype
        if value is None:
            return "None", PRECEDENCE["atom"]
        plain = (dtype == INDEX and type(value) is int) or (dtype == FP32 and type(value) is float) or dtype == BOOL
        text = number(value)
        if plain:
            return text, PRECEDENCE["unary"] if text.startswith("-") else PRECEDENCE["atom"]
        return f"{self.prefix}.const({text}, {self.dtype(dtype)})", PRECEDENCE["atom"]

    def _binary(self, expr: ir.Binary) -> tuple[str, int]:
        if expr.op in ("min", "max"):
            return f"{self.prefix}.{expr.op}({self.expr(expr.left)}, {self.expr(expr.right)})", PRECEDENCE["atom"]
        level = PRECEDENCE[expr.op]
        left, right = self._wrapped(expr.left, level + (expr.op in COMPARISONS)), self._wrapped(expr.right, level + 1)
        return f"{left} {expr.op} {right}", level

    def _unary(self, expr: ir.Unary) -> tuple[str, int]:
        if expr.op == "abs":
            return f"{self.prefix}.abs({self.expr(expr.operand)})", PRECEDENCE["atom"]
        if expr.op == "not":
            return f"not {self._wrapped(expr.operand, PRECEDENCE['not'])}", PRECEDENCE["not"]
        operand = self._wrapped(expr.operand, PRECEDENCE["unary"])
        return (f"{expr.op}({operand})" if operand.startswith("-") else f"{expr.op}{operand}"), PRECEDENCE["unary"]

    def _wrapped(self, expr: ir.Expr, least: int) -> str:
        text, level = self._expr(expr)
        return f"({text})" if level < least else text

    def value(self, value: Any) -> str:
        """An operation argument: expression, list, or option."""
        if isinstance(value, ir.Expr):
            return self.expr(value)
        if isinstance(value, (tuple, list)):
            return "[" + ", ".join(self.value(v) for v in value) + "]"
        if isinstance(value, DataType):
            return self.dtype(value)
        if hasattr(value, "name") and hasattr(type(value), "__members__"):
            owner = "Mem" if type(value).__name__ == "MemorySpace" else type(value).__name__
            head = "pld" if owner in ("NotifyOp", "WaitCmp", "ReduceOp") else self.prefix
            return f"{head}.{owner}.{value.name}"
        return number(value) if type(value) is float else repr(value)

    def _call(self, call: ir.Call) -> str:
        if call.op == "system.task_dummy":
            return f"{self.prefix}.system.task_dummy(deps={self.value(call.arguments['deps'])})"
        head = f"{call.op}" if call.op.startswith("pld.") else f"{self.prefix}.{call.op}"
        stated = [f"attrs={self._dict(call.attrs)}"] if call.attrs else []
        return f"{head}({', '.join(self._arguments(call) + stated)})"

    def _dict(self, attrs: Mapping[str, Any]) -> str:
        return "{" + ", ".join(f'"{k}": {self.value(v)}' for k, v in attrs.items()) + "}"

    def _arguments(self, call: ir.Call) -> list[str]:
        from pypto.ir import operations

        row = operations.find(call.op)
        parameters = {p.name: p for p in row.parameters} if row is not None else {}
        parts: list[str] = []
        positional = True
        for name, value in call.arguments.items():
            parameter = parameters.get(name)
            default = parameter is not None and not parameter.required and type(value) is type(parameter.default)
            if default and value == parameter.default:  # type: ignore[union-attr]
                positional = False
                continue
            keyword_only = parameter is not None and parameter.keyword_only
            operand = isinstance(value, (ir.Expr, tuple, DataType))
            if positional and operand and not keyword_only:
                parts.append(self.value(value))
            else:
                positional = False
                parts.append(f"{name}={self.value(value)}")
        return parts

    def _function_call(self, call: ir.FunctionCall) -> str:
        attrs = call.attrs
        unordered = attrs.get("no_dep", ())
        args = [
            f"{self.prefix}.no_dep({self.expr(a)})" if i in unordered else self.expr(a) for i, a in enumerate(call.args)
        ]
        options = self._launch_options(attrs)
        if attrs.get("arg_directions"):
            written = ", ".join(f"{self.prefix}.adir.{ARGUMENT_DIRECTIONS[d]}" for d in attrs["arg_directions"])
            options.append(f'attrs={{"arg_directions": [{written}]}}')
        if call.kind == "call":
            return f"self.{call.callee}({', '.join(args + options)})"
        return f"{self.prefix}.{call.kind}({', '.join([f'self.{call.callee}', *args, *options])})"

    def _launch_options(self, attrs: Any) -> list[str]:
        options = [f"{n}={self.value(attrs[n])}" for n in ("deps", "core_num", "device") if n in attrs]
        options += [f"{n}=True" for n in ("sync_start", "allow_early_resolve", "windowize") if attrs.get(n)]
        if attrs.get("dumps"):
            options.append(f"dumps=[{', '.join(attrs['dumps'])}]")
        if attrs.get("no_dep_args"):
            options.append(f"no_dep_args=[{', '.join(attrs['no_dep_args'])}]")
        if "predicate" in attrs:
            op, element, limit = attrs["predicate"]
            options.append(f"predicate={self.expr(element)} {op} {limit}")
        if attrs.get("name_hint"):
            options.append(f'name_hint="{attrs["name_hint"]}"')
        inner = []
        if "split" in attrs:
            inner.append(f"{self.prefix}.split({self.prefix}.SplitMode.{attrs['split'].name})")
        if "slot_num" in attrs:
            inner.append(f"{self.prefix}.cross_core_slot(slot_num={attrs['slot_num']})")
        if inner:
            options.append(f"optimizations=[{', '.join(inner)}]")
        return options

    # --- statements ---

    def body(self, statements: list[ir.Stmt], pad: str) -> list[str]:
        lines = []
        for s in statements:
            lines += [f"{pad}# {text}".rstrip() for text in s.comments]
            lines += self.statement(s, pad)
        return lines or [f"{pad}pass"]

    def statement(self, stmt: ir.Stmt, pad: str) -> list[str]:
        if isinstance(stmt, ir.Assign):
            return [f"{pad}{self._target(stmt)} = {self.expr(stmt.value)}"]
        if isinstance(stmt, ir.TupleAssign):
            return [f"{pad}{self._targets(stmt)} = {self.expr(stmt.value)}"]
        if isinstance(stmt, ir.Evaluate):
            return [f"{pad}{self.expr(stmt.value)}"]
        if isinstance(stmt, ir.For):
            return self._for(stmt, pad)
        if isinstance(stmt, ir.While):
            return [f"{pad}while {self.expr(stmt.condition)}:", *self.body(stmt.body, pad + INDENT)]
        if isinstance(stmt, ir.If):
            lines = [f"{pad}if {self.expr(stmt.condition)}:", *self.body(stmt.then_body, pad + INDENT)]
            return lines + ([f"{pad}else:", *self.body(stmt.else_body, pad + INDENT)] if stmt.else_body else [])
        if isinstance(stmt, ir.Return):
            return [f"{pad}return {', '.join(self.expr(v) for v in stmt.values)}".rstrip()]
        if isinstance(stmt, ir.Scope):
            return self._scope(stmt, pad)
        return [f"{pad}{'break' if isinstance(stmt, ir.Break) else 'continue'}"]

    def _target(self, stmt: ir.Assign) -> str:
        kind = stmt.target.type
        if isinstance(kind, ir.TileType) and not isinstance(stmt.value, ir.Call) and kind != stmt.value.type:
            return f"{stmt.target.name}: {self.type(kind)}"
        if self.concise or not isinstance(kind, (ir.ScalarType, ir.TileType)) or not isinstance(stmt.value, ir.Call):
            return stmt.target.name
        if isinstance(kind, ir.TileType) and any(not isinstance(d, int) for d in kind.valid_shape):
            return stmt.target.name
        return f"{stmt.target.name}: {self.type(kind)}"

    def _targets(self, stmt: ir.TupleAssign) -> str:
        names = [t.name for t in stmt.targets]
        if isinstance(stmt.value, ir.FunctionCall) and stmt.value.kind != "call" and len(names) != 2:
            results = ", ".join(names[:-1])
            return f"({results}{',' if len(names) == 2 else ''}), {names[-1]}"
        return ", ".join(names) + ("," if len(names) == 1 else "")

    def _for(self, stmt: ir.For, pad: str) -> list[str]:
        bounds = [self.expr(stmt.start), self.expr(stmt.stop), self.expr(stmt.step)]
        if stmt.kind == ForKind.Pipeline:
            bounds.append(f"stage={stmt.stage}")
        head = f"{pad}for {stmt.var.name} in {self.prefix}.{LOOP_NAMES[stmt.kind]}({', '.join(bounds)}):"
        return [head, *self.body(stmt.body, pad + INDENT)]

    def _scope(self, scope: ir.Scope, pad: str) -> list[str]:
        inner = self.body(scope.body, pad + INDENT)
        task = f" as {scope.task.name}" if scope.task is not None else ""
        options = self._launch_options(scope.attrs)
        if scope.kind == "at":
            places = [f"level={self.prefix}.Level.{scope.attrs['level'].name}"]
            if "role" in scope.attrs:
                places.append(f"role={self.prefix}.Role.{scope.attrs['role'].name}")
            return [f"{pad}with {self.prefix}.at({', '.join(places + options)}){task}:", *inner]
        if scope.kind == "spmd":
            call = f"{self.prefix}.spmd({', '.join(options)})"
            head = f"for {scope.var.name} in {call}:" if scope.var is not None else f"with {call}{task}:"
            return [f"{pad}{head}", *inner]
        if scope.kind == "split_aiv" and scope.var is not None:
            mode = f"{self.prefix}.SplitMode.{scope.attrs['mode'].name}"
            return [f"{pad}for {scope.var.name} in {self.prefix}.split_aiv(2, mode={mode}):", *inner]
        if scope.kind == "stage":
            loop, copy = self.value(scope.attrs["loop"]), scope.attrs["stage"]
            return [f"{pad}with {self.prefix}.stage({loop}, {copy}):", *inner]
        manager = {"cluster": f"cluster({', '.join(options)})", "auto": "scope()", "manual": "manual_scope()"}[
            scope.kind
        ]
        return [f"{pad}with {self.prefix}.{manager}:", *inner]

    # --- functions ---

    def function(self, function: ir.Function, pad: str, method: bool) -> list[str]:
        options = self._function_options(function)
        params = [self._param(p) for p in function.params]
        if method and function.takes_self:
            params.insert(0, "self")
        returns = ""
        if function.return_types and function.attrs.get("declares_return"):
            types = [self.type(t) for t in function.return_types]
            returns = f" -> {types[0] if len(types) == 1 else f'{self.prefix}.Tuple[{chr(44).join(types)}]'}"
        head = [f"{pad}@{self.prefix}.function{options}", f"{pad}def {function.name}({', '.join(params)}){returns}:"]
        return head + self._function_attributes(function, pad + INDENT) + self.body(function.body, pad + INDENT)

    def _function_attributes(self, function: ir.Function, pad: str) -> list[str]:
        """What ``pl.func_attr`` states: everything that is not derived from the text itself."""
        stated = {k: v for k, v in function.attrs.items() if k not in DERIVED_ATTRIBUTES}
        if not stated:
            return []
        return [f"{pad}{self.prefix}.func_attr({self._dict(stated)})"]

    def _function_options(self, function: ir.Function) -> str:
        options = []
        if function.type != FunctionType.Opaque:
            options.append(f"type={self.prefix}.FunctionType.{function.type.name}")
        from pypto.language.parser.function import IMPLIED_PLACE

        implied = IMPLIED_PLACE.get(function.type, (None, None))
        if function.level is not None and function.level != implied[0]:
            options.append(f"level={self.prefix}.Level.{function.level.name}")
        if function.role is not None and function.role != implied[1]:
            options.append(f"role={self.prefix}.Role.{function.role.name}")
        if function.attrs.get("auto_scope") is False:
            options.append("auto_scope=False")
        if function.attrs.get("external_source"):
            options.append(f"external_source={function.attrs['external_source']!r}")
        return f"({', '.join(options)})" if options else ""

    def _param(self, param: ir.Param) -> str:
        text = self.type(param.type)
        if param.direction != ParamDirection.In:
            text = f"{self.prefix}.{param.direction.name}[{text}]"
        return f"{param.name}: {text}"

    def program(self, program: ir.Program) -> str:
        lines = [f"@{self.prefix}.program", f"class {program.name}:"]
        for position, function in enumerate(program.functions.values()):
            lines += ([""] if position else []) + self.function(function, INDENT, True)
        return "\n".join(lines) + "\n"


def number(value: Any) -> str:
    """A Python number as a literal, infinities and NaN included."""
    if isinstance(value, float) and not math.isfinite(value):
        return "(1e999 - 1e999)" if math.isnan(value) else "1e999" if value > 0 else "-1e999"
    return repr(value)

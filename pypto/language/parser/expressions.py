"""Expressions of a body (spec language 4.1, 4.7, 4.8)."""

from __future__ import annotations

import ast
import difflib
import operator
from abc import abstractmethod
from collections.abc import Callable
from enum import EnumType
from types import ModuleType
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir import operations
from pypto.ir.dtype import DataType
from pypto.ir.errors import InvalidOperationError, ParserError
from pypto.ir.operations.errors import OutsideRegionError
from pypto.ir.simplify import fold
from pypto.language import typing as lt
from pypto.language.parser.core import ParserState

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
FOLD: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
REJECTED: dict[type[ast.AST], str] = {
    ast.IfExp: "a conditional expression is not part of the language; write an if statement",
    ast.Dict: "a dict is not part of the language",
    ast.Set: "a set is not part of the language",
    ast.Lambda: "lambda is not part of the language",
    ast.JoinedStr: "an f-string is not part of the language",
    ast.NamedExpr: "':=' is not part of the language",
    ast.Starred: "'*' unpacking is not part of the language",
    ast.Await: "await is not part of the language",
    ast.Yield: "yield is not part of the language; see pl.yield_",
    ast.YieldFrom: "yield is not part of the language; see pl.yield_",
    ast.ListComp: "a list comprehension is allowed only as the value of deps=",
    ast.GeneratorExp: "a generator is not part of the language",
    ast.SetComp: "a set comprehension is not part of the language",
    ast.DictComp: "a dict comprehension is not part of the language",
}
_NUMBER = (bool, int, float)
_ABSENT = object()


class Expressions(ParserState):
    """Parses expressions to IR, and operation arguments to IR or Python values."""

    # --- constants ---

    def python_value(self, node: ast.expr) -> Any:
        """The Python value of names and attribute chains that no program variable shadows; ``_ABSENT`` otherwise."""
        if isinstance(node, ast.Name):
            if self.names.lookup(node.id) is not None:
                return _ABSENT
            return self.environment.get(node.id, _ABSENT)
        if isinstance(node, ast.Attribute):
            base = self.python_value(node.value)
            value = _ABSENT if base is _ABSENT else getattr(base, node.attr, _ABSENT)
            if value is _ABSENT and isinstance(base, EnumType):
                self.type_error(
                    f"{ast.unparse(node.value)} has no member {node.attr!r}", node, _members(base, node.attr)
                )
            return value
        return _ABSENT

    def constant(self, node: ast.expr) -> Any:
        """Number a literal-only expression stands for, or ``_ABSENT`` (spec language 4.2, constant folding)."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, _NUMBER) else _ABSENT
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named_constant(node)
        if isinstance(node, ast.UnaryOp):
            return self._fold(node, node.op, node.operand)
        if isinstance(node, ast.BinOp):
            return self._fold(node, node.op, node.left, node.right)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._fold(node, node.ops[0], node.left, node.comparators[0])
        if isinstance(node, ast.Subscript):
            return self._constant_item(node)
        return _ABSENT

    def _named_constant(self, node: ast.Name | ast.Attribute) -> Any:
        if isinstance(node, ast.Name):
            variable = self.names.lookup(node.id)
            if variable is not None:
                return self.specialised.get(variable.name, _ABSENT)
        value = self.python_value(node)
        return value if isinstance(value, _NUMBER) and type(value) in _NUMBER else _ABSENT

    def _fold(self, node: ast.expr, op: ast.AST, *operands: ast.expr) -> Any:
        fold = FOLD.get(type(op))
        values = [self.constant(x) for x in operands]
        if fold is None or any(v is _ABSENT for v in values):
            return _ABSENT
        try:
            return fold(*values)
        except (ArithmeticError, TypeError, ValueError) as e:
            self.syntax(f"this constant expression cannot be evaluated: {e}", node)

    def _constant_item(self, node: ast.Subscript) -> Any:
        base = self.python_value(node.value)
        key = self.constant(node.slice)
        if isinstance(base, (list, tuple)) and isinstance(key, int) and -len(base) <= key < len(base):
            value = base[key]
            return value if isinstance(value, _NUMBER) else _ABSENT
        return _ABSENT

    # --- expressions ---

    def expression(self, node: ast.expr) -> ir.Expr:
        """``node`` as a value of the program."""
        for kind, message in REJECTED.items():
            if isinstance(node, kind):
                self.unsupported(message, node)
        value = self.constant(node)
        if value is not _ABSENT:
            return ir.literal(value, self.span(node))
        method = getattr(self, f"_expr_{type(node).__name__}", None)
        if method is None:
            self.unsupported(f"{type(node).__name__} expressions are not part of the language", node)
        return method(node)

    def _expr_Constant(self, node: ast.Constant) -> ir.Expr:
        if node.value is None:
            return ir.literal(None, self.span(node))
        self.type_error(f"a {type(node.value).__name__} literal has no value in a body", node)

    def _expr_Name(self, node: ast.Name) -> ir.Expr:
        variable = self.names.lookup(node.id)
        if variable is not None and variable.name in self.dimensions:
            return ir.Symbol(variable.name, self.span(node))
        if variable is not None:
            return ir.Var(variable.name, variable.type, self.span(node))
        value = self.environment.get(node.id, _ABSENT)
        if value is _ABSENT or self.names.closed_in(node.id):
            self.undefined(node.id, node)
        return self.lift(value, node)

    def lift(self, value: Any, node: ast.expr) -> ir.Expr:
        """A Python value of the environment as an expression."""
        if isinstance(value, lt.DimExpression):
            return value.expr
        if isinstance(value, ir.Expr):
            return value
        if isinstance(value, (list, tuple)):
            return ir.TupleExpr(tuple(self.lift(v, node) for v in value), self.span(node))
        if value is None or type(value) in _NUMBER:
            return ir.literal(value, self.span(node))
        self.type_error(f"{ast.unparse(node)!r} is a Python {type(value).__name__} and has no value in a body", node)

    def _expr_Tuple(self, node: ast.Tuple | ast.List) -> ir.Expr:
        return ir.TupleExpr(tuple(self.expression(item) for item in node.elts), self.span(node))

    _expr_List = _expr_Tuple

    def _expr_Attribute(self, node: ast.Attribute) -> ir.Expr:
        value = self.python_value(node)
        if value is not _ABSENT:
            if isinstance(value, lt.DimExpression):
                return value.expr
            self.unsupported(
                f"{ast.unparse(node)!r} has no value here", node, "it is legal only as an operation's argument"
            )
        if node.attr == "shape" and self.options.jit:
            base = self.expression(node.value)
            if isinstance(base.type, (ir.TensorType, ir.TileType)):
                return ir.TupleExpr(tuple(ir.as_expr(d) for d in base.type.shape), self.span(node))
        base = self.python_value(node.value)
        near = difflib.get_close_matches(node.attr, dir(base), 1) if isinstance(base, ModuleType) else []
        hint = f"did you mean {ast.unparse(node.value)}.{near[0]}?" if near else None
        if node.attr in ("shape", "dtype"):
            hint = f"only @pl.jit bodies have it; use pl.tensor.dim({ast.unparse(node.value)}, axis) or the number"
        self.unsupported(f"attribute {node.attr!r} has no meaning in a body", node, hint)

    def _expr_UnaryOp(self, node: ast.UnaryOp) -> ir.Expr:
        symbols: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.Invert: "~", ast.Not: "not"}
        symbol = symbols.get(type(node.op))
        if symbol is None:
            self.unsupported("unary '+' is not part of the language", node)
        return self._scalar(node, operations.unary, symbol, self.expression(node.operand))

    def _expr_BinOp(self, node: ast.BinOp) -> ir.Expr:
        symbol = BINARY.get(type(node.op))
        if symbol is None:
            self.unsupported(f"operator {type(node.op).__name__} is legal only between constants", node)
        return self._scalar(node, operations.binary, symbol, self.expression(node.left), self.expression(node.right))

    def _expr_Compare(self, node: ast.Compare) -> ir.Expr:
        if len(node.ops) != 1:
            self.syntax("a chained comparison is not part of the language; use 'and'", node)
        symbol = COMPARE.get(type(node.ops[0]))
        if symbol is None:
            self.unsupported("'in' and 'is' are not part of the language", node)
        return self._scalar(
            node, operations.binary, symbol, self.expression(node.left), self.expression(node.comparators[0])
        )

    def _expr_BoolOp(self, node: ast.BoolOp) -> ir.Expr:
        symbol = "and" if isinstance(node.op, ast.And) else "or"
        result = self.expression(node.values[0])
        for value in node.values[1:]:
            result = self._scalar(node, operations.binary, symbol, result, self.expression(value))
        return result

    def _scalar(self, node: ast.expr, build: Callable[..., ir.Expr], symbol: str, *operands: ir.Expr) -> ir.Expr:
        for operand in operands:
            if not isinstance(operand.type, ir.ScalarType):
                self.syntax(
                    f"operator {symbol!r} works on scalars, not on {self.describe(operand.type)}",
                    node,
                    "use the operation functions: pl.add, pl.mul, pl.cmp, ...",
                )
        try:
            result = fold(build(symbol, *operands))
        except (TypeError, ValueError) as e:
            self.syntax(str(e), node)
        object.__setattr__(result, "span", self.span(node))
        return result

    def describe(self, kind: ir.Type) -> str:
        """A type as an author writes it."""
        from pypto.ir.printer import print_type

        return print_type(kind)

    # --- subscripts ---

    def _expr_Subscript(self, node: ast.Subscript) -> ir.Expr:
        base = self.expression(node.value)
        if isinstance(base, ir.TupleExpr):
            return self._tuple_item(base, node)
        if isinstance(base.type, ir.TupleType):
            key = self._tuple_key(node, len(base.type.items))
            return ir.TupleItem(base, key, base.type.items[key], self.span(node))
        if isinstance(base.type, ir.ArrayType):
            if isinstance(node.slice, (ast.Tuple, ast.Slice)):
                self.type_error("a pl.Array has one axis; index it with one integer", node)
            return self.operation("array", "get_element", [base, self.expression(node.slice)], {}, node)
        if isinstance(base.type, (ir.TensorType, ir.TileType)):
            return self.subscript_read(base, node)
        self.type_error(f"{self.describe(base.type)} cannot be subscripted", node)

    def _tuple_key(self, node: ast.Subscript, length: int) -> int:
        key = self.constant(node.slice)
        if not isinstance(key, int) or isinstance(key, bool):
            self.unsupported("a tuple is indexed by an integer constant", node)
        if not -length <= key < length:
            self.type_error(f"tuple index {key} is outside 0..{length - 1}", node)
        return key % length

    def _tuple_item(self, base: ir.TupleExpr, node: ast.Subscript) -> ir.Expr:
        return base.items[self._tuple_key(node, len(base.items))]

    @abstractmethod
    def subscript_read(self, base: ir.Expr, node: ast.Subscript) -> ir.Expr:
        """``base[...]``; defined by the part for subscripts."""

    # --- operation arguments ---

    def argument(self, node: ast.expr, keyword: bool) -> Any:
        """One operation argument: expressions stay IR, lists become tuples, names of types and options become Python
        values; keyword literals are Python numbers (spec ops 1.2)."""
        if isinstance(node, (ast.List, ast.Tuple)):
            return tuple(self.argument(item, False) for item in node.elts)
        if isinstance(node, ast.Constant):
            return self._literal_argument(node, keyword)
        number = self.constant(node)
        if number is not _ABSENT:
            return number if keyword else ir.literal(number, self.span(node))
        value = self.python_value(node)
        if value is not _ABSENT:
            return self._environment_argument(value, node, keyword)
        if isinstance(node, ast.Attribute) and node.attr == "dtype" and self.options.jit:
            base = self.expression(node.value)
            return getattr(base.type, "dtype")  # noqa: B009 - only typed values have one
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("TensorView", "TileView", "MemRef")
        ):
            return self.evaluate(node)
        value = self.expression(node)
        return value.items if isinstance(value, ir.TupleExpr) else value

    def _literal_argument(self, node: ast.Constant, keyword: bool) -> Any:
        if isinstance(node.value, str):
            if not keyword:
                self.type_error("a string argument must be passed by keyword", node)
            return node.value
        if keyword or node.value is None:
            return node.value
        return self.lift(node.value, node)

    def _environment_argument(self, value: Any, node: ast.expr, keyword: bool) -> Any:
        if isinstance(value, lt.DimExpression):
            return value.expr
        if isinstance(value, (list, tuple)):
            return tuple(self._environment_argument(v, node, keyword) for v in value)
        if type(value) in _NUMBER and not keyword:
            return ir.literal(value, self.span(node))
        return value

    def evaluate(self, node: ast.expr) -> Any:
        """Evaluate ``node`` as Python over the environment (annotations and views)."""
        for part in ast.walk(node):
            if isinstance(part, (ast.NamedExpr, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom)):
                self.unsupported(f"{ast.unparse(part)!r} is not part of the language", part)
        code = compile(ast.Expression(node), self.source.filename, "eval")
        try:
            return eval(code, {"__builtins__": SAFE_BUILTINS}, self._evaluation_names())
        except ParserError:
            raise
        except AttributeError as e:
            reason, hint = str(e), None
            if isinstance(e.obj, EnumType):
                reason, hint = f"{e.obj.__name__} has no {e.name!r}", _members(e.obj, e.name or "")
            self.type_error(f"{ast.unparse(node)!r} cannot be evaluated: {reason}", node, hint)
        except Exception as e:
            self.type_error(f"{ast.unparse(node)!r} cannot be evaluated: {e}", node)

    def _evaluation_names(self) -> dict[str, Any]:
        names = self.environment.as_dict()
        for name in self.names.visible():
            variable = self.names.lookup(name)
            if variable is None:
                continue
            if isinstance(variable.type, ir.ScalarType):
                value = self.specialised.get(variable.name, _ABSENT)
                names[name] = lt.DimExpression(variable) if value is _ABSENT else value
            else:
                names.pop(name, None)
        return names

    def operation(self, namespace: str, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> ir.Expr:
        """Build one operation; its own complaint gets the place."""
        try:
            return operations.build(namespace, name, args, kwargs, self.span(node))
        except ParserError:
            raise
        except OutsideRegionError as e:
            self.syntax(str(e), node)
        except (TypeError, ValueError, LookupError) as e:
            message = e.args[0] if isinstance(e, KeyError) and e.args else e  # str() of a KeyError is quoted
            self.fail(InvalidOperationError, str(message), node)

    def dtype_argument(self, node: ast.expr) -> DataType:
        value = self.python_value(node)
        if not isinstance(value, DataType):
            self.type_error(f"{ast.unparse(node)!r} is not a dtype", node)
        return value


def _members(enumeration: EnumType, name: str) -> str:
    near = difflib.get_close_matches(name, enumeration.__members__, 1)
    legal = f"legal: {', '.join(enumeration.__members__)}"
    return f"did you mean {near[0]}? {legal}" if near else legal


SAFE_BUILTINS = {
    "len": len,
    "max": max,
    "min": min,
    "abs": abs,
    "sum": sum,
    "round": round,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "tuple": tuple,
    "range": range,
    "isinstance": isinstance,
    "type": type,
    "slice": slice,
}

"""What a launch waits for and under which condition it runs: ``deps=``, ``predicate=``, flags (spec 6.3, 6.6)."""

from __future__ import annotations

import ast

from pypto.ir import nodes as ir
from pypto.ir.dtype import TASK_ID
from pypto.ir.errors import ParserSyntaxError, ParserTypeError
from pypto.language.parser.subscripts import Subscripts


class Dependencies(Subscripts):
    """Parses the keyword values that launches and scopes share."""

    def deps(self, node: ast.expr) -> list[ir.Expr]:
        """The entries of a ``deps=`` value (spec language 6.3)."""
        if isinstance(node, ast.ListComp):
            return self._comprehension(node)
        if not isinstance(node, (ast.List, ast.Tuple)):
            self.type_error("deps= takes a list or tuple display of task ids", node)
        entries: list[ir.Expr] = []
        for item in node.elts:
            if isinstance(item, (ast.ListComp, ast.GeneratorExp)):
                entries += self._comprehension(item)
                continue
            entries.append(self._task_id(item))
        whole = [e for e in entries if isinstance(e.type, ir.ArrayType)]
        single = [e for e in entries if isinstance(e, ir.Call) and e.op == "array.get_element"]
        if whole and single:
            self.type_error("deps= must not mix a whole array with single elements of an array", node)
        return entries

    def _task_id(self, node: ast.expr) -> ir.Expr:
        value = self.expression(node)
        kind = value.type
        dtype = getattr(kind, "dtype", None)
        if isinstance(kind, (ir.ScalarType, ir.ArrayType)) and dtype == TASK_ID:
            return value
        self.type_error(
            f"deps= takes task ids, not {self.describe(kind)}",
            node,
            "take the id with 'with pl.at(...) as tid' or the second result of pl.submit",
        )

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> list[ir.Expr]:
        if len(node.generators) != 1 or not isinstance(node.generators[0].target, ast.Name):
            self.syntax("a deps= comprehension has one 'for' with a plain name", node)
        loop = node.generators[0]
        name = loop.target.id  # type: ignore[attr-defined]
        entries = []
        for value in self.evaluate(loop.iter):
            saved, self.environment = self.environment, self.environment.extended({name: value})
            try:
                if all(self.evaluate(test) for test in loop.ifs):
                    entries.append(self._task_id(node.elt))
            finally:
                self.environment = saved
        return entries

    def predicate(self, node: ast.expr) -> tuple[str, ir.Expr, int]:
        """``t[i, j] > 0`` as (operator, element read, integer)."""
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            self.syntax("predicate= is one comparison of a tensor element with an integer literal", node)
        value = self.expression(node)
        flip = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
        if not isinstance(value, ir.Binary):
            self.syntax("predicate= compares a tensor element with an integer literal", node)
        left, right, op = strip_casts(value.left), strip_casts(value.right), value.op
        if isinstance(left, ir.Const):
            left, right, op = right, left, flip[op]
        if not (isinstance(left, ir.Call) and left.op == "tensor.read" and isinstance(right, ir.Const)):
            self.syntax("predicate= compares one tensor element with an integer literal", node)
        dtype = left.type.dtype  # type: ignore[attr-defined]
        if not dtype.is_signed_int() or dtype.get_bit() < 8:
            self.type_error(f"the element of predicate= is a signed integer, not {dtype}", node)
        return op, left, int(right.value or 0)

    def core_num(self, node: ast.expr) -> ir.Expr:
        """A positive integer expression."""
        value = self.expression(node)
        if not (isinstance(value.type, ir.ScalarType) and value.type.dtype.is_int()):
            self.syntax("core_num is an integer expression", node)
        if isinstance(value, ir.Const) and int(value.value or 0) <= 0:
            self.syntax(f"core_num must be positive, got {value.value}", node)
        return value

    def flag(self, node: ast.expr, name: str) -> bool:
        """A ``True`` / ``False`` literal."""
        if not isinstance(node, ast.Constant) or not isinstance(node.value, bool):
            self.syntax(f"{name}= takes the literal True or False", node)
        return node.value

    def plain_names(self, node: ast.expr, name: str) -> tuple[str, ...]:
        """A list display of bare tensor names without duplicates, as internal names."""
        kind = type(node)
        if kind not in (ast.List, ast.Tuple):
            self.fail(ParserSyntaxError, f"{name}= takes a list of tensor names", node)
        found: list[str] = []
        for item in node.elts:  # type: ignore[attr-defined]
            if not isinstance(item, ast.Name):
                self.type_error(f"{name}= takes bare tensor names", item)
            variable = self.expression(item)
            if not isinstance(variable, ir.Var) or not isinstance(variable.type, ir.TensorType):
                self.type_error(f"{name}= takes tensors, {item.id!r} is none", item)
            if variable.name in found:
                error = ParserTypeError if name == "no_dep_args" else ParserSyntaxError
                self.fail(error, f"{name}= lists {item.id!r} twice", item)
            found.append(variable.name)
        return tuple(found)


def strip_casts(value: ir.Expr) -> ir.Expr:
    """``value`` without the widening casts that typing inserted."""
    while isinstance(value, ir.Cast):
        value = value.operand
    return value

"""Statements that are not control flow: their order, comments, effects and returns (spec language 4.1, 4.6)."""

from __future__ import annotations

import ast
import contextlib
import inspect
import warnings
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.enums import ParamDirection, SplitMode
from pypto.ir.errors import ParserError, UndefinedVariableError
from pypto.language.parser.assignments import Assignments
from pypto.language.parser.calls import attribute_chain
from pypto.language.parser.comments import comments_of

REJECTED_STATEMENTS: dict[type[ast.stmt], str] = {
    ast.AugAssign: "augmented assignment is not part of the language; write x = x + e",
    ast.Assert: "assert is not part of the language; see pl.static_assert",
    ast.Raise: "raise is not part of the language",
    ast.Try: "try is not part of the language",
    ast.Delete: "del is not part of the language",
    ast.Import: "import is not part of a body",
    ast.ImportFrom: "import is not part of a body",
    ast.Global: "global is not part of the language",
    ast.Nonlocal: "nonlocal is not part of the language",
    ast.FunctionDef: "a nested function is not part of the language",
    ast.ClassDef: "a nested class is not part of the language",
    ast.Match: "match is not part of the language",
    ast.AsyncFunctionDef: "async is not part of the language",
    ast.AsyncFor: "async is not part of the language",
    ast.AsyncWith: "async is not part of the language",
}


class Statements(Assignments):
    """Parses the statements that are not control flow."""

    def statements(self, body: list[ast.stmt]) -> None:
        """Parse a block into the current output block."""
        pending: list[str] = []
        for node in body:
            pending += self._comments_before(node)
            text = node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else None
            if isinstance(text, str):
                pending += inspect.cleandoc(text).splitlines()
                continue
            block, emitted = self.block, len(self.block)
            self._statement(node)
            if pending and len(block) > emitted:
                block[emitted].comments = (*pending, *block[emitted].comments)
                pending = []
        if body:
            self._warn_of_dropped(body[-1])

    def _statement(self, node: ast.stmt) -> None:
        for kind, message in REJECTED_STATEMENTS.items():
            if isinstance(node, kind):
                self.unsupported(message, node)
        method = getattr(self, f"_stmt_{type(node).__name__}", None)
        if method is None:
            self.unsupported(f"{type(node).__name__} statements are not part of the language", node)
        method(node)

    def _comments_before(self, node: ast.stmt) -> list[str]:
        """Comment lines between what was parsed before and ``node``."""
        start = max(self.commented.get(id(self.source), 0), self.source.tree.lineno)
        self.commented[id(self.source)] = max(start, node.lineno)
        return [c.text for c in comments_of(self.source.text) if start < c.line < node.lineno]

    def _warn_of_dropped(self, last: ast.stmt) -> None:
        """``UserWarning`` for comments behind the last statement of a block, which have nothing to stand before."""
        behind = [
            c
            for c in comments_of(self.source.text)
            if c.code_line == last.end_lineno and c.line > c.code_line and c.column >= last.col_offset
        ]
        if behind:
            self.commented[id(self.source)] = max(self.commented.get(id(self.source), 0), behind[-1].line)
            warnings.warn_explicit(
                "a comment at the end of a block has no statement to stand before: it is not in the printed program",
                UserWarning,
                self.source.filename,
                behind[0].line + self.source.first_line - 1,
            )

    def _stmt_Pass(self, node: ast.Pass) -> None:
        return

    # --- effects ---

    def _stmt_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Constant) and (isinstance(call.value, str) or call.value is Ellipsis):
            return
        if not isinstance(call, ast.Call):
            self.unsupported("an expression statement is a call", node)
        chain = attribute_chain(call.func) or [""]
        if chain[-1] == "bind_dynamic":
            return
        handler = {
            "yield_": self._yield_statement,
            "static_print": self._static_print,
            "static_assert": self._static_assert,
            "func_attr": self._func_attr,
            "dump_tag": self._dump_tag,
        }.get(chain[-1])
        if handler is not None and len(chain) > 1:
            handler(call, node)
            return
        if chain in (["pl", "submit"], ["pl", "spmd_submit"]):
            self.syntax(
                f"pl.{chain[1]} is assigned: result, tid = pl.{chain[1]}(...)",
                node,
                "write self.kernel(...) when the task id is not needed",
            )
        self._effect(self.expression(call), node)

    def _effect(self, value: ir.Expr, node: ast.stmt) -> None:
        if isinstance(value, (ir.Call, ir.FunctionCall)):
            self.emit(ir.Evaluate(value, self.span(node)))

    def _yield_statement(self, call: ast.Call, node: ast.stmt) -> None:
        self.yields(None, call, node)

    def _static_print(self, call: ast.Call, node: ast.stmt) -> None:
        if not call.args:
            self.syntax("pl.static_print takes at least one argument", node)
        parts = []
        for arg in call.args:
            if isinstance(arg, ast.Constant) and isinstance(arg.value, str):
                parts.append(arg.value)
            elif isinstance(arg, ast.JoinedStr):
                parts.append(self._formatted(arg))
            else:
                parts.append(self._shown(arg))
        where = self.span(node)
        print(f"static_print [{where.filename}:{where.line}]: {' '.join(parts)}")

    def _formatted(self, node: ast.JoinedStr) -> str:
        text = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                if part.conversion != -1 or part.format_spec is not None:
                    self.unsupported("an f-string in pl.static_print has no conversions and no format specs", node)
                text += self._shown(part.value)
        return text

    def _shown(self, node: ast.expr) -> str:
        from pypto.ir.printer import print_expr

        try:
            value = self.expression(node)
        except ParserError:
            return str(self.evaluate(node))
        return f"{print_expr(value)}: {self.describe(value.type)}"

    def _static_assert(self, call: ast.Call, node: ast.stmt) -> None:
        if not 1 <= len(call.args) <= 2:
            self.syntax("pl.static_assert takes a condition and an optional message", node)
        message = ""
        if len(call.args) == 2:
            text = call.args[1]
            if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
                self.syntax("the message of pl.static_assert is a string literal", text)
            message = text.value
        try:
            holds = self.evaluate(call.args[0])
        except (ParserError, TypeError):
            holds = self._folded_condition(call.args[0])
        if not holds:
            self.fail(ParserError, message or f"static_assert failed: {ast.unparse(call.args[0])}", node)

    def _folded_condition(self, node: ast.expr) -> Any:
        """A condition over shapes and specialised scalars; ``ParserError`` when it is only known at run time."""
        value: Any = None
        with contextlib.suppress(ParserError):
            value = self.expression(node)
        if not isinstance(value, ir.Const):
            self.fail(ParserError, "the condition of pl.static_assert is not known at compile time", node)
        return value.value

    def _func_attr(self, call: ast.Call, node: ast.stmt) -> None:
        if self.block:
            self.syntax("pl.func_attr stands before any other statement", node)
        if len(call.args) != 1 or call.keywords or not isinstance(call.args[0], ast.Dict):
            self.syntax("pl.func_attr takes one dict literal", node)
        for key, value in zip(call.args[0].keys, call.args[0].values):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                self.syntax("keys of pl.func_attr are string literals", node)
            if key.value in ("auto_scope", "external_source") or key.value in self.attrs:
                self.syntax(f"pl.func_attr cannot set {key.value!r} here", node)
            if isinstance(value, ast.Name) and all(value.id != p.name for p in self.params):
                self.fail(
                    UndefinedVariableError,
                    f"a name in pl.func_attr is a parameter of the function; {value.id!r} is none",
                    value,
                )
            stated = self._attribute(value)
            if key.value == "split" and not isinstance(stated, SplitMode):
                self.syntax('"split" of pl.func_attr takes a pl.SplitMode member', value)
            if stated != SplitMode.NONE or key.value != "split":
                self.attrs[key.value] = stated

    def _attribute(self, value: ast.expr) -> Any:
        """A value of ``pl.func_attr``; the strings of a list are keywords' values too."""
        if isinstance(value, (ast.List, ast.Tuple)):
            return [self.argument(item, True) for item in value.elts]
        return self.argument(value, True)

    def _dump_tag(self, call: ast.Call, node: ast.stmt) -> None:
        if self.in_device_code():
            self.syntax(
                "pl.dump_tag stands in orchestration code, not in a kernel", node, "tag the tensor before the launch"
            )
        if len(call.args) != 1 or not isinstance(call.args[0], ast.Name):
            self.syntax("pl.dump_tag takes one bare tensor name", node)
        value = self.expression(call.args[0])
        self.emit(
            ir.Evaluate(
                ir.Call("tensor.dump_tag", {"tensor": value}, ir.NoneType(), {}, self.span(node)), self.span(node)
            )
        )

    # --- return ---

    def _stmt_Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.expression(node.value)
        values: tuple[ir.Expr, ...] = ()
        if value is not None:
            values = value.items if isinstance(value, ir.TupleExpr) else (value,)
        if self.splices:
            self.returned = list(values)
            return
        if len(values) == 1 and isinstance(values[0].type, ir.NoneType):
            self.emit(ir.Evaluate(values[0], self.span(node)))
            values = ()
        if len(values) == 1 and isinstance(values[0].type, ir.TupleType):
            values = self._unpacked(values[0], node)
        if self.returned is None:
            self.returned = list(values)
        self.emit(ir.Return(values, self.span(node)))

    def _unpacked(self, value: ir.Expr, node: ast.stmt) -> tuple[ir.Expr, ...]:
        kinds = value.type.items  # type: ignore[attr-defined]
        variables = tuple(ir.Var(self.names.fresh("result"), kind, self.span(node)) for kind in kinds)
        self.emit(ir.TupleAssign(variables, value, self.span(node)))
        self._track_tuple_roots(variables, value)
        return variables

    def returned_parameters(self) -> tuple[int | None, ...]:
        """For each returned value, the index of the parameter it is a version of."""
        order = {p.name: i for i, p in enumerate(self.params) if p.direction != ParamDirection.In}
        everything = {p.name: i for i, p in enumerate(self.params)}
        found: list[int | None] = []
        for value in self.returned or []:
            root = self.root_of(value)
            found.append(order.get(root, everything.get(root)) if root else None)
        return tuple(found)

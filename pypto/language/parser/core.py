"""State shared by the parts of the function parser, and its error reporting."""

from __future__ import annotations

import ast
import difflib
from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from pypto.ir import nodes as ir
from pypto.ir.enums import FunctionType, Level, Role
from pypto.ir.errors import (
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from pypto.ir.span import Span
from pypto.language.parser.environment import Environment
from pypto.language.parser.scope import Names
from pypto.language.parser.source import Source


class ProgramContext(Protocol):
    """What a function parser asks of the program around it."""

    def method(self, name: str, args: list[ir.Expr]) -> ir.Function | None:
        """The function ``self.name`` stands for, parsed when needed; ``None`` when there is none."""

    def method_names(self) -> Iterable[str]:
        """Names that ``self.`` can reach, for near-miss hints."""

    def dependency(self, name: str, target: Any, args: list[ir.Expr], span: Span) -> ir.Function:
        """The function a bare name stands for (a jit function or a stand-alone function)."""

    def splice(self, name: str, from_host: bool) -> Any:
        """The definition to expand in place of ``self.name``, or ``None``: inline functions, and opaque ones when
        device code calls them."""


@dataclass
class FunctionOptions:
    """What the decorator said."""

    type: FunctionType = FunctionType.Opaque
    level: Level | None = None
    role: Role | None = None
    auto_scope: bool = True
    strict_ssa: bool = False
    jit: bool = False
    declares_return: bool = False
    attrs: dict[str, Any] = field(default_factory=dict)


class ParserState(ABC):  # noqa: B024 - its parts declare the abstract methods
    """Base of the parser parts: output block, names, environment, errors."""

    def __init__(self, source: Source, environment: Environment, context: ProgramContext, options: FunctionOptions):
        self.source, self.environment, self.context, self.options = source, environment, context, options
        self.names = Names()
        self.block: list[ir.Stmt] = []
        self.params: list[ir.Param] = []
        self.roots: dict[str, str] = {}  # variable -> parameter or allocation it is a version of
        self.specialised: dict[str, Any] = {}  # scalar parameter -> literal value
        self.attrs: dict[str, Any] = dict(options.attrs)
        self.returned: list[ir.Expr] | None = None
        self.loops: list[str] = []  # kinds of the open loops and scopes, innermost last
        self.scopes: list[ir.Scope] = []
        self._stores: dict[int, dict[str, int]] = {}
        self.dimensions: set[str] = set()  # scalar parameters that are dynamic extents
        self.commented: dict[int, int] = {}  # source -> line up to which its comments have been taken
        self.splices: list[str] = []  # names of the inline functions being expanded

    # --- output ---

    def emit(self, statement: ir.Stmt) -> None:
        self.block.append(statement)

    def span(self, node: ast.AST) -> Span:
        return self.source.span(node)

    # --- errors ---

    def fail(self, kind: type[ParserError], message: str, node: ast.AST, hint: str | None = None) -> NoReturn:
        raise kind(message, self.span(node), hint)

    def syntax(self, message: str, node: ast.AST, hint: str | None = None) -> NoReturn:
        self.fail(ParserSyntaxError, message, node, hint)

    def type_error(self, message: str, node: ast.AST, hint: str | None = None) -> NoReturn:
        self.fail(ParserTypeError, message, node, hint)

    def unsupported(self, message: str, node: ast.AST, hint: str | None = None) -> NoReturn:
        self.fail(UnsupportedFeatureError, message, node, hint)

    def undefined(self, name: str, node: ast.AST) -> NoReturn:
        gone = self.names.closed_in(name)
        if gone:
            article = "an" if gone == "if" else "a"
            self.fail(
                UndefinedVariableError,
                f"{name!r} is first assigned inside {article} {gone} block and cannot be read after it",
                node,
                f"assign {name!r} before the {gone} block",
            )
        near = difflib.get_close_matches(name, self.names.visible() | self.environment.names(), 1)
        hint = f"did you mean {near[0]!r}?" if near else None
        self.fail(UndefinedVariableError, f"{name!r} is not defined", node, hint)

    # --- constants ---

    def assigned_once(self, name: str) -> bool:
        """True when the body binds ``name`` in exactly one place, so that a constant stays one."""
        return self._assignments().get(name) == 1

    def is_assigned(self, name: str) -> bool:
        """True when the body binds ``name`` anywhere."""
        return name in self._assignments()

    def _assignments(self) -> dict[str, int]:
        key = id(self.source)
        if key not in self._stores:
            counts: dict[str, int] = {}
            for node in ast.walk(self.source.tree):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    counts[node.id] = counts.get(node.id, 0) + 1
            self._stores[key] = counts
        return self._stores[key]

    # --- roots ---

    def root_of(self, value: ir.Expr) -> str | None:
        """The parameter or allocation whose memory ``value`` is, when it is a version of one."""
        if isinstance(value, ir.Var):
            return self.roots.get(value.name, value.name)
        if isinstance(value, ir.Call):
            written = DESTINATIONS.get(value.op)
            if written and isinstance(value.arguments.get(written), ir.Expr):
                return self.root_of(value.arguments[written])
        if isinstance(value, ir.FunctionCall):
            returns = value.attrs.get("returns", ())
            if len(returns) == 1 and returns[0] is not None and returns[0] < len(value.args):
                return self.root_of(value.args[returns[0]])
        if isinstance(value, ir.TupleItem) and isinstance(value.value, ir.FunctionCall):
            returns = value.value.attrs.get("returns", ())
            if value.index < len(returns) and returns[value.index] is not None:
                return self.root_of(value.value.args[returns[value.index]])
        return None


DESTINATIONS = {
    "tile.store": "output_tensor",
    "tensor.assemble": "target",
    "tensor.write": "tensor",
    "tile.mscatter": "output_tensor",
    "tensor.expand_clone": "target",
}
"""Operations that write a tensor in place: parameter that names it."""

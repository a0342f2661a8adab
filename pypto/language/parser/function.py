"""One function: signature, body and inline expansion put together (spec language 3)."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import INDEX
from pypto.ir.enums import FunctionType, Level, ParamDirection, Role
from pypto.ir.errors import ParserError, ParserSyntaxError
from pypto.ir.span import Span
from pypto.ir.walk import flatten, statements, walk
from pypto.language.parser.annotations import to_type
from pypto.language.parser.core import FunctionOptions, ProgramContext
from pypto.language.parser.distributed import RankCalls
from pypto.language.parser.environment import Environment
from pypto.language.parser.scope import Names
from pypto.language.parser.scopes import HOST_NUMBER
from pypto.language.parser.source import Source

IMPLIED_PLACE: dict[FunctionType, tuple[Level, Role]] = {
    FunctionType.InCore: (Level.CHIP_DIE, Role.SubWorker),
    FunctionType.AIC: (Level.AIC, Role.SubWorker),
    FunctionType.AIV: (Level.AIV, Role.SubWorker),
    FunctionType.Group: (Level.CORE_GROUP, Role.SubWorker),
    FunctionType.Orchestration: (Level.CHIP, Role.Orchestrator),
    FunctionType.Graph: (Level.CHIP, Role.Orchestrator),
}
"""Level and role that a function type implies (spec language 3.6)."""


@dataclass(frozen=True)
class Definition:
    """A function that is expanded in place of its calls."""

    name: str
    source: Source
    environment: Environment
    jit: bool

    @property
    def identity(self) -> str:
        """Tells functions of one name apart."""
        return f"{self.source.filename}:{self.source.first_line}:{self.name}"

    @property
    def tree(self) -> ast.FunctionDef:
        assert isinstance(self.source.tree, ast.FunctionDef)
        return self.source.tree


def _holds_host_scope(body: list[ir.Stmt]) -> bool:
    """True for code that runs on the host by a scope: what stands around it runs there, too (spec distributed 1.4)."""
    scopes = (s for s in statements(body) if isinstance(s, ir.Scope) and s.kind == "at")
    return any(scope.attrs["level"].number >= HOST_NUMBER for scope in scopes)


class FunctionParser(RankCalls):
    """Parses one function definition to an :class:`ir.Function`."""

    def __init__(self, source: Source, environment: Environment, context: ProgramContext, options: FunctionOptions):
        super().__init__(source, environment, context, options)
        self.siblings = []
        self.tuples = {}
        self.declarations = {}
        self.spaces = {}
        self.carries = []

    def parse(
        self,
        tree: ast.FunctionDef,
        params: list[ir.Param],
        return_types: tuple[ir.Type, ...] | None,
        takes_self: bool,
        span: Span,
    ) -> ir.Function:
        """Parse ``tree`` with parameters of known types; ``return_types`` is the annotation, when there is one."""
        self.params = params
        self._need_symbols_first(params, tree)
        self.dimensions = self._dimensions(params)
        for parameter in params:
            variable = ir.Var(self.names.fresh(parameter.name), parameter.type, span)
            self.names.shadow(parameter.name, variable)
            self.roots[parameter.name] = parameter.name
            if parameter.value is not None:
                self.specialised[parameter.name] = parameter.value
        self._guarded(tree)
        inferred = tuple(v.type for v in self.returned or [])
        attrs = {**self.attrs, "returns": self.returned_parameters()}
        if not self.options.auto_scope:
            attrs["auto_scope"] = False
        if return_types is not None or self.options.declares_return:
            attrs["declares_return"] = True
        level, role = self.options.level, self.options.role
        if self.options.type in IMPLIED_PLACE:
            level, role = level or IMPLIED_PLACE[self.options.type][0], role or IMPLIED_PLACE[self.options.type][1]
        if level is None and self.options.type == FunctionType.Opaque and _holds_host_scope(self.block):
            level, role = Level.HOST, Role.Orchestrator
        types = return_types if return_types is not None else inferred
        return ir.Function(
            tree.name, params, self.block, self.options.type, level, role, types, attrs, takes_self, span
        )

    def _dimensions(self, params: list[ir.Param]) -> set[str]:
        """Scalar parameters that are a dynamic extent of the others, and stay what they are (spec language 2.7)."""
        scalars = {p.name for p in params if p.type == ir.ScalarType(INDEX)}
        shapes = (extent for p in params if isinstance(p.type, ir.TensorType) for extent in flatten(p.type.shape))
        symbols = {e.name for extent in shapes for e in walk(extent) if isinstance(e, ir.Symbol)}
        return {name for name in scalars & symbols if not self.is_assigned(name)}

    def _need_symbols_first(self, params: list[ir.Param], tree: ast.FunctionDef) -> None:
        """A scalar that is a dynamic extent is declared before the parameters that use it (spec language 2.7)."""
        used: dict[str, str] = {}
        for parameter in params:
            if parameter.type == ir.ScalarType(INDEX) and parameter.name in used and not self.options.jit:
                node = next((a for a in tree.args.args if a.arg == parameter.name), tree)
                self.type_error(
                    f"parameter {parameter.name!r} is an extent of {used[parameter.name]!r}: declare it first",
                    node,
                    f"move {parameter.name!r} to the front of the parameters",
                )
            if isinstance(parameter.type, ir.TensorType):
                names = (e.name for x in flatten(parameter.type.shape) for e in walk(x) if isinstance(e, ir.Symbol))
                used.update((name, parameter.name) for name in names)

    def _guarded(self, tree: ast.FunctionDef) -> None:
        try:
            self.statements(tree.body)
        except ParserError:
            raise
        except RecursionError as e:
            raise ParserSyntaxError(
                f"{tree.name} calls itself; recursion is not part of the language", self.span(tree)
            ) from e

    # --- inline expansion ---

    def expand_definition(self, definition: Definition, args: list[ir.Expr], node: ast.AST) -> ir.Expr:
        """Parse the body of ``definition`` here with its parameters bound to ``args``."""
        if definition.identity in self.splices:
            self.fail(ParserSyntaxError, f"inline function {definition.name!r} calls itself", node)
        parameters = [a.arg for a in definition.tree.args.args if a.arg != "self"]
        if len(parameters) != len(args):
            self.type_error(
                f"{definition.name} takes {len(parameters)} arguments ({', '.join(parameters)}), got {len(args)}", node
            )
        saved = (self.source, self.environment, self.names, self.returned, self.options)
        bound = [self._bound_argument(name, value, node) for name, value in zip(parameters, args)]
        inner = Names()
        inner._taken = self.names._taken
        self.source, self.environment = definition.source, definition.environment
        self.names, self.returned = inner, None
        if definition.jit and not self.options.jit:
            from dataclasses import replace

            self.options = replace(self.options, jit=True)
        self.splices.append(definition.identity)
        try:
            for name, value in zip(parameters, bound):
                self._bind_parameter(name, value)
            self.statements(definition.tree.body)
            result = self.returned
        finally:
            self.splices.pop()
            self.source, self.environment, self.names, self.returned, self.options = saved
        return self._spliced_value(result, node)

    def _bind_parameter(self, name: str, value: ir.Expr) -> None:
        if isinstance(value, ir.Var):
            self.names.shadow(name, value)
            return
        holder = ir.Var(self.names.fresh(f"{name}_inline"), value.type, value.span, name)
        self.names.shadow(name, holder)
        if isinstance(value, ir.TupleExpr):
            self.tuples[holder.name] = value
        elif isinstance(value, ir.Const):
            self.specialised[holder.name] = value.value
            self.emit(ir.Assign(holder, value, value.span))

    def _bound_argument(self, name: str, value: ir.Expr, node: ast.AST) -> ir.Expr:
        """``value`` as a variable that the body may rebind without touching the caller's."""
        if isinstance(value, (ir.TupleExpr, ir.Const)):
            return value
        variable = ir.Var(self.names.fresh(f"{name}_inline"), value.type, self.span(node), name)
        self.emit(ir.Assign(variable, value, self.span(node)))
        root = self.root_of(value)
        if root:
            self.roots[variable.name] = root
        return variable

    def _spliced_value(self, result: list[ir.Expr] | None, node: ast.AST) -> ir.Expr:
        if not result:
            return ir.Call("system.nothing", {}, ir.NoneType(), {}, self.span(node))
        return result[0] if len(result) == 1 else ir.TupleExpr(tuple(result), self.span(node))

    def _effect(self, value: ir.Expr, node: ast.stmt) -> None:
        if isinstance(value, ir.Call) and value.op == "system.nothing":
            return
        super()._effect(value, node)


def parameter_types(
    tree: ast.FunctionDef,
    annotations: dict[str, Any],
    source: Source,
    skip_self: bool,
) -> list[tuple[str, Any, ast.arg]]:
    """The parameters of a definition with their evaluated annotations; other kinds are a ``ParserSyntaxError``."""
    spec = tree.args
    if spec.vararg or spec.kwarg or spec.kwonlyargs or spec.posonlyargs:
        raise ParserSyntaxError("parameters are positional-or-keyword only", source.span(tree))
    found = []
    for position, argument in enumerate(spec.args):
        if skip_self and position == 0 and argument.arg == "self":
            continue
        found.append((argument.arg, annotations.get(argument.arg), argument))
    return found


def direction_of(direction: ParamDirection, kind: ir.Type) -> ParamDirection:
    """Scalars are always inputs."""
    return ParamDirection.In if isinstance(kind, ir.ScalarType) else direction


__all__ = ["Definition", "FunctionParser", "FunctionOptions", "parameter_types", "direction_of", "to_type"]

"""``pl.function``, ``pl.program`` and ``pl.inline`` (spec language 3.6 to 3.8)."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import DataType
from pypto.ir.enums import FunctionType, Level, ParamDirection, Role
from pypto.ir.errors import ParserError, ParserSyntaxError, ParserTypeError
from pypto.ir.span import Span
from pypto.language.parser.annotations import is_bare, split_direction, to_type
from pypto.language.parser.core import FunctionOptions
from pypto.language.parser.environment import Environment, caller_names, environment_of
from pypto.language.parser.function import (
    IMPLIED_PLACE,
    Definition,
    FunctionParser,
    direction_of,
    parameter_types,
)
from pypto.language.parser.source import Source, source_of


@dataclass
class FunctionDeclaration:
    """A method of a ``@pl.program`` class, parsed when the class is complete."""

    python: Callable[..., Any]
    options: FunctionOptions
    external_source: str | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self.python.__name__} is a kernel: its body is parsed, never executed")


class InlineFunction:
    """A function whose body is parsed anew at each call, against the actual arguments."""

    is_inline_macro = True

    def __init__(self, function: Callable[..., Any], frame_names: dict[str, Any]):
        self.python, self._frame_names = function, frame_names
        functools.update_wrapper(self, function)

    @functools.cached_property
    def _source(self) -> Source:
        return source_of(self.python)

    def definition(self) -> Definition:
        """The syntax tree and the names its body can see."""
        return Definition(self.python.__name__, self._source, environment_of(self.python, self._frame_names), False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"@pl.inline function {self.python.__name__!r} is expanded inside kernels, not called")


def inline(function: Callable[..., Any]) -> InlineFunction:
    """Expand ``function`` at each call inside ``@pl.function`` and ``@pl.program`` bodies."""
    return InlineFunction(function, caller_names(1))


def function(
    target: Callable[..., Any] | None = None,
    *,
    type: FunctionType = FunctionType.Opaque,
    level: Level | None = None,
    role: Role | None = None,
    attrs: dict[str, Any] | None = None,
    auto_scope: bool = True,
    strict_ssa: bool = False,
    external_source: str | None = None,
) -> Any:
    """Declare one function of a program; outside a ``@pl.program`` class it is parsed at once to an ``ir.Function``."""
    if target is not None and not inspect.isfunction(target):
        raise TypeError(f"pl.function takes its options by keyword, got {target!r}; write pl.function(type=...)")
    options = FunctionOptions(type, level, role, auto_scope, strict_ssa, attrs=dict(attrs or {}))
    if attrs:
        import warnings

        warnings.warn(
            "attrs= on pl.function is deprecated; write pl.func_attr in the body", DeprecationWarning, stacklevel=2
        )
    if external_source is not None and type not in (FunctionType.AIC, FunctionType.AIV):
        raise ParserTypeError(f"external_source= needs type AIC or AIV, got {type}")
    names = caller_names(1)

    def decorate(python: Callable[..., Any]) -> Any:
        declaration = FunctionDeclaration(python, options, external_source)
        if "self" in python.__code__.co_varnames[: python.__code__.co_argcount] or _inside_class(python):
            _refuse_repetition(python, names.get(python.__name__))
            return declaration
        return ProgramParser(python.__name__, {python.__name__: declaration}, names).standalone(python.__name__)

    return decorate if target is None else decorate(target)


def _inside_class(python: Callable[..., Any]) -> bool:
    parent = python.__qualname__.rpartition(".")[0]
    return bool(parent) and not parent.endswith("<locals>")


def program(target: type | None = None, *, strict_ssa: bool = False) -> Any:
    """Build an ``ir.Program`` from a class whose methods are ``@pl.function``s."""
    names = caller_names(1)

    def decorate(cls: type) -> ir.Program:
        declarations = {n: v for n, v in vars(cls).items() if isinstance(v, FunctionDeclaration)}
        if not declarations:
            raise ParserSyntaxError(f"class {cls.__name__} has no @pl.function method")
        if strict_ssa:
            for declaration in declarations.values():
                declaration.options.strict_ssa = True
        return ProgramParser(cls.__name__, declarations, names).program()

    return decorate if target is None else decorate(target)


def _refuse_repetition(python: Callable[..., Any], other: Any) -> None:
    """Python keeps the last of two methods of one name; a program that loses a kernel says so."""
    if isinstance(other, FunctionDeclaration) and other.python.__qualname__ == python.__qualname__:
        source = source_of(python)
        line = other.python.__code__.co_firstlineno
        raise ParserSyntaxError(
            f"the program defines {python.__name__!r} twice; the first is in line {line}",
            source.span(source.tree),
            "give each function of a program a name of its own",
        )


class ProgramParser:
    """Parses the functions of a class program, each when it is first needed."""

    def __init__(self, name: str, declarations: dict[str, FunctionDeclaration], frame_names: dict[str, Any]):
        self.name, self._declarations, self._frame_names = name, declarations, frame_names
        self._functions: dict[str, ir.Function] = {}
        self._open: list[str] = []
        self._spliced: set[str] = set()  # opaque functions that live on inside their callers
        self._sources: dict[str, Source] = {}

    def program(self) -> ir.Program:
        """Parse everything, in source order; functions called by name come first."""
        for name, declaration in self._declarations.items():
            if declaration.options.type != FunctionType.Inline:
                self._function(name)
        order = [n for n in self._functions if n not in self._declarations] + [
            n for n in self._declarations if n in self._functions and n not in self._spliced
        ]
        return ir.Program(self.name, {n: self._functions[n] for n in order})

    def standalone(self, name: str) -> ir.Function:
        """The single function of a declaration outside any class."""
        return self._function(name)

    # --- context of the function parsers ---

    def method(self, name: str, args: list[ir.Expr]) -> ir.Function | None:
        if name in self._functions:
            return self._functions[name]
        return self._function(name) if name in self._declarations else None

    def method_names(self) -> Iterable[str]:
        return [*self._declarations, *self._functions]

    def dependency(self, name: str, target: Any, args: list[ir.Expr], span: Span) -> ir.Function:
        if not isinstance(target, ir.Function):
            raise ParserSyntaxError(f"{name!r} is a @pl.jit function; class programs call their own methods", span)
        known = self._functions.get(target.name)
        if target.name in self._declarations or (known is not None and known is not target):
            raise ParserSyntaxError(f"two different functions are called {target.name!r}", span)
        self._functions[target.name] = target
        return target

    def splice(self, name: str, from_host: bool) -> Definition | None:
        declaration = self._declarations.get(name)
        if declaration is None:
            return None
        opaque = declaration.options.type == FunctionType.Opaque and declaration.options.level is None and not from_host
        if declaration.options.type != FunctionType.Inline and not opaque:
            return None
        self._spliced.add(name)
        return Definition(name, self._source(name), environment_of(declaration.python, self._frame_names), False)

    # --- parsing ---

    def _source(self, name: str) -> Source:
        if name not in self._sources:
            try:
                self._sources[name] = source_of(self._declarations[name].python)
            except OSError as e:
                raise ParserSyntaxError(str(e)) from e
        return self._sources[name]

    def _function(self, name: str) -> ir.Function:
        if name in self._functions:
            return self._functions[name]
        if name in self._open:
            raise ParserSyntaxError(f"{name} calls itself; recursion is not part of the language")
        self._open.append(name)
        try:
            self._functions[name] = self._parse(name)
        finally:
            self._open.pop()
        return self._functions[name]

    def _parse(self, name: str) -> ir.Function:
        declaration, source = self._declarations[name], self._source(name)
        tree = source.tree
        if not isinstance(tree, ast.FunctionDef):
            raise ParserSyntaxError(f"{name} is not a function definition")
        _refuse_other_place(declaration.options, source.span(tree))
        environment = environment_of(declaration.python, self._frame_names)
        annotations = evaluated_annotations(declaration.python, environment, source)
        params = self._params(tree, annotations, source)
        returns = _return_types(annotations.get("return"), source, tree)
        takes_self = bool(tree.args.args) and tree.args.args[0].arg == "self"
        options = declaration.options
        if is_host_callback(options):
            return self._callback(name, tree, params, returns, options, source, takes_self)
        if declaration.external_source is not None:
            stub = external_stub(source, tree)
            parser = FunctionParser(source, environment, self, options)
            function = parser.parse(stub, params, returns, takes_self, source.span(tree))
            return _external(function, declaration.external_source, returns)
        parser = FunctionParser(source, environment, self, options)
        return parser.parse(tree, params, returns, takes_self, source.span(tree))

    def _params(self, tree: ast.FunctionDef, annotations: dict[str, Any], source: Source) -> list[ir.Param]:
        params = []
        for name, annotation, node in parameter_types(tree, annotations, source, True):
            if annotation is None:
                raise ParserTypeError(f"parameter {name!r} has no annotation", source.span(node))
            direction, inner = split_direction(annotation)
            if (
                isinstance(inner, DataType)
                or is_bare(inner)
                or not hasattr(inner, "dtype")
                and not isinstance(inner, type)
                and not hasattr(inner, "items")
            ):
                example = f"Scalar[pl.{inner.constant}]" if isinstance(inner, DataType) else "Tensor[[64, 64], pl.FP32]"
                raise ParserTypeError(
                    f"parameter {name!r} needs a complete type such as pl.{example}", source.span(node)
                )
            try:
                kind = to_type(inner)
            except TypeError as e:
                raise ParserTypeError(f"parameter {name!r}: {e}", source.span(node)) from e
            if isinstance(kind, ir.ScalarType) and direction != direction_of(direction, kind):
                raise ParserTypeError(f"scalar parameter {name!r} cannot be an output", source.span(node))
            params.append(ir.Param(name, kind, direction))
        return params

    def _callback(
        self,
        name: str,
        tree: ast.FunctionDef,
        params: list[ir.Param],
        returns: tuple[ir.Type, ...] | None,
        options: FunctionOptions,
        source: Source,
        takes_self: bool,
    ) -> ir.Function:
        """A HOST-level sub-worker: the body stays Python (spec language 3.6)."""
        if takes_self:
            raise ParserSyntaxError(f"{name} is a HOST sub-worker and must not declare 'self'", source.span(tree))
        declared_only = (
            len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant)
        )
        attrs = {
            "python": self._declarations[name].python,
            "required": declared_only,
            "source": source.text,
            "returns": tuple(i for i, p in enumerate(params) if p.direction != ParamDirection.In)[: len(returns or ())],
        }
        return ir.Function(
            name, params, [], options.type, options.level, options.role, returns or (), attrs, False, source.span(tree)
        )


def external_stub(source: Source, tree: ast.FunctionDef) -> ast.FunctionDef:
    """``tree`` of a C++ kernel with nothing but its ``pl.func_attr`` statements (spec language 3.10)."""
    kept = []
    for stmt in tree.body:
        value = stmt.value if isinstance(stmt, ast.Expr) else None
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "pl.func_attr":
            kept.append(stmt)
        elif not isinstance(stmt, ast.Pass) and not isinstance(value, ast.Constant):
            raise ParserSyntaxError(
                f"{tree.name!r} is a C++ kernel: its body holds a docstring, pl.func_attr, '...' or 'pass' only",
                source.span(stmt),
            )
    return ast.FunctionDef(**{**{f: getattr(tree, f) for f in tree._fields}, "body": kept})


def _external(function: ir.Function, path: str, declared: tuple[ir.Type, ...] | None) -> ir.Function:
    """The stub of the C++ kernel in ``path``: what it returns are its output parameters, in their order."""
    from pypto.ir.printer import print_type

    outputs = [i for i, p in enumerate(function.params) if p.direction != ParamDirection.In]
    positions: list[int] = []
    for kind in declared or ():
        rest = (i for i in outputs if i > max(positions, default=-1) and function.params[i].type == kind)
        position = next(rest, None)
        if position is None:
            named = ", ".join(f"{p.name}: {print_type(p.type)}" for p in map(function.params.__getitem__, outputs))
            raise ParserTypeError(
                f"result {len(positions)} of C++ kernel {function.name!r} is {print_type(kind)}; results are output "
                f"parameters in their order, and it has {named or 'none'}",
                function.span,
            )
        positions.append(position)
    if declared is None:
        positions = outputs
    types = tuple(function.params[i].type for i in positions)
    attrs = {**function.attrs, "external_source": path, "returns": tuple(positions)}
    return replace(function, return_types=types, attrs=attrs)


def _refuse_other_place(options: FunctionOptions, span: Span) -> None:
    """A function type implies where the function runs (spec language 3.6)."""
    implied = IMPLIED_PLACE.get(options.type)
    for name, stated, own in zip(("level", "role"), (options.level, options.role), implied or ()):
        if stated is not None and stated != own:
            raise ParserSyntaxError(
                f"type={options.type} runs at {name}={own}, got {name}={stated}", span, f"leave {name}= out"
            )


def is_host_callback(options: FunctionOptions) -> bool:
    """True for sub-workers at HOST level or above."""
    return options.role == Role.SubWorker and options.level is not None and options.level.number >= 3


def evaluated_annotations(python: Callable[..., Any], environment: Environment, source: Source) -> dict[str, Any]:
    """The annotations of ``python`` as objects; string annotations are evaluated over its names."""
    found = {}
    for name, value in getattr(python, "__annotations__", {}).items():
        if isinstance(value, str):
            try:
                value = eval(value, dict(environment.as_dict()))
            except Exception as e:
                what = "the return annotation" if name == "return" else f"the annotation of {name!r}"
                raise ParserTypeError(
                    f"{what} cannot be evaluated: {e}", source.span(_annotation(source.tree, name))
                ) from e
        found[name] = value
    return found


def _annotation(tree: ast.FunctionDef | ast.ClassDef, name: str) -> ast.AST:
    """Where the annotation of parameter ``name``, or ``return``, stands in ``tree``."""
    if isinstance(tree, ast.ClassDef):
        return tree
    if name == "return":
        return tree.returns or tree
    arguments = (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)
    return next((a.annotation or a for a in arguments if a.arg == name), tree)


def _return_types(annotation: Any, source: Source, tree: ast.FunctionDef) -> tuple[ir.Type, ...] | None:
    if annotation is None:
        return None
    try:
        kind = to_type(annotation)
    except TypeError as e:
        raise ParserTypeError(f"the return annotation: {e}", source.span(tree.returns or tree)) from e
    return kind.items if isinstance(kind, ir.TupleType) else (kind,)


__all__ = ["function", "program", "inline", "InlineFunction", "ProgramParser", "ParserError"]

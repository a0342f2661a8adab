"""The source of a golden function, freed of the object and the scope it was written in (spec runtime 9.4)."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

FUNCTION: Final = "compute_golden"


def standalone_source(golden_fn: Callable[..., Any]) -> str:
    """``golden_fn`` as source of a module-level ``compute_golden(tensors, params)``.

    ``self`` is dropped; attributes of ``self``, variables of the enclosing scope and module-level names become literals
    or imports. ``RuntimeError`` names what cannot be carried over, or says that there is no source.
    """
    function = _definition(golden_fn)
    instance = getattr(golden_fn, "__self__", None)
    known = _known_names(golden_fn)
    if function.args.args and function.args.args[0].arg == "self":
        del function.args.args[0]
        function = _Attributes(instance).visit(function)
    while len(function.args.args) < 2:
        function.args.args.append(ast.arg("params"))
    function.name = FUNCTION
    function.decorator_list = []
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    prelude = _prelude(function, known)
    return "\n".join([*prelude, "", "", ast.unparse(ast.fix_missing_locations(function))]) + "\n"


def _definition(golden_fn: Callable[..., Any]) -> ast.FunctionDef:
    try:
        source = textwrap.dedent(inspect.getsource(golden_fn))
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError) as error:
        raise RuntimeError(f"no source is available for the golden function {golden_fn!r}: {error}") from None
    if not tree.body or not isinstance(tree.body[0], ast.FunctionDef):
        raise RuntimeError(f"the golden function must be written with def, got {source.strip().splitlines()[0]!r}")
    return tree.body[0]


def _known_names(golden_fn: Callable[..., Any]) -> Mapping[str, Any]:
    """What free names of the function mean."""
    plain = inspect.unwrap(getattr(golden_fn, "__func__", golden_fn))
    closure = inspect.getclosurevars(plain)
    return {**closure.globals, **closure.nonlocals}


class _Attributes(ast.NodeTransformer):
    """Replaces ``self.name`` by the literal it holds."""

    def __init__(self, instance: Any):
        self._instance = instance

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return _literal(f"self.{node.attr}", getattr(self._instance, node.attr, None))
        return node


def _literal(name: str, value: Any) -> ast.expr:
    try:
        expression = ast.parse(repr(value), mode="eval").body
        ast.literal_eval(expression)
    except (SyntaxError, ValueError):
        raise RuntimeError(
            f"the golden function uses {name}, a {type(value).__name__} that has no literal; pass it in params"
        ) from None
    return expression


def _prelude(function: ast.FunctionDef, known: Mapping[str, Any]) -> list[str]:
    """Imports and assignments for the free names the function still uses."""
    used = sorted({n.id for n in ast.walk(function) if isinstance(n, ast.Name)} & set(known))
    lines = []
    for name in used:
        value = known[name]
        if isinstance(value, types.ModuleType):
            lines.append(f"import {value.__name__}" if value.__name__ == name else f"import {value.__name__} as {name}")
        elif callable(value) and getattr(value, "__module__", "__main__") not in ("__main__", function.name):
            lines.append(f"from {value.__module__} import {value.__qualname__} as {name}")
        else:
            lines.append(f"{name} = {ast.unparse(_literal(name, value))}")
    return lines

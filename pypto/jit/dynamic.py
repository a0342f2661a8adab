"""Which dimensions of a kernel's parameters are dynamic (spec language 2.7)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pypto.ir import nodes as ir
from pypto.language import typing as lt
from pypto.language.parser.annotations import is_bare, split_direction

if TYPE_CHECKING:
    from pypto.jit.decorator import JITFunction

Axes = dict[tuple[str, int], ir.Expr]


def dynamic_axes(function: JITFunction, visiting: frozenset[str] = frozenset()) -> Axes:
    """(parameter, axis) -> extent: from ``bind_dynamic``, else the annotations, else the callees."""
    axes: Axes = {}
    if function.__name__ not in visiting:
        axes.update(_cascaded(function, visiting | {function.__name__}))
    axes.update(_annotated(function))
    axes.update(_bound(function))
    return axes


def _annotated(function: JITFunction) -> Axes:
    found: Axes = {}
    for name, annotation in function.annotations.items():
        _, inner = split_direction(annotation)
        if not isinstance(inner, lt.TensorSpec):
            continue
        for axis, extent in enumerate(inner.shape):
            if isinstance(extent, lt.DimExpression):
                found[name, axis] = extent.expr
    return found


def _bound(function: JITFunction) -> Axes:
    found: Axes = {}
    local = _local_symbols(function.tree)
    for node in ast.walk(function.tree):
        if (
            not isinstance(node, ast.Call)
            or not isinstance(node.func, ast.Attribute)
            or node.func.attr != "bind_dynamic"
        ):
            continue
        if not isinstance(node.func.value, ast.Name) or len(node.args) != 2:
            continue
        axis, symbol = node.args
        if isinstance(axis, ast.Constant) and isinstance(axis.value, int) and isinstance(symbol, ast.Name):
            value = function.environment.get(symbol.id)
            name = value.name if isinstance(value, lt.DynVar) else local.get(symbol.id, symbol.id)
            found[node.func.value.id, axis.value] = ir.Symbol(name)
    return found


def _local_symbols(tree: ast.FunctionDef) -> dict[str, str]:
    """``V = pl.dynamic("V")`` written in the body."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            func, args = node.value.func, node.value.args
            if (
                isinstance(func, ast.Attribute)
                and func.attr == "dynamic"
                and args
                and isinstance(args[0], ast.Constant)
            ):
                found[node.targets[0].id] = str(args[0].value)
    return found


def _cascaded(function: JITFunction, visiting: frozenset[str]) -> Axes:
    found: Axes = {}
    own = set(function.parameter_names)
    for node in ast.walk(function.tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        callee = function.dependencies.get(node.func.id)
        if callee is None or callee.__name__ in visiting:
            continue
        passed = dict(zip(callee.parameter_names, node.args))
        passed.update({k.arg: k.value for k in node.keywords if k.arg})
        for (name, axis), extent in dynamic_axes(callee, visiting).items():
            argument = passed.get(name)
            if isinstance(argument, ast.Name) and argument.id in own:
                found[argument.id, axis] = extent
    return found


__all__ = ["Axes", "dynamic_axes", "is_bare"]

"""From a jit function and argument types to an ``ir.Program`` (spec language 3.3, 3.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pypto.ir import nodes as ir
from pypto.ir.enums import FunctionType, Level, ParamDirection, Role
from pypto.ir.errors import ParserSyntaxError, ParserTypeError
from pypto.ir.span import Span
from pypto.jit.dynamic import dynamic_axes
from pypto.language import typing as lt
from pypto.language.parser.annotations import dims, is_bare, split_direction, to_type
from pypto.language.parser.core import FunctionOptions
from pypto.language.parser.function import Definition, FunctionParser

if TYPE_CHECKING:
    from pypto.jit.decorator import JITFunction

KIND_TYPES = {
    "entry": (FunctionType.Orchestration, None, None),
    "host": (FunctionType.Opaque, Level.HOST, Role.Orchestrator),
    "incore": (FunctionType.InCore, None, None),
    "opaque": (FunctionType.Opaque, None, None),
    "inline": (FunctionType.Inline, None, None),
}


class Specialisation:
    """The program around one specialised entry: parses each dependency when a call reaches it."""

    def __init__(self, entry: JITFunction):
        self.entry = entry
        self._functions: dict[str, ir.Function] = {}
        self._by_types: dict[tuple[Any, ...], ir.Function] = {}
        self._open: list[str] = []
        self._reachable = entry.dependencies

    def program(self, types: dict[str, ir.Type], values: dict[str, Any]) -> ir.Program:
        """Parse the entry with these parameter types and specialised scalar values."""
        main = self._parse(self.entry, self.entry.__name__, types, values)
        self._functions[main.name] = main
        return ir.Program(f"_jit_{self.entry.__name__}", dict(self._functions))

    # --- context of the function parsers ---

    def method(self, name: str, args: list[ir.Expr]) -> ir.Function | None:
        if name in self._functions:
            return self._functions[name]
        target = self._reachable.get(name)
        return None if target is None else self.dependency(name, target, args, target.span)

    def method_names(self) -> Iterable[str]:
        return [*self._functions, *self._reachable]

    def splice(self, name: str, from_host: bool) -> Definition | None:
        target = self._reachable.get(name)
        kinds = ("inline",) if from_host else ("inline", "opaque")
        return target.definition() if target is not None and target.kind in kinds else None

    def dependency(self, name: str, target: Any, args: list[ir.Expr], span: Span) -> ir.Function:
        if isinstance(target, ir.Function):
            self._functions.setdefault(target.name, target)
            return target
        if target.kind == "entry" and self.entry.kind != "host" or target.kind == "host":
            raise ParserSyntaxError(
                f"a @pl.jit entry is called from a @pl.jit.host function only; {name!r} is one", span
            )
        if target.__name__ in self._open:
            raise ParserSyntaxError(f"{name!r} calls itself; recursion is not part of the language", span)
        types = {p: self._argument_type(target, p, a, span) for p, a in zip(target.parameter_names, args)}
        values = {
            p: a.value for p, a in zip(target.parameter_names, args) if isinstance(a, ir.Const) and a.value is not None
        }
        key = (target.__name__, tuple(types.items()), tuple(values.items()))
        if key not in self._by_types:
            self._by_types[key] = self._specialised(target, types, values)
        return self._by_types[key]

    def _specialised(self, target: JITFunction, types: dict[str, ir.Type], values: dict[str, Any]) -> ir.Function:
        number, name = 0, target.__name__
        while name in self._functions:
            number += 1
            name = f"{target.__name__}_{number}"
        if target.kind == "extern":
            function = target.external_function(name, self._params(target, types, values))
        else:
            outer, self._reachable = self._reachable, {**self._reachable, **target.dependencies}
            function = self._parse(target, name, types, values)
            self._reachable = outer
        self._functions[name] = function
        return function

    def _argument_type(self, target: JITFunction, name: str, value: ir.Expr, span: Span) -> ir.Type:
        """The parameter's type: the argument's, with the callee's own symbols where it declares some."""
        _, inner = split_direction(target.annotations.get(name))
        have = value.type
        if isinstance(have, ir.TensorType):
            axes = dynamic_axes(target)
            shape = tuple(
                ir.as_dim(axes[name, k]) if (name, k) in axes else self._extent(name, k, d)
                for k, d in enumerate(have.shape)
            )
            distributed = have.distributed or inner is lt.DistributedTensor or getattr(inner, "distributed", False)
            return ir.TensorType(
                shape, have.dtype, None if have.view is None or not have.view.valid_shape else None, distributed
            )
        if isinstance(have, ir.ScalarType) and inner is not None and not is_bare(inner):
            return to_type(inner)
        if isinstance(have, (ir.TileType, ir.NoneType)):
            raise ParserTypeError(f"{target.__name__}: parameter {name!r} takes a tensor or scalar", span)
        return have

    @staticmethod
    def _extent(name: str, axis: int, extent: ir.Dim) -> ir.Dim:
        if isinstance(extent, (int, ir.Symbol)):
            return extent
        return ir.Symbol(f"{name}_extent{axis}")

    # --- parsing ---

    def _params(self, target: JITFunction, types: dict[str, ir.Type], values: dict[str, Any]) -> list[ir.Param]:
        params = []
        for name in target.parameter_names:
            kind = types[name]
            direction, _ = split_direction(target.annotations.get(name))
            if not isinstance(kind, ir.TensorType):
                direction = ParamDirection.In
            params.append(ir.Param(name, kind, direction, _typed_value(kind, values.get(name))))
        return params

    def _parse(self, target: JITFunction, name: str, types: dict[str, ir.Type], values: dict[str, Any]) -> ir.Function:
        kind, level, role = KIND_TYPES[target.kind]
        declares = "return" in target.annotations
        options = FunctionOptions(kind, target.level or level, role, target.auto_scope, False, True, declares)
        parser = FunctionParser(target.source, target.environment, self, options)
        self._open.append(target.__name__)
        try:
            function = parser.parse(target.tree, self._params(target, types, values), None, False, target.span)
        finally:
            self._open.pop()
        function.name = name
        return function


def _typed_value(kind: ir.Type, value: Any) -> Any:
    """A specialised number as the parameter's dtype holds it."""
    if value is None or not isinstance(kind, ir.ScalarType):
        return None
    if kind.dtype.is_float():
        return float(value)
    return bool(value) if kind.dtype.category == "bool" else int(value)


def entry_types(function: JITFunction, tensors: dict[str, Any]) -> dict[str, ir.Type]:
    """Types of the entry's parameters: from the given tensors' metadata, else from the annotations."""
    axes = dynamic_axes(function)
    types: dict[str, ir.Type] = {}
    for name in function.parameter_names:
        _, inner = split_direction(function.annotations.get(name))
        meta = tensors.get(name)
        if meta is not None:
            shape = tuple(ir.as_dim(axes[name, k]) if (name, k) in axes else d for k, d in enumerate(meta.shape))
            types[name] = _sampled(inner, shape, meta.dtype)
        else:
            types[name] = _from_annotation(name, inner, axes)
    return types


def _sampled(inner: Any, shape: tuple[ir.Dim, ...], dtype: Any) -> ir.TensorType:
    declared = to_type(inner) if isinstance(inner, lt.TensorSpec) else None
    view = declared.view if isinstance(declared, ir.TensorType) else None
    return ir.TensorType(shape, dtype, view, bool(getattr(inner, "distributed", False)))


def _from_annotation(name: str, inner: Any, axes: dict[tuple[str, int], ir.Expr]) -> ir.Type:
    if isinstance(inner, lt.TensorSpec):
        declared = to_type(inner)
        shape = tuple(ir.as_dim(axes.get((name, k), ir.as_expr(d))) for k, d in enumerate(dims(inner.shape)))
        assert isinstance(declared, ir.TensorType)
        return ir.TensorType(shape, declared.dtype, declared.view, declared.distributed)
    return to_type(inner)

"""The ``pl.jit`` family of decorators and the object they make."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pypto
from pypto.ir import nodes as ir
from pypto.ir.compilation import compile_options
from pypto.ir.enums import FunctionType, Level
from pypto.ir.errors import ParserTypeError
from pypto.ir.span import Span
from pypto.jit.capture import Capture
from pypto.jit.metadata import TensorMeta, is_tensor, tensor_meta
from pypto.language import typing as lt
from pypto.language.parser.annotations import is_bare, split_direction
from pypto.language.parser.environment import Environment, caller_names, environment_of
from pypto.language.parser.function import Definition
from pypto.language.parser.source import Source, source_of
from pypto.language.program import evaluated_annotations

_NUMBERS = (bool, int, float)


class JITFunction:
    """A kernel that is specialised, compiled and cached per argument shapes, dtypes and scalar values."""

    is_jit_function = True

    def __init__(
        self,
        python: Callable[..., Any],
        kind: str,
        *,
        auto_scope: bool = True,
        level: Level | None = None,
        frame_names: dict[str, Any] | None = None,
        extern: dict[str, Any] | None = None,
    ):
        functools.update_wrapper(self, python)
        self.__name__: str = python.__name__
        self.python, self.kind, self.auto_scope, self.level = python, kind, auto_scope, level
        self.extern = extern or {}
        self._frame_names = frame_names or {}
        self._cache: dict[Any, Any] = {}
        self._signature = inspect.signature(python)
        for parameter in self._signature.parameters.values():
            if parameter.kind != inspect.Parameter.POSITIONAL_OR_KEYWORD:
                raise TypeError(f"@pl.jit function {self.__name__!r}: parameters are positional-or-keyword only")
        self.parameter_names = list(self._signature.parameters)
        self._warn_inline_directions()

    def _warn_inline_directions(self) -> None:
        annotations = getattr(self.python, "__annotations__", {}).values()
        if self.kind == "inline" and any(isinstance(a, lt.Directed) for a in annotations):
            import warnings

            warnings.warn(
                "directions on an inline helper are ignored: it has no calling boundary",
                DeprecationWarning,
                stacklevel=4,
            )

    def __repr__(self) -> str:
        names = {"entry": "orchestration", "host": "host"}
        return f"JITFunction({self.__name__!r}, func_type={names.get(self.kind, self.kind)!r})"

    # --- source ---

    @functools.cached_property
    def source(self) -> Source:
        return source_of(self.python)

    @property
    def tree(self) -> ast.FunctionDef:
        tree = self.source.tree
        if not isinstance(tree, ast.FunctionDef):
            raise OSError(f"the source of {self.__name__!r} is not a function definition")
        return tree

    @property
    def span(self) -> Span:
        return self.source.span(self.source.tree)

    @functools.cached_property
    def environment(self) -> Environment:
        return environment_of(self.python, self._frame_names)

    @functools.cached_property
    def annotations(self) -> dict[str, Any]:
        """Evaluated annotations of the parameters."""
        return evaluated_annotations(self.python, self.environment, self.source)

    @property
    def dependencies(self) -> dict[str, JITFunction]:
        """Jit functions called by bare name in the body (spec language 3.3)."""
        found = {}
        for name in self._called_names:
            value = self.environment.get(name)
            if isinstance(value, JITFunction):
                if value.__name__ != name:
                    raise ValueError(
                        f"{self.__name__} calls {value.__name__!r} under the name {name!r}; use its own name"
                    )
                found[name] = value
        return found

    @functools.cached_property
    def _called_names(self) -> list[str]:
        calls = [n.func.id for n in ast.walk(self.tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
        return list(dict.fromkeys(calls))

    @functools.cached_property
    def read_names(self) -> list[str]:
        loads = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        return sorted(loads - set(self.parameter_names))

    def definition(self) -> Definition:
        """For expansion in place of a call."""
        return Definition(self.__name__, self.source, self.environment, True)

    def external_function(self, name: str, params: list[ir.Param]) -> ir.Function:
        """The stub of a C++ kernel."""
        core = self.extern.get("core_type", "aiv")
        kinds = {"aic": FunctionType.AIC, "aiv": FunctionType.AIV, "mixed": FunctionType.InCore}
        outputs = tuple(i for i, p in enumerate(params) if p.direction.name != "In")
        types = tuple(params[i].type for i in outputs)
        return ir.Function(
            name,
            params,
            [],
            kinds[core],
            None,
            None,
            types,
            {**self.extern, "external": True, "returns": outputs},
            False,
            self.span,
        )

    # --- key ---

    @functools.cached_property
    def source_digest(self) -> str:
        """Identity of the source text and of the package."""
        return hashlib.sha256(f"{pypto.__version__}\0{self.source.text}".encode()).hexdigest()

    @functools.cached_property
    def _capture(self) -> Capture:
        return Capture(self)

    def extern_digest(self) -> str:
        """Contents of the C++ sources, read anew."""
        if self.kind != "extern":
            return ""
        digest = hashlib.sha256()
        for path in self.extern["sources"]:
            digest.update(Path(path).read_bytes())
        return digest.hexdigest()

    def _key(self, tensors: dict[str, TensorMeta], scalars: dict[str, Any], config: Any) -> Any:
        dynamic = self._dynamic_axes
        shapes = tuple(
            (meta.shape if name not in dynamic else _wildcards(meta.shape, dynamic[name]), meta.dtype.code())
            for name, meta in tensors.items()
        )
        values = tuple((n, type(v), v) for n, v in scalars.items() if v is not lt.RUNTIME)
        return (self._capture.state(), tuple(tensors), shapes, values, compile_options(config).key())

    @functools.cached_property
    def _dynamic_axes(self) -> dict[str, set[int]]:
        """Parameter -> axes that do not take part in the key."""
        from pypto.jit.dynamic import dynamic_axes

        found: dict[str, set[int]] = {}
        for name, axis in dynamic_axes(self):
            found.setdefault(name, set()).add(axis)
        return found

    # --- binding ---

    @functools.cached_property
    def _tensor_parameters(self) -> dict[str, bool]:
        """Annotated parameter -> whether it takes a tensor."""
        found = {}
        for name in self.parameter_names:
            if name in self.annotations:
                _, inner = split_direction(self.annotations[name])
                if any(isinstance(extra, lt.View) for extra in getattr(inner, "extras", ())):
                    raise TypeError(
                        f"@pl.jit function {self.__name__!r}: parameter {name!r} has a pl.TensorView; "
                        "declare this kernel with @pl.function"
                    )
                found[name] = inner is None or is_bare(inner) or isinstance(inner, lt.TensorSpec)
        return found

    def _bind(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[dict[str, TensorMeta], dict[str, Any], list[Any]]:
        """Sample mode: tensor metadata, scalar values, and the arguments in order."""
        arguments = self._arguments(args, kwargs)
        tensors: dict[str, TensorMeta] = {}
        scalars: dict[str, Any] = {}
        takes_tensor = self._tensor_parameters
        for name, value in arguments.items():
            if name not in takes_tensor:
                raise ParserTypeError(f"parameter {name!r}: missing type annotation", self.span)
            if value is lt.RUNTIME:
                raise TypeError(
                    f"@pl.jit function {self.__name__!r}: {name!r} received pl.RUNTIME; it is a compile-time marker "
                    f"for compile() without positional arguments, a direct call needs a value"
                )
            if takes_tensor[name]:
                tensors[name] = tensor_meta(name, self.__name__, value)
            else:
                scalars[name] = self._number(name, value)
        return tensors, scalars, list(arguments.values())

    def _arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Parameter names with their values, Python defaults applied."""
        if not kwargs and len(args) == len(self.parameter_names):
            return dict(zip(self.parameter_names, args))
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"@pl.jit function {self.__name__!r}: {e}") from None
        bound.apply_defaults()
        return bound.arguments

    def _number(self, name: str, value: Any) -> Any:
        if hasattr(value, "item") and not is_tensor(value):
            value = value.item()
        if type(value) not in _NUMBERS:
            raise TypeError(
                f"@pl.jit function {self.__name__!r}: scalar parameter {name!r} takes an int, float, bool or "
                f"pl.RUNTIME, got {type(value).__name__}"
            )
        return value

    def _bind_signature(self, kwargs: dict[str, Any]) -> tuple[dict[str, TensorMeta], dict[str, Any]]:
        """Signature mode: everything comes from the annotations (spec language 3.5)."""
        unknown = [k for k in kwargs if k not in self.parameter_names]
        if unknown:
            raise TypeError(
                f"@pl.jit function {self.__name__!r}: got an unexpected keyword argument {unknown[0]!r}; "
                f"parameters: {', '.join(self.parameter_names)}"
            )
        tensors: dict[str, TensorMeta] = {}
        scalars: dict[str, Any] = {}
        for name, parameter in self._signature.parameters.items():
            if name not in self.annotations:
                raise TypeError(
                    f"@pl.jit function {self.__name__!r}: parameter {name!r} has no annotation to infer it from"
                )
            _, inner = split_direction(self.annotations[name])
            if is_bare(inner):
                raise TypeError(
                    f"@pl.jit function {self.__name__!r}: parameter {name!r} is a bare 'pl.Tensor'; complete it as "
                    f"pl.Tensor[[...], dtype] or pass sample tensors to compile()"
                )
            if isinstance(inner, lt.TensorSpec):
                shape = tuple(d if isinstance(d, int) else -1 for d in inner.shape)
                tensors[name] = TensorMeta(shape, inner.dtype)
                continue
            value = kwargs.get(name, parameter.default)
            if value is inspect.Parameter.empty:
                raise TypeError(
                    f"@pl.jit function {self.__name__!r}: scalar parameter {name!r} needs a value or "
                    "pl.RUNTIME by keyword"
                )
            scalars[name] = value if value is lt.RUNTIME else self._number(name, value)
        return tensors, scalars

    def _resolve(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[dict[str, TensorMeta], dict[str, Any]]:
        sampled = bool(args) or any(is_tensor(v) for v in kwargs.values())
        if sampled:
            tensors, scalars, _ = self._bind(args, kwargs)
            return tensors, scalars
        return self._bind_signature(kwargs)

    # --- operations ---

    def _program(self, tensors: dict[str, TensorMeta], scalars: dict[str, Any]) -> ir.Program:
        from pypto.jit.specialise import Specialisation, entry_types

        sampled = {n: m for n, m in tensors.items() if -1 not in m.shape}
        values = {n: v for n, v in scalars.items() if v is not lt.RUNTIME}
        return Specialisation(self).program(entry_types(self, sampled), values)

    def _compiled(self, tensors: dict[str, TensorMeta], scalars: dict[str, Any], config: Any) -> Any:
        key = self._key(tensors, scalars, config)
        found = self._cache.get(key)
        if found is None:
            from pypto.ir.compilation import compile_with

            found = compile_with(self._program(tensors, scalars), config)
            self._cache[key] = found
        return found

    def __call__(self, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        """Specialise, compile or reuse, and run with ``config`` (a ``RunConfig``)."""
        tensors, scalars, values = self._bind(args, kwargs)
        return self._compiled(tensors, scalars, config)(*values, config=config)

    def compile(self, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        """The compiled program for these samples, or for the annotations when no tensor is given."""
        compiled = self._compiled(*self._resolve(args, kwargs), config)
        if config is not None:
            compiled.checks = config.checks, config.checks_mode, config.poison
        return compiled

    def lower(self, *args: Any, config: Any = None, **kwargs: Any) -> ir.Program:
        """The program after the pass pipeline; no cache, no files."""
        from pypto.ir.compilation import lower_with

        return lower_with(self._program(*self._resolve(args, kwargs)), config)

    def cache_clear(self) -> None:
        """Forget every compiled program of this function."""
        self._cache.clear()


def _wildcards(shape: tuple[int, ...], dynamic: set[int]) -> tuple[int | None, ...]:
    return tuple(None if axis in dynamic else extent for axis, extent in enumerate(shape))


class _Jit:
    """``pl.jit`` and its variants."""

    def __call__(self, function: Callable[..., Any] | None = None, *, auto_scope: bool = True) -> Any:
        """An entry kernel."""
        return self._decorate(function, "entry", auto_scope=auto_scope)

    def host(self, function: Callable[..., Any] | None = None, **options: Any) -> Any:
        """A host-level entry."""
        return self._decorate(function, "host", **self._only(options, "host", "auto_scope"))

    def incore(self, function: Callable[..., Any] | None = None, **options: Any) -> Any:
        """A device kernel."""
        return self._decorate(function, "incore", **self._only(options, "incore", "level"))

    def inline(self, function: Callable[..., Any] | None = None, **options: Any) -> Any:
        """A helper spliced into its callers."""
        return self._decorate(function, "inline", **self._only(options, "inline", "auto_scope"))

    def opaque(self, function: Callable[..., Any] | None = None, **options: Any) -> Any:
        """A separate, non-outlined function."""
        return self._decorate(function, "opaque", **self._only(options, "opaque"))

    def extern(
        self,
        *,
        core_type: str = "aiv",
        source: str | None = None,
        aic_source: str | None = None,
        aiv_source: str | None = None,
        dual_aiv_dispatch: bool = False,
        include_dirs: Sequence[str] | None = None,
    ) -> Any:
        """A hand-written C++ kernel: compiles here, runs through a Python stand-in (spec language 3.10)."""
        names = caller_names(1)

        def decorate(function: Callable[..., Any]) -> JITFunction:
            from pypto.jit.extern import extern_options

            options = extern_options(
                function, core_type, source, aic_source, aiv_source, dual_aiv_dispatch, include_dirs
            )
            return JITFunction(function, "extern", frame_names=names, extern=options)

        return decorate

    @staticmethod
    def _only(options: dict[str, Any], variant: str, *legal: str) -> dict[str, Any]:
        for name in options:
            if name in ("level", "auto_scope") and name not in legal:
                raise TypeError(f"@pl.jit.{variant} does not accept a{'n' if name[0] == 'a' else ''} {name}= argument")
            if name not in legal:
                raise TypeError(f"@pl.jit.{variant} got an unexpected keyword argument {name!r}")
        return options

    @staticmethod
    def _decorate(function: Callable[..., Any] | None, kind: str, **options: Any) -> Any:
        names = caller_names(2)

        def decorate(target: Callable[..., Any]) -> JITFunction:
            return JITFunction(target, kind, frame_names=names, **options)

        return decorate if function is None else decorate(function)


jit = _Jit()

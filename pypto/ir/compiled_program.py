"""A compiled program: its signature, its build directory, and calling it (spec runtime 4)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.artifact import read_meta, signature_of
from pypto.ir.dtype import DataType
from pypto.ir.enums import FunctionType, ParamDirection

_COMPILED_META_FILENAME = "compiled_meta.json"
_ENTRY_TYPES = (FunctionType.Orchestration, FunctionType.Graph)


@dataclass(frozen=True)
class ParamInfo:
    """One parameter of the orchestration; ``shape`` is ``None`` for scalars and holds -1 for dynamic extents."""

    name: str
    direction: ParamDirection
    shape: tuple[int, ...] | None
    dtype: DataType

    @property
    def kind(self) -> str:
        return "scalar" if self.shape is None else "tensor"


_ParamInfo = ParamInfo


def _to_torch_dtype(dtype: DataType) -> Any:
    """The torch dtype of an element type, ``None`` when torch has none."""
    from pypto.runtime.torch_dtypes import to_torch_dtype

    return to_torch_dtype(dtype)


def _to_runtime_shape(shape: Sequence[int], dtype: DataType) -> list[int]:
    """The shape of the torch tensor that holds ``shape`` elements: FP4 pairs share a carrier (spec runtime 4.4)."""
    from pypto.runtime.torch_dtypes import elements_per_carrier

    *outer, last = shape
    return [*outer, last // elements_per_carrier(dtype)]


class _Callable:
    """Signature and dispatch of one orchestration in one directory."""

    __test__ = False

    def __init__(self, directory: Path, platform: str, signature: dict[str, Any], name: str | None = None):
        self._directory, self._platform, self._name = directory, platform, name
        self._signature = signature
        self._callable: Any = None
        self.last_findings: list[Any] = []
        self.checks: tuple[Any, Any, Any] | None = None
        """``checks``, ``checks_mode`` and ``poison`` of its compilation, for calls without a configuration."""
        self._stand_ins: dict[str, Any] = {}

    @property
    def output_dir(self) -> Path | str:
        """Build directory."""
        return self._directory

    @property
    def platform(self) -> str:
        return self._platform

    @property
    def param_infos(self) -> list[ParamInfo]:
        """Parameters in call order."""
        return [
            ParamInfo(
                p["name"],
                ParamDirection[p["direction"]],
                None if p["shape"] is None else tuple(p["shape"]),
                DataType.from_string(p["dtype"]),
            )
            for p in self._signature["params"]
        ]

    @property
    def dynamic_extents(self) -> dict[str, list[tuple[int, int]]]:
        """Where every ``pl.dynamic`` extent occurs: name -> (position of the parameter, axis)."""
        found: dict[str, list[tuple[int, int]]] = {}
        for position, p in enumerate(self._signature["params"]):
            for axis, name in p.get("symbols", {}).items():
                found.setdefault(name, []).append((position, int(axis)))
        return found

    @property
    def param_names(self) -> list[str]:
        """Orchestration parameters, in call order."""
        return [p["name"] for p in self._signature["params"]]

    @property
    def output_indices(self) -> list[int]:
        """Positions of pure ``Out`` parameters."""
        return [i for i, p in enumerate(self._signature["params"]) if p["direction"] == "Out"]

    @property
    def has_return(self) -> bool:
        """True when the orchestration returns something."""
        return self._signature["num_return_types"] > 0

    @property
    def chip_callable(self) -> Any:
        """The dispatchable artifact, assembled on first access; the same object afterwards."""
        if self._callable is None:
            from pypto.runtime.callable import assemble

            self._callable = assemble(self._directory, self._platform)
        return self._callable

    @property
    def runtime_name(self) -> str:
        return self.chip_callable.runtime_name

    @property
    def runtime_config(self) -> dict[str, Any]:
        return self.chip_callable.runtime_config

    def load(self) -> None:
        """Assemble now."""
        _ = self.chip_callable

    def bind_external(self, name: str, function: Any) -> None:
        """Run ``function`` in place of the C++ kernel ``name``, from the next launch on.

        It is called with one argument per parameter of the kernel: NumPy views of the tensors, into which it writes
        its results, and numbers (``pypto.sim.external``). ``ValueError``: the program has no such C++ kernel;
        ``TypeError``: ``function`` cannot be called.
        """
        known = self.chip_callable.program.externals
        if name not in known:
            there = f"those of this program: {', '.join(known)}" if known else "this program has none"
            raise ValueError(f"{name!r} is not a C++ kernel; {there}")
        if not callable(function):
            raise TypeError(f"the stand-in of {name!r} must be a function, got {type(function).__name__}")
        self._stand_ins[name] = function

    def bind_arguments(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """``args`` as a launch would take them, one per parameter; outputs left out are allocated, filled with zeros.

        ``TypeError`` and ``ValueError`` name a wrong argument (spec runtime 4.2, 4.3).
        """
        from pypto.runtime.dispatch import prepare

        return prepare(self).signature.bind(args).arguments

    def build_orch_args(self, *args: Any, worker: Any) -> Any:
        """Validate and pack arguments (spec runtime 4.1)."""
        from pypto.runtime.dispatch import build_orch_args

        return build_orch_args(self, args, worker)

    def build_call_config(self, config: Any = None, *, aicpu_thread_num: int | None = None, dfx_dir: Any = None) -> Any:
        """The call configuration of one dispatch."""
        from pypto.runtime.dispatch import build_call_config

        return build_call_config(self, config, aicpu_thread_num=aicpu_thread_num, dfx_dir=dfx_dir)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what was assembled: a copy assembles again from the build directory."""
        return {**self.__dict__, "_callable": None}

    def __call__(self, *args: Any, config: Any = None) -> Any:
        """Run: all parameters in place, or without the outputs for return style (spec runtime 4.2)."""
        from pypto.runtime.dispatch import dispatch

        return dispatch(self, args, config)


class _SubChipCallable(_Callable):
    """One orchestration of a program that has several."""

    @property
    def name(self) -> str:
        return self._name or ""

    @property
    def output_dir(self) -> str:
        return str(self._directory)


class CompiledProgram(_Callable):
    """The result of ``ir.compile`` for one chip; converts to its build directory wherever a path is wanted."""

    def __init__(
        self,
        directory: Path,
        program: ir.Program | None,
        platform: str,
        backend_type: Any,
        names: list[str] | None = None,
        ready: ir.Program | None = None,
        signature: dict[str, Any] | None = None,
    ):
        entry = None if ready is None else next((f for f in ready.functions.values() if f.type in _ENTRY_TYPES), None)
        if signature is None:
            signature = signature_of(entry) if entry is not None else {"params": [], "num_return_types": 0}
        super().__init__(directory, platform, signature)
        self._program, self._backend_type, self._names, self._ready = program, backend_type, sorted(names or []), ready

    @property
    def output_dir(self) -> Path:
        """Build directory."""
        return self._directory

    @property
    def program(self) -> ir.Program | None:
        """The program handed to ``ir.compile``; ``None`` after :meth:`from_dir`."""
        return self._program

    @property
    def backend_type(self) -> Any:
        return self._backend_type

    @property
    def orchestration_names(self) -> list[str]:
        """Names to select from when the program has several orchestrations."""
        return list(self._names)

    def _require_single(self, what: str) -> None:
        if self._names:
            raise TypeError(
                f"Multi-orch program: {what} needs one of {', '.join(self._names)}; select it as compiled[name]"
            )

    @property
    def chip_callable(self) -> Any:
        self._require_single("chip_callable")
        return super().chip_callable

    def __call__(self, *args: Any, config: Any = None) -> Any:
        self._require_single("calling")
        return super().__call__(*args, config=config)

    def __getitem__(self, name: str) -> _SubChipCallable:
        if name not in self._names:
            raise KeyError(f"no orchestration {name!r}; there are: {', '.join(self._names) or 'none to select'}")
        if self._ready is None:
            raise RuntimeError("selecting an orchestration needs live IR; from_dir reloads one sub-directory at a time")
        return _SubChipCallable(
            self._directory / "next_levels" / name, self._platform, signature_of(self._ready.functions[name]), name
        )

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.__dict__.get("_names", ()):
            return self[name]
        raise AttributeError(f"'CompiledProgram' object has no attribute {name!r}")

    def _get_metadata(self) -> tuple[list[ParamInfo], list[int], list[ir.Type]]:
        entry = (
            None
            if self._ready is None
            else next((f for f in self._ready.functions.values() if f.type in _ENTRY_TYPES), None)
        )
        return self.param_infos, self.output_indices, list(entry.return_types) if entry is not None else []

    @classmethod
    def from_dir(
        cls, output_dir: str | os.PathLike[str], *, platform: str | None = None, backend_type: Any = None
    ) -> CompiledProgram:
        """Rebuild a program from its build directory; edited texts take effect.

        ``FileNotFoundError``/``ValueError`` name the file that is missing or damaged.
        """
        from pypto.backend.platforms import BackendType

        directory = Path(output_dir).resolve()
        meta = read_meta(directory)
        backend = backend_type if backend_type is not None else BackendType[meta["backend_type"]]
        return cls(directory, None, platform or meta.get("platform") or "a2a3sim", backend, signature=meta)

    def __str__(self) -> str:
        return str(self._directory)

    def __fspath__(self) -> str:
        return str(self._directory)

    def __repr__(self) -> str:
        return f"CompiledProgram({self._directory})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (CompiledProgram, str, os.PathLike)):
            return Path(other) == self._directory
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._directory)

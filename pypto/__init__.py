"""PyPTO tile kernels for Ascend NPUs, run and timed without a card."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_MODULES = {
    "ir": "pypto.ir",
    "language": "pypto.language",
    "runtime": "pypto.runtime",
    "passes": "pypto.ir.pass_manager",
    "codegen": "pypto.ir.lowering",
    "testing": "pypto.testing",
    "compile_profiling": "pypto.compile_profiling",
    "jit": "pypto.jit",
    "backend": "pypto.backend",
    "debug": "pypto.debug",
    "perf": "pypto.perf",
    "sim": "pypto.sim",
}
_NAMES = {
    "DataType": "pypto.ir.dtype",
    "Error": "pypto.ir.errors",
    "InternalError": "pypto.ir.errors",
    "LogLevel": "pypto.log",
    "set_log_level": "pypto.log",
    "get_log_level": "pypto.log",
    "log_debug": "pypto.log",
    "log_info": "pypto.log",
    "log_warn": "pypto.log",
    "log_error": "pypto.log",
    "log_fatal": "pypto.log",
    "log_event": "pypto.log",
}


def __getattr__(name: str) -> Any:
    """Load parts of the package on first use (spec runtime 2)."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    if name.startswith("DT_"):
        from pypto.ir.dtype import BY_CONSTANT

        if name[3:] in BY_CONSTANT:
            return BY_CONSTANT[name[3:]]
    raise AttributeError(f"module 'pypto' has no attribute {name!r}")

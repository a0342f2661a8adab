"""The program representation, ``compile`` and compiled programs.

Names are imported on first use, so that ``import pypto.language`` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.ir.compilation import compile
    from pypto.ir.compiled_program import CompiledProgram

_HOMES = {
    "compile": "compilation",
    "CompiledProgram": "compiled_program",
    "python_print": "printer",
    "ParamDirection": "enums",
    "DistributedCompiledProgram": "distributed_compiled_program",
    "DistributedConfig": "distributed_compiled_program",
    "PassManager": "pass_manager",
    "OptimizationStrategy": "pass_manager",
    "PassDumpLevel": "pass_manager",
    "PassContext": "pass_manager",
    "VerificationLevel": "pass_manager",
    "DiagnosticPhase": "pass_manager",
    "DiagnosticCheck": "pass_manager",
    "DiagnosticCheckSet": "pass_manager",
}
_NODE_MODULES = ("nodes", "enums")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name.startswith("__"):
        raise AttributeError(name)
    if name in _HOMES:
        value = getattr(import_module(f"pypto.ir.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    for module in _NODE_MODULES:
        found = getattr(import_module(f"pypto.ir.{module}"), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module 'pypto.ir' has no attribute {name!r}")


__all__ = ["CompiledProgram", "compile", *(n for n in _HOMES if n not in ("CompiledProgram", "compile"))]

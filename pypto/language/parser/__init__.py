"""From Python source to IR (spec language 3 to 5); as ``pl.parser`` also the text entry points and their errors."""

from __future__ import annotations

from typing import Any

_HOMES = {
    "ParserError": "pypto.ir.errors",
    "ParserSyntaxError": "pypto.ir.errors",
    "ParserTypeError": "pypto.ir.errors",
    "UndefinedVariableError": "pypto.ir.errors",
    "SSAViolationError": "pypto.ir.errors",
    "UnsupportedFeatureError": "pypto.ir.errors",
    "InvalidOperationError": "pypto.ir.errors",
    "parse": "pypto.language.text",
    "loads": "pypto.language.text",
    "parse_program": "pypto.language.text",
    "loads_program": "pypto.language.text",
    "function": "pypto.language.program",
    "program": "pypto.language.program",
    "inline": "pypto.language.program",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'pypto.language.parser' has no attribute {name!r}")


__all__ = list(_HOMES)

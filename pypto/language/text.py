"""Programs as text: ``parse``, ``loads`` (spec language 3.9)."""

from __future__ import annotations

import builtins
import itertools
import linecache
import re
import warnings
from os import PathLike
from pathlib import Path
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.errors import Error

_counter = itertools.count()


def parse(code: str, filename: str = "<string>", source_map: Any = None) -> ir.Function | ir.Program:
    """The single function or program that ``code`` defines.

    Raises ``ValueError`` for none or several, ``SyntaxError`` for bad Python, ``ParserError`` for bad programs.
    """
    import pypto.language as pl
    import pypto.language.distributed as pld

    name = filename if filename != "<string>" else f"<pypto.parse {next(_counter)}>"
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    compiled = compile(code, name, "exec")
    names: dict[str, Any] = {"pl": pl, "pld": pld, "__name__": "pypto_parsed", "__builtins__": builtins}
    for symbol in re.findall(r"^\s*([A-Za-z_]\w*)\s*=\s*pl\.dynamic\(", code, re.MULTILINE):
        names[symbol] = pl.dynamic(symbol)
    _declare_dimensions(code, names)
    try:
        exec(compiled, names)
    except (Error, SyntaxError):
        raise
    except Exception as e:
        raise RuntimeError(f"{filename}: {type(e).__name__}: {e}") from e
    found = [v for k, v in names.items() if isinstance(v, (ir.Function, ir.Program)) and k not in ("pl", "pld")]
    unique = list({id(v): v for v in found}.values())
    programs = [v for v in unique if isinstance(v, ir.Program)]
    if len(programs) == 1:
        return programs[0]
    if len(unique) != 1:
        raise ValueError(f"{filename} defines {len(unique)} functions or programs; exactly one is expected")
    return unique[0]


def _declare_dimensions(code: str, names: dict[str, Any]) -> None:
    """Bind names that annotations use as extents and nothing defines."""
    import ast

    from pypto.language.typing import DynVar

    tree = ast.parse(code)
    local = {id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for s in f.body for n in ast.walk(s)}
    stored = (n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    defined = {n.id for n in stored if id(n) not in local}
    defined |= {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    for definition in ast.walk(tree):
        if not isinstance(definition, ast.FunctionDef):
            continue
        annotations = [a.annotation for a in definition.args.args if a.annotation] + [definition.returns]
        for annotation in filter(None, annotations):
            for node in ast.walk(annotation):
                free = isinstance(node, ast.Name) and node.id not in names and node.id not in defined
                if free and not hasattr(builtins, node.id):  # type: ignore[attr-defined]
                    names[node.id] = DynVar(node.id)  # type: ignore[attr-defined]


def loads(filepath: str | PathLike[str]) -> ir.Function | ir.Program:
    """The function or program a file defines."""
    path = Path(filepath)
    return parse(path.read_text(encoding="utf-8"), str(path))


def parse_program(code: str, filename: str = "<string>") -> ir.Program:
    """Deprecated spelling of :func:`parse` for programs."""
    warnings.warn("pl.parse_program is deprecated; use pl.parse", DeprecationWarning, stacklevel=2)
    result = parse(code, filename)
    if not isinstance(result, ir.Program):
        raise ValueError(f"{filename} defines a function, not a program")
    return result


def loads_program(filepath: str | PathLike[str]) -> ir.Program:
    """Deprecated spelling of :func:`loads` for programs."""
    return parse_program(Path(filepath).read_text(encoding="utf-8"), str(filepath))

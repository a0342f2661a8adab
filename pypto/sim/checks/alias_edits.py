"""Edits of the author's source that give a buffer one name in a kernel: one of its two parameters goes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pypto.sim.checks.source_edits import Piece, Source, replaced, source_of


def alias_edits(file: str, kernel: str, written: str, read: str) -> list[str]:
    """The lines of ``kernel`` and of its calls without the parameter ``read``, whose buffer ``written`` is.

    Nothing when another call passes two buffers, when the parameters are of two types, or when a line cannot be cut.
    """
    source = source_of(file)
    function = _function(source, kernel) if source is not None else None
    if source is None or function is None:
        return []
    names = [argument.arg for argument in function.args.args]
    if written not in names or read not in names or written == read:
        return []
    kept, gone = (function.args.args[names.index(name)] for name in (written, read))
    if _type(kept.annotation) != _type(gone.annotation):
        return []
    pieces = [_cut(source, function.args.args, names.index(read)), *_declared(kept.annotation)]
    pieces += _renamed(function, gone, kept)
    method, calls = names[:1] == ["self"], list(_calls(source, kernel))
    if not calls:
        return []
    for call, first in calls:
        at, other = (first + names.index(name) - method for name in (read, written))
        if max(at, other) >= len(call.args) or ast.dump(call.args[at]) != ast.dump(call.args[other]) or call.keywords:
            return []
        pieces.append(_cut(source, call.args, at))
    return replaced(source, pieces)


def _function(source: Source, name: str) -> ast.FunctionDef | None:
    found = [node for node in source.paths if isinstance(node, ast.FunctionDef) and node.name == name]
    return found[0] if len(found) == 1 else None


def _type(annotation: ast.expr | None) -> str:
    """The type of a parameter without its direction."""
    if _direction(annotation) and isinstance(annotation, ast.Subscript):
        annotation = annotation.slice
    return "" if annotation is None else ast.dump(annotation)


def _direction(annotation: ast.expr | None) -> str:
    head = annotation.value if isinstance(annotation, ast.Subscript) else None
    return head.attr if isinstance(head, ast.Attribute) and head.attr in ("Out", "InOut") else ""


def _declared(annotation: ast.expr | None) -> Iterator[Piece | None]:
    """What is written and read is ``pl.InOut``."""
    if _direction(annotation) == "Out" and isinstance(annotation, ast.Subscript):
        yield Piece.of(annotation.value, "pl.InOut")


def _renamed(function: ast.FunctionDef, gone: ast.arg, kept: ast.arg) -> Iterator[Piece | None]:
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id == gone.arg:
                yield Piece.of(node, kept.arg)


def _calls(source: Source, kernel: str) -> Iterator[tuple[ast.Call, int]]:
    """(call, position of the first argument of the kernel) of its calls and submissions."""
    for statement in source.paths:
        if not isinstance(statement, ast.Assign | ast.Expr | ast.Return):
            continue
        for node in ast.walk(statement):
            called = _named(node.func) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and called == kernel:
                yield node, 0
            elif isinstance(node, ast.Call) and called.endswith("submit") and _named(node.args[0]) == kernel:
                yield node, 1


def _named(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _cut(source: Source, items: Sequence[ast.expr | ast.arg], at: int) -> Piece | None:
    """One of a list of parameters or arguments is left out, with the comma that is too many."""
    item = items[at]
    before, behind = (items[at - 1] if at else None), (items[at + 1] if at + 1 < len(items) else None)
    if item.end_lineno != item.lineno or item.end_col_offset is None:
        return None
    if behind is not None and behind.lineno == item.lineno:
        return Piece(item.lineno, item.col_offset, behind.col_offset, "")
    if before is not None and before.end_lineno == item.lineno and before.end_col_offset is not None:
        return Piece(item.lineno, before.end_col_offset, item.end_col_offset, "")
    rest = source.lines[item.lineno - 1].encode()[item.end_col_offset :]
    return Piece(item.lineno, item.col_offset, item.end_col_offset + (len(rest) - len(rest.lstrip(b" ,"))), "")

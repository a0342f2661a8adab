"""The table: every row by its canonical name and by every name that reaches it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any

from pypto.ir.nodes import Expr, Type
from pypto.ir.operations.errors import UnknownOperationError
from pypto.ir.operations.parameters import parameters_of
from pypto.ir.operations.row import Operation

_ROWS: dict[str, Operation] = {}
_ALIASES: dict[str, str] = {}
_PROMOTED: dict[str, str] = {}


def register(operation: Operation, aliases: tuple[str, ...] = (), promoted: tuple[str, ...] = ()) -> Operation:
    """Add a row. ``aliases`` are other names in its namespace, ``promoted`` names directly under ``pl.``.

    ``ValueError`` when a name is taken.
    """
    for name in (operation.name, *(f"{operation.namespace}.{alias}" for alias in aliases)):
        if name in _ROWS or name in _ALIASES:
            raise ValueError(f"operation {name} is already registered")
        _ALIASES[name] = operation.name
    _ROWS[operation.name] = operation
    _PROMOTED.update(dict.fromkeys(promoted, operation.name))
    return operation


def define(
    name: str,
    rule: Callable[..., Type | Expr],
    *,
    aliases: tuple[str, ...] = (),
    promoted: tuple[str, ...] = (),
    **fields: Any,
) -> Operation:
    """Register the row whose signature and type rule is ``rule``; ``fields`` are those of :class:`Operation`."""
    return register(Operation(name=name, parameters=parameters_of(rule), infer=rule, **fields), aliases, promoted)


def row(name: str) -> Operation:
    """The row with this canonical or other name (``"tile.add"``); ``KeyError`` otherwise."""
    return _ROWS[_ALIASES[name]]


def find(name: str) -> Operation | None:
    """Like :func:`row`, ``None`` when there is none."""
    return _ROWS.get(_ALIASES.get(name, ""))


def rows() -> Iterator[Operation]:
    """All rows in the order of registration."""
    return iter(_ROWS.values())


def names() -> dict[str, str]:
    """Every name of every namespace and the canonical name behind it."""
    return dict(_ALIASES)


def promoted() -> dict[str, str]:
    """Names directly under ``pl.`` that stand for one row, and that row."""
    return dict(_PROMOTED)


def unknown(spelling: str, candidates: list[str]) -> UnknownOperationError:
    """The error for a name that is nowhere, with the closest of ``candidates``."""
    nearest = difflib.get_close_matches(spelling, sorted(set(candidates)), n=2, cutoff=0.6)
    return UnknownOperationError(spelling, tuple(nearest))

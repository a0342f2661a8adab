"""What a jit function and everything it calls read from Python: the part of the cache key that is not an argument.

The names are resolved once; a look-up then reads each of them from the mapping or closure cell that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.jit.decorator import JITFunction

_NUMBERS = (bool, int, float)


class Capture:
    """Captured names of ``function`` and of the jit functions it reaches."""

    def __init__(self, function: JITFunction):
        self._readers: list[tuple[Mapping[str, Any], str]] = []
        self._cells: list[Any] = []
        self._digests: list[str] = []
        self._external: list[Callable[[], str]] = []
        self._add(function, set())

    def _add(self, function: JITFunction, seen: set[int]) -> None:
        if id(function) in seen:
            return
        seen.add(id(function))
        self._digests.append(function.source_digest)
        if function.kind == "extern":
            self._external.append(function.extern_digest)
        for name in function.read_names:
            place = function.environment.place(name)
            if place is None or isinstance(function.environment.get(name), ModuleType):
                continue
            if isinstance(place, Mapping):
                self._readers.append((place, name))
            else:
                self._cells.append(place)
        for callee in function.dependencies.values():
            self._add(callee, seen)

    def state(self) -> tuple[Any, ...]:
        """Hashable identity of everything captured, as it is now."""
        values = [_identity(mapping.get(name)) for mapping, name in self._readers]
        values += [_identity(cell.cell_contents) for cell in self._cells]
        return (*self._digests, *values, *(digest() for digest in self._external))


def _identity(value: Any) -> Any:
    """Numbers by value and type, everything else by object."""
    kind = type(value)
    if kind is int:
        return value
    return (kind, value) if kind in _NUMBERS else (None, id(value))

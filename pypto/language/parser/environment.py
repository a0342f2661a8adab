"""Python names that a body may read: closure, module globals and the defining frame."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

_MISSING = object()


class Environment:
    """Looks a name up in the closure first, then the module, then the names of the defining frame."""

    def __init__(self, layers: list[Mapping[str, Any]], closure: Callable[..., Any] | None = None):
        self._layers = layers
        self._function = closure

    def _closure(self) -> dict[str, Any]:
        function = self._function
        if function is None or not function.__closure__:
            return {}
        cells = zip(function.__code__.co_freevars, function.__closure__)
        found = {}
        for name, cell in cells:
            try:
                found[name] = cell.cell_contents
            except ValueError:
                continue
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """The value of ``name``, or ``default``."""
        closure = self._closure()
        if name in closure:
            return closure[name]
        for layer in self._layers:
            if name in layer:
                return layer[name]
        return default

    def place(self, name: str) -> Any:
        """The mapping or closure cell that holds ``name``; ``None`` when nothing does."""
        function = self._function
        if function is not None and function.__closure__ and name in function.__code__.co_freevars:
            cell = function.__closure__[function.__code__.co_freevars.index(name)]
            if name in self._closure():
                return cell
        return next((layer for layer in self._layers if name in layer), None)

    def __contains__(self, name: str) -> bool:
        return self.get(name, _MISSING) is not _MISSING

    def names(self) -> set[str]:
        """Every visible name, for near-miss hints."""
        found = set(self._closure())
        for layer in self._layers:
            found.update(layer)
        return found

    def as_dict(self) -> dict[str, Any]:
        """All visible names, for evaluating annotations."""
        merged: dict[str, Any] = {}
        for layer in reversed(self._layers):
            merged.update(layer)
        merged.update(self._closure())
        return merged

    def extended(self, names: Mapping[str, Any]) -> Environment:
        """The same environment with ``names`` visible before anything else but the closure."""
        return Environment([names, *self._layers], self._function)


def caller_names(depth: int) -> dict[str, Any]:
    """Local names of the frame ``depth`` calls above the caller, empty at module level."""
    try:
        frame = sys._getframe(depth + 1)
    except ValueError:
        return {}
    return {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)


def environment_of(function: Callable[..., Any], frame_names: Mapping[str, Any] | None = None) -> Environment:
    """What the body of ``function`` can see."""
    return Environment([frame_names or {}, function.__globals__], function)

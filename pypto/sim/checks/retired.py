"""Tensors whose runtime scope has ended: what is known of their memory is forgotten, so that it does not pile up.

No later task can name such a tensor, but a value that a loop or a branch hands on may live for a little longer, and a
task may not have run yet. So tensors are forgotten in lots, the lot before the last one each time, and only while no
task waits. What touches a forgotten tensor all the same is not looked at.
"""

from __future__ import annotations

from typing import Final

_MOST_TENSORS: Final = 256  # of a lot
_MOST_BYTES: Final = 1 << 24


class RetiredTensors:
    """Follows the runtime scopes of a launch."""

    def __init__(self) -> None:
        self._scopes: list[list[tuple[int, int]]] = []
        self._young: list[tuple[int, int]] = []
        self._old: list[tuple[int, int]] = []
        self._bytes = 0  # of the young

    def allocated(self, number: int, size: int) -> None:
        """Allocation ``number`` of ``size`` bytes was made in the innermost scope."""
        if self._scopes:
            self._scopes[-1].append((number, size))

    def opened(self) -> None:
        """A scope begins."""
        self._scopes.append([])

    def closed(self, quiet: bool) -> list[int]:
        """The innermost scope has ended; the allocations to forget now. ``quiet``: no task waits."""
        ended = self._scopes.pop()
        self._young += ended
        self._bytes += sum(size for _, size in ended)
        if not quiet or len(self._young) < _MOST_TENSORS and self._bytes < _MOST_BYTES:
            return []
        ready = [number for number, _ in self._old]
        self._old, self._young, self._bytes = self._young, [], 0
        return ready

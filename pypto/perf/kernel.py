"""How the byte-level loops are compiled and cached."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., object])

KERNEL_FILES = ("fields.py", "intern.py", "kernel.py", "scan.py")
"""Files whose kernels call one another."""


def kernel(function: F) -> F:
    """Compile a function that allocates nothing, cached on disk.

    Such functions need no reference counts on their arrays; leaving them out makes scanning 2.5 times faster, because a
    record costs some sixty calls of small helpers and each would count up and down atomically.
    """
    dispatcher: Any = njit(cache=True, nogil=True, _nrt=False)(function)  # type: ignore[call-overload]
    _watch_every_file(dispatcher)
    return dispatcher


def _watch_every_file(dispatcher: Any) -> None:
    """Numba renews cached code when the function's own file changes; code inlined from other files must count too."""
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = (cache_file._source_stamp, kernel_stamp(Path(__file__).parent))


@cache
def kernel_stamp(directory: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, modification time in ns and size of every kernel file."""
    stats = [(name, (directory / name).stat()) for name in KERNEL_FILES]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)

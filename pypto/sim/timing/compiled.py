"""Compilation of the engine: one file on disk per entry point, keyed by the sources of the whole package.

Numba's own cache looks at the file of the entry point alone and would keep machine code of a changed callee.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
from numba.core import compiler
from numba.core.caching import NullCache
from numba.core.serialize import dumps

from pypto.sim.kernels.cache import alone, folder, read, write
from pypto.sim.kernels.pieces import ScalarCompiler, piece
from pypto.sim.kernels.progress import Progress

# Compiled code allocates nothing; whoever calls it brings the memory. Without reference counting, which costs an atomic
# operation per call and array, the engine takes half the time.
_options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_rewrites": True}

kernel = piece(**_options)
"""Decorator of the pieces an entry point is made of; they are compiled into it."""


_intrinsic: Any = numba.extending.intrinsic  # Numba's stub types it by the function below, not by what is called


@_intrinsic
def pointer(typingctx: Any, array: Any) -> Any:
    """The elements of a contiguous array, as C sees them.

    An index into an array may be negative and is tested each time; the words of the engine are addressed from 0. Plain
    loads are half as much to compile, and a little faster.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(array)(context, builder, arguments[0]).data

    return numba.types.CPointer(array.dtype)(array), codegen


@cache
def fingerprint() -> str:
    """Changes with the engine's sources, the compiler and the processor."""
    digest = hashlib.sha256(repr((numba.__version__, llvmlite.__version__, llvm.get_host_cpu_name())).encode())
    here = Path(__file__).parent
    for path in sorted([*here.glob("*.py"), here.parent / "layout.py", here.parent / "recording.py"]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


class _EntryCache(NullCache):
    """What Numba's compiler asks of a cache, on top of the folder of compiled kernels."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._progress: Progress | None = None

    def compile(self, compile_for: Callable[[Any], Any], sig: Any) -> Any:
        """Load or compile the entry point for ``sig``, telling the person who waits."""
        with alone(self._path(sig)), Progress(1, slow=True) as self._progress:
            return compile_for(sig)

    def _path(self, sig: Any) -> Path | None:
        place = folder()
        key = hashlib.sha256(f"{fingerprint()} {sig}".encode()).hexdigest()[:16]
        return None if place is None else place / f"timing-{self._name}-{key}.kernel"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        path = self._path(sig)
        payload = None if path is None else read(path)
        if payload is None:
            if self._progress is not None:
                self._progress.compiling(f"timing engine, {self._name.strip('_')}")
            return None
        import pickle

        target_context.refresh()
        return compiler.CompileResult._rebuild(target_context, *pickle.loads(payload))

    def save_overload(self, sig: Any, data: Any) -> None:
        path = self._path(sig)
        if path is not None:
            write(path, dumps(data._reduce()))


def entry(function: Callable[..., Any]) -> Any:
    """Decorator of an entry point: compiled on first use, loaded from disk afterwards."""
    jit: Any = numba.njit  # its stub lists the documented options only
    dispatcher: Any = jit(no_cfunc_wrapper=True, pipeline_class=ScalarCompiler, **_options)(function)
    dispatcher._cache = _EntryCache(function.__name__)
    dispatcher.compile = partial(dispatcher._cache.compile, dispatcher.compile)
    return dispatcher

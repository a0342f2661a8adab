"""Compiled functions of the machine that Python calls, ``int64 (*)(address)``, in the cache of the tile kernels."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from pypto.sim.apart import compile_apart
from pypto.sim.kernels.cache import path_of
from pypto.sim.kernels.compilation import Kernel, load_or_compile
from pypto.sim.kernels.progress import Progress


def compiled_entry(name: str, body: Callable[[Any], Any], modules: Sequence[str]) -> Any:
    """``body`` (of one ``int64*``) as a Python callable of an address; it releases the GIL while it runs.

    ``modules`` of this package are the sources that decide the machine code; their content is part of the cache key.
    """
    here = Path(__file__).parent
    kernel = Kernel(f"{name}.{source_digest(here / f'{module}.py' for module in modules)}", body, scalar=True)
    path = path_of(kernel.name)
    with Progress(1, slow=True) as progress:
        if path is not None and not path.exists():
            progress.compiling(name)
            compile_apart(path, lambda: load_or_compile(kernel))
        compiled = load_or_compile(kernel, lambda: progress.compiling(name))
    function: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(compiled.address)
    function.owner = compiled  # keeps the code alive
    return function


def source_digest(paths: Iterable[Path]) -> str:
    """Short digest of the content of source files, for the name of what is compiled from them."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:16]

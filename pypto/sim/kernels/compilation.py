"""From a Python body to the address of a compiled tile kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from numba import types
from numba.core.ccallback import CFunc

from pypto.sim.kernels.cache import KernelFile, alone, path_of
from pypto.sim.kernels.pieces import ScalarCompiler, WholeCompiler, piece

ABI: Final = types.int64(types.CPointer(types.int64))

# What Numba rewrites (expressions of whole arrays, members of tuples by number) does not occur here.
OPTIONS: Final[Any] = {"error_model": "numpy", "no_rewrites": True}

kernel_code: Any = piece(forceinline=True, **OPTIONS)
"""Decorator of the pieces that kernel bodies are made of. Division by zero follows IEEE and raises nothing.

Pieces are always inlined, and compiled with the kernel only (pieces.py).
"""


@dataclass(frozen=True)
class Kernel:
    """A tile kernel before compilation.

    ``name`` identifies it (mnemonic and the dtypes that make a difference) and is its key in the cache; ``body`` takes
    the argument block of docs/architecture.md 2 and returns a status. ``scalar``: it has no loop that vector
    instructions could speed up.
    """

    name: str
    body: Callable[[Any], int]
    scalar: bool = False


def load_or_compile(kernel: Kernel, on_compile: Callable[[], None] | None = None) -> Any:
    """The compiled kernel, from the cache of this user or compiled and left there; its ``address`` is callable.

    ``on_compile`` is called before a compilation, that is when the cache has no entry.
    """
    body = kernel.body
    body.__name__ = kernel.name.replace(".", "_")
    # The symbol of a compiled function is made from its qualified name; kernels loaded from the cache share one
    # symbol table, so the names must differ.
    body.__qualname__ = f"kernel_{body.__name__}"
    _name_parts(body, kernel.name, set())
    compiler = ScalarCompiler if kernel.scalar else WholeCompiler
    compiled: Any = CFunc(body, (ABI.args, ABI.return_type), {}, OPTIONS, compiler)
    compiled._cache = KernelFile(kernel.name, on_compile)
    with alone(path_of(kernel.name)):
        compiled.compile()
    return compiled


def _name_parts(function: Callable[..., Any], prefix: str, seen: set[int]) -> None:
    """Give the pieces that ``function`` closes over names of their own.

    Pieces made by one factory share a qualified name, and the numbers that tell them apart within a process may
    coincide between two processes that left kernels in the cache.
    """
    for cell in function.__closure__ or ():
        piece = getattr(cell.cell_contents, "py_func", None)
        if piece is None or id(piece) in seen:
            continue
        seen.add(id(piece))
        if piece.__closure__ and not piece.__qualname__.startswith("part_of_"):
            piece.__qualname__ = f"part_of_{prefix.replace('.', '_')}_{len(seen)}_{piece.__name__}"
        _name_parts(piece, prefix, seen)

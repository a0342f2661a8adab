"""Compiled kernels on disk: one file per kernel in a folder of the user.

Numba's own cache keeps an index per source function that is read, changed and written back; two processes that fill
it at once can leave an index entry that points at the other's object code. Here every kernel has a file of its own,
written beside and renamed into place, so readers see a whole file or none, and the last of several equal writers wins.

The folder is keyed by everything that decides the machine code: processor, Numba and LLVM versions, package version and
the sources of the kernels. A stale kernel is never loaded, because its folder is never looked at.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
from numba.core import compiler
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps

import pypto
from pypto.sim.kernels import progress

try:
    import fcntl
except ImportError:  # no such locks on this system: every process compiles for itself
    fcntl = None  # type: ignore[assignment]

_CHECKSUM_BYTES = 32
_LOOK_AGAIN_S = 0.05


def _sources() -> list[Path]:
    package = Path(pypto.__file__).parent
    kernels = sorted((package / "sim" / "kernels").glob("*.py"))
    return [*kernels, package / "sim" / "layout.py", package / "ir" / "dtype.py"]


@cache
def fingerprint() -> str:
    """Digest of what decides the machine code of a kernel: processor, compiler versions, package version, sources."""
    digest = hashlib.sha256()
    facts = (
        pypto.__version__,
        numba.__version__,
        llvmlite.__version__,
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )
    digest.update(repr(facts).encode())
    for path in _sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


def _candidates() -> list[Path]:
    chosen = os.environ.get("PYPTO_CACHE_DIR")
    if chosen:
        return [Path(chosen)]
    from platformdirs import user_cache_dir

    owner = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return [Path(user_cache_dir("pypto")), Path(tempfile.gettempdir()) / f"pypto-{owner}"]


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.access(folder, os.W_OK) and (not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid())
    except OSError:
        return False


_KEPT_DAYS = 30


def _prune(parent: Path) -> None:
    """Remove the kernels of other versions and processors that nobody has added to for a month."""
    oldest = time.time() - _KEPT_DAYS * 86400
    for other in parent.iterdir():
        with contextlib.suppress(OSError):
            if other.is_dir() and other.stat().st_mtime < oldest:
                shutil.rmtree(other, ignore_errors=True)


@cache
def folder() -> Path | None:
    """Where compiled kernels are kept: ``$PYPTO_CACHE_DIR``, else the cache folder of the user, else a private
    temporary folder; ``None`` when none of them can be written (kernels are then compiled in every process).

    A ``$PYPTO_CACHE_DIR`` that was filled before may be read-only, as in an image: what it lacks is compiled, not kept.
    """
    for candidate in _candidates():
        place = candidate / "kernels" / fingerprint()
        is_new = not place.exists()
        if _writable(place):
            if is_new:
                _prune(place.parent)
            return place
        if os.environ.get("PYPTO_CACHE_DIR") and place.is_dir():
            return place
    return None


def read(path: Path) -> bytes | None:
    """Content of a cache file; ``None`` when it is missing or damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    checksum, payload = data[:_CHECKSUM_BYTES], data[_CHECKSUM_BYTES:]
    return payload if hashlib.sha256(payload).digest() == checksum else None


def write(path: Path, payload: bytes) -> None:
    """Put a cache file in place in one step; a full or read-only disk leaves the cache as it was."""
    with contextlib.suppress(OSError):
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise


@contextlib.contextmanager
def alone(path: Path | None) -> Iterator[None]:
    """Around loading or compiling what belongs at ``path``: one process compiles, the others wait and load.

    Where files cannot be locked everybody compiles. Numba's own lock comes first, as it does when one compilation asks
    for another: threads of one process that took the two in different orders would wait for each other.
    """
    if path is None or path.exists() or fcntl is None:
        yield
        return
    with global_compiler_lock:
        lock = path.with_suffix(".lock")
        handle = _lock(lock)
        try:
            yield
        finally:
            if handle is not None:
                lock.unlink(missing_ok=True)  # whoever waits for it finds the kernel
                fcntl.flock(handle, fcntl.LOCK_UN)  # also when a fork has inherited the descriptor
                os.close(handle)


def _lock(path: Path) -> int | None:
    """The descriptor of ``path``, locked; ``None`` when it cannot be made or locked."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        progress.waiting()
        _wait_for(handle)
    except OSError:
        os.close(handle)
        return None
    return handle


def _wait_for(handle: int) -> None:
    """Take a lock that another process holds, however long it compiles.

    The process wakes now and then: one that sleeps through would look like one that will never answer to whoever
    watches it (runtime/ranks_pulse.py).
    """
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(_LOOK_AGAIN_S)


def path_of(name: str) -> Path | None:
    """Where the kernel ``name`` is kept; ``None`` without a cache."""
    place = folder()
    return None if place is None else place / f"{name}.kernel"


def is_kept(name: str) -> bool:
    """Whether the kernel ``name`` is in the cache."""
    path = path_of(name)
    return path is not None and path.exists()


class KernelFile(NullCache):
    """The cache entry of one kernel, in the form Numba's compiler asks for."""

    def __init__(self, name: str, on_compile: Callable[[], None] | None = None) -> None:
        self._path = path_of(name)
        self._on_compile = on_compile

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        payload = None if self._path is None else read(self._path)
        if payload is not None:
            target_context.refresh()
            return compiler.CompileResult._rebuild(target_context, *pickle.loads(payload))
        if self._on_compile is not None:
            self._on_compile()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if self._path is not None:
            write(self._path, dumps(data._reduce()))

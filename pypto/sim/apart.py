"""Long compilations in a copy of this process, so that the interrupt key need not wait for the compiler.

LLVM works for many seconds without looking at signals. The copy leaves the code in the cache and is thrown away; when
the key is pressed it is thrown away at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

LONGEST_S: Final = 300.0
"""A copy that takes longer hangs (on what a thread held when it was made); then this process compiles."""
_LOOK_S: Final = 0.2
_PR_SET_PDEATHSIG: Final = 1


def compile_apart(path: Path | None, work: Callable[[], Any]) -> None:
    """Let a copy of this process do ``work``, which leaves a file at ``path``, and wait for it.

    Nothing happens where that gains nothing: the file is there or cannot be kept, no key could be heard (another
    thread, a rank). Whether the copy has succeeded shows in the file; the caller loads it, or compiles after all.
    """
    if path is None or path.exists() or not _hears_the_key() or not os.access(path.parent, os.W_OK):
        return
    pid = os.fork()
    if pid == 0:
        _be_the_copy(work)
    try:
        _wait(pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _hears_the_key() -> bool:
    mine = threading.current_thread() is threading.main_thread()
    return mine and hasattr(os, "pidfd_open") and callable(signal.getsignal(signal.SIGINT))


def _be_the_copy(work: Callable[[], Any]) -> None:
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        work()
        code = 0
    finally:
        os._exit(code)


def _wait(pid: int) -> None:
    try:
        end = os.pidfd_open(pid)
    except OSError:  # an old system; what is compiled is thrown away with the copy
        return
    try:
        deadline = time.monotonic() + LONGEST_S
        while time.monotonic() < deadline and not select.select([end], [], [], _LOOK_S)[0]:
            pass
    finally:
        os.close(end)


__all__ = ["compile_apart"]

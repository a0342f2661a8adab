"""The processes of the ranks: started by a fork, spoken to over a pipe, gone when their parent is.

A rank inherits everything its parent has loaded, so it starts in milliseconds. It ignores the interrupt key, which is
the parent's to handle, and the kernel kills it when the parent dies. To Linux the parent is the thread that forked, so
one thread that lives as long as its process forks all ranks: a worker may outlive the thread that opened it.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from multiprocessing.connection import Connection, wait
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1
_FORK: Final = multiprocessing.get_context("fork")
STOP: Final = ("stop",)
GRACE_S: Final = 2.0


class _Forks:
    """The thread that forks."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._work: queue.SimpleQueue[tuple[Future[None], Callable[[], None]]] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="pypto-forks", daemon=True).start()

    def _serve(self) -> None:
        while True:
            future, work = self._work.get()
            try:
                work()
            except BaseException as error:  # belongs to whoever waits for the future
                future.set_exception(error)
            else:
                future.set_result(None)

    def run(self, work: Callable[[], None], timeout_s: float) -> None:
        future: Future[None] = Future()
        self._work.put((future, work))
        try:
            future.result(timeout_s)
        except FutureTimeoutError:
            raise TimeoutError(
                f"the ranks could not be forked within {timeout_s:g} s: the process ends, or a thread of it holds what "
                "a fork needs"
            ) from None


_forks: _Forks | None = None
_forks_lock = threading.Lock()
if hasattr(os, "register_at_fork"):  # a thread that a fork left behind may have held it
    os.register_at_fork(after_in_child=_forks_lock._at_fork_reinit)  # type: ignore[attr-defined]


def in_forking_thread(work: Callable[[], None], timeout_s: float) -> None:
    """Call ``work`` in the thread whose children live as long as this process; ``TimeoutError`` when it hangs."""
    global _forks
    with _forks_lock:
        if _forks is None or _forks.pid != os.getpid():  # a copy of this process has no threads but one
            _forks = _Forks()
    _forks.run(work, timeout_s)


class RankProcess:
    """One child: ``main(connection)`` runs in it and must return when it receives :data:`STOP`."""

    def __init__(self, name: str, main: Callable[[Connection], None], close_in_child: list[Connection]):
        from numba.core.compiler_lock import global_compiler_lock as compiling

        self.name = name
        self.connection, theirs = _FORK.Pipe()
        parent = os.getpid()

        def body() -> None:
            compiling.release()  # this is the thread that took it, in a copy of the process
            _settle(parent)
            for connection in (*close_in_child, self.connection):
                connection.close()
            main(theirs)

        self._process = _FORK.Process(target=body, name=name, daemon=True)
        with compiling:  # a lock that another thread holds now would be held for ever in the copy
            self._process.start()
        theirs.close()
        self._pidfd = _pidfd(self.pid)
        self._given_up = ""

    @property
    def pid(self) -> int:
        return int(self._process.pid or 0)

    @property
    def sentinel(self) -> int:
        """Becomes readable when the process ends, whatever processes of its own it leaves behind."""
        return self._process.sentinel if self._pidfd is None else self._pidfd

    @property
    def alive(self) -> bool:
        return not wait([self.sentinel], 0)

    def send(self, message: Any) -> bool:
        """Send ``message`` and say whether the process was there to take it."""
        try:
            self.connection.send(message)
        except (BrokenPipeError, ConnectionResetError, OSError):
            return False
        return True

    def end_text(self) -> str:
        """How the process ended."""
        if self._given_up:
            return self._given_up
        self._process.join(GRACE_S)
        code = self._process.exitcode
        if code is None:
            return "does not answer"
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"was killed by signal {-code} ({signal.Signals(-code).name})"
            return f"was killed by signal {-code}"
        return f"ended with exit code {code}"

    def kill(self) -> None:
        """End the process by force."""
        self._process.kill()

    def give_up(self, why: str) -> None:
        """End a process that will not answer; :meth:`end_text` is ``why`` then."""
        self._given_up = why
        self.kill()

    def stop(self, deadline: float) -> None:
        """Ask the process to end; end it by force at ``deadline`` (``time.monotonic``)."""
        self.send(STOP)
        self._join(max(0.0, deadline - time.monotonic()))
        if self.alive:
            self._process.kill()
            self._join(GRACE_S)
        self.connection.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        with contextlib.suppress(ValueError):  # the kernel holds it (a disk that does not answer), or others reaped it
            self._process.close()

    def _join(self, timeout_s: float) -> None:
        if wait([self.sentinel], timeout_s):
            self._process.join(GRACE_S)


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):  # an old system
        return None


def _settle(parent: int) -> None:
    """What a fresh child does first."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def stop_all(processes: list[RankProcess], grace_s: float = GRACE_S) -> None:
    """End all of ``processes``, together."""
    for process in processes:
        process.send(STOP)
    deadline = time.monotonic() + grace_s
    for process in processes:
        process.stop(deadline)

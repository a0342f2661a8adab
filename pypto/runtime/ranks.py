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
from multiprocessing.connection import Connection
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

    def run(self, work: Callable[[], None]) -> None:
        future: Future[None] = Future()
        self._work.put((future, work))
        future.result()


_forks: _Forks | None = None
_forks_lock = threading.Lock()


def in_forking_thread(work: Callable[[], None]) -> None:
    """Call ``work`` in the thread whose children live as long as this process."""
    global _forks
    with _forks_lock:
        if _forks is None or _forks.pid != os.getpid():  # a copy of this process has no threads but one
            _forks = _Forks()
    _forks.run(work)


class RankProcess:
    """One child: ``main(connection)`` runs in it and must return when it receives :data:`STOP`."""

    def __init__(self, name: str, main: Callable[[Connection], None], close_in_child: list[Connection]):
        self.name = name
        self.connection, theirs = _FORK.Pipe()
        parent = os.getpid()

        def body() -> None:
            _settle(parent)
            for connection in (*close_in_child, self.connection):
                connection.close()
            main(theirs)

        self._process = _FORK.Process(target=body, name=name, daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        return int(self._process.pid or 0)

    @property
    def sentinel(self) -> int:
        """Becomes readable when the process ends."""
        return self._process.sentinel

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def send(self, message: Any) -> bool:
        """Send ``message`` and say whether the process was there to take it."""
        try:
            self.connection.send(message)
        except (BrokenPipeError, ConnectionResetError, OSError):
            return False
        return True

    def end_text(self) -> str:
        """How the process ended."""
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

    def stop(self, deadline: float) -> None:
        """Ask the process to end; end it by force at ``deadline`` (``time.monotonic``)."""
        self.send(STOP)
        self._process.join(max(0.0, deadline - time.monotonic()))
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self.connection.close()
        self._process.close()


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

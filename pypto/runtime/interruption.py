"""The interrupt key while processes are spoken to: noted at once, raised where nothing is half said.

``KeyboardInterrupt`` between two bytes of a message would leave a connection that both sides read differently, and one
between a fork and the line that notes the child a process that nobody ends.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any


class Interruption:
    """A context, entered again for every use; inside it SIGINT is noted, and raised by :meth:`check` or on leaving.

    Only the main thread takes signals, and only a handler written in Python can be called late; elsewhere nothing
    changes.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._previous: Any = None
        self._bell: int | None = None
        self._noted = False

    def __enter__(self) -> Interruption:
        mine = threading.current_thread() is threading.main_thread()
        if mine and self._depth == 0 and callable(signal.getsignal(signal.SIGINT)):
            self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._previous = signal.signal(signal.SIGINT, self._note)
        if mine:
            self._depth += 1
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth or self._bell is None:
            return
        signal.signal(signal.SIGINT, self._previous)
        os.close(self._bell)
        self._bell = None
        if error is None:
            self.check()
        self._noted = False

    @property
    def sources(self) -> list[int]:
        """What is readable from the key on until :meth:`check`, for ``multiprocessing.connection.wait``."""
        mine = threading.current_thread() is threading.main_thread()
        return [self._bell] if mine and self._bell is not None else []

    def check(self) -> None:
        """Do now what the key would have done: raise ``KeyboardInterrupt``, or call the program's own handler."""
        if self._noted and threading.current_thread() is threading.main_thread():
            self._noted = False
            if self._bell is not None:
                os.eventfd_read(self._bell)
            self._previous(signal.SIGINT, None)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if not self._noted:
            self._noted = True
            if self._bell is not None:
                os.eventfd_write(self._bell, 1)


__all__ = ["Interruption"]

"""A registered program that can be launched like a function (spec runtime 10.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from pypto.runtime.run_config import RunConfig


@dataclass(frozen=True)
class CallableId:
    """A callable's number on its device and the identity its markers carry."""

    number: int
    hid: str


class Dispatcher(Protocol):
    """The worker side of a handle."""

    def dispatch_registered(self, handle: RegistrationHandle, args: tuple[Any, ...], config: RunConfig | None) -> Any:
        """Launch the program of ``handle``."""
        ...


class RegistrationHandle:
    """``handle(*args)`` launches the program it was made for; ``with handle:`` closes it at the end.

    Handles of one program share its registration: closing one leaves the others and the device's copy alone.
    """

    __test__: ClassVar[bool] = False

    def __init__(self, worker: Dispatcher, compiled: Any, cid: CallableId, prepared: Any = None):
        self._worker = worker
        self.compiled = compiled
        self.cid = cid
        self.prepared = prepared
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the handle was unregistered or its worker closed."""
        return self._closed

    def __call__(self, *args: Any, config: RunConfig | None = None) -> Any:
        """Launch with ``args``, in place or return-style; the result is that of the compiled program."""
        if self._closed:
            raise RuntimeError(
                f"this handle of {self.compiled} was unregistered or its worker closed; call worker.register again"
            )
        return self._worker.dispatch_registered(self, args, config)

    def unregister(self) -> None:
        """Close this handle; calling it again does nothing."""
        self._closed = True

    def __enter__(self) -> RegistrationHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.unregister()

    def __repr__(self) -> str:
        return f"RegistrationHandle({self.compiled!s}, cid={self.cid.number}{', closed' if self._closed else ''})"

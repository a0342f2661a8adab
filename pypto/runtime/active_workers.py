"""Which workers are open around the running code (spec runtime 10.3).

The stack is a context variable: an asyncio task sees the workers open when it was created, a new thread sees none.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypto.runtime.worker import ChipWorker


@dataclass(frozen=True)
class Binding:
    """What a worker is bound to; a launch uses a worker with exactly its binding."""

    level: int
    platform: str
    device_id: int
    runtime: str


_stack: ContextVar[tuple[ChipWorker, ...]] = ContextVar("pypto_active_workers", default=())


def push(worker: ChipWorker) -> None:
    """Publish ``worker``; ``ValueError`` when one with its binding is open already.

    A worker whose configuration asks for the check of placement opens a chip of its own beside the other: what is
    handed from one to the other is then found where it is used.
    """
    if not worker.checks_placement:
        refuse_nesting(worker.binding)
    _stack.set((*_stack.get(), worker))


def refuse_nesting(binding: Binding) -> None:
    """``ValueError`` when a worker with ``binding`` is open."""
    if find(binding) is not None:
        raise ValueError(f"a ChipWorker bound to {binding} is already active in an enclosing scope")


def pop(worker: ChipWorker) -> None:
    """Withdraw ``worker``."""
    _stack.set(tuple(w for w in _stack.get() if w is not worker))


def find(binding: Binding) -> ChipWorker | None:
    """The innermost open worker with ``binding``."""
    return next((w for w in reversed(_stack.get()) if w.binding == binding), None)

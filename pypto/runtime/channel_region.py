"""A region that the host and one chip share during an orchestration: the two ends of it (spec distributed 2.14)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pypto.runtime.channel_memory import ChannelMemory, ChannelState, Descriptor, Side, SignalCmp, SignalOp

_NS: float = 1e-9


@dataclass(frozen=True)
class Counter:
    """One counter as the host sees it."""

    _memory: ChannelMemory
    offset: int

    def notify(self, value: int, op: SignalOp = SignalOp.Set) -> None:
        """Set the counter, or add to it (not atomically): what the host wrote before is seen by whom it wakes."""
        self._memory.notify(self.offset, value, op)

    def test(self, value: int, cmp: SignalCmp) -> tuple[bool, int]:
        """(whether it compares true, what it holds)."""
        return self._memory.test(self.offset, value, cmp)

    def wait(self, value: int, cmp: SignalCmp, *, timeout: float) -> int:
        """Sleep until it compares true, at most ``timeout`` seconds (``TimeoutError``); what it holds then."""
        return self._memory.wait(self.offset, value, cmp, timeout)


class WorkerChipRegion:
    """The host's end. ``descriptor``: six u64 scalars for the chip program; ``free`` gives the memory back."""

    def __init__(self, memory: ChannelMemory, worker_id: int, give_back: Callable[[], None]):
        self._memory, self.worker_id, self._give_back = memory, worker_id, give_back
        self._freed = False

    @property
    def descriptor(self) -> tuple[int, int, int, int, int, int]:
        """(magic and version, region id, payload base, payload bytes, counter base, counter bytes)."""
        return self._memory.descriptor.scalars()

    @property
    def region_id(self) -> int:
        return self._memory.descriptor.region_id

    @property
    def state(self) -> ChannelState:
        """Live, released or poisoned."""
        return ChannelState.RELEASED if self._freed else self._memory.state

    def payload_write(self, offset: int, data: Any) -> None:
        """Copy the bytes of ``data`` (anything with a buffer) to the payload; ``ValueError`` outside of it."""
        self._need()
        source = _bytes_of(data)
        self._memory.payload(offset, len(source))[:] = source

    def payload_read(self, offset: int, buffer: Any) -> None:
        """Fill ``buffer`` (writable, anything with a buffer) from the payload."""
        self._need()
        target = _bytes_of(buffer)
        if not target.flags.writeable:
            raise ValueError("payload_read fills its buffer, which is read-only")
        target[:] = self._memory.payload(offset, len(target))

    def counter(self, offset: int) -> Counter:
        """The counter at byte ``offset``."""
        self._need()
        self._memory.value(offset)
        return Counter(self._memory, offset)

    def free(self) -> None:
        """Release the region; calling it again does nothing."""
        if not self._freed:
            self._freed = True
            self._memory.release()
            self._give_back()

    def _need(self) -> None:
        if self._freed:
            raise self._released()
        self._memory.need_live()

    def _released(self) -> Exception:
        from pypto.runtime.channel_memory import ChannelReleasedError

        return ChannelReleasedError(f"channel region {self.region_id} is released: it was freed")


class ChipEndpoint:
    """The chip's end, opened with the six scalars of the descriptor in a Python stand-in on the rank."""

    def __init__(self, scalars: Sequence[int]):
        self._memory = ChannelMemory(Descriptor.from_scalars(scalars), Side.CHIP)
        self._memory.need_live()

    def signal_wait(self, offset: int, value: int, cmp: SignalCmp, timeout_ns: int) -> int:
        """Sleep until the counter compares true, at most ``timeout_ns`` (``TimeoutError``); what it holds then."""
        if isinstance(timeout_ns, bool) or not isinstance(timeout_ns, int) or timeout_ns <= 0:
            raise ValueError(f"timeout_ns must be a positive number of nanoseconds, got {timeout_ns!r}")
        return self._memory.wait(offset, value, cmp, timeout_ns * _NS)

    def signal_test(self, offset: int, value: int, cmp: SignalCmp) -> tuple[bool, int]:
        """(whether the counter compares true, what it holds)."""
        return self._memory.test(offset, value, cmp)

    def signal_notify(self, offset: int, value: int, op: SignalOp = SignalOp.Set) -> None:
        """Set the counter, or add to it (not atomically)."""
        self._memory.notify(offset, value, op)

    def payload_read(self, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """The bytes themselves, not a copy; read-only."""
        view = self._memory.payload(offset, nbytes)
        view.flags.writeable = False
        return view

    def payload_write(self, offset: int, data: Any) -> None:
        """Copy a few bytes to the payload; results of a size go through tensors."""
        source = _bytes_of(data)
        self._memory.payload(offset, len(source))[:] = source


def _bytes_of(data: Any) -> NDArray[np.uint8]:
    """The memory of ``data`` as bytes; ``TypeError`` when it has no contiguous buffer."""
    if hasattr(data, "numpy"):  # a torch tensor shares its memory
        data = data.detach().numpy()
    try:
        view = memoryview(data)
    except TypeError as error:
        raise TypeError(f"data must have a buffer (bytes, array, tensor), got {type(data).__name__}") from error
    if not view.contiguous:
        raise ValueError("data must be contiguous")
    found: NDArray[np.uint8] = np.frombuffer(view.cast("B") if view.nbytes else b"", np.uint8)
    return found


__all__ = ["ChipEndpoint", "Counter", "WorkerChipRegion"]

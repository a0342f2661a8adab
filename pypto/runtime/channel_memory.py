"""Counters and payload that the host and a chip share while a program runs (spec distributed 2.14).

One block of the card's memory: a header with the state, counters of 32 bits, one byte per 64-byte line of counters that
says who writes it, the payload. Both processes map it at the same address. A wait sleeps in the kernel (a futex on the
counter) and wakes now and then, so that it is finite whatever happens to the other side.
"""

from __future__ import annotations

import ctypes
import math
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pypto.runtime.shared_memory import mapped_by_this_process

MAGIC: Final = 0x4C33_4C32_0000_0001  # "L3L2", version 1
LINE: Final = 64
HEADER_BYTES: Final = LINE
COUNTER_BYTES: Final = 4
_SLICE_S: Final = 0.25
_STATE_WORDS: Final = 3
_FUTEX: Final = {"x86_64": 202, "aarch64": 98}.get(platform.machine())
_FUTEX_WAIT, _FUTEX_WAKE = 0, 1
_EVERYBODY: Final = (1 << 31) - 1


class SignalOp(IntEnum):
    """What a notify does to its counter. ``Add`` is not atomic: one side writes a counter."""

    Set = 0
    Add = 1


class SignalCmp(IntEnum):
    """How a counter is compared with a value."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


_COMPARES: Final[dict[SignalCmp, Callable[[int, int], bool]]] = {
    SignalCmp.EQ: lambda a, b: a == b,
    SignalCmp.NE: lambda a, b: a != b,
    SignalCmp.GT: lambda a, b: a > b,
    SignalCmp.GE: lambda a, b: a >= b,
    SignalCmp.LT: lambda a, b: a < b,
    SignalCmp.LE: lambda a, b: a <= b,
}


class ChannelState(IntEnum):
    """Of a region; only a live one can be used."""

    RELEASED = 0
    LIVE = 1
    POISONED = 2


class Side(IntEnum):
    """Who uses a region; also the mark in the line of a counter that it writes."""

    HOST = 1
    CHIP = 2


class ChannelError(RuntimeError):
    """A channel cannot be used; it was not hurt by the attempt."""


class ChannelReleasedError(ChannelError):
    """The channel was freed, or its orchestration has ended."""


class ChannelPoisonedError(ChannelError):
    """What the two sides share is no longer consistent; the channel is of no further use."""


class ChannelAbortedError(ChannelError):
    """The other side gave up; ``code`` is what it gave as a reason."""

    def __init__(self, text: str, code: int):
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Descriptor:
    """What the chip side is told: six u64 scalars, in this order."""

    region_id: int
    payload_base: int
    payload_bytes: int
    counter_base: int
    counter_bytes: int

    def scalars(self) -> tuple[int, int, int, int, int, int]:
        """The six scalars."""
        return (
            MAGIC, self.region_id, self.payload_base, self.payload_bytes, self.counter_base, self.counter_bytes,
        )  # fmt: skip

    @classmethod
    def from_scalars(cls, scalars: Sequence[int]) -> Descriptor:
        """``ValueError`` when the scalars are no descriptor of this version."""
        words = [int(word) for word in scalars]
        if len(words) != 6:
            raise ValueError(f"a channel descriptor has 6 scalars, got {len(words)}")
        if words[0] != MAGIC:
            raise ValueError(f"this is no channel descriptor: its first scalar is {words[0]:#x}, not {MAGIC:#x}")
        if words[1] == 0:
            raise ValueError("a channel descriptor has a region id other than 0")
        return cls(*words[1:])

    @property
    def block(self) -> tuple[int, int]:
        """Address and bytes of the whole block."""
        first = self.counter_base - HEADER_BYTES
        return first, self.payload_base + self.payload_bytes - first


def block_layout(address: int, region_id: int, payload_bytes: int, counter_bytes: int) -> Descriptor:
    """Where everything lies in a block at ``address``, a multiple of 64."""
    counters = address + HEADER_BYTES
    payload = counters + _lines(counter_bytes) * LINE + _lines(_lines(counter_bytes)) * LINE
    return Descriptor(region_id, payload, payload_bytes, counters, counter_bytes)


def block_bytes(payload_bytes: int, counter_bytes: int) -> int:
    """Bytes of a block; ``ValueError`` for sizes that are none."""
    for name, value, unit in (("payload_bytes", payload_bytes, 1), ("counter_bytes", counter_bytes, COUNTER_BYTES)):
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0 or value % unit:
            what = "a positive int" if unit == 1 else f"a positive multiple of {unit}"
            raise ValueError(f"{name} must be {what}, got {value!r}")
    layout = block_layout(HEADER_BYTES, 1, payload_bytes, counter_bytes)
    return layout.block[1]


def _lines(nbytes: int) -> int:
    return -(-nbytes // LINE)


class ChannelMemory:
    """One side's access to a block. ``alive`` says "" or what happened to the other side."""

    def __init__(self, descriptor: Descriptor, side: Side, alive: Callable[[], str] = lambda: ""):
        first, nbytes = descriptor.block
        if not mapped_by_this_process(first, nbytes):
            raise ValueError(f"this process shares no memory at {first:#x} (channel region {descriptor.region_id})")
        self.descriptor, self.side, self._alive = descriptor, side, alive
        self._header: NDArray[np.int64] = _view(first, 8 * _STATE_WORDS).view(np.int64)
        self._owners = _view(
            descriptor.counter_base + _lines(descriptor.counter_bytes) * LINE, _lines(descriptor.counter_bytes)
        )
        self._payload = _view(descriptor.payload_base, descriptor.payload_bytes)

    def create(self) -> None:
        """Make the block live: counters zero, nobody's."""
        self._header[:] = MAGIC, self.descriptor.region_id, ChannelState.LIVE
        _view(self.descriptor.counter_base, self.descriptor.counter_bytes)[:] = 0
        self._owners[:] = 0
        self._payload[:] = 0

    @property
    def state(self) -> ChannelState:
        """A block that holds another region by now is released for this one."""
        if int(self._header[0]) != MAGIC or int(self._header[1]) != self.descriptor.region_id:
            return ChannelState.RELEASED
        return ChannelState(int(self._header[2]))

    def release(self) -> None:
        """No side can use it any more; whoever waits is woken."""
        if self.state != ChannelState.RELEASED:
            self._header[2] = ChannelState.RELEASED
            self.wake_all()

    def poison(self, why: str) -> ChannelPoisonedError:
        """Mark the block as inconsistent; the error to raise."""
        self._header[2] = ChannelState.POISONED
        self.wake_all()
        return ChannelPoisonedError(f"channel region {self.descriptor.region_id} is poisoned: {why}")

    def need_live(self) -> None:
        """Raise unless the region is live."""
        state = self.state
        if state == ChannelState.POISONED:
            raise ChannelPoisonedError(f"channel region {self.descriptor.region_id} is poisoned")
        if state == ChannelState.RELEASED:
            raise ChannelReleasedError(
                f"channel region {self.descriptor.region_id} is released: it was freed or its orchestration has ended"
            )

    # --- payload ------------------------------------------------------------------------------------------------------

    def payload(self, offset: int, nbytes: int) -> NDArray[np.uint8]:
        """The bytes themselves; ``ValueError`` outside the payload."""
        self.need_live()
        _int("offset", offset)
        _int("nbytes", nbytes)
        if offset < 0 or nbytes < 0 or offset + nbytes > self.descriptor.payload_bytes:
            raise ValueError(
                f"bytes {offset}..{offset + nbytes} are outside the payload of {self.descriptor.payload_bytes} bytes"
            )
        return self._payload[offset : offset + nbytes]

    # --- counters -----------------------------------------------------------------------------------------------------

    def _address(self, offset: int) -> int:
        self.need_live()
        _int("offset", offset)
        if offset % COUNTER_BYTES or not 0 <= offset < self.descriptor.counter_bytes:
            raise ValueError(
                f"a counter lies at a multiple of {COUNTER_BYTES} below {self.descriptor.counter_bytes}, got {offset}"
            )
        return self.descriptor.counter_base + offset

    def value(self, offset: int) -> int:
        """A counter, signed."""
        return ctypes.c_int32.from_address(self._address(offset)).value

    def notify(self, offset: int, value: int, op: SignalOp) -> None:
        """Set a counter or add to it, and wake who waits for it; what was written before is seen by whom it wakes."""
        address = self._address(offset)
        _word(value)
        line = offset // LINE
        owner = int(self._owners[line])
        if owner not in (0, self.side):
            raise ChannelError(
                f"the {self.side.name.lower()} writes counter {offset}, in a line of {LINE} bytes that the "
                f"{Side(owner).name.lower()} writes; a line has one writer: keep {LINE} bytes between the counters"
            )
        self._owners[line] = self.side
        cell = ctypes.c_int32.from_address(address)
        cell.value = value if SignalOp(op) == SignalOp.Set else cell.value + value
        _wake(address)

    def test(self, offset: int, value: int, cmp: SignalCmp) -> tuple[bool, int]:
        """Whether the counter compares true now, and what it holds."""
        _word(value)
        observed = self.value(offset)
        return _COMPARES[SignalCmp(cmp)](observed, value), observed

    def wait(
        self, offset: int, value: int, cmp: SignalCmp, timeout_s: float, given_up: Callable[[], None] = lambda: None
    ) -> int:
        """Sleep until the counter compares true; what it holds then.

        ``TimeoutError`` after ``timeout_s``, ``ChannelError`` when the other side is gone; ``given_up`` may raise, too.
        """
        deadline = time.monotonic() + _seconds(timeout_s)
        while True:
            matched, observed = self.test(offset, value, cmp)
            if matched:
                return observed
            given_up()
            gone = self._alive()
            if gone:
                raise ChannelError(f"nobody will change counter {offset} any more: {gone}")
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(
                    f"counter {offset} of channel region {self.descriptor.region_id} holds {observed}, "
                    f"not {SignalCmp(cmp).name} {value}, after {timeout_s:g} s"
                )
            _sleep(self._address(offset), observed, min(left, _SLICE_S))

    def wake_all(self) -> None:
        """Let everybody who waits look again."""
        base = self.descriptor.counter_base
        for offset in range(0, self.descriptor.counter_bytes, COUNTER_BYTES):
            _wake(base + offset)


def _view(address: int, nbytes: int) -> NDArray[np.uint8]:
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))


def _int(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")


def _word(value: Any) -> None:
    _int("value", value)
    if not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"a counter holds an INT32, got {value}")


def _seconds(timeout_s: Any) -> float:
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)):
        raise TypeError(f"timeout must be a number of seconds, got {timeout_s!r}")
    if not math.isfinite(timeout_s) or timeout_s <= 0:
        raise ValueError(f"timeout must be positive and finite, got {timeout_s!r}; every wait ends")
    return float(timeout_s)


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def _sleep(address: int, seen: int, seconds: float) -> None:
    """Sleep in the kernel while the word at ``address`` is ``seen``, at most so long."""
    if _FUTEX is None:
        time.sleep(min(seconds, 0.001))
        return
    limit = _Timespec(int(seconds), int((seconds % 1) * 1e9))
    _libc().syscall(_FUTEX, ctypes.c_void_p(address), _FUTEX_WAIT, ctypes.c_int(seen), ctypes.byref(limit), None, 0)


def _wake(address: int) -> None:
    if _FUTEX is not None:
        _libc().syscall(_FUTEX, ctypes.c_void_p(address), _FUTEX_WAKE, ctypes.c_int(_EVERYBODY), None, None, 0)


def _libc() -> Any:
    return ctypes.CDLL(None)


__all__ = [
    "ChannelAbortedError",
    "ChannelError",
    "ChannelMemory",
    "ChannelPoisonedError",
    "ChannelReleasedError",
    "ChannelState",
    "Descriptor",
    "Side",
    "SignalCmp",
    "SignalOp",
    "block_bytes",
    "block_layout",
]

"""Two queues of messages over one region, host to chip and back (spec distributed 2.14).

Payload: the descriptors of both directions (32 bytes: seq, opcode, payload offset, payload bytes), then both arenas.
Six counters, each in a line of its own: input tail and head, output tail and head, host abort, chip abort. A direction
holds ``depth`` messages; the producer publishes by raising its tail, the consumer gives slots back by raising its head,
in order. A descriptor that does not fit what was agreed, or a message given back that is not owned, poisons the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pypto.runtime.channel_memory import (
    LINE,
    ChannelAbortedError,
    ChannelError,
    ChannelMemory,
    Descriptor,
    Side,
    SignalCmp,
    SignalOp,
)
from pypto.runtime.channel_region import WorkerChipRegion, _bytes_of

MAX_DEPTH: Final = 1 << 30
DESCRIPTOR_BYTES: Final = 32
IN_TAIL, IN_HEAD, OUT_TAIL, OUT_HEAD, HOST_ABORT, CHIP_ABORT = (LINE * i for i in range(6))
COUNTERS: Final = 6 * LINE
_WRAP: Final = 1 << 32


class Opcode(IntEnum):
    """What a message is. ``STOP`` goes to the chip only; ``ERROR`` belongs to the application."""

    DATA = 1
    STOP = 2
    ERROR = 3


@dataclass(frozen=True)
class QueueShape:
    """What both ends agree on."""

    depth: int
    input_arena_bytes: int
    output_arena_bytes: int

    def __post_init__(self) -> None:
        depth = self.depth
        if not isinstance(depth, int) or isinstance(depth, bool) or not 0 < depth <= MAX_DEPTH or depth & (depth - 1):
            raise ValueError(f"depth must be a power of two up to 2**30, got {depth!r}")
        for name in ("input_arena_bytes", "output_arena_bytes"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value <= 0 or value % LINE:
                raise ValueError(f"{name} must be a positive multiple of {LINE}, got {value!r}")

    @property
    def payload_bytes(self) -> int:
        return 2 * self.depth * DESCRIPTOR_BYTES + self.input_arena_bytes + self.output_arena_bytes


@dataclass(frozen=True)
class Message:
    """One message; ``payload`` is a view on the chip and a copy on the host."""

    seq: int
    opcode: Opcode
    payload: NDArray[np.uint8]


@dataclass(frozen=True)
class _Direction:
    """Where one direction lies in the region."""

    tail: int
    head: int
    descriptors: int
    arena: int
    arena_bytes: int
    opcodes: tuple[Opcode, ...]


def _directions(shape: QueueShape) -> tuple[_Direction, _Direction]:
    table = shape.depth * DESCRIPTOR_BYTES
    first = 2 * table
    data = (Opcode.DATA, Opcode.ERROR)
    return (
        _Direction(IN_TAIL, IN_HEAD, 0, first, shape.input_arena_bytes, (*data, Opcode.STOP)),
        _Direction(OUT_TAIL, OUT_HEAD, table, first + shape.input_arena_bytes, shape.output_arena_bytes, data),
    )


class _End:
    """What both ends of both directions have in common."""

    def __init__(self, memory: ChannelMemory, shape: QueueShape, peer_abort: int):
        self.memory, self.shape, self.peer_abort = memory, shape, peer_abort

    def count(self, offset: int) -> int:
        return self.memory.value(offset) % _WRAP

    def publish(self, offset: int, count: int) -> None:
        value = count % _WRAP
        self.memory.notify(offset, value - _WRAP if value >= _WRAP // 2 else value, SignalOp.Set)

    def check_abort(self) -> None:
        """``ChannelAbortedError`` when the other side gave up."""
        code = self.memory.value(self.peer_abort)
        if code:
            who = "host" if self.peer_abort == HOST_ABORT else "chip"
            raise ChannelAbortedError(f"the {who} aborted the queue with code {code}", code)

    def sleep(self, offset: int, seen: int, timeout: float) -> None:
        """Until the counter is no longer ``seen``."""
        signed = seen - _WRAP if seen >= _WRAP // 2 else seen
        self.memory.wait(offset, signed, SignalCmp.NE, timeout, self.check_abort)


class _Producer:
    """Publishes messages into one direction."""

    def __init__(self, end: _End, where: _Direction):
        self.end, self.where = end, where
        self.seq = 0  # messages published
        self._freed = 0  # messages whose place was taken back
        self._at = 0  # first byte of the arena behind the last message
        self._held: deque[tuple[int, int]] = deque()  # (first byte, bytes) of messages that are not consumed

    def try_put(self, data: Any, opcode: Opcode) -> bool:
        """``False`` when there is no slot or no room now."""
        source, opcode = _bytes_of(data), Opcode(opcode)
        if opcode not in self.where.opcodes:
            raise ValueError(f"{opcode.name} cannot be sent this way")
        if len(source) > self.where.arena_bytes:
            raise ValueError(f"a message of {len(source)} bytes does not fit the arena of {self.where.arena_bytes}")
        self.end.check_abort()
        self._take_back()
        place = self._place(len(source))
        if place is None or len(self._held) >= self.end.shape.depth:
            return False
        self.end.memory.payload(self.where.arena + place, len(source))[:] = source
        slot = self.where.descriptors + self.seq % self.end.shape.depth * DESCRIPTOR_BYTES
        self.end.memory.payload(slot, DESCRIPTOR_BYTES).view(np.uint64)[:] = self.seq, opcode, place, len(source)
        self._held.append((place, len(source)))
        self._at, self.seq = place + len(source), self.seq + 1
        self.end.publish(self.where.tail, self.seq)
        return True

    def put(self, data: Any, opcode: Opcode, timeout: float) -> None:
        """Wait for room, at most ``timeout`` seconds."""
        _positive(timeout)
        while True:
            seen = self.end.count(self.where.head)
            if self.try_put(data, opcode):
                return
            self.end.sleep(self.where.head, seen, timeout)

    def _take_back(self) -> None:
        consumed = (self.end.count(self.where.head) - self._freed) % _WRAP
        if consumed > len(self._held):
            raise self.end.memory.poison(f"{consumed} messages are given back, {len(self._held)} were sent")
        for _ in range(consumed):
            self._held.popleft()
        self._freed += consumed
        if not self._held:
            self._at = 0

    def _place(self, nbytes: int) -> int | None:
        """First byte of ``nbytes`` free bytes of the arena, which messages fill in a ring."""
        if not self._held:
            return 0
        first = self._held[0][0]
        if self._at > first or self._at == first and self._held[0][1] == 0:
            if self._at + nbytes <= self.where.arena_bytes:
                return self._at
            return 0 if nbytes < first else None
        return self._at if self._at + nbytes < first or nbytes == 0 else None


class _Consumer:
    """Takes messages out of one direction and gives their places back, in order."""

    def __init__(self, end: _End, where: _Direction):
        self.end, self.where = end, where
        self.taken = 0
        self.returned = 0

    def try_get(self) -> Message | None:
        """``None`` when no message is there."""
        self.end.check_abort()
        there = (self.end.count(self.where.tail) - self.taken) % _WRAP
        if there == 0:
            return None
        if there + self.taken - self.returned > self.end.shape.depth:
            raise self.end.memory.poison(f"{there} messages in a queue of depth {self.end.shape.depth}")
        slot = self.where.descriptors + self.taken % self.end.shape.depth * DESCRIPTOR_BYTES
        words = self.end.memory.payload(slot, DESCRIPTOR_BYTES).view(np.uint64)
        seq, opcode, offset, nbytes = (int(word) for word in words)
        legal = {int(known) for known in self.where.opcodes}
        if seq != self.taken or opcode not in legal or offset + nbytes > self.where.arena_bytes:
            raise self.end.memory.poison(
                f"descriptor {self.taken} is inconsistent: seq {seq}, opcode {opcode}, "
                f"bytes {offset}..{offset + nbytes} "
                f"of an arena of {self.where.arena_bytes}"
            )
        self.taken += 1
        return Message(seq, Opcode(opcode), self.end.memory.payload(self.where.arena + offset, nbytes))

    def get(self, timeout: float) -> Message:
        """Wait for a message, at most ``timeout`` seconds."""
        _positive(timeout)
        while True:
            seen = self.end.count(self.where.tail)
            message = self.try_get()
            if message is not None:
                return message
            self.end.sleep(self.where.tail, seen, timeout)

    def give_back(self, message: Message) -> None:
        """Its slot and bytes may be used again; anything but the oldest one that is held poisons the queue."""
        if message.seq != self.returned or message.seq >= self.taken:
            raise self.end.memory.poison(
                f"message {message.seq} is given back, the oldest one held is "
                f"{self.returned if self.returned < self.taken else 'none'}"
            )
        self.returned += 1
        self.end.publish(self.where.head, self.returned)


class WorkerChipQueue:
    """The host's end: :meth:`push` to the chip, :meth:`pop` from it. ``descriptor``: scalars for the chip program."""

    def __init__(self, region: WorkerChipRegion, shape: QueueShape):
        self._region, self.shape = region, shape
        end = _End(region._memory, shape, CHIP_ABORT)
        there, back = _directions(shape)
        self._input, self._output = _Producer(end, there), _Consumer(end, back)
        self._stopped = False

    @property
    def descriptor(self) -> tuple[int, ...]:
        """The six scalars of the region, then depth and the bytes of both arenas."""
        shape = self.shape
        return (*self._region.descriptor, shape.depth, shape.input_arena_bytes, shape.output_arena_bytes)

    @property
    def state(self) -> Any:
        """Live, released or poisoned."""
        return self._region.state

    def push(self, data: Any, opcode: Opcode = Opcode.DATA, *, timeout: float) -> None:
        """Send a message, waiting for room at most ``timeout`` seconds (``TimeoutError``)."""
        self._use(lambda: self._input.put(data, opcode, timeout))
        self._stopped = opcode == Opcode.STOP

    def try_push(self, data: Any, opcode: Opcode = Opcode.DATA) -> bool:
        """Send a message if there is room now."""
        sent = bool(self._use(lambda: self._input.try_put(data, opcode)))
        self._stopped = sent and opcode == Opcode.STOP
        return sent

    def stop(self, *, timeout: float) -> None:
        """Tell the chip that nothing more comes."""
        self.push(b"", Opcode.STOP, timeout=timeout)

    def pop(self, *, timeout: float) -> Message:
        """Receive a message (a copy), waiting at most ``timeout`` seconds."""
        return self._copied(self._use_output(lambda: self._output.get(timeout)))

    def try_pop(self) -> Message | None:
        """A message if there is one now."""
        message = self._use_output(self._output.try_get)
        return None if message is None else self._copied(message)

    def abort(self, code: int = 1) -> None:
        """Give up: the chip's next operation raises ``ChannelAbortedError`` with ``code``, which is not 0."""
        self._region._need()
        _abort(self._region._memory, HOST_ABORT, code)

    def free(self) -> None:
        """Release the queue; calling it again does nothing."""
        self._region.free()

    def _copied(self, message: Message) -> Message:
        copy = Message(message.seq, message.opcode, message.payload.copy())
        self._output.give_back(message)
        return copy

    def _use_output(self, work: Callable[[], Any]) -> Any:
        self._region._need()
        return work()

    def _use(self, work: Callable[[], Any]) -> Any:
        self._region._need()
        if self._stopped:
            raise ChannelError("nothing can be sent after STOP")
        return work()


class ChipQueue:
    """The chip's end, opened with the scalars of the descriptor in a Python stand-in on the rank."""

    def __init__(self, scalars: Sequence[int]):
        words = [int(word) for word in scalars]
        if len(words) != 9:
            raise ValueError(f"a queue descriptor has 9 scalars, got {len(words)}")
        self.shape = QueueShape(*words[6:])
        descriptor = Descriptor.from_scalars(words[:6])
        if descriptor.payload_bytes != self.shape.payload_bytes or descriptor.counter_bytes != COUNTERS:
            raise ValueError(f"region {descriptor.region_id} holds no queue of {self.shape}")
        self._memory = ChannelMemory(descriptor, Side.CHIP)
        self._memory.need_live()
        end = _End(self._memory, self.shape, HOST_ABORT)
        there, back = _directions(self.shape)
        self._input, self._output = _Consumer(end, there), _Producer(end, back)

    def pop(self, *, timeout: float) -> Message:
        """Receive a message whose payload is a view until :meth:`give_back`."""
        return self._input.get(timeout)

    def try_pop(self) -> Message | None:
        """A message if there is one now."""
        return self._input.try_get()

    def give_back(self, message: Message) -> None:
        """The host may use the message's place again; in the order of arrival."""
        self._input.give_back(message)

    def push(self, data: Any, opcode: Opcode = Opcode.DATA, *, timeout: float) -> None:
        """Send a message to the host."""
        self._output.put(data, opcode, timeout)

    def try_push(self, data: Any, opcode: Opcode = Opcode.DATA) -> bool:
        """Send a message to the host if there is room now."""
        return self._output.try_put(data, opcode)

    def abort(self, code: int = 1) -> None:
        """Give up: the host's next operation raises ``ChannelAbortedError`` with ``code``, which is not 0."""
        _abort(self._memory, CHIP_ABORT, code)


def _abort(memory: ChannelMemory, counter: int, code: int) -> None:
    if not isinstance(code, int) or code == 0:
        raise ValueError(f"an abort code is an int other than 0, got {code!r}")
    memory.notify(counter, code, SignalOp.Set)
    memory.wake_all()


def _positive(timeout: Any) -> None:
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise ValueError(f"timeout must be positive, got {timeout!r}; use try_push or try_pop not to wait")


__all__ = ["ChipQueue", "Message", "Opcode", "QueueShape", "WorkerChipQueue"]

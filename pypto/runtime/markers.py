"""``[STRACE]`` version 1: how a launch is written to descriptor 2 (spec profiling 1).

One launch is one ``write``: spans in the order their scopes close, each in the envelope of a host log record.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

NAME_BYTES: Final = 64
ATTRIBUTE_BYTES: Final = 192
STDERR: Final = 2
DEVICE_CLOCK: Final = "clk=dev"

_NAME_PASSES: Final = frozenset(range(0x21, 0x7F)) - set(b"%[]=")
_ATTRIBUTE_PASSES: Final = _NAME_PASSES | set(b" =")


@dataclass(frozen=True, slots=True)
class Span:
    """One span: ``start_ns`` is on the host's monotonic scale, or an offset in the launch for a device span."""

    name: str
    depth: int
    start_ns: int
    duration_ns: int
    attributes: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """Identity shared by the spans of one launch (spec profiling 1.7, 1.8)."""

    inv: int
    hid: str


OUTSIDE_LAUNCHES: Final = Launch(0, "0")


def encode(text: str, passes: frozenset[int], capacity: int) -> str:
    """Percent-encode the UTF-8 bytes of ``text``; what does not fit ends in ``~`` (spec profiling 1.4)."""
    units = [chr(b) if b in passes else f"%{b:02X}" for b in text.encode()]
    if sum(map(len, units)) <= capacity:
        return "".join(units)
    kept: list[str] = []
    room = capacity - 1
    for unit in units:
        if len(unit) > room:
            break
        kept.append(unit)
        room -= len(unit)
    return "".join(kept) + "~"


def encode_name(name: str) -> str:
    """A span name as one token of at most 64 bytes."""
    return encode(name, _NAME_PASSES, NAME_BYTES)


def encode_attributes(attributes: str) -> str:
    """The attribute text of a span, at most 192 bytes."""
    return encode(attributes, _ATTRIBUTE_PASSES, ATTRIBUTE_BYTES)


def format_spans(launch: Launch, spans: Iterable[Span], *, written_ns: int, pid: int, tid: int, thread: int) -> str:
    """The records of ``spans``, one line each, in the order given.

    A host span closes at its end, which is when its record is written; a device span is read out at ``written_ns``.
    """
    lines = []
    for span in spans:
        closed_ns = written_ns if DEVICE_CLOCK in span.attributes else span.start_ns + span.duration_ns
        lines.append(
            f"[mono_ns={closed_ns}][T0x{thread:x}][TIMING] emit_host_span: [STRACE] v=1 pid={pid} tid={tid} "
            f"inv={launch.inv} hid={launch.hid} depth={span.depth} name={encode_name(span.name)} "
            f"ts={span.start_ns} dur={span.duration_ns} {encode_attributes(span.attributes)}\n"
        )
    return "".join(lines)


def write_spans(launch: Launch, spans: Sequence[Span], *, written_ns: int) -> None:
    """Write ``spans`` to descriptor 2, after this process's clock anchor when it is the first record."""
    if _process.is_muted:
        return
    pid, thread = os.getpid(), threading.get_ident()
    tid = threading.get_native_id()
    text = format_spans(launch, spans, written_ns=written_ns, pid=pid, tid=tid, thread=thread)
    if _process.anchored_pid != pid:
        text = _clock_anchor(pid, thread, spans) + text
    if write(text.encode()):
        _process.anchored_pid = pid


def next_invocation() -> int:
    """The number of the next launch of this process, from 1."""
    return next(_process.invocations)


class _Process:
    """Counters of this process; a forked child starts its own."""

    def __init__(self) -> None:
        self.invocations = itertools.count(1)
        self.anchored_pid = 0
        self.is_muted = False


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.__init__)  # type: ignore[misc]


def _clock_anchor(pid: int, thread: int, spans: Iterable[Span]) -> str:
    """The record that maps this process's monotonic clock to wall time (spec profiling 1.2).

    It stands at the earliest of ``spans``, because readers apply it to nothing before it.
    """
    now_ns = time.monotonic_ns()
    mono_ns = min([now_ns, *(span.start_ns for span in spans if DEVICE_CLOCK not in span.attributes)])
    wall_ns = time.time_ns() - (now_ns - mono_ns)
    return (
        f"[mono_ns={mono_ns}][T0x{thread:x}][TIMING] clock_anchor: "
        f"[CLOCK_ANCHOR] v=1 pid={pid} mono_ns={mono_ns} wall_ns={wall_ns}\n"
    )


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Write no records inside the block; everything else goes its way."""
    _process.is_muted = True
    try:
        yield
    finally:
        _process.is_muted = False


def start_log() -> None:
    """The next record goes to another file: it is preceded by a clock anchor again."""
    _process.anchored_pid = 0


def write(data: bytes) -> bool:
    """Write all of ``data`` to descriptor 2 and say whether it went out.

    A log that cannot be written (descriptor closed, disk full) never fails a launch.
    """
    try:
        while data:
            data = data[os.write(STDERR, data) :]
    except OSError:
        return False
    return True

"""Text level of the ``[STRACE]`` format: field encoding, attributes, anchors, sentinels (``profiling.md`` 1).

Only rules that concern single fields live here; finding records in a stream is the job of :mod:`pypto.perf.scan`.
"""

from __future__ import annotations

import re

VERSION = 1
"""The only span version this reader understands; records of another version are skipped and counted."""

NAME_CAPACITY = 64
ATTRS_CAPACITY = 192
DEVICE_TOKEN = "clk=dev"

ENVELOPE = re.compile(
    rb"\[mono_ns=(?P<mono_ns>\d+)\]\[T0x(?P<thread>[0-9a-fA-F]+)\]\[(?P<level>[A-Z]+)\] (?P<func>[^\s:]+): "
)
ANCHOR = re.compile(
    rb"\[mono_ns=\d+\]\[T0x[0-9a-fA-F]+\]\[TIMING\] clock_anchor: "
    rb"\[CLOCK_ANCHOR\] v=1 pid=(\d+) mono_ns=(\d+) wall_ns=(\d+)[ \t]*\r?$",
    re.MULTILINE,
)
SENTINEL = re.compile(rb"\[pypto\] l3_swimlane_pass=(?:(graph|timing) event=(begin|end))?")
ANSI_STYLE = re.compile(rb"\x1b\[[0-9;:?]*[A-Za-z]")

_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_INTEGER = re.compile(r"-?[0-9]+")
_NAME_STOP = frozenset(b"%[] =")
_ATTRS_STOP = frozenset(b"%[]")


def decode_field(raw: bytes) -> str:
    """Percent-decode a name or attribute value.

    Escapes stand for bytes of UTF-8; a byte that is no UTF-8 (a sequence split by truncation) shows as ``\\xHH``.
    """
    data = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), raw)
    return data.decode("utf-8", "backslashreplace")


def encode_field(text: str, *, attrs: bool = False) -> str:
    """Encode and truncate as the emitter does (``profiling.md`` 1.4): ``~`` marks what did not fit."""
    capacity, stop = (ATTRS_CAPACITY, _ATTRS_STOP) if attrs else (NAME_CAPACITY, _NAME_STOP)
    units = [chr(b) if 0x20 <= b <= 0x7E and b not in stop else f"%{b:02X}" for b in text.encode()]
    if sum(map(len, units)) <= capacity:
        return "".join(units)
    while sum(map(len, units)) > capacity - 1:
        units.pop()
    return "".join(units) + "~"


def parse_attrs(raw: str) -> dict[str, int | str]:
    """Split raw attribute text into typed values; items without ``=`` are dropped, later duplicates win."""
    parsed: dict[str, int | str] = {}
    for item in raw.split():
        key, equals, value = item.partition("=")
        if equals:
            parsed[key] = int(value) if _INTEGER.fullmatch(value) else decode_field(value.encode())
    return parsed


def is_device_attrs(raw: str) -> bool:
    """Whether attribute text puts a span on the device clock: the exact token ``clk=dev``, not a substring."""
    return DEVICE_TOKEN in raw.split()

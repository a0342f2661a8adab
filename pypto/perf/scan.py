"""Finds ``[STRACE]`` records in a buffer of bytes: one pass, no Python object per record (``profiling.md`` 1.3, 1.5).

Every head (``[STRACE]``, blanks, ``v=``, digits) ends up in exactly one of three counts:

* parsed: all fields are there and no number can have lost a digit;
* skipped: another version, or a marker quoted inside a message;
* torn: anything else.

A number followed by a blank is whole, because the emitter writes a blank after every field. Where something else
follows (another record, the end of the line or of the input) the time of writing in the record's own envelope decides:
a host span ended before its record was written, so with ``written < ts + 10 * dur`` no digit of ``dur`` is missing.
A line end is accepted without an envelope too; such lines were reformatted by somebody and are whole lines.
"""

from __future__ import annotations

import numpy as np

from pypto.perf.fields import (
    CLOSE,
    COLON,
    ESC,
    INT64_MAX,
    OPEN,
    SPACE,
    UINT64_MAX,
    ends_in_blank,
    field,
    hex_end,
    is_hex,
    is_line_end,
    key,
    name_end,
    number,
    starts,
    strip,
    text,
)
from pypto.perf.intern import COUNT, USED, StringPool, grown, intern_bytes
from pypto.perf.kernel import kernel

PID, TID, INV, DEPTH, TS, DUR, NAME, HID, ATTRS, HEAD, DEVICE = range(11)
COLUMNS = 11
"""Columns of a scanned row; ``INV`` holds the bits of an unsigned number, ``HEAD`` the offset of the head."""

HEADS, PARSED, TORN, SKIPPED_VERSION, SKIPPED_QUOTED, NEXT, FLOOR, QUOTED_LINE = range(8)
"""Positions in the state vector: four tallies, where to go on, and what the previous head left behind."""

SHORTEST_RECORD = len(b"[STRACE] v=1 pid=1 tid=1 inv=1 hid=1 depth=1 name=a ts=1 dur=1")
TORN_ROWS, POOL_ROOM = 1, 2
"""Why a scan stopped before the end: no room for another torn row, or in a string pool."""

FIELD_BYTES = 4096
"""No name, hid or attribute text longer than this belongs to a record (the emitter stops at 512 bytes)."""

_HEAD = text(b"[STRACE]")
_V = text(b"v=")
_MONO = text(b"[mono_ns=")
_THREAD = text(b"][T0x")
_KEYS = (text(b"pid="), text(b"tid="), text(b"inv="), text(b"hid="), text(b"depth="), text(b"name="))
_TS = text(b"ts=")
_DUR = text(b"dur=")
_DEVICE_TOKEN = text(b"clk=dev")
_DEVICE_NAME = text(b".device_wall")
_HOST_CLOCK, _DEVICE_CLOCK, _CUT_CLOCK = range(3)
_BACKSLASH = 92
_JSON_END = text(rb'\n"')
_TIMING = text(b"[TIMING] ")
_OTHER_LEVELS = (text(b"[DEBUG] "), text(b"[INFO] "), text(b"[WARN] "), text(b"[ERROR] "))
_PID_KEY, _TID_KEY, _INV_KEY, _HID_KEY, _DEPTH_KEY, _NAME_KEY = _KEYS
_DEBUG_TAG, _INFO_TAG, _WARN_TAG, _ERROR_TAG = _OTHER_LEVELS


@kernel
def _is_envelope(buf, i, n):
    """Whether ``[mono_ns=N][T0xH][LEVEL] func: `` starts at ``i``; a func with ``:`` is none (1.5)."""
    if not starts(buf, i, n, _MONO):
        return False
    _, j = number(buf, i + _MONO.size, n)
    if j <= i + _MONO.size or not starts(buf, j, n, _THREAD):
        return False
    k = hex_end(buf, j + _THREAD.size, n)
    if k == j + _THREAD.size or k + 2 >= n or buf[k] != CLOSE or buf[k + 1] != OPEN:
        return False
    k += 2
    while k < n and 65 <= buf[k] <= 90:
        k += 1
    if k + 1 >= n or buf[k] != CLOSE or buf[k + 1] != SPACE:
        return False
    k += 2
    while k < n and buf[k] > SPACE and buf[k] != COLON:
        k += 1
    return k + 1 < n and buf[k] == COLON and buf[k + 1] == SPACE


@kernel
def _attrs_end(buf, i, n):
    """End of the attribute text that starts at ``i``: line end (also one that JSON escaped), next head or envelope."""
    while i < n:
        c = buf[i]
        if is_line_end(c) or (c == _BACKSLASH and starts(buf, i, n, _JSON_END)):
            return i
        if c == OPEN and (starts(buf, i, n, _HEAD) or _is_envelope(buf, i, n)):
            return i
        i += 1
    return n


@kernel
def _level_tag(buf, head, floor):
    """Offset of the ``[LEVEL]`` whose ``[LEVEL] func: `` ends right before ``head``, -1 when there is none."""
    i = head - 1
    while i >= floor and buf[i] == ESC:
        i -= 1
    if i - 1 < floor or buf[i] != SPACE or buf[i - 1] != COLON:
        return -1
    i -= 2
    while i >= floor and buf[i] > SPACE and buf[i] != CLOSE:
        i -= 1
    if i - 1 < floor or buf[i] != SPACE or buf[i - 1] != CLOSE:
        return -1
    i -= 2
    while i >= floor and 65 <= buf[i] <= 90:
        i -= 1
    return i if i >= floor and buf[i] == OPEN else -1


@kernel
def _written_ns(buf, tag, floor):
    """``mono_ns`` of the envelope whose level tag is at ``tag``, -1 when the envelope carries none."""
    i = tag - 1
    if i < floor or buf[i] != CLOSE:
        return -1
    i -= 1
    while i >= floor and is_hex(buf[i]):
        i -= 1
    if i - 4 < floor or not starts(buf, i - 4, tag, _THREAD):
        return -1
    i -= 5
    while i >= floor and 48 <= buf[i] <= 57:
        i -= 1
    first = i - _MONO.size + 1
    if first < floor or not starts(buf, first, tag, _MONO):
        return -1
    value, end = number(buf, i + 1, tag)
    return np.int64(value) if end > i + 1 and value <= INT64_MAX else -1


@kernel
def _is_quoted(buf, head, floor, inherited):
    """Whether the marker at ``head`` is part of a message; ``inherited`` is the verdict on the same line so far."""
    tag = _level_tag(buf, head, floor)
    if tag >= 0 and starts(buf, tag, head, _TIMING):
        return False
    i = head - 1
    while i >= floor and not is_line_end(buf[i]):
        if buf[i] == OPEN and (
            starts(buf, i, head, _TIMING)
            or starts(buf, i, head, _DEBUG_TAG)
            or starts(buf, i, head, _INFO_TAG)
            or starts(buf, i, head, _WARN_TAG)
            or starts(buf, i, head, _ERROR_TAG)
        ):
            return True
        i -= 1
    if i < floor and inherited:
        return True
    if head - 1 < floor:
        return False
    before = buf[head - 1]
    return before == 39 or before == 34 or before == 96


@kernel
def _is_whole(buf, end, n, ts, dur, head, floor):
    """Whether the digits of ``dur`` that stop at ``end`` are all there (see the module's text)."""
    if dur == 0 or ends_in_blank(buf, end, n):
        return True
    i = end
    while i < n and buf[i] == ESC:
        i += 1
    tag = _level_tag(buf, head, floor)
    written = _written_ns(buf, tag, floor) if tag >= 0 else -1
    if written < 0:
        return i < n and is_line_end(buf[i])
    return np.float64(written) < np.float64(ts) + 10.0 * np.float64(dur)


@kernel
def _next_head(buf, i, n):
    """Offsets of the next ``[STRACE]`` with a version and of that version's first digit; -1 when there is none."""
    while i + _HEAD.size < n:
        if buf[i] == OPEN and starts(buf, i, n, _HEAD):
            k = key(buf, i + _HEAD.size, n, _V)
            if k >= 0 and k < n and 48 <= buf[k] <= 57:
                return i, k
        i += 1
    return -1, -1


@kernel
def scan(buf, n, state, rows, torn, names, hids, attrs):
    """Read records of ``buf[:n]`` from ``state[NEXT]`` on into ``rows`` and ``torn``; 0 when the buffer is done.

    Returns ``TORN_ROWS`` or ``POOL_ROOM`` when the caller must make room and call again. ``rows`` must hold a row for
    every ``SHORTEST_RECORD`` bytes.
    ``torn`` rows hold pid (-1 unknown), invocation bits and whether the invocation is known.
    """
    while True:
        head, i = _next_head(buf, state[NEXT], n)
        if head < 0:
            state[NEXT] = n
            return 0
        parsed, lost = state[PARSED], state[TORN]
        if lost >= torn.shape[0]:
            return TORN_ROWS
        if not (_room(names) and _room(hids) and _room(attrs)):
            return POOL_ROOM
        floor = state[FLOOR]
        quoted = _is_quoted(buf, head, floor, state[QUOTED_LINE] != 0)
        state[HEADS] += 1
        state[QUOTED_LINE] = 1 if quoted else 0
        state[FLOOR] = head + _HEAD.size
        state[NEXT] = head + _HEAD.size
        if quoted:
            state[SKIPPED_QUOTED] += 1
            continue
        version, i = number(buf, i, n)
        if i < 0 or (version != 1 and ends_in_blank(buf, i, n)):
            state[SKIPPED_VERSION] += 1
            continue
        row, loss = rows[parsed], torn[lost]
        end = _record(buf, i, n, head, floor, row, loss, names, hids, attrs)
        if end < 0 or version != 1:
            state[TORN] += 1
            continue
        state[PARSED] += 1
        state[NEXT] = end
        state[FLOOR] = end


@kernel
def _clock(buf, first, last):
    """The clock that attribute text names: the token ``clk=dev``, or a last token that was cut inside it."""
    start = first
    for i in range(first, last + 1):
        if i < last and not (buf[i] == SPACE or 9 <= buf[i] <= 13 or 27 <= buf[i] <= 31):
            continue
        size = i - start
        if 0 < size <= _DEVICE_TOKEN.size and starts(buf, start, i, _DEVICE_TOKEN[:size]):
            if size == _DEVICE_TOKEN.size:
                return _DEVICE_CLOCK
            if i == last:
                return _CUT_CLOCK
        start = i + 1
    return _HOST_CLOCK


@kernel
def _contains(buf, first, last, word):
    for i in range(first, last - word.size + 1):  # noqa: SIM110 (no generators in a compiled function)
        if starts(buf, i, last, word):
            return True
    return False


@kernel
def _room(pool):
    arena, ends, _, _, state = pool
    return state[COUNT] < ends.size and state[USED] + FIELD_BYTES <= arena.size


@kernel
def _record(buf, i, n, head, floor, row, loss, names, hids, attrs):
    """Fill ``row`` from the fields after the version; the record's end, or -1 with ``loss`` filled when it is torn."""
    loss[0], loss[1], loss[2] = -1, 0, 0
    pid, i = field(buf, i, n, _PID_KEY, INT64_MAX)
    if i < 0:
        return -1
    tid, i = field(buf, i, n, _TID_KEY, INT64_MAX)
    if i < 0:
        return -1
    loss[0] = pid
    inv, i = field(buf, i, n, _INV_KEY, UINT64_MAX)
    if i < 0:
        return -1
    hid = key(buf, i, n, _HID_KEY)
    if hid < 0:
        return -1
    loss[1], loss[2] = np.int64(inv), 1
    hid_stop = hex_end(buf, hid, n)
    if hid_stop == hid or hid_stop - hid > FIELD_BYTES:
        return -1
    depth, i = field(buf, hid_stop, n, _DEPTH_KEY, np.uint64(2**31 - 1))
    if i < 0:
        return -1
    name = key(buf, i, n, _NAME_KEY)
    if name < 0:
        return -1
    name_stop = name_end(buf, name, n)
    if name_stop == name or name_stop - name > FIELD_BYTES:
        return -1
    ts, i = field(buf, name_stop, n, _TS, INT64_MAX)
    if i < 0:
        return -1
    dur, end = field(buf, i, n, _DUR, INT64_MAX)
    if end < 0 or not _is_whole(buf, end, n, ts, dur, head, floor):
        return -1
    stop = _attrs_end(buf, end, n)
    first, last = strip(buf, end, stop)
    if last - first > FIELD_BYTES:
        last = first + FIELD_BYTES
    clock = _clock(buf, first, last)
    if clock == _CUT_CLOCK or (clock == _HOST_CLOCK and _contains(buf, name, name_stop, _DEVICE_NAME)):
        return -1
    row[DEVICE] = clock
    row[PID], row[TID], row[INV], row[DEPTH] = pid, tid, np.int64(inv), depth
    row[TS], row[DUR], row[HEAD] = ts, dur, head
    row[NAME] = intern_bytes(buf, name, name_stop, *names)
    row[HID] = intern_bytes(buf, hid, hid_stop, *hids)
    row[ATTRS] = intern_bytes(buf, first, last, *attrs)
    return stop


class Scanner:
    """Runs :func:`scan` over successive pieces of a log and keeps the pools that all pieces share."""

    def __init__(self) -> None:
        self.names = StringPool(arena_bytes=2 * FIELD_BYTES)
        self.hids = StringPool(arena_bytes=2 * FIELD_BYTES)
        self.attrs = StringPool(arena_bytes=2 * FIELD_BYTES)
        self.heads = self.torn = self.skipped_version = self.skipped_quoted = 0

    def scan(self, piece: bytearray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the records of ``piece`` (int64, one column per constant above) and of its torn heads."""
        buffer = np.frombuffer(piece, np.uint8) if piece else np.empty(0, np.uint8)
        state = np.zeros(8, np.int64)
        rows = np.empty((len(piece) // SHORTEST_RECORD + 1, COLUMNS), np.int64)
        torn = np.empty((64, 3), np.int64)
        pools = (self.names, self.hids, self.attrs)
        while wanted := scan(buffer, len(piece), state, rows, torn, *(pool.arrays for pool in pools)):
            if wanted == TORN_ROWS:
                torn = grown(torn, 2 * len(torn), len(torn))
            for pool in pools:
                pool.make_room(FIELD_BYTES)
        self.heads += int(state[HEADS])
        self.torn += int(state[TORN])
        self.skipped_version += int(state[SKIPPED_VERSION])
        self.skipped_quoted += int(state[SKIPPED_QUOTED])
        return rows[: state[PARSED]], torn[: state[TORN]]

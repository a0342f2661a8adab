"""Reading fields from a buffer of bytes: the small kernels that :mod:`pypto.perf.scan` is made of."""

from __future__ import annotations

import numpy as np

from pypto.perf.kernel import kernel

LF, CR, ESC, SPACE, COLON, OPEN, CLOSE = 10, 13, 27, 32, 58, 91, 93
_TAB, _EQUALS = 9, 61
INT64_MAX = np.uint64(2**63 - 1)
UINT64_MAX = np.uint64(2**64 - 1)
_UINT64_TENTH = np.uint64((2**64 - 1) // 10)


def text(literal: bytes) -> np.ndarray:
    """A constant that kernels can compare bytes with."""
    return np.array(list(literal), np.uint8)


@kernel
def starts(buf, i, n, word):
    """Whether ``word`` stands at ``i``."""
    if i < 0 or i + word.size > n:
        return False
    for k in range(word.size):  # noqa: SIM110 (no generators in a compiled function)
        if buf[i + k] != word[k]:
            return False
    return True


@kernel
def is_blank(c):
    """Blanks that separate fields: no line ends."""
    return c == SPACE or 9 <= c <= 12 and c != LF


@kernel
def is_line_end(c):
    """Line feed or carriage return."""
    return c == LF or c == CR  # noqa: SIM109 (a tuple test costs more here)


@kernel
def number(buf, i, n):
    """Value and end of the digits at ``i``; the end is ``i`` without digits and -1 beyond 64 bits."""
    value = np.uint64(0)
    safe = min(n, i + 19)
    while i < safe and 48 <= buf[i] <= 57:
        value = value * np.uint64(10) + np.uint64(buf[i] - 48)
        i += 1
    if i < safe or i == n:
        return value, i
    while i < n and 48 <= buf[i] <= 57:
        digit = np.uint64(buf[i] - 48)
        if value > _UINT64_TENTH or (value == _UINT64_TENTH and digit > np.uint64(5)):
            return value, -1
        value = value * np.uint64(10) + digit
        i += 1
    return value, i


@kernel
def key(buf, i, n, word):
    """Position after ``<blanks>word``, colour escapes ignored; -1 when it is not there."""
    blanks = 0
    while i < n and (is_blank(buf[i]) or buf[i] == ESC):
        if buf[i] != ESC:
            blanks += 1
        i += 1
    if blanks == 0 or not starts(buf, i, n, word):
        return -1
    i += word.size
    while i < n and buf[i] == ESC:
        i += 1
    return i


@kernel
def field(buf, i, n, word, limit):
    """Value and end of ``<blanks>word<digits>``; the end is -1 when it is missing or above ``limit``."""
    i = key(buf, i, n, word)
    if i < 0:
        return np.uint64(0), -1
    value, end = number(buf, i, n)
    if end <= i or value > limit:
        return np.uint64(0), -1
    return value, end


@kernel
def is_hex(c):
    """A hexadecimal digit of either case."""
    return (48 <= c <= 57) or (97 <= c <= 102) or (65 <= c <= 70)


@kernel
def hex_end(buf, i, n):
    """End of the hexadecimal digits at ``i``."""
    while i < n and is_hex(buf[i]):
        i += 1
    return i


@kernel
def name_end(buf, i, n):
    """End of an encoded name: printable ASCII except the bytes an emitter escapes."""
    while i < n and 33 <= buf[i] <= 126 and buf[i] != OPEN and buf[i] != CLOSE and buf[i] != _EQUALS:
        i += 1
    return i


@kernel
def strip(buf, start, end):
    """The stretch without control characters and blanks at either end."""
    while start < end and (buf[start] <= SPACE):
        start += 1
    while end > start and (buf[end - 1] <= SPACE):
        end -= 1
    return start, end


@kernel
def ends_in_blank(buf, i, n):
    """Whether a blank follows at ``i``, colour escapes ignored."""
    while i < n and buf[i] == ESC:
        i += 1
    return i < n and is_blank(buf[i])

"""Where the accesses of an allocation are kept, so that a new one meets only those that lie near it.

An allocation is divided into buckets on several levels; those of a level are eight times as large as those of the one
below. An access is kept on the lowest level whose buckets are at least as long as it is, in the bucket it begins in. So
everything that may overlap a range begins, on every level, in the range or one bucket before it.

Accesses of single elements, as gathers, scatters and scalar code make them, would crowd the lowest level. When an
allocation has more than a few, it gets buckets of cache lines for them; lines share buckets when there are many.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.recording import Words

_FIRST_SHIFT: Final = 12  # buckets of the lowest level: 4096 bytes
_LEVEL_SHIFT: Final = 3
LEVELS: Final = 8
_LAST_SHIFT: Final = _FIRST_SHIFT + _LEVEL_SHIFT * (LEVELS - 1)
# a row of the allocations: bytes, first bucket of every level, accesses kept on every level, and which nodes write it
_BYTES: Final = 0
_FIRST: Final = 1
COUNT: Final = _FIRST + LEVELS
LINES: Final = LEVELS  # the level of cache lines
WRITERS: Final = COUNT + LEVELS + 1  # nodes that were noted as its writers
LAST_WRITER: Final = WRITERS + 1  # 1 + the node noted last
LINE_BUCKETS: Final = LAST_WRITER + 1  # of cache lines, a power of two; 0: none yet
_FIRST_LINE: Final = LINE_BUCKETS + 1  # the first of them
CROSSES: Final = _FIRST_LINE + 1  # 1: an access of the level of lines goes on in the next line
ROW_WORDS: Final = CROSSES + 1
_LINE_SHIFT: Final = 6
_MOST_LINES: Final = 4096
CROWD: Final = 32  # accesses of the lowest level that make buckets of lines worth while


@kernel_code
def _bucket(row, level, at):
    """Bucket of byte ``at``, as a number on its level; what lies outside the allocation counts as its end."""
    return max(0, min(at, row[_BYTES])) >> (_FIRST_SHIFT + _LEVEL_SHIFT * level)


@kernel_code
def level_of(low, high):
    """Level on which an access of the bytes [low, high) is kept."""
    level = 0
    while level < LEVELS - 1 and high - low > 1 << (_FIRST_SHIFT + _LEVEL_SHIFT * level):
        level += 1
    return level


@kernel_code
def bucket_of(row, level, low):
    """Number of the bucket, among all, of an access that begins at byte ``low``."""
    return row[_FIRST + level] + _bucket(row, level, low)


@kernel_code
def first_bucket(row, level, low):
    """First bucket of a level that may hold what overlaps a range from byte ``low`` on."""
    return row[_FIRST + level] + max(_bucket(row, level, low) - 1, 0) * (0 if level == LEVELS - 1 else 1)


@kernel_code
def last_bucket(row, level, high):
    """Last bucket of a level that may hold what overlaps a range up to byte ``high``."""
    return row[_FIRST + level] + _bucket(row, level, row[_BYTES] if level == LEVELS - 1 else high - 1)


@kernel_code
def is_of_a_line(low, high):
    """Whether an access of the bytes [low, high) belongs on the level of cache lines."""
    return high - low <= 1 << _LINE_SHIFT


@kernel_code
def line_bucket(row, line):
    """Number of the bucket, among all, of cache line number ``line``."""
    return row[_FIRST_LINE] + (line & row[LINE_BUCKETS] - 1)


@kernel_code
def first_line(row, low):
    """First cache line that may hold what overlaps a range from byte ``low`` on."""
    return (low >> _LINE_SHIFT) - row[CROSSES]


@kernel_code
def last_line(row, low, high):
    """Last cache line to look at for a range; with as many lines as there are buckets it has met all of them."""
    return min((high - 1) >> _LINE_SHIFT, first_line(row, low) + row[LINE_BUCKETS] - 1)


@kernel_code
def note_line(row, low, high):
    """An access of the level of lines is kept: its line."""
    if low >> _LINE_SHIFT != high - 1 >> _LINE_SHIFT:
        row[CROSSES] = 1
    return low >> _LINE_SHIFT


def count_lines(row: Words) -> int:
    """Buckets of cache lines for an allocation (its row): a power of two."""
    lines = max(int(row[_BYTES]) >> _LINE_SHIFT, 1)
    return min(1 << (lines - 1).bit_length(), _MOST_LINES)


def add_lines(row: Words, first: int) -> None:
    """Give an allocation (its row) buckets of cache lines, numbered from ``first`` on."""
    row[LINE_BUCKETS], row[_FIRST_LINE] = count_lines(row), first


@kernel_code
def is_forgotten(row):
    """Whether the accesses of an allocation do not matter any more."""
    return row[_BYTES] < 0


def are_known(rows: Words) -> NDArray[np.bool_]:
    """Which allocations (their rows) are not forgotten."""
    known: NDArray[np.bool_] = rows[:, _BYTES] >= 0
    return known


def forget_accesses(row: Words) -> list[range]:
    """Let the accesses of an allocation (its row) not matter any more; the buckets that it has had."""
    found = [range(int(row[_FIRST]), int(row[_FIRST + LEVELS - 1]) + (int(row[_BYTES]) >> _LAST_SHIFT) + 1)]
    if row[LINE_BUCKETS]:
        found.append(range(int(row[_FIRST_LINE]), int(row[_FIRST_LINE]) + int(row[LINE_BUCKETS])))
    row[_BYTES] = -1
    return found


def count_buckets(size: int) -> int:
    """Buckets of an allocation of ``size`` bytes."""
    return sum((size >> (_FIRST_SHIFT + _LEVEL_SHIFT * level)) + 1 for level in range(LEVELS))


def allocation_row(size: int, first: int) -> Words:
    """Row of an allocation of ``size`` bytes whose buckets begin with number ``first``."""
    row, at = np.zeros(ROW_WORDS, np.int64), first
    row[_BYTES] = size
    for level in range(LEVELS):
        row[_FIRST + level] = at
        at += (size >> (_FIRST_SHIFT + _LEVEL_SHIFT * level)) + 1
    return row

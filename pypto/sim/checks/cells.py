"""Boxes of separate cells: the elements of one block of memory that a gather or a scatter touched, as one access.

Such a box has ``CELLS`` cells of ``RUN`` bytes from byte ``BASE`` on, and a bit for each in the words that hold the
pairs of a strided box (boxes.py). ``BASE`` is a multiple of the size of a block, but for the bytes that the elements
lie off a boundary, so two boxes of cells of one size that share a byte have the same base as a rule.
"""

# ruff: noqa: SIM110 - compiled code is written as it runs

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pypto.sim.kernels.compilation import kernel_code

BASE, RUN, PAIRS = 0, 1, 2
CELLS: Final = 256
_MASK: Final = PAIRS + 1
_MASK_WORDS: Final = CELLS // 64
_LOW: Final = _MASK + _MASK_WORDS  # bytes from the base to the first cell
_END: Final = PAIRS + 7  # bytes from the base to the end of the last cell


@kernel_code
def is_cells(box):
    """Whether a box is one of cells: its first count is 0, which no strided box has."""
    return box[PAIRS] == 0


@kernel_code
def cells_start(box, base, size):
    """Begin a box of cells of ``size`` bytes with none in it."""
    box[BASE], box[RUN] = base, size
    for word in range(PAIRS, _END):
        box[word] = 0
    box[_LOW], box[_END] = CELLS * size, 0


@kernel_code
def cells_base(at, size):
    """Base of the box of cells that an element of ``size`` bytes at byte ``at`` belongs to."""
    return at - at // size % CELLS * size


@kernel_code
def cells_add(box, at):
    """Add the cell at byte ``at``."""
    shift = at - box[BASE]
    cell = shift // box[RUN]
    box[_MASK + (cell >> 6)] |= 1 << (cell & 63)
    box[_LOW], box[_END] = min(box[_LOW], shift), max(box[_END], shift + box[RUN])


@kernel_code
def cells_low(box):
    """First byte of the first cell."""
    return box[BASE] + box[_LOW]


@kernel_code
def cells_end(box):
    """First byte behind the last cell."""
    return box[BASE] + box[_END]


@kernel_code
def has_cell(box, cell):
    """Whether cell number ``cell`` is in the box."""
    return box[_MASK + (cell >> 6)] >> (cell & 63) & 1 != 0


@kernel_code
def cells_hit(box, low, high):
    """Whether the box has a byte in [low, high)."""
    first = max(0, (low - box[BASE]) // box[RUN])
    for cell in range(first, min(CELLS, (high - 1 - box[BASE]) // box[RUN] + 1)):
        if has_cell(box, cell):
            return True
    return False


@kernel_code
def same_cells(a, b):
    """Whether two boxes of cells divide the same bytes alike."""
    return a[BASE] == b[BASE] and a[RUN] == b[RUN]


@kernel_code
def cells_meet(a, b):
    """Whether two boxes of cells that divide the same bytes alike have one in common."""
    for word in range(_MASK, _MASK + _MASK_WORDS):
        if a[word] & b[word] != 0:
            return True
    return False


@kernel_code
def cells_within(a, b):
    """Whether all cells of ``a`` are in ``b``, which divides the same bytes alike."""
    for word in range(_MASK, _MASK + _MASK_WORDS):
        if a[word] & ~b[word] != 0:
            return False
    return True


@kernel_code
def cells_without(box, other):
    """Take the cells of another box, or those inside of a run, out of a box of cells; True when none is left."""
    if is_cells(other):
        if same_cells(box, other):
            for word in range(_MASK, _MASK + _MASK_WORDS):
                box[word] &= ~other[word]
    elif other[PAIRS] * other[PAIRS + 2] * other[PAIRS + 4] * other[PAIRS + 6] == 1:
        first = max(0, -((box[BASE] - other[BASE]) // box[RUN]))
        for cell in range(first, min(CELLS, (other[BASE] + other[RUN] - box[BASE]) // box[RUN])):
            box[_MASK + (cell >> 6)] &= ~(1 << (cell & 63))
    for word in range(_MASK, _MASK + _MASK_WORDS):
        if box[word] != 0:
            return False
    return True


@kernel_code
def cells_join(box, other):
    """Add the cells of another box that divides the same bytes alike."""
    for word in range(_MASK, _MASK + _MASK_WORDS):
        box[word] |= other[word]
    box[_LOW], box[_END] = min(box[_LOW], other[_LOW]), max(box[_END], other[_END])


@kernel_code
def is_one_run(box):
    """Whether the cells of a box lie side by side."""
    for cell in range(box[_LOW] // box[RUN], box[_END] // box[RUN]):
        if not has_cell(box, cell):
            return False
    return True


def cell_numbers(box: NDArray[np.int64] | list[int]) -> NDArray[np.int64]:
    """Numbers of the cells of a box, rising."""
    mask = np.asarray(box[_MASK : _MASK + _MASK_WORDS], np.int64)
    return np.flatnonzero(np.unpackbits(mask.astype("<i8").view(np.uint8), bitorder="little"))

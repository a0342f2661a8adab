"""Strided boxes: the exact set of bytes one access touches, and whether two of them share a byte.

A box is ``int64[BOX_WORDS]``: first byte, bytes per run, then four pairs (count, pitch in bytes) from the largest pitch
to the smallest; unused pairs are (1, 0). The byte set is every run shifted by every combination of the pairs. Or it is
a box of separate cells (cells.py), which has a bit per cell instead of the pairs.
"""

# ruff: noqa: SIM102 - compiled code is written as it runs

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pypto.sim.checks.cells import (
    BASE,
    CELLS,
    PAIRS,
    RUN,
    cell_numbers,
    cells_end,
    cells_hit,
    cells_low,
    cells_meet,
    cells_within,
    has_cell,
    is_cells,
    same_cells,
)
from pypto.sim.entry import compiled_entry
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer

DIMENSIONS: Final = 4
BOX_WORDS: Final = PAIRS + 2 * DIMENSIONS


@kernel_code
def box_start(box, base, size):
    """Begin a box of one element of ``size`` bytes."""
    box[BASE], box[RUN] = base, size
    for k in range(DIMENSIONS):
        box[PAIRS + 2 * k], box[PAIRS + 2 * k + 1] = 1, 0


@kernel_code
def box_repeat(box, count, pitch):
    """Repeat the box ``count`` times at a distance of ``pitch`` bytes; call with growing pitches.

    Runs that touch become one. A fifth pair is left out: the box then covers less than the access, never more.
    """
    if count <= 1:
        return
    used = 0
    while used < DIMENSIONS and box[PAIRS + 2 * (DIMENSIONS - 1 - used)] > 1:
        used += 1
    if used == 0:
        if pitch <= box[RUN]:
            box[RUN] += (count - 1) * pitch
            return
    else:
        largest = PAIRS + 2 * (DIMENSIONS - used)
        if box[largest] * box[largest + 1] == pitch:
            box[largest] *= count
            return
    if used < DIMENSIONS:
        at = PAIRS + 2 * (DIMENSIONS - 1 - used)
        box[at], box[at + 1] = count, pitch


@kernel_code
def box_low(box):
    """First byte of the box."""
    return cells_low(box) if is_cells(box) else box[BASE]


@kernel_code
def box_end(box):
    """First byte behind the box."""
    if is_cells(box):
        return cells_end(box)
    last = box[BASE] + box[RUN]
    for k in range(DIMENSIONS):
        last += (box[PAIRS + 2 * k] - 1) * box[PAIRS + 2 * k + 1]
    return last


@kernel_code
def _runs(box):
    return box[PAIRS] * box[PAIRS + 2] * box[PAIRS + 4] * box[PAIRS + 6]


@kernel_code
def _first(low, at, span, pitch):
    """Lowest repetition of a block of ``span`` bytes at ``at`` that ends behind ``low``."""
    if pitch == 0:
        return 0
    return max(0, (low - at - span) // pitch + 1)


@kernel_code
def _last(high, at, count, pitch):
    """Highest repetition of a block at ``at`` that starts before ``high``."""
    if pitch == 0:
        return 0
    return min(count - 1, (high - 1 - at) // pitch)


@kernel_code
def _hit(box, low, high):
    """Whether the box has a byte in [low, high)."""
    span3 = box[RUN]
    span2 = span3 + (box[PAIRS + 6] - 1) * box[PAIRS + 7]
    span1 = span2 + (box[PAIRS + 4] - 1) * box[PAIRS + 5]
    span0 = span1 + (box[PAIRS + 2] - 1) * box[PAIRS + 3]
    base = box[BASE]
    for i in range(_first(low, base, span0, box[PAIRS + 1]), _last(high, base, box[PAIRS], box[PAIRS + 1]) + 1):
        at0 = base + i * box[PAIRS + 1]
        for j in range(_first(low, at0, span1, box[PAIRS + 3]), _last(high, at0, box[PAIRS + 2], box[PAIRS + 3]) + 1):
            at1 = at0 + j * box[PAIRS + 3]
            for k in range(
                _first(low, at1, span2, box[PAIRS + 5]), _last(high, at1, box[PAIRS + 4], box[PAIRS + 5]) + 1
            ):
                at2 = at1 + k * box[PAIRS + 5]
                first = _first(low, at2, span3, box[PAIRS + 7])
                last = _last(high, at2, box[PAIRS + 6], box[PAIRS + 7])
                if first <= last:
                    at3 = at2 + first * box[PAIRS + 7]
                    if at3 < high and at3 + span3 > low:
                        return True
    return False


@kernel_code
def _one_lattice(a, b):
    """Overlap of boxes with one pair at most, and equal pitches."""
    pitch = a[PAIRS + 7] if a[PAIRS + 6] > 1 else b[PAIRS + 7] if b[PAIRS + 6] > 1 else 0
    shift = b[BASE] - a[BASE]
    if pitch == 0:
        return -b[RUN] < shift < a[RUN]
    lowest = -((b[RUN] - 1 + shift) // pitch)
    highest = (a[RUN] - 1 - shift) // pitch
    return max(lowest, 1 - a[PAIRS + 6]) <= min(highest, b[PAIRS + 6] - 1)


@kernel_code
def _flat(box):
    return box[PAIRS] == 1 and box[PAIRS + 2] == 1 and box[PAIRS + 4] == 1


@kernel_code
def shared_cells(cells, box):
    """How many cells of a box of cells have a byte in common with another box of either sort."""
    count = 0
    for cell in range(CELLS):
        if has_cell(cells, cell):
            low = cells[BASE] + cell * cells[RUN]
            high = low + cells[RUN]
            if cells_hit(box, low, high) if is_cells(box) else _hit(box, low, high):
                count += 1
    return count


@kernel_code
def times_shared(a, b):
    """How many pairs of accesses two boxes that overlap stand for: every cell is an access of its own."""
    if is_cells(a):
        return shared_cells(a, b)
    return shared_cells(b, a) if is_cells(b) else 1


@kernel_code
def _cells_overlap(a, b):
    if is_cells(a) and is_cells(b) and same_cells(a, b):
        return cells_meet(a, b)
    return times_shared(a, b) > 0


@kernel_code
def boxes_overlap(a, b):
    """Whether the boxes share a byte; exact."""
    if a[RUN] <= 0 or b[RUN] <= 0 or a[BASE] >= box_end(b) or b[BASE] >= box_end(a):
        return False
    if is_cells(a) or is_cells(b):
        return _cells_overlap(a, b)
    if _flat(a) and _flat(b):
        same = a[PAIRS + 7] == b[PAIRS + 7] or a[PAIRS + 6] == 1 or b[PAIRS + 6] == 1
        if same:
            return _one_lattice(a, b)
    few, many = a, b
    if _runs(b) < _runs(a):
        few, many = b, a
    for i in range(few[PAIRS]):
        for j in range(few[PAIRS + 2]):
            for k in range(few[PAIRS + 4]):
                for m in range(few[PAIRS + 6]):
                    at = few[BASE] + i * few[PAIRS + 1] + j * few[PAIRS + 3] + k * few[PAIRS + 5] + m * few[PAIRS + 7]
                    if _hit(many, at, at + few[RUN]):
                        return True
    return False


@kernel_code
def _cells_cover(a, b):
    if is_cells(b):
        return same_cells(a, b) and cells_within(b, a)
    shift = b[BASE] - a[BASE]
    one = _flat(b) and b[PAIRS + 6] == 1 and b[RUN] == a[RUN] and shift >= 0 and shift < CELLS * a[RUN]
    return one and shift % a[RUN] == 0 and has_cell(a, shift // a[RUN])


@kernel_code
def box_covers(a, b):
    """Whether ``a`` surely holds every byte of ``b``."""
    if _flat(a) and a[PAIRS + 6] == 1:
        return a[BASE] <= box_low(b) and box_end(b) <= a[BASE] + a[RUN]
    if is_cells(a):
        return _cells_cover(a, b)
    same = True
    for word in range(BOX_WORDS):
        same = same and a[word] == b[word]
    if same:
        return True
    if not (_flat(a) and _flat(b)) or b[PAIRS + 6] > 1 and b[PAIRS + 7] != a[PAIRS + 7]:
        return False
    pitch, shift = a[PAIRS + 7], b[BASE] - a[BASE]
    row = shift // pitch
    return shift >= 0 and shift - row * pitch + b[RUN] <= a[RUN] and row + b[PAIRS + 6] <= a[PAIRS + 6]


@kernel_code
def box_extend(a, b):
    """Grow ``a`` by a neighbour ``b`` when the union is a box again; True when done."""
    if not (_flat(a) and _flat(b)):
        return False
    shift = b[BASE] - a[BASE]
    if a[PAIRS + 6] == b[PAIRS + 6] and a[PAIRS + 7] == b[PAIRS + 7]:
        if 0 <= shift <= a[RUN] and shift + b[RUN] >= a[RUN]:
            a[RUN] = shift + b[RUN]
            if a[PAIRS + 6] > 1 and a[RUN] >= a[PAIRS + 7]:
                a[RUN] += (a[PAIRS + 6] - 1) * a[PAIRS + 7]
                a[PAIRS + 6], a[PAIRS + 7] = 1, 0
            return True
    if a[RUN] == b[RUN] and a[PAIRS + 6] > 1 and shift == a[PAIRS + 6] * a[PAIRS + 7]:
        if b[PAIRS + 6] == 1 or b[PAIRS + 7] == a[PAIRS + 7]:
            a[PAIRS + 6] += b[PAIRS + 6]
            return True
    return False


def _overlap_all(words):
    """``out[i]`` of ``words``: (a, b, out, count), addresses of int64[count, BOX_WORDS] twice and of int64[count]."""
    out = as_pointer(words[2])
    for index in range(words[3]):
        a, b = as_pointer(words[0] + 8 * BOX_WORDS * index), as_pointer(words[1] + 8 * BOX_WORDS * index)
        out[index] = 1 if boxes_overlap(a, b) else 0
    return 0


def overlaps(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pairwise overlap of two arrays of boxes, ``int64[n, BOX_WORDS]``: 1 or 0 each."""
    a, b = np.ascontiguousarray(a, np.int64), np.ascontiguousarray(b, np.int64)
    out = np.zeros(len(a), np.int64)
    request = np.array([a.ctypes.data, b.ctypes.data, out.ctypes.data, len(a)], np.int64)
    _compiled()(request.ctypes.data)
    return out


_ENTRIES: dict[str, Any] = {}


def _compiled() -> Any:
    if "overlap" not in _ENTRIES:
        _ENTRIES["overlap"] = compiled_entry("boxes", _overlap_all, ("checks/boxes", "checks/cells", "native"))
    return _ENTRIES["overlap"]


def runs_of(box: NDArray[np.int64] | list[int]) -> tuple[NDArray[np.int64], int]:
    """(first byte of every run, bytes per run) in rising order of the pairs, or of the cells."""
    if box[PAIRS] == 0:
        return int(box[BASE]) + cell_numbers(box) * int(box[RUN]), int(box[RUN])
    starts = np.array([box[BASE]], np.int64)
    for k in range(DIMENSIONS):
        count, pitch = int(box[PAIRS + 2 * k]), int(box[PAIRS + 2 * k + 1])
        if count > 1:
            starts = (starts[:, None] + np.arange(count, dtype=np.int64) * pitch).ravel()
    return starts, int(box[RUN])


def shared_runs(a: NDArray[np.int64] | list[int], b: NDArray[np.int64] | list[int]) -> NDArray[np.int64]:
    """Byte ranges [low, high) that both boxes hold, ``int64[n, 2]``, by first byte."""
    found = []
    (starts, run), (others, other_run) = runs_of(a), runs_of(b)
    others = np.sort(others)
    for start in starts:
        first, last = np.searchsorted(others, [start - other_run + 1, start + run])
        low, high = np.maximum(others[first:last], start), np.minimum(others[first:last] + other_run, start + run)
        found.append(np.stack((low, high), 1))
    ranges = np.concatenate(found)
    return ranges[np.argsort(ranges[:, 0], kind="stable")]

"""Float64 copies of what memory holds, for the comparison of precisions: one slot for every two bytes of a region."""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
SLOT_BYTES: Final = 2  # the smallest float that is followed


@dataclass(frozen=True)
class Grid:
    """``rows`` x ``cols`` elements from address ``first`` on, ``row_step`` and ``col_step`` bytes apart."""

    first: int
    rows: int
    cols: int
    row_step: int
    col_step: int

    @property
    def span(self) -> int:
        """Bytes from the first element to the start of the last."""
        return (self.rows - 1) * self.row_step + (self.cols - 1) * self.col_step


@dataclass(order=True)
class _Region:
    """Memory that may hold floats; the arrays are made at the first write."""

    start: int
    size: int
    values: Any = field(default=None, compare=False)
    known: Any = field(default=None, compare=False)

    def views(self, grid: Grid) -> tuple[Any, Any]:
        """Values of a grid, and whether each has been written, as views."""
        if self.values is None:
            slots = self.size // SLOT_BYTES + 1
            self.values, self.known = np.zeros(slots), np.zeros(slots, bool)
        at, shape = (grid.first - self.start) // SLOT_BYTES, (grid.rows, grid.cols)
        steps = grid.row_step // SLOT_BYTES, grid.col_step // SLOT_BYTES
        strided = np.lib.stride_tricks.as_strided
        return (
            strided(self.values[at:], shape, [8 * step for step in steps]),
            strided(self.known[at:], shape, steps),
        )


class Copies:
    """The regions of a launch: tensors, buffers of the orchestration, on-chip memory of the cores."""

    def __init__(self) -> None:
        self._regions: list[_Region] = []

    def add(self, start: int, size: int) -> None:
        """Memory whose copies are to be kept; what was known of bytes in it is forgotten."""
        inside = [r for r in self._regions if r.start < start + size and start < r.start + r.size]
        for region in inside:
            start, size = (
                min(start, region.start),
                max(start + size, region.start + region.size) - min(start, region.start),
            )
            self._regions.remove(region)
        insort(self._regions, _Region(start, size))

    def forget(self, start: int, size: int) -> None:
        """Something that is not followed has written ``size`` bytes."""
        region = self._at(start)
        if region is not None and region.known is not None:
            first = (start - region.start) // SLOT_BYTES
            region.known[first : first + -(-size // SLOT_BYTES)] = False

    def read(self, grid: Grid, held: Array) -> Array:
        """Float64 values of a grid; where there are none, what the program holds."""
        region = self._at(grid.first)
        if region is None or region.values is None:
            return held
        values, known = region.views(grid)
        return np.where(known, values, held)

    def write(self, grid: Grid, values: Array) -> None:
        """Keep the values of a grid."""
        region = self._at(grid.first)
        if region is not None and grid.first + grid.span < region.start + region.size:
            kept, known = region.views(grid)
            kept[...], known[...] = values, True

    def _at(self, address: int) -> _Region | None:
        index = bisect_right(self._regions, address, key=lambda region: region.start) - 1
        if index < 0 or address >= self._regions[index].start + self._regions[index].size:
            return None
        return self._regions[index]

"""Reading operands of a kernel's argument block: descriptors, extents, checks (docs/architecture.md 2)."""

from __future__ import annotations

from typing import Final

from pypto.ir.dtype import INT64
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.kernels.element import fetch
from pypto.sim.layout import (
    TILE_ADDRESS,
    TILE_COLS,
    TILE_ROWS,
    TILE_STRIDE,
    TILE_VALID_COLS,
    TILE_VALID_ROWS,
)

# Position of the first, second, ... operand word
FIRST: Final = 4
SECOND: Final = 5
THIRD: Final = 6
FOURTH: Final = 7


@kernel_code
def word(descriptor: int, index: int) -> int:
    """One word of a tile or tensor descriptor."""
    return fetch(descriptor, index, INT64)


@kernel_code
def address(tile: int) -> int:
    """Host address of a tile's first element."""
    return fetch(tile, TILE_ADDRESS, INT64)


@kernel_code
def stride(tile: int) -> int:
    """Elements between two rows of a tile."""
    return fetch(tile, TILE_STRIDE, INT64)


@kernel_code
def physical_rows(tile: int) -> int:
    """Rows a tile occupies."""
    return fetch(tile, TILE_ROWS, INT64)


@kernel_code
def physical_cols(tile: int) -> int:
    """Columns a tile occupies."""
    return fetch(tile, TILE_COLS, INT64)


@kernel_code
def valid_rows(tile: int) -> int:
    """Rows of a tile's valid region."""
    return fetch(tile, TILE_VALID_ROWS, INT64)


@kernel_code
def valid_cols(tile: int) -> int:
    """Columns of a tile's valid region."""
    return fetch(tile, TILE_VALID_COLS, INT64)


@kernel_code
def covers(tile: int, rows: int, cols: int) -> bool:
    """Whether the allocation of ``tile`` has at least ``rows`` x ``cols`` elements."""
    return fetch(tile, TILE_ROWS, INT64) >= rows and fetch(tile, TILE_COLS, INT64) >= cols

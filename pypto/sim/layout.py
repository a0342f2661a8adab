"""Word layouts shared by assembler, machine, tile kernels and timing engine (docs/architecture.md 2, 4)."""

from __future__ import annotations

from typing import Final

# Tile descriptor, int64[TILE_WORDS]
TILE_ADDRESS: Final = 0
TILE_ROWS: Final = 1
TILE_COLS: Final = 2
TILE_STRIDE: Final = 3
TILE_VALID_ROWS: Final = 4
TILE_VALID_COLS: Final = 5
TILE_DTYPE: Final = 6
TILE_SPACE: Final = 7
TILE_WORDS: Final = 8

# Tensor descriptor, int64[TENSOR_WORDS]
TENSOR_ADDRESS: Final = 0
TENSOR_RANK: Final = 1
TENSOR_DTYPE: Final = 2
TENSOR_ALLOCATION: Final = 3
TENSOR_LOW: Final = 4
TENSOR_HIGH: Final = 5
TENSOR_EXTENTS: Final = 6
TENSOR_STRIDES: Final = 14
TENSOR_FLAGS: Final = 22
TENSOR_NAME: Final = 23
TENSOR_WORDS: Final = 24
MAX_RANK: Final = 8

# Kernel argument block
REPORT_WORDS: Final = 4
OPERANDS: Final = REPORT_WORDS

# Kernel status
OK: Final = 0
OUTSIDE_TENSOR: Final = 1
OUTSIDE_TILE: Final = 2
DIVISION_BY_ZERO: Final = 3
UNSUPPORTED_DTYPE: Final = 4
TOOK_ZERO: Final = 5  # done, but an index outside its tile read 0; the report words say which: position, index, limit

# Trace row, int64[TRACE_WORDS]
TRACE_PC: Final = 0
TRACE_VALID_ROWS: Final = 1
TRACE_VALID_COLS: Final = 2
TRACE_REPORT: Final = 3
TRACE_SCALARS: Final = 7  # scalar instructions | slot of the tile written << TRACE_SLOT_SHIFT
TRACE_SLOT_SHIFT: Final = 32
TRACE_WORDS: Final = 8

# Memory spaces: text name -> code (spec language 1.4)
SPACES: Final[dict[str, int]] = {
    "ddr": 0,
    "vec": 1,
    "mat": 2,
    "left": 3,
    "right": 4,
    "acc": 5,
    "bias": 6,
    "scalarlocal": 7,
    "leftscale": 8,
    "rightscale": 9,
}
PIPES: Final[dict[str, int]] = {"MTE1": 0, "MTE2": 1, "MTE3": 2, "M": 3, "V": 4, "S": 5, "FIX": 6, "ALL": 7}

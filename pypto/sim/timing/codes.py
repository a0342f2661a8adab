"""Small integers the compiled parts of the clock agree on."""

from __future__ import annotations

from typing import Final

# pipes, as in sim.layout.PIPES
MTE1: Final = 0
MTE2: Final = 1
MTE3: Final = 2
M: Final = 3
V: Final = 4
S: Final = 5
FIX: Final = 6
PIPE_COUNT: Final = 7

# how the engine treats a row
COMPUTE: Final = 0  # runs for its time on its pipe
TRANSFER: Final = 1  # shares a path to global memory
MMAD: Final = 2  # as COMPUTE, cheaper when the cube is still running
STALL: Final = 3  # executed by the scalar unit itself, which waits for it
BARRIER: Final = 4  # waits until every member of its group has arrived
PREFETCH: Final = 5  # fills the cache without waiting
REMOTE: Final = 7  # moves data to or from another chip for the time its row has
SCALAR_CODE: Final = 6  # a tile instruction without a vector form, done element by element by the scalar unit

# how the time of a row follows from its extents (cycles.py)
FIXED: Final = 0
REPEAT_ELEMENTWISE: Final = 1
REPEAT_ROW_REDUCE: Final = 2
REPEAT_COL_REDUCE: Final = 3
REPEAT_ROW_EXPAND: Final = 4
REPEAT_ROW_EXPAND_OP: Final = 5
REPEAT_GATHER: Final = 6
REPEAT_SORT: Final = 7
REPEAT_BLOCKS: Final = 8
SCALAR_ELEMENTS: Final = 9
REGISTER_ELEMENTWISE: Final = 10
REGISTER_ROW_REDUCE: Final = 11
REGISTER_COL_REDUCE: Final = 12
REGISTER_GATHER: Final = 13
REGISTER_SORT: Final = 14
REGISTER_MASKED: Final = 15
REGISTER_NARROW: Final = 16
CUBE: Final = 20
BYTES: Final = 21  # latency + bytes / rate
ELEMENTS: Final = 22  # latency + elements / rate
DMA: Final = 23
DRAIN: Final = 24  # accumulator to global memory

# columns of a program's cost table, one row per instruction
KIND: Final = 0
RULE: Final = 1
ELEMENTS_PER_REPEAT: Final = 2
STRIDE: Final = 3  # elements between rows of the work tile
WHOLE_ROWS: Final = 4  # 1: flat only when rows are whole repeats
OVERHEAD: Final = 5
SLOPE: Final = 6
TAIL: Final = 7  # cycles until the result is visible, beyond the time on the pipe
RATE: Final = 8  # transfers: bytes of a line that close rows share
EXTRA: Final = 9
ELEMENT_BITS: Final = 10
PATH: Final = 11
ISSUE: Final = 12
ROW: Final = 13
MAX_REPEATS: Final = 14
UNIT_FLAG: Final = 15  # bytes of the accumulator that the cube hands over while it still runs, 0: the whole tile
ODD_ROW: Final = 16  # transfers: cycles per row that does not begin at a 32-byte block, at least
LONE: Final = 17  # column reductions: cycles of a lone row beside its repeats
COST_COLUMNS: Final = 18
# what the same columns say of a vector function of a5, which has no use for the other meaning
PORTS: Final = MAX_REPEATS  # issue ports that take an instruction each, before the first one is free again
MEMORY: Final = RATE  # cycles beside the accesses to UB
LOOP: Final = LONE  # SLOPE in a row of several steps; in a column reduction the wait for the accumulator

# paths to global memory
PATH_GM_UB: Final = 0
PATH_GM_L1: Final = 1
PATH_UB_GM: Final = 2
PATH_L0C_GM: Final = 3
PATH_COUNT: Final = 4

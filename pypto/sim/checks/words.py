"""Word layouts shared by the observer (compiled) and its driver (Python)."""

from __future__ import annotations

from typing import Final

from pypto.sim import tile_queues
from pypto.sim.checks.boxes import BOX_WORDS

QUEUES: Final = 2 * tile_queues.CHANNELS * 2  # of a cluster, by direction, channel and lane

# state of one core, int64[STATE_WORDS]; its address is the WATCH word of the frame
# of the block that runs; START words that are set together when it begins
NODE: Final = 0  # node of the order graph
SEAT: Final = 1  # number of the block on its core, unique in a launch
SEAT_ROW: Final = 2  # row of the seats (conflicts.py) that accesses name
CREW_INDEX: Final = 3  # position among the cores that wait for each other, or -1
CREW_SIZE: Final = 4
FENCES: Final = 5  # fences passed
SNAPSHOT: Final = 6  # row of the crew's snapshots that holds the current clock
LANES: Final = 7  # vector lanes of the task: with two, stores get a checksum
START_WORDS: Final = 8
CLOCK: Final = 8  # address of the core's vector clock, int64[CREW_SIZE]
SHARED_CLOCKS: Final = 9  # address of the clocks of queues, events and barriers (int64[places, CREW_SIZE])
CLUSTER: Final = 10  # number of the block's cluster in its crew
TICK: Final = 11  # not 0: the clock has changed since the last snapshot
CREW: Final = 12  # address of the words of the crew
# of the core and its program
FACTS: Final = 14  # address of int64[instructions, FACT_WORDS]
CODE: Final = 15  # address of the program's code
PROGRAM: Final = 16  # number of the program
ASKED: Final = 17  # bits below
SPACES: Final = 18  # address of int64[16, 2]: the map (shadow.py) of every memory space
POISON: Final = 19  # byte that undefined memory holds
LAUNCH: Final = 20  # address of the launch's words
FRAME: Final = 21  # address of the frame
HANDLERS: Final = 22  # address of int64[rules]: the compiled rule (rules/table.py), or 0
SCRATCH: Final = 23  # address of SCRATCH_BYTES that a rule may use
INSTRUCTION: Final = 24  # of the call that a rule is asked about
INSTRUCTION_PC: Final = 25  # its code offset
RESUME: Final = 26  # not 0: the log was full; what of the instruction is to be looked at next
BEFORE: Final = 27  # address of int64[16]: per memory space what to add to an address to find what was there before
STATE_WORDS: Final = 28
SCRATCH_BYTES: Final = 1 << 16

# words of a crew: cores that wait for each other
CREW_SNAPSHOTS: Final = 0  # address of int64[capacity, CREW_SIZE]: clocks that logged accesses name
CREW_USED: Final = 1
CREW_CAPACITY: Final = 2
CREW_PLACES: Final = 3  # clocks of one cluster
CREW_QUEUES: Final = 4  # [queue]: clock of its first slot in the cluster; that of its frees follows the last slot
CREW_WORDS: Final = CREW_QUEUES + QUEUES

# bits of ASKED
ORDER: Final = 1
UNDEFINED: Final = 2
PRECISION: Final = 4
BOUNDS: Final = 8
WRAP: Final = 16

# words of a launch
ALLOCATIONS: Final = 0  # address of int64[n, ALLOCATION_WORDS]
ORIGINS: Final = 1  # address of int64[ORIGIN_CAPACITY, ORIGIN_WORDS]
ORIGIN_COUNT: Final = 2
EVENTS: Final = 3  # address of int64[EVENT_CAPACITY, ORIGIN_WORDS]: what is a finding at once
EVENT_COUNT: Final = 4
LOG: Final = 5  # address of int64[LOG_CAPACITY, ACCESS_WORDS], the accesses that have not been compared yet
LOG_USED: Final = 6
LOG_CAPACITY: Final = 7
SCALAR_STORES: Final = 8  # 1: a block has stored through the scalar path
LAUNCH_WORDS: Final = 9

# an allocation in global memory
GM_BASE: Final = 0
GM_BYTES: Final = 1
GM_TRACKED: Final = 2  # 1: a task may write it, its accesses are compared
GM_FOLLOWED: Final = 3  # 1: its bytes have codes, in the map (shadow.py) at GM_MAP
GM_MAP: Final = 4
GM_STRIDE: Final = 6  # of a window: bytes from rank to rank; 0: no window
GM_PITCHES: Final = 7  # bytes from index to index of the axes but the last one, from the first of them on; 0: no axis
GM_AXES: Final = 5
ALLOCATION_WORDS: Final = GM_PITCHES + GM_AXES

# codes of the shadow: one byte per byte of memory
DEFINED: Final = 0
UNWRITTEN: Final = 1  # never written
PADDING: Final = 2  # outside the valid region of the tile that was written there
INFINITE: Final = 3  # infinity that came in (input, constant, pad value): a value on purpose
NOT_A_NUMBER: Final = 4  # NaN that came in
FIRST_ORIGIN: Final = 5  # from here on: FIRST_ORIGIN + index into the origins
ORIGIN_CAPACITY: Final = 250
MIXED: Final = 255  # flag of a block whose bytes have several codes

# an origin or event: where a value lost its meaning
(
    OR_KIND,
    OR_PROGRAM,
    OR_INSTRUCTION,
    OR_OPERAND,
    OR_ROW,
    OR_COL,
    OR_ROWS,
    OR_COLS,
    OR_NODE,
    OR_SEAT,
    OR_ALLOCATION,
    OR_LOW,
    OR_HIGH,
    OR_VALUE,
    OR_LIMIT,
    OR_THROUGH,
) = range(16)
OR_BOX: Final = 16
"""Of an origin or event about bytes in memory: first index and end along every axis of GM_PITCHES. OR_COL and OR_COLS
are then the first byte and the end within what the last of these axes counts."""
ORIGIN_WORDS: Final = OR_BOX + 2 * GM_AXES
OR_CODES: Final = OR_VALUE
"""Of an origin that is about a byte of a packed predicate: the codes of its eight elements; 0: all are alike."""
OR_WHOLE: Final = OR_THROUGH
"""Of such an origin: the strongest of these codes."""
EVENT_CAPACITY: Final = 256
# kinds of origin
FROM_UNWRITTEN: Final = 1
FROM_PADDING: Final = 2
OVERFLOWED: Final = 3
BECAME_NAN: Final = 4
FREED_SLOT: Final = 11  # a free gave the slot of the tile back; OR_OPERAND 1: it named a younger tile
# kinds of event only
BRANCHED: Final = 5  # a scalar register took an undefined element
ADDED: Final = 6  # an atomic addition to memory that was never written
INDEX_OUTSIDE: Final = 7
WRAPPED: Final = 8  # OR_VALUE: what an integer result is in wider numbers, OR_LIMIT: what it has become
USED_FREED: Final = 10  # a tile whose slot was freed is used; OR_VALUE: its code, which names a FREED_SLOT
PADDING_COUNTS: Final = 9  # padding decides a reduction, OR_ROWS x OR_COLS elements are data, OR_VALUE: PADDED_IN_…
ADDRESSED: Final = 12  # a scatter to memory took an undefined index, whose code is OR_VALUE

# a row of the access log
ACCESS_KIND: Final = 0  # bits: 1 writes, 2 atomic, 4 through the scalar path
ACCESS_ALLOCATION: Final = 1
ACCESS_INSTRUCTION: Final = 2
ACCESS_SEAT: Final = 3  # row of the seats (conflicts.py): the block that made it
ACCESS_EPOCH: Final = 4
ACCESS_SNAPSHOT: Final = 5
ACCESS_ROOT: Final = 6  # parameter (operand symbol) the access goes through, -1: unknown
ACCESS_SUM: Final = 7  # checksum of the bytes written, to tell equal stores of two lanes
ACCESS_FENCES: Final = 8
ACCESS_BOX: Final = 9
ACCESS_WORDS: Final = ACCESS_BOX + BOX_WORDS
LOG_ROWS: Final = 8192
LOG_RESERVE: Final = 16  # rows one instruction may add without looking at the room there is
SNAPSHOT_RESERVE: Final = 4  # snapshots one instruction may add
WRITES, ATOMIC, BY_SCALAR = 1, 2, 4
NOTIFIES, WAITED = 8, 16  # signals, whose box holds cell, rank or value, amount or threshold, operation

# facts about an instruction, one row per instruction of a program
FACT_RULE: Final = 0
FACT_TARGET: Final = 1
FACT_SOURCES: Final = 2
FACT_SOURCE: Final = 3  # five positions
FACT_TENSOR: Final = 8
FACT_LISTS: Final = 9
FACT_FLAGS: Final = 10
FACT_ROOT: Final = 11
FACT_EXTRA: Final = 12
FACT_SECOND: Final = 13
FACT_WRAPS: Final = 14  # one of WRAPS_IN_…, 0: an integer result cannot wrap
FACT_PADDED: Final = 15  # word of the frame with the tile whose rest the source has filled up, or 0
FACT_PADDED_IN: Final = 16  # one of PADDED_IN_…: how that may count in a reduction
FACT_WORDS: Final = 20
WRAPS_IN_ADDITION, WRAPS_IN_SUBTRACTION, WRAPS_IN_PRODUCT, WRAPS_IN_CAST, WRAPS_IN_SUM = range(1, 6)
PADDED_IN_MAXIMUM, PADDED_IN_MINIMUM, PADDED_IN_SUM, PADDED_IN_PRODUCT = range(1, 5)
# bits of FACT_FLAGS
COMPUTES: Final = 1  # makes new values: what it reads undefined is used, not copied
MAKES_CONSTANTS: Final = 2  # infinities it writes are meant
STORES: Final = 4
ADDS: Final = 8  # atomic
STAYS_IN_RANGE: Final = 16  # makes no infinity or NaN from finite values
MAY_USE_FREED: Final = 64  # the program frees slots of queues, and the instruction takes a tile
TAKES_AND: Final = 128  # a bit of the result is 0 where one source has a 0, whatever the other is
TAKES_OR: Final = 256  # a bit of the result is 1 where one source has a 1
EXPONENTIAL: Final = 32  # of a value beyond the range it is infinite in every format

# rules: which elements of the sources an element of the destination depends on
(
    NOTHING,
    ELEMENTWISE,
    ROW_EXPAND,  # vector[i, 0]
    COL_EXPAND,  # vector[0, j]
    ROW_COMBINE,  # x[i, j] and vector[i, 0]
    COL_COMBINE,  # x[i, j] and vector[0, j]
    FILL,
    FILL_PAD,
    ROW_REDUCE,
    COL_REDUCE,
    MATMUL,
    MOVE,  # FACT_EXTRA: position of the transpose flag
    EXTRACT,  # FACT_EXTRA: position of row
    INSERT,  # FACT_EXTRA: position of row
    TRANSPOSE,
    RESHAPE,
    CONCAT,
    PART,
    WHOLE,  # every element may depend on every valid element of the sources
    LOAD,
    STORE,
    GATHER,
    SCATTER,
    FETCH,  # mgather
    SPREAD,  # mscatter
    LOAD_ROWS,  # tgather_row
    COMPARE,
    GATHER_COLUMNS,  # tgather_mask, FACT_EXTRA: position of the pattern
    GATHER_AXIS,  # FACT_EXTRA: position of the axis
    GATHER_BLOCKS,
    GATHER_MATCHES,  # tgather_compare: a row of the result depends on a row of the source
    SORT,  # runs of a row
    MERGE,  # rows, FACT_EXTRA: position of the columns of a run
    MERGE_LISTS,  # the first rows of the sources, FACT_EXTRA: position of exhausted
    SCATTER_AXIS,  # FACT_EXTRA: position of the axis
    SCATTER_ROWS,
    SCATTER_COLUMNS,  # tscatter_mask, FACT_EXTRA: position of the pattern
    BITWISE,  # FACT_EXTRA: position of the scalar
    SELECT,  # FACT_EXTRA: position of the mask
) = range(39)

"""Words of the runs with one chain held back (held_runs.py), shared by the compiled code and its driver."""

from __future__ import annotations

from typing import Final

from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer

# words of a request
CHAINS: Final = 0
CELLS: Final = 1
DISPATCHES: Final = 2
THREADS: Final = 3  # address of int64[n, THREAD_WORDS]
NEEDS: Final = 4  # address of int64[n, 2]: (chain, threads of it that have ended), or (-1 - dispatch, the same)
STARTS: Final = 5  # address of int64[CELLS]: what cells hold at first
PATTERNS: Final = 6  # address of int64[n, PATTERN_WORDS]
BOXES: Final = 7  # address of int64[n, BOX_WORDS]
STEPS: Final = 8  # address of int64[STEP_CAPACITY, STEP_WORDS]: a ring
STEP_CAPACITY: Final = 9  # a power of two
STEP_COUNT: Final = 10  # steps read so far, and the number of the next one
CHAIN_STATE: Final = 11  # address of int64[CHAINS, CHAIN_WORDS]
PLACES: Final = 12  # address of int32[ROWS, CHAINS, PLACE_WORDS]
RUNS: Final = 13  # address of int64[ROWS, RUN_WORDS]
CELL_STATE: Final = 14  # address of int64[ROWS, CELLS, CELL_WORDS]
ENDED: Final = 15  # address of int32[ROWS, DISPATCHES, 2]: threads that have ended, first chain that waits + 1
TAKEN_BACK: Final = 16  # address of int64[CHAINS, CELLS], what a chain has taken back so far, or 0
SEGMENTS: Final = 17  # address of int64[SEGMENT_CAPACITY, SEGMENT_WORDS]
VECTORS: Final = 18  # address of int32[SEGMENT_CAPACITY, CHAINS]
FREE_SEGMENT: Final = 19  # first of those not in use, -1: none
ACCESSES: Final = 20  # address of int64[n, 2]: pattern, next of its segment
FREE_ACCESS: Final = 21
EVENTS: Final = 22  # address of int64[3, EVENT_COUNT]: pattern, thread, amount
EVENT_COUNT: Final = 23
STEP_BASE: Final = 24  # steps below have been passed by every run
FREE_SEGMENTS: Final = 25  # how many are not in use
FREE_ACCESSES: Final = 26
ROWS: Final = 27  # runs that are gone through together; the last one holds nobody and goes ahead
REQUEST_WORDS: Final = 28

TH_CHAIN, TH_NEXT, TH_DISPATCH, TH_RANK, TH_EVENTS, TH_SEEN, TH_NEED, TH_NEEDS = range(8)
THREAD_WORDS: Final = 8

PT_KIND, PT_CELL, PT_SETS, PT_EQUAL, PT_COLLECTIVE, PT_LOW, PT_HIGH = range(7)
PATTERN_WORDS: Final = 7

ST_KIND, ST_CELL, ST_AMOUNT, ST_SETS, ST_NEXT, ST_LOST, ST_EQUAL, ST_PASSED = range(8)
STEP_WORDS: Final = 8
ENDS: Final = 0  # kind of the last step of a thread

# of a chain: first and last step read, steps read (with the starts of threads), segments to be settled, settled ones,
# and after how many steps it is held
CH_HEAD, CH_TAIL, CH_STEPS, CH_FIRST, CH_LAST, CH_KEPT, CH_STAGE = range(7)
CHAIN_WORDS: Final = 7
EVER: Final = 1 << 62
"""Stage of a chain that has been held after each of its steps."""

# where a chain is in a run
(
    PL_STATUS, PL_INSIDE, PL_STEP, PL_COUNT, PL_THREAD, PL_ENDED, PL_LINK, PL_NEED, PL_WAITERS, PL_STACK,
) = range(10)  # fmt: skip
PLACE_WORDS: Final = 10
READY, WAITS, STARVED, PARKED, COMPLETE = range(5)

RN_READY, RN_STARVED, RN_HELD, RN_FINISHED = range(4)
RUN_WORDS: Final = 4

CE_GAINS, CE_LOSSES, CE_LARGEST, CE_WAITERS = range(4)
CELL_WORDS: Final = 4

SG_STEPS, SG_RANK, SG_ACCESS, SG_NEXT, SG_LOW, SG_HIGH, SG_WRITES = range(7)
SEGMENT_WORDS: Final = 7

# how an advance ends
READ_ON, ALL_ORDERED, SUSPECT = 0, 1, 2


@kernel_code
def place_at(request, run, chain):
    """Address of where a chain is in a run: ``int32[PLACE_WORDS]``."""
    return request[PLACES] + 4 * PLACE_WORDS * (run * request[CHAINS] + chain)


@kernel_code
def step_at(request, number):
    """The words of a step that has not been passed by every run."""
    return as_pointer(request[STEPS] + 8 * STEP_WORDS * (number & (request[STEP_CAPACITY] - 1)))


@kernel_code
def run_at(request, run):
    """The words of a run."""
    return as_pointer(request[RUNS] + 8 * RUN_WORDS * run)


@kernel_code
def cell_at(request, run, cell):
    """The words of a signal cell in a run."""
    return as_pointer(request[CELL_STATE] + 8 * CELL_WORDS * (run * request[CELLS] + cell))


@kernel_code
def thread_at(request, number):
    """The words of a thread."""
    return as_pointer(request[THREADS] + 8 * THREAD_WORDS * number)


@kernel_code
def segment_at(request, number):
    """The words of a segment."""
    return as_pointer(request[SEGMENTS] + 8 * SEGMENT_WORDS * number)


@kernel_code
def chain_at(request, number):
    """The words of a chain, the same in all runs."""
    return as_pointer(request[CHAIN_STATE] + 8 * CHAIN_WORDS * number)


@kernel_code
def pattern_at(request, number):
    """The words of a pattern."""
    return as_pointer(request[PATTERNS] + 8 * PATTERN_WORDS * number)

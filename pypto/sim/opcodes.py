"""Machine code of the interpreter: operation codes, frame header, statuses.

Code is a flat ``int64`` array. An instruction is its operation code followed by its operands; an operand that names a
register, descriptor or array is the offset of its first word in the frame, so every access is one indexed load.
Jump targets are offsets into the code.

A frame is the whole state of one running block::

    header | scratch descriptor | argument block of kernel calls
    | tile descriptors | tensor descriptors | arrays | scalar registers and constants
"""

from __future__ import annotations

from typing import Final

# frame header
PC: Final = 0  # code offset to continue at
FAULT: Final = 1  # fault code when the status is FAULTED
SCALARS: Final = 2  # scalar instructions since the previous trace row
ROWS: Final = 3  # trace rows written so far
RECORD: Final = 4  # 0: no rows, TRACE: trace rows, LIST: run no kernel, write the GM windows as rows
FUEL: Final = 5  # backward jumps left before the machine hands control back
SITE: Final = 6  # instruction index of a fault, or site index of a request
BLOCK: Final = 7  # block index
BLOCKS: Final = 8  # blocks of the task
LANE: Final = 9  # vector lane
DETAIL: Final = 10  # three words: index, extent, axis of a fault
CODE: Final = 13  # code offset of a fault, or of an instruction that TOOK_ZERO
CHANNELS: Final = 14  # address of the cluster's cross-core state, or 0
TOTAL_SCALARS: Final = 15  # scalar instructions executed before the previous trace row
CORE: Final = 16  # 0 AIC, 1 + lane AIV
ARRIVED: Final = 17  # 1 while the core waits at a barrier it has already been counted at
SLOT_NUMBER: Final = 18  # slot of the tile the next tile instruction writes
OBSERVER: Final = 19  # address of a function int64(int64* frame) called after every tile instruction, or 0
WATCH: Final = 20  # address of the observer's state
ENTERS: Final = 21  # 1 while the observer is called before an instruction (barriers only)
SELF: Final = 22  # address of the frame, for the observer
TELLS: Final = 23  # 1: pause after an instruction that TOOK_ZERO (layout.py), with its report words in DETAIL
HEADER: Final = 24
SCRATCH: Final = HEADER  # one tensor descriptor
ARGUMENTS: Final = SCRATCH + 24
ARGUMENT_WORDS: Final = 96
DESCRIPTORS: Final = ARGUMENTS + ARGUMENT_WORDS

# modes of RECORD
TRACE: Final = 1
LIST: Final = 2

# status of a run
DONE: Final = 0
FAULTED: Final = 1
TRACE_FULL: Final = 2  # continue with more room for trace rows
OUT_OF_FUEL: Final = 3  # continue; lets the driver see signals and other blocks
REQUEST: Final = 4  # an orchestration instruction: the driver acts, then continues
NOTIFIED: Final = 6  # a signal cell was changed; DETAIL: rank, instruction; the driver wakes the rank, then continues
BLOCKED: Final = 5  # a cross-core wait; the same instruction is tried again on resumption
PAUSED: Final = 8  # the observer asks to be emptied, or an instruction TOOK_ZERO; continue
UNKNOWN: Final = 7  # the GM accesses of this program cannot be listed without running it

# fault codes beyond the kernels' statuses (layout.py 1 to 5)
BAD_VIEW: Final = 16  # element counts of a reshape differ, or the source is strided
OUTSIDE_ARRAY: Final = 17
NEGATIVE_EXTENT: Final = 18
TILE_VALID: Final = 19  # valid shape larger than the tile
ZERO_STEP: Final = 20
FIFO_SHAPE: Final = 21  # the popped tile has another shape or dtype than the pushed one
FREE_WITHOUT_POP: Final = 22
FIFO_SPLIT: Final = 29  # push and pop divide the tile in different ways
FREE_TWICE: Final = 30
FREE_ELSEWHERE: Final = 31  # the tile was popped from a queue with another id
FREE_SPLIT: Final = 32
NO_PARTNER: Final = 33  # a queue to or from a side that the task does not have
BAD_EVENT: Final = 24
BAD_CODE: Final = 25
NO_WINDOW: Final = 26  # a tensor that is no window has no peers
BAD_WORKSPACE: Final = 28  # a soft barrier whose counter does not start at zero
BAD_PEER: Final = 27  # a rank outside the domain
ODD_NIBBLE: Final = 23  # a view that starts in the middle of a byte of 4-bit elements

# control
RETURN: Final = 0
JUMP: Final = 1  # target
BRANCH_ZERO: Final = 2  # register, target
LOOP_TEST: Final = 3  # index, bound, step, exit target
LOOP_NEXT: Final = 4  # index, step, head target
# length, instruction, address, work tile or 0, GM tensor or 0, n, n argument words; with a GM tensor also: axes of
# its window (-1: not a window), argument positions of the offsets and of the extents, 1 if it is written
CALL: Final = 5
YIELD: Final = 6  # site
SET_VALID: Final = 7  # tile, rows, cols, instruction
SLOT: Final = 8  # tile, base word, pitch, count, register
# moves and memory
MOVE: Final = 10  # destination, source
SELECT: Final = 11  # destination, condition, a, b
LOAD_TENSOR: Final = 12  # destination, tensor, instruction, n, n indices
STORE_TENSOR: Final = 13  # value, tensor, instruction, n, n indices
LOAD_TILE: Final = 14  # destination, tile, instruction, row, col
STORE_TILE: Final = 15  # value, tile, instruction, row, col
ARRAY_GET: Final = 16  # destination, array, length, index, instruction
ARRAY_SET: Final = 17  # value, array, length, index, instruction
# tensor views
VIEW: Final = 20  # destination, source, instruction, rank, offsets, shape, dropped count, dropped axes
RESHAPE: Final = 21  # destination, source, instruction, rank, shape, dtype code or -1
PERMUTE: Final = 22  # destination, source, axis, axis
# integer arithmetic: destination, a, b, shift, kind (wrap), instruction
ADD: Final = 30
SUB: Final = 31
MUL: Final = 32
DIV: Final = 33
FLOORDIV: Final = 34
MOD: Final = 35
SHL: Final = 36
SHR: Final = 37
AND: Final = 38
OR: Final = 39
XOR: Final = 40
MIN: Final = 41
MAX: Final = 42
NEG: Final = 43  # b unused
NOT: Final = 44  # b unused
ABS: Final = 45  # b unused
WRAP: Final = 46  # b unused: copy, cut to the dtype
# comparisons: destination, a, b, unsigned 64
LT: Final = 50
LE: Final = 51
EQ: Final = 52
NE: Final = 53
LAND: Final = 54
LOR: Final = 55
LNOT: Final = 56  # b unused
# floats: destination, a, b, dtype code
FADD: Final = 60
FSUB: Final = 61
FMUL: Final = 62
FDIV: Final = 63
FFLOORDIV: Final = 64
FMOD: Final = 65
FMIN: Final = 66
FMAX: Final = 67
FNEG: Final = 68
FABS: Final = 69
FROUND: Final = 70  # b unused: copy, rounded to the dtype
FLT: Final = 71
FLE: Final = 72
FEQ: Final = 73
FNE: Final = 74
INT_TO_FLOAT: Final = 75  # destination, source, source is unsigned, dtype code
FLOAT_TO_INT: Final = 76  # destination, source, shift, kind
FLAND: Final = 77  # truth of floats: destination, a, b
FLOR: Final = 78
FLNOT: Final = 79
# cross-core (crosscore.py, tile_queues.py): length, instruction, work tile or 0, then
PUSH: Final = 90  # direction, id, split, lane stride
POP: Final = 91  # direction, id, split, lane stride
FREE: Final = 92  # direction, id, stated split or -1, bits below, tile
FREES_BY_NAME: Final = 1  # nothing but pops writes the tile, so it tells which slot is meant
FREES_A_COPY: Final = 2  # the tile stays what it is when the slot is gone
SIGNAL: Final = 93  # event register, mode
WAIT: Final = 94  # event register
BARRIER: Final = 95  # kind
NOTE: Final = 96  # GM tensor or 0: a trace row without any effect
# ranks (distributed.py)
COMM_CONTEXT: Final = 100  # destination, tensor
COMM_WORD: Final = 101  # destination, context register, word
PEER_VIEW: Final = 102  # destination, source, peer register, instruction
NOTIFY: Final = 103  # length, instruction, tensor, peer, value, operation, n, n indices
SIGNAL_WAIT: Final = 104  # length, instruction, tensor, expected, comparison, n, n indices

"""The engine's memory: one block of 64-bit words, seen as integers and as floats.

Compiled code passes a block around for the price of one pointer; hundreds of separate arrays cost minutes of
compilation and microseconds per call. The block starts with a header (constants of the chip, state, places of the
tables); the tables follow, one record per thing. A reference to a thing is the index of its record's first word, -1
for none.
"""

from __future__ import annotations

from typing import Final

from .codes import PIPE_COUNT

# header: constants of the chip, in ps, bytes and counts
(
    FLAG,
    CROSS,
    CUBE_START,
    CUBE_FOLLOW,
    QUEUE_DEPTH,
    LINE_SHIFT,
    L2_LINES,
    CLUSTERS,
    LANES,
    THREADS,
    SUBMIT_COST,
    LOOKUP,
    INSERT,
    EDGE,
    SCALAR_ARGUMENT,
    ALLOC,
    SCOPE_END,
    SCOPE_END_TASK,
    INSTRUCTION,
    POLL,
    IDLE_LOOP,
    COMPLETE_COST,
    COMPLETE_FIRST,
    COMPLETE_CONSUMER,
    DISPATCH_COST,
    STORE,
    DOORBELL,
    SETUP,
    STAGED_SETUP,
    PICKUP,
    VISIBLE,
    DUMMY_COST,
    SYNC_START_COST,
    WINDOW,
    HEAP_BYTES,
    RINGS,
    EVICTION_WEIGHT,
    TOGETHER_VECTOR,
    TOGETHER_CUBE,
    TOGETHER_READER,
    REMOTE_FREE,
    REMOTE_SLOWS,
    L1_READ_SLOWS,
    LONG_ROW,
    LINES_HELD,
) = range(45)

# header: state of the orchestrator and of the run
(
    AT,
    WAITING,
    ENDED,
    HEAP_PENDING,
    LAST_COMPLETE,
    COMPLETED,
    DRAINING,
    DRAINING_AT,
    LOGGED,
    NEXT_EVENT,
    SUBMITTED,
    EVENT_COUNT,
    INSERTIONS,
    DIRTY_COUNT,
    SHARE_END,
    SHARE_CLASS,
    SHARE_CHANGED,
    SHARE_NOW,
    REMOTE_CORES,
    CUBE_SLOWED,
) = range(45, 65)
NOT_WAITING, FOR_RING = -1, -2

# header: places and sizes of the tables
(
    ROWS,
    SUBTASKS,
    TASKS,
    CORES,
    THREAD_TABLE,
    CROSS_LIST,
    DEPS,
    CONSUMERS,
    EVENTS,
    QUEUE,
    READY,
    READY_SIZE,
    FINISHED,
    FINISHED_SIZE,
    RING_TABLE,
    RING_TASKS,
    RING_SIZE,
    SCOPES,
    BARRIERS,
    BATCH,
    DIRTY,
    LOG,
    LOG_SIZE,
    SHARES,
    SHARE_OWNERS,
    TASK_COUNT,
    CORE_COUNT,
    EVENT_ROWS,
    CACHE_TAGS,
) = range(66, 95)
HEADER: Final = 96

WHOLE_SPEED: Final = 1000  # CUBE_SLOWED of cube cores that nobody slows down

# a trace row; what is read most comes first
(
    WHAT,
    NEXT,
    WORK,
    TAIL,
    SCALARS,
    LINK,
    ISSUED,
    START,
    END,
    CAUSE,
    ISSUE_CAUSE,
    FIXED,
    BYTES,
    CONTENDED,
    MISSED,
    SPLIT,
) = range(16)
ROW_DEPS: Final = 16  # rows to wait for, one per pipe at most, -1 after the last
MAX_DEPS: Final = 5  # a core has five pipes beside the one of the row
ROW_WORDS: Final = ROW_DEPS + MAX_DEPS
# WHAT: kind | pipe << PIPE_SHIFT | path << PATH_SHIFT, and flags
PIPE_SHIFT: Final = 8
PATH_SHIFT: Final = 16
AWAITED: Final = 1 << 24  # a row of another core waits for this one
BETWEEN_CORES: Final = 1 << 25  # moves a tile through lines of L2 that have no address
HAS_CROSS: Final = 1 << 26  # LINK: list of rows of other cores to wait for, after their number
AT_BARRIER: Final = 1 << 27  # LINK: barrier
ON_SCALAR: Final = 1 << 28  # executed by the scalar unit, which waits for it
GRANULE_SHIFT: Final = 32  # drain of an accumulator by unit flags: granules of its tile, 0 for none
BYTE: Final = 255
FLAGS: Final = FIXED  # scalar code in place of a vector instruction: what the vector pipe spends on flags
# a transfer that has not begun
BURSTS: Final = LINK
PITCH: Final = CONTENDED
# the same once it has begun
ALLOCATED: Final = SPLIT  # bytes of written lines that L2 did not hold
EVICTED: Final = LINK  # bytes written back to make room for its lines
ADDRESS: Final = MISSED
UNTIL: Final = MISSED  # a row of the scalar unit that waits for another chip: when that is over
BY_START, BY_ISSUE = -1, -2  # causes other than a row

# a subtask
(
    SUB_TASK,
    SUB_IS_CUBE,
    SUB_LANE,
    SUB_FIRST,
    SUB_STOP,
    SUB_CORE,
    SUB_DISPATCH,
    SUB_RECEIVE,
    SUB_START,
    SUB_END,
    SUB_FINISH,
    SUB_LAST,
) = range(12)
SUB_WORDS: Final = 12

# a task
(
    TASK_KIND,
    BLOCKS,
    TASK_FLAGS,
    TENSORS,
    SCALAR_ARGUMENTS,
    LOOKUPS,
    SCOPE,
    FIRST_SUB,
    STOP_SUB,
    MEMBERS,
    DEP_FIRST,
    DEP_STOP,
    CONSUMER_FIRST,
    CONSUMER_STOP,
    FAN_IN,
    EARLY_NEED,
    REFERENCES,
    NEXT_BLOCK,
    LEFT,
    SUBMITTED_AT,
    READY_AT,
    COMPLETE_AT,
    SCOPE_OPEN,
    CONSUMED,
    STAGED,
    TASK_HEAP,
    READY_CAUSE,
) = range(27)
TASK_WORDS: Final = 27

# a core; the arrays per pipe and per port come first
(HEAD, BUSY, FREE, LAST, PUT, TAKEN) = range(0, 6 * PIPE_COUNT, PIPE_COUNT)
_PORTS = 6 * PIPE_COUNT
(MOVING, FLOOR, SECOND, SECOND_BYTES, ALONE, BEGUN) = range(_PORTS, _PORTS + 18, 3)
(
    SCALAR_ROW,
    SCALAR_STOP,
    SCALAR_TIME,
    SCALAR_CAUSE,
    ROWS_LEFT,
    LAST_END,
    RUNNING,
    FREE_AT,
    HANDED,
    HANDED_AT,
    KNOWN,
    USED,
    COLD,
    OWNER,
    IS_CUBE,
    CLUSTER_FIRST,
    CLAIMED,
    REMOTE_PIPES,
    L1_READ,
    L1_READ_BEFORE,
    L1_READ_SINCE,
) = range(_PORTS + 18, _PORTS + 39)
RING: Final = _PORTS + 39  # [pipe, depth] rows by position in the queue of the pipe

# a scheduler thread
(IDLE, ANCHOR, PERIOD, FINISHED_HEAD, FINISHED_TAIL, LOOPS, BUSY_TIME, LOOP_FROM, PROGRESS) = range(9)
THREAD_WORDS: Final = 10

# an event of the queue
EVENT_TIME, EVENT_ORDER, EVENT_KIND, EVENT_WHO = range(4)
EVENT_WORDS: Final = 4

# a ready queue: head, tail, then (task, stamp) pairs
READY_HEAD, READY_TAIL, READY_ITEMS = 0, 1, 2

# a task ring
RING_ACTIVE, RING_BYTES, RING_HEAD, RING_COUNT = range(4)
RING_WORDS: Final = 4

# a barrier
BARRIER_SIZE, BARRIER_ARRIVED, BARRIER_TIME, BARRIER_LATEST = range(4)
BARRIER_WORDS: Final = 4

# one line of the log
LOG_WORDS: Final = 10

# the sharing of memory: per class, then (target, owner) heaps
(
    PATH_RATE,
    POOL_RATE,
    WEIGHT,
    ACTIVE,
    SERVED,
    SERVED_AT,
    RATE,
    CLASS_END,
    POOL_FULL,
    FULL_PATH_RATE,
    FULL_POOL_RATE,
    SPLIT_WEIGHT,
) = range(12)
SHARE_WORDS: Final = 12

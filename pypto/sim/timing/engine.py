"""The event engine: cores with in-order pipes, shared memory, and the task runtime that feeds them.

Time is integer picoseconds. Three kinds of actor make events: transfers (they begin, and end when the memory system
says so), scheduler threads and the orchestrator. Ties are broken by the order of insertion, so a run repeats exactly.
"""

from __future__ import annotations

import numpy as np

from pypto.sim.layout import TRACE_REPORT, TRACE_SCALARS, TRACE_SLOT_SHIFT, TRACE_VALID_COLS, TRACE_VALID_ROWS

from . import cache as l2
from . import codes as c
from . import sharing
from . import words as x
from .compiled import entry, kernel, pointer
from .cycles import cycles
from .events import DISPATCH, FINISH, LOOP, ORCHESTRATE, REMOTE_OVER, REQUEST, pop, push
from .orchestrator import orchestrate
from .pipes import drained, end_remote, end_transfer, kind_of, path_of, port_of, settle, slowed
from .queues import notice_finish
from .schedulers import loop

DONE, STUCK = 0, 1
MEMO_WORDS = 6


@kernel
def _touch(m, cache, row, writes):
    """Bring the lines of a transfer into L2; returns (bytes from HBM, bytes written back)."""
    address, bursts, nbytes, pitch = m[row + x.ADDRESS], m[row + x.BURSTS], m[row + x.BYTES], m[row + x.PITCH]
    cache[l2.MISSED] = 0
    cache[l2.WRITTEN_BACK] = 0
    cache[l2.ALLOCATED] = 0
    shift = m[x.LINE_SHIFT]
    limit = m[x.CACHE_TAGS] << (shift + 6)
    if bursts > 1:
        nbytes //= bursts
    for _ in range(bursts):
        if nbytes > 0 and address >= 0 and address + nbytes <= limit:
            l2.access(cache, address, nbytes, writes, shift, m[x.L2_LINES])
        address += pitch
    return cache[l2.MISSED] << shift, cache[l2.WRITTEN_BACK] << shift


@kernel
def _sources(m, row, bursts, missed, weight):
    """Bytes of a transfer that come from HBM and from L2 when ``missed`` bytes of lines were not there.

    Lines at the ends of rows that do not fill them: one that nobody had asked for counts whole, one that a neighbour
    has just asked for counts by its ``weight`` and where the rest of its row comes from.
    """
    whole, split = m[row + x.BYTES], m[row + x.SPLIT]
    if split == 0:
        return float(missed), float(max(whole - missed, 0))
    inner = max(whole - 2 * (bursts << m[x.LINE_SHIFT]), 1)
    share = min(missed / inner, 1.0)
    from_hbm = share * (whole + split) + (1 - weight) * (missed - share * whole)
    return from_hbm, (1 - share) * (whole + split)


@kernel
def _request(m, f, cache, core, pipe, now):
    """A transfer begins: split it into what comes from HBM and what L2 serves."""
    port = port_of(pipe)
    row = m[core + x.MOVING + port]
    if kind_of(m, row) == c.REMOTE:
        push(m, now + m[row + x.WORK], REMOTE_OVER, core * c.PIPE_COUNT + pipe)
        _count_remote(m, f, core, 1, now)
        return
    path = path_of(m, row)
    writes = path == c.PATH_UB_GM or path == c.PATH_L0C_GM
    missed, evicted = 0, 0
    # their words are needed for something else from here on
    address, bursts = m[row + x.ADDRESS], m[row + x.BURSTS]
    short = m[row + x.BYTES] < m[x.LONG_ROW] * max(bursts, 1)
    if not m[row + x.WHAT] & x.BETWEEN_CORES:
        missed, evicted = _touch(m, cache, row, writes)
        m[row + x.EVICTED] = evicted
    m[row + x.MISSED] = missed
    m[row + x.CONTENDED] = 0
    if writes:
        first = sharing.EVICTION
        second = sharing.VECTOR_WRITE if path == c.PATH_UB_GM else sharing.CUBE_WRITE
    else:
        first = sharing.VECTOR_MISS if path == c.PATH_GM_UB else sharing.CUBE_MISS
        second = sharing.VECTOR_HIT if path == c.PATH_GM_UB else sharing.CUBE_HIT
    classes = m[x.SHARES]
    weight = f[classes + first * x.SHARE_WORDS + x.SPLIT_WEIGHT]
    from_hbm, from_l2 = _sources(m, row, bursts, missed, weight)
    from_hbm += evicted * f[x.EVICTION_WEIGHT]
    m[row + x.ALLOCATED] = cache[l2.ALLOCATED] << m[x.LINE_SHIFT]
    if short and not writes and not m[row + x.WHAT] & x.BETWEEN_CORES:
        delay = _crowd(m, f, cache, row, address, path, second, now)
        from_l2 *= delay
        m[row + x.WORK] = np.int64(m[row + x.WORK] * delay)
    if m[core + x.IS_CUBE]:
        m[row + x.WORK] = slowed(m, m[row + x.WORK])
        if not writes:
            from_l2 *= _beside_l1_reads(m, f, core, now)
    alone = (
        from_hbm / f[classes + first * x.SHARE_WORDS + x.PATH_RATE]
        + from_l2 / f[classes + second * x.SHARE_WORDS + x.PATH_RATE]
    )
    m[core + x.SECOND + port] = second
    f[core + x.SECOND_BYTES + port] = from_l2
    m[core + x.BEGUN + port] = now
    m[core + x.ALONE + port] = max(np.int64(alone), m[row + x.WORK]) + m[row + x.FIXED]
    m[core + x.FLOOR + port] = max(now + m[core + x.ALONE + port], drained(m, row, m[core + x.ALONE + port]))
    if kind_of(m, row) == c.PREFETCH:
        end_transfer(m, core, pipe, now)
    elif from_hbm > 0:
        sharing.begin(m, f, now, first, from_hbm, core * c.PIPE_COUNT + pipe)
    else:
        _second_part(m, f, core, pipe, now)


@kernel
def _count_remote(m, f, core, change, now):
    """A pipe of a core begins or ends to move data between chips: many such vector cores slow the cubes (10)."""
    if m[core + x.IS_CUBE]:
        return
    before = m[core + x.REMOTE_PIPES]
    m[core + x.REMOTE_PIPES] = before + change
    if before > 0 and before + change > 0:
        return
    m[x.REMOTE_CORES] += change
    beyond = max(m[x.REMOTE_CORES] - m[x.REMOTE_FREE], 0)
    slowdown = x.WHOLE_SPEED + m[x.REMOTE_SLOWS] * beyond // max(m[x.CLUSTERS] * m[x.LANES] - m[x.REMOTE_FREE], 1)
    if slowdown != m[x.CUBE_SLOWED]:
        m[x.CUBE_SLOWED] = slowdown
        sharing.slow_cubes(m, f, slowdown / x.WHOLE_SPEED, now)


@kernel
def _beside_l1_reads(m, f, core, now):
    """How much longer a load from L2 takes because L1 is read, judged by the time since the last one (4.1)."""
    read = m[core + x.L1_READ] - m[core + x.L1_READ_BEFORE]
    time = now - m[core + x.L1_READ_SINCE]
    m[core + x.L1_READ_BEFORE] = m[core + x.L1_READ]
    m[core + x.L1_READ_SINCE] = now
    return 1.0 + f[x.L1_READ_SLOWS] * min(read / time, 1.0) if time > 0 else 1.0


@kernel
def _crowd(m, f, cache, row, address, path, second, now):
    """How much longer a read of short rows takes because others read the same lines: 1 when nobody does (3.2).

    That was seen on rows of 128 bytes. Long rows do not wait for one another: in a tuned product four to eight cores
    read each block, at the rate of a core alone where L1 allows it.
    """
    tag = address >> (m[x.LINE_SHIFT] + 6)
    if not 0 <= tag < m[x.CACHE_TAGS]:
        return 1.0
    lasts = m[row + x.BYTES] / f[m[x.SHARES] + second * x.SHARE_WORDS + x.PATH_RATE]
    held = np.int64(f[x.LINES_HELD] * max(m[row + x.WORK], np.int64(lasts)))
    readers = l2.join_readers(cache, tag, address, now, now + held)
    return 1.0 + min((readers - 1) * f[x.TOGETHER_READER], 1.0) * (
        f[x.TOGETHER_VECTOR] if path == c.PATH_GM_UB else f[x.TOGETHER_CUBE]
    )


@kernel
def _second_part(m, f, core, pipe, now):
    port = port_of(pipe)
    nbytes = f[core + x.SECOND_BYTES + port]
    if nbytes > 0:
        f[core + x.SECOND_BYTES + port] = 0.0
        sharing.begin(m, f, now, m[core + x.SECOND + port], nbytes, core * c.PIPE_COUNT + pipe)
    else:
        end_transfer(m, core, pipe, now)


@kernel
def _handle(m, f, cache):
    """The first event of the queue."""
    now = m[m[x.QUEUE]]
    kind, who = pop(m)
    if kind == REQUEST:
        _request(m, f, cache, who // c.PIPE_COUNT, who % c.PIPE_COUNT, now)
    elif kind == FINISH:
        notice_finish(m, who, now)
    elif kind == REMOTE_OVER:
        end_remote(m, who // c.PIPE_COUNT, who % c.PIPE_COUNT, now)
        _count_remote(m, f, who // c.PIPE_COUNT, -1, now)
    elif kind in (LOOP, DISPATCH):
        loop(m, who, now, kind == DISPATCH)
    else:
        orchestrate(m, now)


@entry
def run(m, f, cache, begin):
    """Play the launch laid out in ``m`` (``f``: the same words as floats) from ``begin`` on; returns DONE or STUCK.

    ``cache`` as in ``cache.py``, changed in place.
    """
    return _play(pointer(m), pointer(f), pointer(cache), begin)


@kernel
def _play(m, f, cache, begin):
    for index in range(m[x.THREADS]):
        thread = m[x.THREAD_TABLE] + index * x.THREAD_WORDS
        m[thread + x.IDLE], m[thread + x.ANCHOR], m[thread + x.PERIOD] = 1, begin, m[x.IDLE_LOOP]
    m[x.AT] = begin
    push(m, begin, ORCHESTRATE, 0)
    while True:
        if m[x.SHARE_CHANGED] and not (m[x.EVENT_COUNT] > 0 and m[m[x.QUEUE]] <= m[x.SHARE_NOW]):
            sharing.share_out(m, f)
        transfer_end = m[x.SHARE_END]
        if m[x.EVENT_COUNT] > 0 and m[m[x.QUEUE]] <= transfer_end:
            _handle(m, f, cache)
        elif transfer_end < sharing.NEVER:
            owner = sharing.finish(m, f)
            _second_part(m, f, owner // c.PIPE_COUNT, owner % c.PIPE_COUNT, transfer_end)
        else:
            break
        settle(m)
    if m[x.COMPLETED] == m[x.TASK_COUNT] and m[x.NEXT_EVENT] == m[x.EVENT_ROWS]:
        return DONE
    return STUCK


@kernel
def _moved_bytes(costs, own, trace, row, between_cores):
    """Bytes between the core and memory."""
    if between_cores:
        return trace[row, TRACE_VALID_ROWS] * trace[row, TRACE_VALID_COLS] * costs[own, c.ELEMENT_BITS] / 8
    return float(trace[row, TRACE_REPORT + 1] * trace[row, TRACE_REPORT + 2])


@kernel
def _one_run(costs, own, nbytes, pitch):
    """Are rows without gaps in memory one run of bytes?

    Where close rows share their lines they are, even if rows of the tile begin at blocks of 32 bytes: 128 rows of 254
    bytes take 519 cycles, as many as rows of 256 would (X1). What converts to fractals handles every row by itself.
    """
    return pitch == nbytes and (nbytes & 31 == 0 or costs[own, c.RATE] > 0)


@kernel
def _split_bytes(m, costs, own, trace, row):
    """Bytes of the lines that rows touch beyond their own, when they run across the borders of lines (hardware 3.2).

    Rows within one line are not charged: their neighbours use the rest.
    """
    line = np.int64(1) << m[x.LINE_SHIFT]
    address, bursts = trace[row, TRACE_REPORT], trace[row, TRACE_REPORT + 1]
    nbytes, pitch = trace[row, TRACE_REPORT + 2], trace[row, TRACE_REPORT + 3]
    if _one_run(costs, own, nbytes, pitch):
        nbytes, bursts = nbytes * bursts, 1
    total = 0
    if costs[own, c.EXTRA] > 0 and (address | nbytes | pitch) & (line - 1):
        for _ in range(bursts):
            first, last = address >> m[x.LINE_SHIFT], (address + nbytes - 1) >> m[x.LINE_SHIFT]
            if last > first:
                total += ((last - first + 1) << m[x.LINE_SHIFT]) - nbytes
            address += pitch
    return np.int64(total * costs[own, c.EXTRA])


@entry
def lay_out_rows(memory, memo, pc, pipe, following, deps, links, flags, trace, costs, cycle, instruction, tile_issue):
    """Write the row records: who waits for whom, times and bytes on the chip. ``cycle`` and what follows in ps.

    ``memo`` int64[instructions, MEMO_WORDS], all -1: the last extents of each instruction and their time.
    """
    mask = (1 << TRACE_SLOT_SHIFT) - 1
    m = pointer(memory)
    rows = m[x.ROWS]
    for number in range(pc.shape[0]):
        row = rows + number * x.ROW_WORDS
        own = pc[number]
        m[row + x.WHAT] = np.int64(flags[number]) | np.int64(pipe[number]) << x.PIPE_SHIFT
        if pipe[number] == c.S:
            m[row + x.WHAT] |= x.ON_SCALAR
        m[row + x.NEXT] = _reference(rows, following[number])
        if flags[number] & x.AT_BARRIER:
            m[row + x.LINK] = m[x.BARRIERS] + np.int64(links[number]) * x.BARRIER_WORDS
        else:
            m[row + x.LINK] = m[x.CROSS_LIST] + links[number]
        m[row + x.ISSUED] = m[row + x.START] = m[row + x.END] = m[row + x.ISSUE_CAUSE] = -1
        m[row + x.CAUSE] = x.BY_ISSUE
        m[row + x.WORK] = m[row + x.TAIL] = m[row + x.CONTENDED] = m[row + x.MISSED] = 0
        for k in range(x.MAX_DEPS):
            before = deps[number, k]
            m[row + x.ROW_DEPS + k] = _reference(rows, before)
            if before < 0:
                break
        scalars = trace[number, TRACE_SCALARS] & mask
        m[row + x.SCALARS] = np.int64(scalars * instruction) if scalars else 0
        if own < 0:
            m[row + x.WHAT] |= c.STALL
        else:
            if pipe[number] != c.S:
                m[row + x.SCALARS] += np.int64(tile_issue)
            _price(m, row, number, trace, costs, own, memo, cycle)


@kernel
def _reference(rows, number):
    return rows + np.int64(number) * x.ROW_WORDS if number >= 0 else np.int64(-1)


@kernel
def _price(m, row, number, trace, costs, own, memo, cycle):
    """Times and bytes of a row from the costs of its instruction; ``memo`` holds its last extents and time."""
    known = True
    for k in range(5):
        # extents and the last three report words; an address says nothing about time
        word = trace[number, TRACE_VALID_ROWS + k + (1 if k > 1 else 0)]
        known = known and memo[own, k] == word
        memo[own, k] = word
    if not known:
        time = cycles(
            costs[own],
            trace[number, TRACE_VALID_ROWS],
            trace[number, TRACE_VALID_COLS],
            trace[number, TRACE_REPORT + 1],
            trace[number, TRACE_REPORT + 2],
            trace[number, TRACE_REPORT + 3],
        )
        memo[own, 5] = np.int64(np.rint(time * cycle))
    kind = np.int64(costs[own, c.KIND])
    m[row + x.WHAT] |= kind
    m[row + x.WORK] = memo[own, 5]
    m[row + x.TAIL] = np.int64(costs[own, c.TAIL] * cycle)
    if costs[own, c.UNIT_FLAG] > 0 and not m[row + x.WHAT] & x.HAS_CROSS:
        accumulator = 4 * trace[number, TRACE_VALID_ROWS] * trace[number, TRACE_VALID_COLS]
        granules = np.int64(accumulator / costs[own, c.UNIT_FLAG])
        m[row + x.WHAT] |= (granules if granules > 1 else np.int64(1)) << x.GRANULE_SHIFT
    if kind == c.SCALAR_CODE:
        m[row + x.WHAT] |= x.ON_SCALAR
        m[row + x.FLAGS] = np.int64(np.rint(costs[own, c.OVERHEAD] * cycle))
    elif kind == c.TRANSFER or kind == c.PREFETCH:
        between = m[row + x.WHAT] & (x.AWAITED | x.HAS_CROSS)
        m[row + x.WHAT] |= np.int64(costs[own, c.PATH]) << x.PATH_SHIFT | (x.BETWEEN_CORES if between else 0)
        drains = costs[own, c.RULE] == c.DRAIN
        # one run of bytes is copied as it lies: nothing to convert
        as_is = drains or (trace[number, TRACE_REPORT + 1] == 1 and not between)
        m[row + x.FIXED] = 0 if as_is else np.int64(costs[own, c.OVERHEAD] * cycle)
        if between and not drains:
            # the report words of a hand-over are its queue and its number, not rows
            m[row + x.WORK] = np.int64(costs[own, c.ISSUE] * cycle)
        m[row + x.BYTES] = np.int64(_moved_bytes(costs, own, trace, number, between != 0))
        m[row + x.SPLIT] = 0 if drains or between else _split_bytes(m, costs, own, trace, number)
        if not between:
            _place(m, row, trace, number)
            _delay_odd_rows(m, row, trace[number, TRACE_REPORT + 1], costs, own, cycle)


@kernel
def _delay_odd_rows(m, row, rows, costs, own, cycle):
    """Rows that do not begin at a block of 32 bytes are put together from two (hardware 3.2)."""
    odd = (m[row + x.ADDRESS] | m[row + x.PITCH]) & 31
    if costs[own, c.ODD_ROW] > 0 and odd and (m[row + x.BURSTS] > 1 or (rows > 1 and m[row + x.PITCH] & 31)):
        work = np.int64(rows * costs[own, c.ODD_ROW] * cycle)
        m[row + x.WORK] = max(m[row + x.WORK], work)


@kernel
def _place(m, row, trace, number):
    """Where a transfer goes in memory; rows without gaps are one burst."""
    bursts, nbytes, pitch = (
        trace[number, TRACE_REPORT + 1],
        trace[number, TRACE_REPORT + 2],
        trace[number, TRACE_REPORT + 3],
    )
    m[row + x.ADDRESS], m[row + x.PITCH] = trace[number, TRACE_REPORT], pitch
    m[row + x.BURSTS] = 1 if pitch == nbytes and bursts > 0 else bursts

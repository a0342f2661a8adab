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
from .compiled import entry, kernel
from .cycles import cycles
from .events import FINISH, LOOP, ORCHESTRATE, REQUEST, pop, push
from .pipes import end_transfer, port_of, settle
from .runtime import loop, notice_finish, orchestrate

DONE, STUCK = 0, 1


@kernel
def _touch(m, trace, cache, row, writes):
    """Bring the lines of a transfer into L2; returns (bytes from HBM, bytes written back)."""
    line = m[row + x.TRACE_ROW]
    address, bursts = trace[line, TRACE_REPORT], trace[line, TRACE_REPORT + 1]
    nbytes, pitch = trace[line, TRACE_REPORT + 2], trace[line, TRACE_REPORT + 3]
    cache[l2.MISSED] = 0
    cache[l2.WRITTEN_BACK] = 0
    shift = m[x.LINE_SHIFT]
    limit = m[x.CACHE_TAGS] << (shift + 6)
    if pitch == nbytes:
        nbytes, bursts = nbytes * bursts, 1
    for _ in range(bursts):
        if nbytes > 0 and address >= 0 and address + nbytes <= limit:
            l2.access(cache, address, nbytes, writes, shift, m[x.L2_LINES])
        address += pitch
    return cache[l2.MISSED] << shift, cache[l2.WRITTEN_BACK] << shift


@kernel
def _request(m, f, trace, cache, core, pipe, now):
    """A transfer begins: split it into what comes from HBM and what L2 serves."""
    port = port_of(pipe)
    row = m[core + x.MOVING + port]
    path = m[row + x.PATH]
    writes = path == c.PATH_UB_GM or path == c.PATH_L0C_GM
    missed, evicted = 0, 0
    if m[row + x.TRACE_ROW] >= 0:
        missed, evicted = _touch(m, trace, cache, row, writes)
    m[row + x.MISSED] = missed
    from_hbm = evicted * f[x.EVICTION_WEIGHT] + missed
    if writes:
        first = sharing.EVICTION
        second = sharing.VECTOR_WRITE if path == c.PATH_UB_GM else sharing.CUBE_WRITE
    else:
        first = sharing.VECTOR_MISS if path == c.PATH_GM_UB else sharing.CUBE_MISS
        second = sharing.VECTOR_HIT if path == c.PATH_GM_UB else sharing.CUBE_HIT
    from_l2 = float(max(m[row + x.BYTES] - missed, 0))
    classes = m[x.SHARES]
    alone = (from_hbm / f[classes + first * x.SHARE_WORDS + x.PATH_RATE]
             + from_l2 / f[classes + second * x.SHARE_WORDS + x.PATH_RATE])
    m[core + x.SECOND + port] = second
    f[core + x.SECOND_BYTES + port] = from_l2
    m[core + x.BEGUN + port] = now
    m[core + x.ALONE + port] = max(np.int64(alone), m[row + x.WORK]) + m[row + x.FIXED]
    m[core + x.FLOOR + port] = now + m[row + x.FIXED] + m[row + x.WORK]
    if m[row + x.KIND] == c.PREFETCH:
        end_transfer(m, core, pipe, now)
    elif from_hbm > 0:
        sharing.begin(m, f, now, first, from_hbm, core * c.PIPE_COUNT + pipe)
    else:
        _second_part(m, f, core, pipe, now)


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
def _handle(m, f, trace, cache):
    """The first event of the queue."""
    now = m[m[x.QUEUE]]
    kind, who = pop(m)
    if kind == REQUEST:
        _request(m, f, trace, cache, who // c.PIPE_COUNT, who % c.PIPE_COUNT, now)
    elif kind == FINISH:
        notice_finish(m, who, now)
    elif kind == LOOP:
        loop(m, who, now)
    else:
        orchestrate(m, now)


@entry
def run(m, f, trace, cache, begin):
    """Play the launch laid out in ``m`` (``f``: the same words as floats) from ``begin`` on; returns DONE or STUCK.

    ``trace`` int64[rows, 8] and ``cache`` as in ``cache.py``, changed in place.
    """
    for index in range(m[x.THREADS]):
        thread = m[x.THREAD_TABLE] + index * x.THREAD_WORDS
        m[thread + x.IDLE], m[thread + x.ANCHOR], m[thread + x.PERIOD] = 1, begin, m[x.IDLE_LOOP]
    m[x.AT] = begin
    push(m, begin, ORCHESTRATE, 0)
    while True:
        transfer_end = m[x.SHARE_END]
        if m[x.EVENT_COUNT] > 0 and m[m[x.QUEUE]] <= transfer_end:
            _handle(m, f, trace, cache)
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
def _moved_bytes(p, trace, row, between_cores):
    """Bytes between the core and memory, stretched when rows are not whole blocks of 32 bytes (spec hardware 3.2)."""
    address, bursts = trace[row, TRACE_REPORT], trace[row, TRACE_REPORT + 1]
    nbytes, pitch = trace[row, TRACE_REPORT + 2], trace[row, TRACE_REPORT + 3]
    if between_cores:
        return trace[row, TRACE_VALID_ROWS] * trace[row, TRACE_VALID_COLS] * p[c.ELEMENT_BITS] / 8
    total = float(bursts * nbytes)
    if int(p[c.RULE]) == c.DMA and (address | nbytes | (pitch if bursts > 1 else 0)) & 31:
        total *= p[c.EXTRA]
    return total


@entry
def price_rows(rows, pc, trace, costs, cycle, instruction, tile_issue):
    """Fill the parts of the row records that depend on the chip. Times in ps."""
    mask = (1 << TRACE_SLOT_SHIFT) - 1
    for row in range(pc.shape[0]):
        own = pc[row]
        before = np.int64((trace[row, TRACE_SCALARS] & mask) * instruction)
        if own < 0:
            rows[row, x.KIND] = c.STALL
            rows[row, x.SCALARS] = before
            continue
        p = costs[own]
        kind = np.int64(p[c.KIND])
        time = cycles(p, trace[row, TRACE_VALID_ROWS], trace[row, TRACE_VALID_COLS], trace[row, TRACE_REPORT + 1],
                      trace[row, TRACE_REPORT + 2], trace[row, TRACE_REPORT + 3])
        rows[row, x.KIND] = kind
        rows[row, x.WORK] = np.int64(np.rint(time * cycle))
        rows[row, x.TAIL] = np.int64(np.rint(p[c.TAIL] * cycle))
        rows[row, x.SCALARS] = before + np.int64(np.rint(tile_issue))
        if kind == c.TRANSFER or kind == c.PREFETCH:
            between = rows[row, x.AWAITED] != 0 or rows[row, x.CROSS_FIRST] != rows[row, x.CROSS_STOP]
            rows[row, x.PATH] = np.int64(p[c.PATH])
            rows[row, x.FIXED] = 0 if int(p[c.RULE]) == c.DRAIN else np.int64(np.rint(p[c.OVERHEAD] * cycle))
            rows[row, x.BYTES] = np.int64(_moved_bytes(p, trace, row, between))
            rows[row, x.TRACE_ROW] = -1 if between else row

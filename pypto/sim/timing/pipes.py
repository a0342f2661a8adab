"""One core: the scalar unit that issues, and in-order pipes that wait for operands (spec hardware 8 to 10).

What a core computes between two transfers depends on nobody else, so it is worked out at once, ahead of the clock: a
row gets its end as soon as everything it waits for has one. Only transfers make events.
"""

from __future__ import annotations

from . import codes as c
from . import words as x
from .compiled import kernel
from .events import FINISH, REQUEST, push

UNKNOWN = -1
NEVER = 2**62
MIX_TASK = 2


@kernel
def port_of(pipe):
    """Position of a transfer pipe in the per-port words of a core."""
    return 0 if pipe == c.MTE2 else (1 if pipe == c.MTE3 else 2)


@kernel
def kind_of(m, row):
    """Kind of a queued instruction."""
    return m[row + x.WHAT] & x.BYTE


@kernel
def pipe_of(m, row):
    """Pipe of a queued instruction."""
    return m[row + x.WHAT] >> x.PIPE_SHIFT & x.BYTE


@kernel
def path_of(m, row):
    """Transfer path of a queued instruction."""
    return m[row + x.WHAT] >> x.PATH_SHIFT & x.BYTE


@kernel
def core_words(m):
    """Words of state one core occupies."""
    return x.RING + c.PIPE_COUNT * m[x.QUEUE_DEPTH]


@kernel
def core_at(m, index):
    """Where the state of core ``index`` starts."""
    return m[x.CORES] + index * core_words(m)


@kernel
def look_again(m, core):
    """Something changed for a core: it is advanced before the next event."""
    count = m[x.DIRTY_COUNT]
    dirty = m[x.DIRTY]
    for k in range(count):
        if m[dirty + k] == core:
            return
    m[dirty + count] = core
    m[x.DIRTY_COUNT] = count + 1


@kernel
def _wake_task(m, core, task):
    """Every other core that runs a block of the task may have waited for this one."""
    for index in range(m[x.CORE_COUNT]):
        other = core_at(m, index)
        sub = m[other + x.RUNNING]
        if sub >= 0 and other != core and m[sub + x.SUB_TASK] == task:
            look_again(m, other)


@kernel
def _wake_cluster(m, core):
    """Another core of the cluster may have waited for this one."""
    words = core_words(m)
    for k in range(1 + m[x.LANES]):
        other = m[core + x.CLUSTER_FIRST] + k * words
        if other != core and m[other + x.RUNNING] >= 0:
            look_again(m, other)


@kernel
def _end_row(m, core, row, end):
    m[row + x.END] = end
    m[core + x.ROWS_LEFT] -= 1
    if end > m[core + x.LAST_END]:
        m[core + x.LAST_END] = end
    if m[row + x.WHAT] & x.AWAITED:
        _wake_cluster(m, core)


@kernel
def _operands(m, row):
    """Time the operands of a row are there, and the row that decided it; UNKNOWN when one has no end yet."""
    time, cause = 0, x.BY_ISSUE
    flag = m[x.FLAG]
    for k in range(x.MAX_DEPS):
        before = m[row + x.ROW_DEPS + k]
        if before < 0:
            break
        end = m[before + x.END]
        if end < 0:
            return UNKNOWN, cause
        end += flag
        if end > time:
            time, cause = end, before
    if m[row + x.WHAT] & x.HAS_CROSS:
        link = m[row + x.LINK]
        for k in range(link + 1, link + 1 + m[link]):
            before = m[k]
            end = m[before + x.END]
            if end < 0:
                return UNKNOWN, cause
            end += m[x.CROSS]
            if end > time:
                time, cause = end, before
    return time, cause


@kernel
def _granules(m, row):
    """Granules of an accumulator that is drained while the cube still fills it; 0 for every other row."""
    return m[row + x.WHAT] >> x.GRANULE_SHIFT


@kernel
def _first_granule(m, row):
    """As ``_operands``, for a drain by unit flags: it may begin with the first granule of the last multiply (4.2)."""
    time, cause = 0, x.BY_ISSUE
    for k in range(x.MAX_DEPS):
        before = m[row + x.ROW_DEPS + k]
        if before < 0:
            break
        end = m[before + x.END]
        if end < 0:
            return UNKNOWN, cause
        if kind_of(m, before) == c.MMAD:
            end -= m[before + x.WORK] - m[before + x.WORK] // _granules(m, row)
        end += m[x.FLAG]
        if end > time:
            time, cause = end, before
    return time, cause


@kernel
def drained(m, row, work):
    """Earliest end of a drain that takes ``work`` alone: the last granule comes with the end of the multiply."""
    granules, last = _granules(m, row), 0
    if granules > 0:
        for k in range(x.MAX_DEPS):
            before = m[row + x.ROW_DEPS + k]
            if before < 0:
                break
            if kind_of(m, before) == c.MMAD:
                last = max(last, m[before + x.END] + m[x.FLAG] + work // granules)
    return last


@kernel
def _arrive(m, core, row, time):
    """A barrier of all blocks: the time it opens, UNKNOWN while somebody is missing."""
    barrier = m[row + x.LINK]
    if m[row + x.ISSUED] < 0:
        m[row + x.ISSUED] = time
        m[barrier + x.BARRIER_ARRIVED] += 1
        if time > m[barrier + x.BARRIER_TIME]:
            m[barrier + x.BARRIER_TIME] = time
            m[barrier + x.BARRIER_LATEST] = row
        if m[barrier + x.BARRIER_ARRIVED] == m[barrier + x.BARRIER_SIZE]:
            _wake_task(m, core, m[m[core + x.RUNNING] + x.SUB_TASK])
    if m[barrier + x.BARRIER_ARRIVED] < m[barrier + x.BARRIER_SIZE]:
        return UNKNOWN
    return m[barrier + x.BARRIER_TIME]


@kernel
def _stall(m, core, row, time):
    """A row executed by the scalar unit; False when it must wait."""
    ready, cause = _operands(m, row)
    if ready < 0:
        return False
    if kind_of(m, row) == c.SCALAR_CODE:
        pipe = pipe_of(m, row)
        if m[core + x.HEAD + pipe] >= 0:
            return False
        before = m[core + x.LAST + pipe]
        if before >= 0 and m[before + x.END] + m[x.FLAG] > ready:
            ready, cause = m[before + x.END] + m[x.FLAG], before
    if ready > time:
        time = ready
        m[core + x.SCALAR_CAUSE] = cause
        m[row + x.CAUSE] = cause
    arrived = time
    if kind_of(m, row) == c.BARRIER:
        opened = _arrive(m, core, row, time)
        if opened < 0:
            return False
        time = max(time, opened)
    elif m[row + x.UNTIL] > time:
        time = m[row + x.UNTIL]
    m[row + x.ISSUED] = arrived
    m[row + x.START] = time
    m[row + x.ISSUE_CAUSE] = m[core + x.SCALAR_CAUSE]
    time += m[row + x.WORK]
    m[core + x.SCALAR_TIME] = time
    if kind_of(m, row) == c.SCALAR_CODE:
        m[core + x.FREE + pipe_of(m, row)] = time + m[x.FLAG]
        m[core + x.LAST + pipe_of(m, row)] = row
    m[core + x.SCALAR_CAUSE] = row
    _end_row(m, core, row, time)
    return True


@kernel
def _issue(m, core):
    """Let the scalar unit run ahead; True when it got anywhere."""
    moved = False
    depth = m[x.QUEUE_DEPTH]
    row, stop = m[core + x.SCALAR_ROW], m[core + x.SCALAR_STOP]
    while row < stop:
        pipe = pipe_of(m, row)
        time = m[core + x.SCALAR_TIME] + m[row + x.SCALARS]
        if m[row + x.WHAT] & x.ON_SCALAR:
            if not _stall(m, core, row, time):
                break
        else:
            position = m[core + x.PUT + pipe]
            if position - m[core + x.TAKEN + pipe] >= depth:
                break
            ring = core + x.RING + pipe * depth + position % depth
            if position >= depth:
                earlier = m[ring]
                if m[earlier + x.START] > time:
                    time = m[earlier + x.START]
                    m[core + x.SCALAR_CAUSE] = earlier
            m[ring] = row
            m[core + x.PUT + pipe] = position + 1
            m[core + x.SCALAR_TIME] = time
            m[row + x.ISSUED] = time
            m[row + x.ISSUE_CAUSE] = m[core + x.SCALAR_CAUSE]
            if m[core + x.HEAD + pipe] < 0:
                m[core + x.HEAD + pipe] = row
        row += x.ROW_WORDS
        moved = True
    m[core + x.SCALAR_ROW] = row
    return moved


@kernel
def slowed(m, work):
    """Time of work on a cube core while vector cores move data between chips (10)."""
    return work * m[x.CUBE_SLOWED] // x.WHOLE_SPEED


@kernel
def _begin_row(m, core, pipe, row):
    """Start the row at the head of a pipe; False when it must wait."""
    time, cause = _first_granule(m, row) if _granules(m, row) > 0 else _operands(m, row)
    if time < 0:
        return False
    if m[row + x.ISSUED] >= time:
        time, cause = m[row + x.ISSUED], x.BY_ISSUE
    free = m[core + x.FREE + pipe]
    if free > time:
        time, cause = free, m[core + x.LAST + pipe]
    m[row + x.START] = time
    m[row + x.CAUSE] = cause
    m[core + x.TAKEN + pipe] += 1
    following = m[row + x.NEXT]
    m[core + x.HEAD + pipe] = following if 0 <= following < m[core + x.SCALAR_ROW] else -1
    kind = kind_of(m, row)
    if kind == c.TRANSFER or kind == c.PREFETCH or kind == c.REMOTE:
        m[core + x.BUSY + pipe] = 1
        m[core + x.MOVING + port_of(pipe)] = row
        push(m, time, REQUEST, core * c.PIPE_COUNT + pipe)
        return True
    work = m[row + x.WORK]
    if kind == c.MMAD and work > 0:
        follows = m[core + x.LAST + pipe] >= 0 and time - free <= m[x.FLAG]
        work += m[x.CUBE_FOLLOW] if follows else m[x.CUBE_START]
        m[row + x.WORK] = work
    if m[core + x.IS_CUBE] and m[x.CUBE_SLOWED] > x.WHOLE_SPEED:
        work = m[row + x.WORK] = slowed(m, work)
    if _granules(m, row) > 0:
        work = m[row + x.WORK] = max(work, drained(m, row, work) - time)
    if pipe == c.MTE1:
        m[core + x.L1_READ] += work
    m[core + x.FREE + pipe] = time + work
    m[core + x.LAST + pipe] = row
    _end_row(m, core, row, time + work + m[row + x.TAIL])
    return True


@kernel
def _advance(m, core):
    """Run a core as far as it can be known."""
    if m[core + x.RUNNING] < 0:
        return
    moved = True
    while moved:
        moved = _issue(m, core)
        for pipe in range(c.PIPE_COUNT):
            while m[core + x.HEAD + pipe] >= 0 and m[core + x.BUSY + pipe] == 0:
                if not _begin_row(m, core, pipe, m[core + x.HEAD + pipe]):
                    break
                moved = True
    if m[core + x.ROWS_LEFT] == 0:
        _finish_subtask(m, core)


@kernel
def settle(m):
    """Advance every core that something changed for."""
    while m[x.DIRTY_COUNT] > 0:
        m[x.DIRTY_COUNT] -= 1
        _advance(m, m[m[x.DIRTY] + m[x.DIRTY_COUNT]])


@kernel
def _finish_subtask(m, core):
    sub = m[core + x.RUNNING]
    end = max(m[core + x.LAST_END], m[core + x.SCALAR_TIME])
    m[sub + x.SUB_END] = end
    m[core + x.RUNNING] = -1
    m[core + x.FREE_AT] = end
    push(m, end + m[x.VISIBLE], FINISH, sub)
    begin_subtask(m, core)


@kernel
def begin_subtask(m, core):
    """Start what has been handed to an idle core, if its gate is open."""
    sub = m[core + x.HANDED]
    if sub < 0 or m[core + x.RUNNING] >= 0 or m[core + x.HANDED_AT] == NEVER:
        return
    setup = m[x.SETUP] if m[core + x.USED] else m[core + x.COLD]
    m[core + x.USED] = 1
    staged = m[m[sub + x.SUB_TASK] + x.STAGED]
    handed, free = m[core + x.HANDED_AT], m[core + x.FREE_AT]
    # a gated core has its arguments before the gate opens
    start = max(handed + (m[x.STAGED_SETUP] if staged else 0), m[sub + x.SUB_DISPATCH] + m[x.DOORBELL] + setup)
    start = max(start, free + (m[x.STAGED_SETUP] if staged else m[x.PICKUP]))
    m[core + x.HANDED] = -1
    m[core + x.RUNNING] = sub
    m[sub + x.SUB_RECEIVE] = max(handed, free)
    m[sub + x.SUB_START] = start
    m[core + x.SCALAR_ROW] = m[sub + x.SUB_FIRST]
    m[core + x.SCALAR_STOP] = m[sub + x.SUB_STOP]
    m[core + x.SCALAR_TIME] = start
    m[core + x.SCALAR_CAUSE] = x.BY_START
    m[core + x.ROWS_LEFT] = (m[sub + x.SUB_STOP] - m[sub + x.SUB_FIRST]) // x.ROW_WORDS
    m[core + x.LAST_END] = m[core + x.L1_READ_SINCE] = start
    m[core + x.L1_READ_BEFORE] = m[core + x.L1_READ]
    for pipe in range(c.PIPE_COUNT):
        m[core + x.HEAD + pipe] = -1
        m[core + x.BUSY + pipe] = 0
        m[core + x.FREE + pipe] = start
        m[core + x.LAST + pipe] = -1
        m[core + x.PUT + pipe] = 0
        m[core + x.TAKEN + pipe] = 0
    look_again(m, core)


@kernel
def end_transfer(m, core, pipe, now):
    """A transfer is over: its pipe is free, its result visible after the latency of the path."""
    port = port_of(pipe)
    row = m[core + x.MOVING + port]
    end = max(now, m[core + x.FLOOR + port])
    m[core + x.FREE + pipe] = end
    m[core + x.LAST + pipe] = row
    m[core + x.BUSY + pipe] = 0
    m[row + x.CONTENDED] = max(end - m[core + x.BEGUN + port] - m[core + x.ALONE + port], 0)
    m[row + x.WORK] = end - m[row + x.START]
    _end_row(m, core, row, end + m[row + x.TAIL])
    look_again(m, core)


@kernel
def end_remote(m, core, pipe, now):
    """A transfer to or from another chip is over."""
    row = m[core + x.MOVING + port_of(pipe)]
    m[core + x.FREE + pipe] = now
    m[core + x.LAST + pipe] = row
    m[core + x.BUSY + pipe] = 0
    _end_row(m, core, row, now + m[row + x.TAIL])
    look_again(m, core)

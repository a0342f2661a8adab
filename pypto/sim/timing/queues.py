"""Ready queues, the threads that serve them and the log of their phases (distributed notes 6.5).

An entry of a queue carries the time it became visible. A thread that finds nothing idles; whoever has news for it
schedules a loop that notices.
"""

from __future__ import annotations

from . import words as x
from .compiled import kernel
from .events import LOOP, push
from .pipes import NEVER

AIV_QUEUE, AIC_QUEUE, MIX_QUEUE, DUMMY_QUEUE, EARLY_QUEUE = 0, 1, 2, 3, 4
QUEUES = 5
PS_PER_NS = 1000
LOG_COMPLETE, LOG_DISPATCH, LOG_DUMMY, LOG_EARLY, LOG_DRAIN, LOG_SUBMIT = range(6)


@kernel
def log(m, kind, thread, start, end, task, count):
    """Remember a phase of a thread (-1: the orchestrator) when the caller asked for a log."""
    index = m[x.LOGGED]
    if index < m[x.LOG_SIZE]:
        line = m[x.LOG] + index * x.LOG_WORDS
        m[line], m[line + 1], m[line + 2], m[line + 3] = kind, thread, start, end
        m[line + 4] = m[thread_at(m, thread) + x.LOOPS] if thread >= 0 else 0
        m[line + 5], m[line + 6] = count, task
        for queue in range(DUMMY_QUEUE):
            m[line + 7 + queue] = m[_ready(m, queue) + x.READY_TAIL] - m[_ready(m, queue) + x.READY_HEAD]
    m[x.LOGGED] = index + 1


@kernel
def _ready(m, queue):
    return m[x.READY] + queue * (x.READY_ITEMS + 2 * m[x.READY_SIZE])


@kernel
def enqueue(m, queue, task, stamp):
    """Append ``task`` to a ready queue; it is visible from ``stamp`` (ns) on."""
    ready = _ready(m, queue)
    slot = ready + x.READY_ITEMS + 2 * (m[ready + x.READY_TAIL] % m[x.READY_SIZE])
    m[slot], m[slot + 1] = task, stamp
    m[ready + x.READY_TAIL] += 1


@kernel
def first_stamp(m, queue):
    """When the first entry of a queue became visible; NEVER when it is empty."""
    ready = _ready(m, queue)
    if m[ready + x.READY_HEAD] == m[ready + x.READY_TAIL]:
        return NEVER
    return m[ready + x.READY_ITEMS + 2 * (m[ready + x.READY_HEAD] % m[x.READY_SIZE]) + 1]


@kernel
def first_task(m, queue, now):
    """First task of a queue that is there at ``now``; -1 for none."""
    if first_stamp(m, queue) > now:
        return -1
    ready = _ready(m, queue)
    return m[ready + x.READY_ITEMS + 2 * (m[ready + x.READY_HEAD] % m[x.READY_SIZE])]


@kernel
def drop_front(m, queue):
    """Take the first entry off a ready queue, which must have one."""
    m[_ready(m, queue) + x.READY_HEAD] += 1


@kernel
def thread_at(m, index):
    """Address of the words of scheduler thread ``index``."""
    return m[x.THREAD_TABLE] + index * x.THREAD_WORDS


@kernel
def wake(m, index, time, wait):
    """Schedule the loop of an idle thread that meets what is new at ``time``, on average ``wait`` later.

    Where the thread is in its loop by then nobody can know. A phase worked out from the start of the idling would be
    as arbitrary and make a launch longer or shorter by luck.
    """
    thread = thread_at(m, index)
    if not m[thread + x.IDLE]:
        return
    m[thread + x.IDLE] = 0
    meets = m[thread + x.ANCHOR]
    if time > meets:
        meets = (time + wait + PS_PER_NS - 1) // PS_PER_NS * PS_PER_NS
    push(m, meets, LOOP, index)


@kernel
def wake_all(m, time):
    """A task is ready: the first of ``n`` idle threads gets to its dispatch the ``n + 1``-th part of a loop later.

    That is the mean for threads whose places in their loops have nothing to do with one another.
    """
    idle = 0
    for index in range(m[x.THREADS]):
        idle += m[thread_at(m, index) + x.IDLE]
    place = 0
    for index in range(m[x.THREADS]):
        if m[thread_at(m, index) + x.IDLE]:
            place += 1
            wake(m, index, time, m[thread_at(m, index) + x.PERIOD] * place // (idle + 1))


@kernel
def notice_finish(m, sub, now):
    """The end of a subtask has become visible to the thread that owns its core."""
    index = m[m[sub + x.SUB_CORE] + x.OWNER]
    thread = thread_at(m, index)
    slot = m[x.FINISHED] + index * m[x.FINISHED_SIZE] + m[thread + x.FINISHED_TAIL] % m[x.FINISHED_SIZE]
    m[slot] = sub
    m[thread + x.FINISHED_TAIL] += 1
    wake(m, index, now, m[x.IDLE_LOOP] // 2)

"""The life of a task after its submit: ready, complete, consumed; and its ring (distributed notes 6.2 to 6.4)."""

from __future__ import annotations

from . import words as x
from .compiled import kernel
from .events import ORCHESTRATE, push
from .pipes import begin_subtask
from .queues import DUMMY_QUEUE, EARLY_QUEUE, enqueue, wake_all

IS_EARLY, IS_SYNC, IS_FALSE = 1, 2, 4


@kernel
def _resume_orchestrator(m, time):
    m[x.WAITING] = x.NOT_WAITING
    push(m, max(time, m[x.AT]), ORCHESTRATE, 0)


@kernel
def _mark_ready(m, task, time, cause):
    """Note when a task was ready and why; returns the time."""
    if time < m[task + x.SUBMITTED_AT]:
        time, cause = m[task + x.SUBMITTED_AT], -1  # its producers ended while the orchestrator still submitted it
    m[task + x.READY_AT] = time
    m[task + x.READY_CAUSE] = cause
    return time


@kernel
def _queue(m, task, time):
    enqueue(m, DUMMY_QUEUE if m[task + x.TASK_FLAGS] & IS_FALSE else m[task + x.TASK_KIND], task, time)
    wake_all(m, time)


@kernel
def make_ready(m, task, time, cause):
    """Put a task whose inputs are there at ``time`` (ns) into its queue; ``cause`` is what it waited for last."""
    _queue(m, task, _mark_ready(m, task, time, cause))


@kernel
def ring_of(m, task):
    """Address of the words of the ring that holds a task: that of its scope, the last one for deeper scopes."""
    return m[x.RING_TABLE] + min(m[task + x.SCOPE], m[x.RINGS] - 1) * x.RING_WORDS


@kernel
def ring_entry(m, task, position):
    """Address of the entry at ``position`` of the ring that holds a task."""
    return m[x.RING_TASKS] + min(m[task + x.SCOPE], m[x.RINGS] - 1) * m[x.RING_SIZE] + position


@kernel
def _consume(m, task, time):
    """All references dropped: give slots and heap back, in the order of the ring."""
    m[task + x.CONSUMED] = 1
    ring = ring_of(m, task)
    moved = False
    while m[ring + x.RING_HEAD] < m[ring + x.RING_COUNT]:
        oldest = m[ring_entry(m, task, m[ring + x.RING_HEAD])]
        if not m[oldest + x.CONSUMED]:
            break
        m[ring + x.RING_HEAD] += 1
        m[ring + x.RING_ACTIVE] -= 1
        m[ring + x.RING_BYTES] -= m[oldest + x.TASK_HEAP]
        moved = True
    if moved and m[x.WAITING] == x.FOR_RING:
        _resume_orchestrator(m, time)


@kernel
def drop_reference(m, task, time):
    """One holder of a task less; with the last one, once complete, it is consumed at ``time`` (ns)."""
    m[task + x.REFERENCES] -= 1
    if m[task + x.REFERENCES] == 0 and m[task + x.COMPLETE_AT] >= 0:
        _consume(m, task, time)


@kernel
def all_placed(m, task):
    """Whether every block of a task has a core."""
    return m[task + x.NEXT_BLOCK] == m[task + x.BLOCKS]


@kernel
def all_published(m, task, time):
    """Every block of a producer has had its doorbell: its consumers may be staged behind it (early resolve).

    Nothing is staged behind blocks that are still gated: a chain would fill the cores with tasks whose turn is far off,
    all of them polled.
    """
    if not m[task + x.TASK_FLAGS] & IS_EARLY:
        return
    for k in range(m[task + x.CONSUMER_FIRST], m[task + x.CONSUMER_STOP]):
        consumer = m[k]
        if m[consumer + x.SUBMITTED_AT] >= 0 and m[consumer + x.FAN_IN] > 0:
            m[consumer + x.EARLY_NEED] -= 1
            if m[consumer + x.EARLY_NEED] == 0:
                visible = max(time, m[consumer + x.SUBMITTED_AT])
                enqueue(m, EARLY_QUEUE, consumer, visible)
                wake_all(m, visible)


@kernel
def _release(m, task, time, cause):
    """The last producer of a task is done: open the gate of staged blocks, queue the rest."""
    if not m[task + x.STAGED]:
        make_ready(m, task, time, cause)
        return time
    _mark_ready(m, task, time, cause)
    for sub in range(m[task + x.FIRST_SUB], m[task + x.STOP_SUB], x.SUB_WORDS):
        core = m[sub + x.SUB_CORE]
        if core >= 0:
            time += m[x.STORE]
            # another thread may still be writing the block: a core that has nothing yet sees no gate either
            m[core + x.HANDED_AT] = max(time, m[sub + x.SUB_DISPATCH]) + m[x.DOORBELL]
            begin_subtask(m, core)
    if all_placed(m, task):
        all_published(m, task, time)
    else:
        _queue(m, task, max(time, m[task + x.SUBMITTED_AT]))
    return time


@kernel
def complete(m, task, time):
    """Resolve the consumers of a finished task; returns the time afterwards."""
    live = 0
    for k in range(m[task + x.CONSUMER_FIRST], m[task + x.CONSUMER_STOP]):
        live += 1 if m[m[k] + x.SUBMITTED_AT] >= 0 else 0
    time += m[x.COMPLETE_COST] + (m[x.COMPLETE_FIRST] + (live - 1) * m[x.COMPLETE_CONSUMER] if live else 0)
    m[task + x.COMPLETE_AT] = time
    m[x.COMPLETED] += 1
    m[x.LAST_COMPLETE] = max(m[x.LAST_COMPLETE], time)
    for k in range(m[task + x.CONSUMER_FIRST], m[task + x.CONSUMER_STOP]):
        consumer = m[k]
        if m[consumer + x.SUBMITTED_AT] >= 0:
            m[consumer + x.FAN_IN] -= 1
            if m[consumer + x.FAN_IN] == 0:
                time = _release(m, consumer, time, task)
    for k in range(m[task + x.DEP_FIRST], m[task + x.DEP_STOP]):
        drop_reference(m, m[k], time)
    if m[task + x.REFERENCES] == 0:
        _consume(m, task, time)
    if m[x.WAITING] == task:
        _resume_orchestrator(m, time)
    return time

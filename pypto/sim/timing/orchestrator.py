"""The orchestrator: what submits, scopes and allocations cost, and where it waits (distributed notes 6.1, 6.2)."""

from __future__ import annotations

from . import words as x
from .compiled import kernel
from .events import ORCHESTRATE, push
from .queues import EARLY_QUEUE, LOG_SUBMIT, enqueue, log, wake_all
from .tasks import IS_EARLY, all_placed, drop_reference, make_ready, ring_entry, ring_of

SUBMIT, ALLOC, SCOPE_BEGIN, SCOPE_END, READ_WAIT = 0, 1, 2, 3, 4
DEEPEST_SCOPE = 63
"""Scopes are 64 deep at most (distributed notes 6.2)."""


@kernel
def _submit(m, task, time):
    """Price and effect of one submit; returns the time afterwards."""
    edges = m[task + x.DEP_STOP] - m[task + x.DEP_FIRST]
    lookups = m[task + x.LOOKUPS]
    inserts = max(m[task + x.TENSORS] - lookups, 0)
    time += (
        m[x.SUBMIT_COST]
        + lookups * m[x.LOOKUP]
        + inserts * m[x.INSERT]
        + edges * m[x.EDGE]
        + m[task + x.SCALAR_ARGUMENTS] * m[x.SCALAR_ARGUMENT]
    )
    ring = ring_of(m, task)
    m[ring_entry(m, task, m[ring + x.RING_COUNT])] = task
    m[ring + x.RING_COUNT] += 1
    m[ring + x.RING_ACTIVE] += 1
    m[task + x.TASK_HEAP] = m[x.HEAP_PENDING]
    m[x.HEAP_PENDING] = 0
    m[task + x.SUBMITTED_AT] = time
    m[task + x.REFERENCES] += 1
    m[task + x.SCOPE_OPEN] = 1
    after, cause = time, -1
    for k in range(m[task + x.DEP_FIRST], m[task + x.DEP_STOP]):
        producer = m[k]
        done = m[producer + x.COMPLETE_AT]
        if done < 0:
            m[producer + x.REFERENCES] += 1
            m[task + x.FAN_IN] += 1
            early = m[producer + x.TASK_FLAGS] & IS_EARLY and m[producer + x.FAN_IN] == 0 and all_placed(m, producer)
            m[task + x.EARLY_NEED] += 0 if early else 1
        else:
            m[producer + x.REFERENCES] += 1
            if done > after:
                after, cause = done, producer
    if m[task + x.FAN_IN] == 0:
        make_ready(m, task, after, cause)
    elif m[task + x.EARLY_NEED] == 0:
        enqueue(m, EARLY_QUEUE, task, time)
        wake_all(m, time)
    return time


@kernel
def _close_scope(m, depth, time):
    """Drop the scope's reference on each task created in it; returns the time afterwards."""
    time += m[x.SCOPE_END]
    first = m[x.TASKS] + m[m[x.SCOPES] + min(depth, DEEPEST_SCOPE)] * x.TASK_WORDS
    for task in range(first, m[x.TASKS] + m[x.SUBMITTED] * x.TASK_WORDS, x.TASK_WORDS):
        if m[task + x.SCOPE_OPEN] and m[task + x.SCOPE] >= depth:
            m[task + x.SCOPE_OPEN] = 0
            time += m[x.SCOPE_END_TASK]
            drop_reference(m, task, time)
    return time


@kernel
def _ring_full(m, task):
    """Back-pressure: no slot, or no heap for what was allocated since the last submit (distributed notes 6.2)."""
    ring = ring_of(m, task)
    if m[ring + x.RING_ACTIVE] >= m[x.WINDOW] - 1:
        return True
    return m[ring + x.RING_ACTIVE] > 0 and m[ring + x.RING_BYTES] > m[x.HEAP_BYTES]


@kernel
def _effect(m, kind, a, b, time):
    """An event other than a submit or a wait; returns the time afterwards."""
    if kind == ALLOC:
        ring = m[x.RING_TABLE] + min(b, m[x.RINGS] - 1) * x.RING_WORDS
        m[ring + x.RING_BYTES] += a
        m[x.HEAP_PENDING] += a
        return time + m[x.ALLOC]
    if kind == SCOPE_BEGIN:
        m[m[x.SCOPES] + min(a, DEEPEST_SCOPE)] = m[x.SUBMITTED]
        return time
    if kind == SCOPE_END:
        return _close_scope(m, a, time)
    return time + a * m[x.INSTRUCTION]


@kernel
def orchestrate(m, now):
    """Run the orchestrator up to its next submit or wait."""
    time = max(now, m[x.AT])
    stop = m[x.EVENT_ROWS]
    while m[x.NEXT_EVENT] < stop:
        event = m[x.EVENTS] + 4 * m[x.NEXT_EVENT]
        kind, a = m[event], m[event + 1]
        if kind == SUBMIT:
            task = m[x.TASKS] + a * x.TASK_WORDS
            if _ring_full(m, task):
                m[x.WAITING] = x.FOR_RING
                break
            began = time
            time = _submit(m, task, time)
            m[x.SUBMITTED] = a + 1
            m[x.NEXT_EVENT] += 1
            log(m, LOG_SUBMIT, -1, began, time, task, 1)
            push(m, time, ORCHESTRATE, 0)
            break
        m[x.NEXT_EVENT] += 1
        if kind == READ_WAIT:
            task = m[x.TASKS] + a * x.TASK_WORDS
            if a >= 0 and m[task + x.COMPLETE_AT] < 0:
                m[x.WAITING] = task
                break
            if a >= 0:
                time = max(time, m[task + x.COMPLETE_AT])
        else:
            time = _effect(m, kind, a, m[event + 2], time)
    m[x.AT] = time
    if m[x.NEXT_EVENT] == stop and m[x.WAITING] == x.NOT_WAITING and m[x.ENDED] < 0:
        m[x.ENDED] = time

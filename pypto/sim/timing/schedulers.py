"""A scheduler thread: the phases of its loop (distributed notes 6.5).

A thread makes an event per loop in which something happens, two when it resolves something before it dispatches; its
idle loops are skipped.
"""

from __future__ import annotations

from . import words as x
from .compiled import kernel
from .events import DISPATCH, LOOP, push
from .pipes import NEVER, core_at
from .placement import claim_all, idle_places, peer_is_idle, publish
from .queues import (
    AIC_QUEUE,
    AIV_QUEUE,
    DUMMY_QUEUE,
    EARLY_QUEUE,
    LOG_COMPLETE,
    LOG_DISPATCH,
    LOG_DRAIN,
    LOG_DUMMY,
    LOG_EARLY,
    MIX_QUEUE,
    QUEUES,
    drop_front,
    enqueue,
    first_stamp,
    first_task,
    log,
    thread_at,
    wake,
    wake_all,
)
from .tasks import IS_FALSE, IS_SYNC, all_placed, complete

DUMMY_BATCH = 8
"""Dependency-only tasks that a loop retires at most (distributed notes 6.5, phase 4)."""


@kernel
def _collect(m, index, time):
    """Phase 1: ends that have become visible. Returns the time afterwards."""
    thread = thread_at(m, index)
    first = m[x.FINISHED] + index * m[x.FINISHED_SIZE]
    while m[thread + x.FINISHED_HEAD] < m[thread + x.FINISHED_TAIL]:
        sub = m[first + m[thread + x.FINISHED_HEAD] % m[x.FINISHED_SIZE]]
        m[thread + x.FINISHED_HEAD] += 1
        m[sub + x.SUB_FINISH] = time
        m[m[sub + x.SUB_CORE] + x.KNOWN] -= 1
        task = m[sub + x.SUB_TASK]
        m[task + x.LEFT] -= 1
        time += m[x.STORE]
        if m[task + x.LEFT] == 0:
            time = complete(m, task, time)
    return time


@kernel
def _retire_dummies(m, time):
    """Phase 4: tasks without work, eight at a time. Returns (time, tasks)."""
    count = 0
    while count < DUMMY_BATCH:
        task = first_task(m, DUMMY_QUEUE, time)
        if task < 0:
            break
        drop_front(m, DUMMY_QUEUE)
        time = complete(m, task, time + m[x.DUMMY_COST] - m[x.COMPLETE_COST])
        count += 1
    return time, count


@kernel
def _dispatch_queue(m, thread, queue, room, time, taken):
    """Claim blocks of the tasks of one queue while there is room; returns (time, number of pairs)."""
    while True:
        task = first_task(m, queue, time)
        if task < 0:
            return time, taken
        if m[task + x.TASK_FLAGS] & IS_SYNC and m[task + x.BLOCKS] > 1:
            drop_front(m, queue)
            m[x.DRAINING], m[x.DRAINING_AT] = task, time
            wake_all(m, time)
            return time, taken
        before, began = taken, time
        time, taken = claim_all(m, thread, task, room, time, taken)
        if all_placed(m, task):
            drop_front(m, queue)
            continue
        if taken > before:
            # the rest goes back as soon as the range is claimed: the other threads place theirs meanwhile
            drop_front(m, queue)
            enqueue(m, queue, task, began + m[x.DISPATCH_COST])
            wake_all(m, began + m[x.DISPATCH_COST])
        return time, taken


@kernel
def _dispatch(m, index, time):
    """Phase 5: idle cores first, then the second slot of busy ones. Returns (time, number of pairs)."""
    taken = 0
    for room in range(2):
        for k in range(3):
            # threads alternate which kind of core they feed first, after the mixed tasks
            queue = MIX_QUEUE if k == 0 else (AIC_QUEUE if (k + index) % 2 else AIV_QUEUE)
            if m[x.DRAINING] >= 0 or first_task(m, queue, time) < 0 or (room == 1 and peer_is_idle(m, index, queue)):
                continue
            time, taken = _dispatch_queue(m, index, queue, room, time, taken)
    if taken:
        time = publish(m, taken, time, False)
    return time, taken


@kernel
def _drain(m, thread, time):
    """Phase 3: start all blocks of a task together once enough cores are idle anywhere. Returns (time, done)."""
    task = m[x.DRAINING]
    if idle_places(m, task) < m[task + x.BLOCKS]:
        return time, False
    start = time
    time, taken = claim_all(m, -1, task, 0, time, 0)
    time = publish(m, taken, start + m[x.SYNC_START_COST], False)
    m[x.DRAINING] = -1
    log(m, LOG_DRAIN, thread, start, time, task, taken)
    wake_all(m, time)
    return time, True


@kernel
def _stage(m, index, time):
    """Phase 6: with nothing ready, put gated blocks behind producers that are already on the cores."""
    for queue in range(DUMMY_QUEUE):
        if first_stamp(m, queue) != NEVER:
            return time, 0
    task = first_task(m, EARLY_QUEUE, time)
    while task >= 0 and (
        m[task + x.FAN_IN] == 0 or m[task + x.TASK_FLAGS] & (IS_SYNC | IS_FALSE) or m[task + x.TASK_KIND] == DUMMY_QUEUE
    ):
        drop_front(m, EARLY_QUEUE)
        task = first_task(m, EARLY_QUEUE, time)
    if task < 0:
        return time, 0
    taken = 0
    for room in range(2):
        time, taken = claim_all(m, index, task, room, time, taken)
    if all_placed(m, task):
        drop_front(m, EARLY_QUEUE)
    if taken:
        m[task + x.STAGED] = 1
        time = publish(m, taken, time, True)
    return time, taken


@kernel
def _running(m, thread):
    count = 0
    for index in range(m[x.CORE_COUNT]):
        core = core_at(m, index)
        count += 1 if m[core + x.KNOWN] > 0 and m[core + x.OWNER] == thread else 0
    return count


@kernel
def _idle(m, index, time):
    """Nothing to do: sleep until somebody wakes the thread, or a task whose stamp lies ahead becomes visible."""
    thread = thread_at(m, index)
    m[thread + x.IDLE] = 1
    m[thread + x.ANCHOR] = time
    m[thread + x.PERIOD] = m[x.IDLE_LOOP] + _running(m, index) * m[x.POLL]
    ahead = NEVER
    for queue in range(QUEUES):
        stamp = first_stamp(m, queue)
        if time < stamp < ahead:
            ahead = stamp
    if m[x.DRAINING] >= 0 and time < m[x.DRAINING_AT] < ahead:
        ahead = m[x.DRAINING_AT]
    if ahead != NEVER:
        wake(m, index, ahead, m[thread + x.PERIOD] // 2)


@kernel
def _first_phases(m, index, now):
    """Phases 1 to 4 of a loop that starts at ``now``; returns the time afterwards."""
    thread = thread_at(m, index)
    m[thread + x.LOOPS] += 1
    seen = m[thread + x.FINISHED_TAIL] - m[thread + x.FINISHED_HEAD]
    # A sweep over the registers counts where it finds something: half of it before, half after. One in vain would only
    # add a phase (see wake).
    half_sweep = _running(m, index) * m[x.POLL] // 2 if seen else 0
    began = now + m[x.IDLE_LOOP] + half_sweep
    time = _collect(m, index, began) + half_sweep
    if seen:
        log(m, LOG_COMPLETE, index, began, time, -1, seen)
    drained = False
    if m[x.DRAINING] >= 0 and m[x.DRAINING_AT] <= time:
        time, drained = _drain(m, index, time)
    began = time
    time, dummies = _retire_dummies(m, time)
    if dummies:
        log(m, LOG_DUMMY, index, began, time, -1, dummies)
    m[thread + x.LOOP_FROM] = now
    m[thread + x.PROGRESS] = 1 if seen or dummies or drained else 0
    return time


@kernel
def _last_phases(m, index, time):
    """Phases 5 and 6 from ``time`` on; then the next loop, or idling."""
    thread = thread_at(m, index)
    began, draining = time, m[x.DRAINING]
    time, dispatched = _dispatch(m, index, time)
    if dispatched:
        log(m, LOG_DISPATCH, index, began, time, -1, dispatched)
    began = time
    time, staged = _stage(m, index, time)
    if staged:
        log(m, LOG_EARLY, index, began, time, -1, staged)
    if m[thread + x.PROGRESS] or dispatched or staged or m[x.DRAINING] != draining:
        m[thread + x.BUSY_TIME] += time - m[thread + x.LOOP_FROM]
        push(m, time, LOOP, index)
    else:
        _idle(m, index, time)


@kernel
def loop(m, index, now, resolved):
    """A loop of a scheduler thread from ``now`` on, then the next one, or idling.

    ``resolved``: its first phases are over already. The last phases stand here once, because every place they are
    called from is compiled by itself.
    """
    time = now
    if not resolved:
        time = _first_phases(m, index, now)
        if m[thread_at(m, index) + x.PROGRESS]:
            # what it resolves takes a while: until then the queues belong to the other threads
            push(m, time, DISPATCH, index)
            return
    _last_phases(m, index, time)

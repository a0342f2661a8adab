"""The task runtime on the AICPU: orchestrator, rings, ready queues and scheduler threads (distributed notes 6).

A scheduler thread makes one event per loop in which something happens. Its idle loops are skipped: whoever has news
for an idle thread schedules a loop that notices. An entry of a queue carries the time it became
visible.
"""

from __future__ import annotations

from . import words as x
from .compiled import kernel
from .events import LOOP, ORCHESTRATE, push
from .pipes import NEVER, begin_subtask, core_at, core_words

AIV_QUEUE, AIC_QUEUE, MIX_QUEUE, DUMMY_QUEUE, EARLY_QUEUE = 0, 1, 2, 3, 4
QUEUES = 5
IS_EARLY, IS_SYNC, IS_FALSE = 1, 2, 4
SUBMIT, ALLOC, SCOPE_BEGIN, SCOPE_END, READ_WAIT = 0, 1, 2, 3, 4
DEEPEST_SCOPE = 63
DUMMY_BATCH = 8
PS_PER_NS = 1000
LOG_COMPLETE, LOG_DISPATCH, LOG_DUMMY, LOG_EARLY, LOG_DRAIN, LOG_SUBMIT = range(6)


@kernel
def _log(m, kind, thread, start, end, task, count):
    """Remember a phase of a thread (-1: the orchestrator) when the caller asked for a log."""
    index = m[x.LOGGED]
    if index < m[x.LOG_SIZE]:
        line = m[x.LOG] + index * x.LOG_WORDS
        m[line], m[line + 1], m[line + 2], m[line + 3] = kind, thread, start, end
        m[line + 4] = m[_thread(m, thread) + x.LOOPS] if thread >= 0 else 0
        m[line + 5], m[line + 6] = count, task
        for queue in range(DUMMY_QUEUE):
            m[line + 7 + queue] = m[_ready(m, queue) + x.READY_TAIL] - m[_ready(m, queue) + x.READY_HEAD]
    m[x.LOGGED] = index + 1


# queues and threads


@kernel
def _ready(m, queue):
    return m[x.READY] + queue * (x.READY_ITEMS + 2 * m[x.READY_SIZE])


@kernel
def _enqueue(m, queue, task, stamp):
    ready = _ready(m, queue)
    slot = ready + x.READY_ITEMS + 2 * (m[ready + x.READY_TAIL] % m[x.READY_SIZE])
    m[slot], m[slot + 1] = task, stamp
    m[ready + x.READY_TAIL] += 1


@kernel
def _stamp(m, queue):
    """When the first entry of a queue became visible; NEVER when it is empty."""
    ready = _ready(m, queue)
    if m[ready + x.READY_HEAD] == m[ready + x.READY_TAIL]:
        return NEVER
    return m[ready + x.READY_ITEMS + 2 * (m[ready + x.READY_HEAD] % m[x.READY_SIZE]) + 1]


@kernel
def _front(m, queue, now):
    """First task of a queue that is there at ``now``; -1 for none."""
    if _stamp(m, queue) > now:
        return -1
    ready = _ready(m, queue)
    return m[ready + x.READY_ITEMS + 2 * (m[ready + x.READY_HEAD] % m[x.READY_SIZE])]


@kernel
def _drop_front(m, queue):
    m[_ready(m, queue) + x.READY_HEAD] += 1


@kernel
def _thread(m, index):
    return m[x.THREAD_TABLE] + index * x.THREAD_WORDS


@kernel
def wake(m, index, time, wait):
    """Schedule the loop of an idle thread that meets what is new at ``time``, on average ``wait`` later.

    Where the thread is in its loop by then nobody can know. A phase worked out from the start of the idling would be
    as arbitrary and make a launch longer or shorter by luck.
    """
    thread = _thread(m, index)
    if not m[thread + x.IDLE]:
        return
    m[thread + x.IDLE] = 0
    meets = m[thread + x.ANCHOR]
    if time > meets:
        meets = (time + wait + PS_PER_NS - 1) // PS_PER_NS * PS_PER_NS
    push(m, meets, LOOP, index)


@kernel
def _wake_all(m, time):
    """A task is ready: the dispatch of a loop comes half a loop later on average."""
    for index in range(m[x.THREADS]):
        wake(m, index, time, m[_thread(m, index) + x.PERIOD] // 2)


@kernel
def notice_finish(m, sub, now):
    """The end of a subtask has become visible to the thread that owns its core."""
    index = m[m[sub + x.SUB_CORE] + x.OWNER]
    thread = _thread(m, index)
    slot = m[x.FINISHED] + index * m[x.FINISHED_SIZE] + m[thread + x.FINISHED_TAIL] % m[x.FINISHED_SIZE]
    m[slot] = sub
    m[thread + x.FINISHED_TAIL] += 1
    wake(m, index, now, m[x.IDLE_LOOP] // 2)


# life of a task


@kernel
def _make_ready(m, task, time, cause):
    if time < m[task + x.SUBMITTED_AT]:
        time, cause = m[task + x.SUBMITTED_AT], -1  # its producers ended while the orchestrator still submitted it
    m[task + x.READY_AT] = time
    m[task + x.READY_CAUSE] = cause
    _enqueue(m, DUMMY_QUEUE if m[task + x.TASK_FLAGS] & IS_FALSE else m[task + x.TASK_KIND], task, time)
    _wake_all(m, time)


@kernel
def _resume_orchestrator(m, time):
    m[x.WAITING] = x.NOT_WAITING
    push(m, max(time, m[x.AT]), ORCHESTRATE, 0)


@kernel
def _ring(m, task):
    return m[x.RING_TABLE] + min(m[task + x.SCOPE], m[x.RINGS] - 1) * x.RING_WORDS


@kernel
def _ring_entry(m, task, position):
    return m[x.RING_TASKS] + min(m[task + x.SCOPE], m[x.RINGS] - 1) * m[x.RING_SIZE] + position


@kernel
def _consume(m, task, time):
    """All references dropped: give slots and heap back, in the order of the ring."""
    m[task + x.CONSUMED] = 1
    ring = _ring(m, task)
    moved = False
    while m[ring + x.RING_HEAD] < m[ring + x.RING_COUNT]:
        oldest = m[_ring_entry(m, task, m[ring + x.RING_HEAD])]
        if not m[oldest + x.CONSUMED]:
            break
        m[ring + x.RING_HEAD] += 1
        m[ring + x.RING_ACTIVE] -= 1
        m[ring + x.RING_BYTES] -= m[oldest + x.TASK_HEAP]
        moved = True
    if moved and m[x.WAITING] == x.FOR_RING:
        _resume_orchestrator(m, time)


@kernel
def _drop_reference(m, task, time):
    m[task + x.REFERENCES] -= 1
    if m[task + x.REFERENCES] == 0 and m[task + x.COMPLETE_AT] >= 0:
        _consume(m, task, time)


@kernel
def _complete(m, task, time):
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
        _drop_reference(m, m[k], time)
    if m[task + x.REFERENCES] == 0:
        _consume(m, task, time)
    if m[x.WAITING] == task:
        _resume_orchestrator(m, time)
    return time


@kernel
def _release(m, task, time, cause):
    """The last producer of a task is done: open the gate of staged blocks, queue the rest."""
    if not m[task + x.STAGED]:
        _make_ready(m, task, time, cause)
        return time
    m[task + x.READY_AT] = time
    m[task + x.READY_CAUSE] = cause
    for sub in range(m[task + x.FIRST_SUB], m[task + x.STOP_SUB], x.SUB_WORDS):
        core = m[sub + x.SUB_CORE]
        if core >= 0:
            time += m[x.STORE]
            m[core + x.HANDED_AT] = time + m[x.DOORBELL]
            begin_subtask(m, core)
    if _placed(m, task):
        _published(m, task, time)
    else:
        _make_ready(m, task, time, cause)
    return time


@kernel
def _placed(m, task):
    return m[task + x.NEXT_BLOCK] == m[task + x.BLOCKS]


@kernel
def _published(m, task, time):
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
                _enqueue(m, EARLY_QUEUE, consumer, visible)
                _wake_all(m, visible)


# placement


@kernel
def _owned(m, core, thread):
    return thread < 0 or m[core + x.OWNER] == thread


@kernel
def _has_room(m, core, room):
    """Exactly ``room`` subtasks are on the core, and the second slot is free if that is to be used."""
    return m[core + x.KNOWN] == room and (room == 0 or (m[core + x.HANDED] < 0 and not m[core + x.CLAIMED]))


@kernel
def _find_core(m, thread, cube, room, start):
    """Index of a core of the thread (-1: of any) with ``room`` subtasks on it, from ``start`` on; -1 for none."""
    for index in range(start, m[x.CORE_COUNT]):
        core = core_at(m, index)
        if m[core + x.IS_CUBE] == cube and _owned(m, core, thread) and _has_room(m, core, room):
            return index
    return -1


@kernel
def _find_cluster(m, thread, room, start):
    """Index of the first core of a cluster whose cores all have at most ``room`` subtasks; -1 for none."""
    members = 1 + m[x.LANES]
    for first in range(start, m[x.CORE_COUNT], members):
        fits = _owned(m, core_at(m, first), thread)
        for k in range(members):
            core = core_at(m, first + k)
            if m[core + x.KNOWN] > 0 and not (room == 1 and _has_room(m, core, 1)):
                fits = False
        if fits:
            return first
    return -1


@kernel
def _claim(m, thread, task, room, taken):
    """Find a place for the next block of a task and append (core, subtask) pairs to the batch; returns their number."""
    members = m[task + x.MEMBERS]
    sub = m[task + x.FIRST_SUB] + m[task + x.NEXT_BLOCK] * members * x.SUB_WORDS
    mixed = m[task + x.TASK_KIND] == MIX_QUEUE
    if mixed:
        place = _find_cluster(m, thread, room, 0)
    else:
        place = _find_core(m, thread, 1 if m[task + x.TASK_KIND] == AIC_QUEUE else 0, room, 0)
    if place < 0:
        return taken
    for k in range(members):
        member = sub + k * x.SUB_WORDS
        index = place
        if mixed and not m[member + x.SUB_IS_CUBE]:
            index += 1 + min(m[member + x.SUB_LANE], m[x.LANES] - 1)
        core = core_at(m, index)
        entry = m[x.BATCH] + 2 * taken
        m[entry], m[entry + 1] = core, member
        m[core + x.KNOWN] += 1
        m[core + x.CLAIMED] = 1
        taken += 1
    m[task + x.NEXT_BLOCK] += 1
    return taken


@kernel
def _claim_all(m, thread, task, room, time, taken):
    """Claim blocks while there is room; returns (time, number of pairs)."""
    while not _placed(m, task):
        now = _claim(m, thread, task, room, taken)
        if now == taken:
            break
        taken = now
        time += m[x.DISPATCH_COST]
    return time, taken


@kernel
def _publish(m, taken, time, gated):
    """Write the doorbells of a batch; returns the time afterwards."""
    time += taken * m[x.STORE]
    for k in range(taken):
        entry = m[x.BATCH] + 2 * k
        core, sub = m[entry], m[entry + 1]
        m[core + x.HANDED] = sub
        m[core + x.CLAIMED] = 0
        m[core + x.HANDED_AT] = NEVER if gated else time + m[x.DOORBELL]
        m[sub + x.SUB_CORE] = core
        m[sub + x.SUB_DISPATCH] = time
        if not gated:
            begin_subtask(m, core)
        task = m[sub + x.SUB_TASK]
        if not gated and m[sub + x.SUB_LAST] and _placed(m, task):
            _published(m, task, time)
    return time


@kernel
def _peer_is_idle(m, thread, queue):
    """Does another thread have an idle core of this kind? Then a busy core is not loaded ahead."""
    cube = 0 if queue == AIV_QUEUE else 1
    for index in range(m[x.CORE_COUNT]):
        core = core_at(m, index)
        if m[core + x.OWNER] != thread and m[core + x.KNOWN] == 0 and m[core + x.IS_CUBE] == cube:
            return True
    return False


# phases of a loop


@kernel
def _collect(m, index, time):
    """Phase 1: ends that have become visible. Returns the time afterwards."""
    thread = _thread(m, index)
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
            time = _complete(m, task, time)
    return time


@kernel
def _retire_dummies(m, time):
    """Phase 4: tasks without work, eight at a time. Returns (time, tasks)."""
    count = 0
    while count < DUMMY_BATCH:
        task = _front(m, DUMMY_QUEUE, time)
        if task < 0:
            break
        _drop_front(m, DUMMY_QUEUE)
        time = _complete(m, task, time + m[x.DUMMY_COST] - m[x.COMPLETE_COST])
        count += 1
    return time, count


@kernel
def _dispatch_queue(m, thread, queue, room, time, taken):
    """Claim blocks of the tasks of one queue while there is room; returns (time, number of pairs)."""
    while True:
        task = _front(m, queue, time)
        if task < 0:
            return time, taken
        if m[task + x.TASK_FLAGS] & IS_SYNC and m[task + x.BLOCKS] > 1:
            _drop_front(m, queue)
            m[x.DRAINING], m[x.DRAINING_AT] = task, time
            _wake_all(m, time)
            return time, taken
        before = taken
        time, taken = _claim_all(m, thread, task, room, time, taken)
        if _placed(m, task):
            _drop_front(m, queue)
            continue
        if taken > before:
            _drop_front(m, queue)
            _enqueue(m, queue, task, time)
        return time, taken


@kernel
def _dispatch(m, index, time):
    """Phase 5: idle cores first, then the second slot of busy ones. Returns (time, number of pairs)."""
    taken = 0
    for room in range(2):
        for k in range(3):
            # threads alternate which kind of core they feed first, after the mixed tasks
            queue = MIX_QUEUE if k == 0 else (AIC_QUEUE if (k + index) % 2 else AIV_QUEUE)
            if m[x.DRAINING] >= 0 or _front(m, queue, time) < 0 or (room == 1 and _peer_is_idle(m, index, queue)):
                continue
            time, taken = _dispatch_queue(m, index, queue, room, time, taken)
    if taken:
        time = _publish(m, taken, time, False)
    return time, taken


@kernel
def _idle_places(m, task):
    """Cores, or clusters for a mixed task, that have nothing to do."""
    count = 0
    if m[task + x.TASK_KIND] == MIX_QUEUE:
        place = _find_cluster(m, -1, 0, 0)
        while place >= 0:
            count += 1
            place = _find_cluster(m, -1, 0, place + 1 + m[x.LANES])
        return count
    cube = 1 if m[task + x.TASK_KIND] == AIC_QUEUE else 0
    place = _find_core(m, -1, cube, 0, 0)
    while place >= 0:
        count += 1
        place = _find_core(m, -1, cube, 0, place + 1)
    return count


@kernel
def _drain(m, thread, time):
    """Phase 3: start all blocks of a task together once enough cores are idle anywhere. Returns (time, done)."""
    task = m[x.DRAINING]
    if _idle_places(m, task) < m[task + x.BLOCKS]:
        return time, False
    start = time
    time, taken = _claim_all(m, -1, task, 0, time, 0)
    time = _publish(m, taken, start + m[x.SYNC_START_COST], False)
    m[x.DRAINING] = -1
    _log(m, LOG_DRAIN, thread, start, time, task, taken)
    _wake_all(m, time)
    return time, True


@kernel
def _stage(m, index, time):
    """Phase 6: with nothing ready, put gated blocks behind producers that are already on the cores."""
    for queue in range(DUMMY_QUEUE):
        if _stamp(m, queue) != NEVER:
            return time, 0
    task = _front(m, EARLY_QUEUE, time)
    while task >= 0 and (
        m[task + x.FAN_IN] == 0 or m[task + x.TASK_FLAGS] & (IS_SYNC | IS_FALSE) or m[task + x.TASK_KIND] == DUMMY_QUEUE
    ):
        _drop_front(m, EARLY_QUEUE)
        task = _front(m, EARLY_QUEUE, time)
    if task < 0:
        return time, 0
    taken = 0
    for room in range(2):
        time, taken = _claim_all(m, index, task, room, time, taken)
    if _placed(m, task):
        _drop_front(m, EARLY_QUEUE)
    if taken:
        m[task + x.STAGED] = 1
        time = _publish(m, taken, time, True)
    return time, taken


@kernel
def _running(m, thread):
    count = 0
    for index in range(m[x.CORE_COUNT]):
        core = core_at(m, index)
        count += 1 if m[core + x.KNOWN] > 0 and m[core + x.OWNER] == thread else 0
    return count


@kernel
def loop(m, index, now):
    """One loop of a scheduler thread that starts at ``now``; then the next one, or idling."""
    thread = _thread(m, index)
    m[thread + x.LOOPS] += 1
    seen = m[thread + x.FINISHED_TAIL] - m[thread + x.FINISHED_HEAD]
    # A sweep over the registers counts where it finds something: half of it before, half after. One in vain would only
    # add a phase (see wake).
    half_sweep = _running(m, index) * m[x.POLL] // 2 if seen else 0
    began = now + m[x.IDLE_LOOP] + half_sweep
    time = _collect(m, index, began) + half_sweep
    if seen:
        _log(m, LOG_COMPLETE, index, began, time, -1, seen)
    drained = False
    if m[x.DRAINING] >= 0 and m[x.DRAINING_AT] <= time:
        time, drained = _drain(m, index, time)
    began = time
    time, dummies = _retire_dummies(m, time)
    if dummies:
        _log(m, LOG_DUMMY, index, began, time, -1, dummies)
    began, draining = time, m[x.DRAINING]
    time, dispatched = _dispatch(m, index, time)
    if dispatched:
        _log(m, LOG_DISPATCH, index, began, time, -1, dispatched)
    began = time
    time, staged = _stage(m, index, time)
    if staged:
        _log(m, LOG_EARLY, index, began, time, -1, staged)
    if seen or dummies or drained or dispatched or staged or m[x.DRAINING] != draining:
        m[thread + x.BUSY_TIME] += time - now
        push(m, time, LOOP, index)
    else:
        _idle(m, index, time)


@kernel
def _idle(m, index, time):
    """Nothing to do: sleep until somebody wakes the thread, or a task whose stamp lies ahead becomes visible."""
    thread = _thread(m, index)
    m[thread + x.IDLE] = 1
    m[thread + x.ANCHOR] = time
    m[thread + x.PERIOD] = m[x.IDLE_LOOP] + _running(m, index) * m[x.POLL]
    ahead = NEVER
    for queue in range(QUEUES):
        stamp = _stamp(m, queue)
        if time < stamp < ahead:
            ahead = stamp
    if m[x.DRAINING] >= 0 and time < m[x.DRAINING_AT] < ahead:
        ahead = m[x.DRAINING_AT]
    if ahead != NEVER:
        wake(m, index, ahead, m[thread + x.PERIOD] // 2)


# orchestrator


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
    ring = _ring(m, task)
    m[_ring_entry(m, task, m[ring + x.RING_COUNT])] = task
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
            early = m[producer + x.TASK_FLAGS] & IS_EARLY and m[producer + x.FAN_IN] == 0 and _placed(m, producer)
            m[task + x.EARLY_NEED] += 0 if early else 1
        else:
            m[producer + x.REFERENCES] += 1
            if done > after:
                after, cause = done, producer
    if m[task + x.FAN_IN] == 0:
        _make_ready(m, task, after, cause)
    elif m[task + x.EARLY_NEED] == 0:
        _enqueue(m, EARLY_QUEUE, task, time)
        _wake_all(m, time)
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
            _drop_reference(m, task, time)
    return time


@kernel
def _ring_full(m, task):
    """Back-pressure: no slot, or no heap for what was allocated since the last submit (distributed notes 6.2)."""
    ring = _ring(m, task)
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
            _log(m, LOG_SUBMIT, -1, began, time, task, 1)
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


__all__ = ["QUEUES", "core_words", "loop", "notice_finish", "orchestrate", "wake"]

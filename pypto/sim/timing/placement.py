"""Which core gets which block, and the doorbells of a batch (distributed notes 6.6)."""

from __future__ import annotations

from . import words as x
from .compiled import kernel
from .pipes import NEVER, begin_subtask, core_at
from .queues import AIC_QUEUE, AIV_QUEUE, MIX_QUEUE
from .tasks import all_placed, all_published


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
def claim_all(m, thread, task, room, time, taken):
    """Claim blocks while there is room; returns (time, number of pairs)."""
    while not all_placed(m, task):
        now = _claim(m, thread, task, room, taken)
        if now == taken:
            break
        taken = now
        time += m[x.DISPATCH_COST]
    return time, taken


@kernel
def publish(m, taken, time, gated):
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
        if not gated and m[sub + x.SUB_LAST] and all_placed(m, task):
            all_published(m, task, time)
    return time


@kernel
def peer_is_idle(m, thread, queue):
    """Does another thread have an idle core of this kind? Then a busy core is not loaded ahead."""
    cube = 0 if queue == AIV_QUEUE else 1
    for index in range(m[x.CORE_COUNT]):
        core = core_at(m, index)
        if m[core + x.OWNER] != thread and m[core + x.KNOWN] == 0 and m[core + x.IS_CUBE] == cube:
            return True
    return False


@kernel
def idle_places(m, task):
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

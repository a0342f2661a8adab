"""Where the time of a launch went: the chain of waits that ends last, split by what it waited for.

The walk goes backwards from the end of the launch. Every step accounts for the time between two moments and moves on to
what made the later one wait, so the parts add up to the makespan exactly.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from . import codes as c
from . import words as x
from .compiled import entry, kernel
from .pipes import kind_of, path_of, pipe_of

CLASSES: Final = (
    "cube",
    "vector",
    "scalar",
    "L1->L0",
    "L0C->chip",
    "UB->chip",
    "GM->UB",
    "GM->L1",
    "UB->GM",
    "L0C->GM",
    "HBM",
    "L2",
    "dependency",
    "scheduler",
    "orchestrator",
)
(
    CUBE,
    VECTOR,
    SCALAR,
    L1_L0,
    L0C_CHIP,
    UB_CHIP,
    GM_UB,
    GM_L1,
    UB_GM,
    L0C_GM,
    HBM,
    L2,
    DEPENDENCY,
    SCHEDULER,
    ORCHESTRATOR,
) = range(15)


@kernel
def _class_of(m, row):
    """Class of the time a row spends on its pipe."""
    kind, pipe = kind_of(m, row), pipe_of(m, row)
    if kind == c.TRANSFER or kind == c.PREFETCH:
        return GM_UB + path_of(m, row)
    if kind == c.SCALAR_CODE:
        return SCALAR
    if pipe == c.M:
        return CUBE
    if pipe == c.V:
        return VECTOR
    if pipe == c.MTE1:
        return L1_L0
    if pipe == c.FIX:
        return L0C_CHIP
    if pipe == c.MTE3 or pipe == c.MTE2:
        return UB_CHIP
    return SCALAR


@kernel
def _spend(spent, kind, clock, until):
    """Account for the time down to ``until``; the clock only goes back."""
    if until < clock[0]:
        spent[kind] += clock[0] - until
        clock[0] = until


@kernel
def _last_row(m, sub):
    """Row of a subtask that ends last, -1 when the scalar unit does."""
    last, end = -1, -1
    for row in range(m[sub + x.SUB_FIRST], m[sub + x.SUB_STOP], x.ROW_WORDS):
        if m[row + x.END] > end:
            last, end = row, m[row + x.END]
    return last


@kernel
def _row_time(m, row, spent, clock):
    """The time of a row on its pipe, its share of a busy memory apart."""
    kind = _class_of(m, row)
    busy_until = m[row + x.START] + m[row + x.WORK]
    _spend(spent, kind, clock, busy_until)
    if m[row + x.CONTENDED] > 0:
        memory = HBM if m[row + x.MISSED] > 0 else L2
        _spend(spent, memory, clock, max(clock[0] - m[row + x.CONTENDED], m[row + x.START]))
    _spend(spent, kind, clock, m[row + x.START])


@entry
def walk(m, previous, makespan_start, clock, spent):
    """Fill ``spent`` int64[classes] (ps) for the window from ``makespan_start`` to ``clock[0]``.

    ``previous`` int64[subtasks]: the subtask before it on its core, -1 for none. ``clock`` int64[1] is changed.
    """
    task = -1
    for k in range(m[x.TASK_COUNT]):
        candidate = m[x.TASKS] + k * x.TASK_WORDS
        if task < 0 or m[candidate + x.COMPLETE_AT] > m[task + x.COMPLETE_AT]:
            task = candidate
    if task < 0 or m[x.ENDED] >= m[task + x.COMPLETE_AT]:
        _spend(spent, ORCHESTRATOR, clock, makespan_start)
        return
    while task >= 0:
        _spend(spent, SCHEDULER, clock, m[task + x.COMPLETE_AT])
        sub = _last_subtask(m, task)
        while sub >= 0:
            _spend(spent, SCHEDULER, clock, m[sub + x.SUB_END])
            sub = _subtask_start(m, sub, spent, clock)
            task = m[sub + x.SUB_TASK]
            before = previous[(sub - m[x.SUBTASKS]) // x.SUB_WORDS]
            if before < 0 or m[before + x.SUB_END] <= m[task + x.READY_AT]:
                break
            sub = before
        _spend(spent, SCHEDULER, clock, m[task + x.READY_AT])
        if m[task + x.READY_CAUSE] < 0:
            break
        task = m[task + x.READY_CAUSE]
    _spend(spent, ORCHESTRATOR, clock, makespan_start)


@kernel
def _last_subtask(m, task):
    last = -1
    for sub in range(m[task + x.FIRST_SUB], m[task + x.STOP_SUB], x.SUB_WORDS):
        if last < 0 or m[sub + x.SUB_FINISH] > m[last + x.SUB_FINISH]:
            last = sub
    return last


@kernel
def _owner_of(m, row, sub):
    """Subtask a row belongs to, looked for among those of the same task."""
    task = m[sub + x.SUB_TASK]
    for other in range(m[task + x.FIRST_SUB], m[task + x.STOP_SUB], x.SUB_WORDS):
        if m[other + x.SUB_FIRST] <= row < m[other + x.SUB_STOP]:
            return other
    return sub


@kernel
def _waited(m, before, row, clock):
    """Did a row wait for the result of another one, not for its pipe?"""
    return pipe_of(m, before) != pipe_of(m, row) or m[before + x.START] + m[before + x.WORK] < clock[0]


@kernel
def _subtask_start(m, sub, spent, clock):
    """Walk the rows back to the start of a subtask and return it: the last one, or one that handed over to it."""
    row = _last_row(m, sub)
    while row >= 0:
        _row_time(m, row, spent, clock)
        before = m[row + x.CAUSE]
        if before == x.BY_ISSUE:
            before = m[row + x.ISSUE_CAUSE]
            if before >= 0:
                done = m[before + x.END]
                _spend(spent, SCALAR, clock, done if done <= clock[0] else m[before + x.START])
        elif before >= 0 and _waited(m, before, row, clock):
            _spend(spent, DEPENDENCY, clock, m[before + x.END])
        if before >= 0 and not m[sub + x.SUB_FIRST] <= before < m[sub + x.SUB_STOP]:
            sub = _owner_of(m, before, sub)
        row = before
    _spend(spent, SCALAR, clock, m[sub + x.SUB_START])
    return sub


@entry
def busy(m, pipe_busy, core_busy, path_bytes, hbm_bytes):
    """Sum up the work of every row: ``pipe_busy`` [cores, pipes], ``core_busy`` [cores] (ps), ``path_bytes`` [paths].

    ``hbm_bytes`` [subtasks, 2]: bytes a subtask moved, and those of them that came from HBM.
    """
    core_words = x.RING + c.PIPE_COUNT * m[x.QUEUE_DEPTH]
    for number in range(hbm_bytes.shape[0]):
        sub = m[x.SUBTASKS] + number * x.SUB_WORDS
        if m[sub + x.SUB_CORE] < 0:
            continue
        core = (m[sub + x.SUB_CORE] - m[x.CORES]) // core_words
        core_busy[core] += m[sub + x.SUB_END] - m[sub + x.SUB_START]
        for row in range(m[sub + x.SUB_FIRST], m[sub + x.SUB_STOP], x.ROW_WORDS):
            pipe_busy[core, c.S] += m[row + x.SCALARS]
            if kind_of(m, row) == c.SCALAR_CODE:
                pipe_busy[core, c.S] += m[row + x.WORK]
                pipe_busy[core, pipe_of(m, row)] += m[row + x.FLAGS]
            else:
                pipe_busy[core, pipe_of(m, row)] += m[row + x.WORK]
            if kind_of(m, row) == c.TRANSFER:
                path_bytes[path_of(m, row)] += m[row + x.BYTES]
                hbm_bytes[number, 0] += m[row + x.BYTES]
                hbm_bytes[number, 1] += m[row + x.MISSED]


def previous_on_core(subtasks: NDArray[np.int64], first_subtask: int) -> NDArray[np.int64]:
    """Reference of the subtask that ran before each one on its core, -1 for none."""
    order = np.lexsort((subtasks[:, x.SUB_START], subtasks[:, x.SUB_CORE]))
    previous = np.full(len(subtasks), -1, np.int64)
    same = subtasks[order[1:], x.SUB_CORE] == subtasks[order[:-1], x.SUB_CORE]
    previous[order[1:][same]] = first_subtask + order[:-1][same] * x.SUB_WORDS
    return previous

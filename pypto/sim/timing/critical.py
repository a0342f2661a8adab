"""Where the time of a launch went: the chain of waits that ends last, step by step, split by what it waited for.

The walk goes backwards from the end of the launch. Every step accounts for the time between two moments and moves on to
what made the later one wait, so the parts add up to the makespan exactly. A timeline keeps the sums per class; who asks
why (``explanation/``) walks again and keeps the steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from . import codes as c
from . import words as x
from .compiled import entry, kernel, pointer
from .pipes import kind_of, path_of, pipe_of

if TYPE_CHECKING:
    from .launch import Played

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
    "link",
    "ranks",
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
    LINK,
    RANKS,
    DEPENDENCY,
    SCHEDULER,
    ORCHESTRATOR,
) = range(17)
# what the time of class "scheduler" is made of
PHASES: Final = (
    "",
    "dispatch",  # ready until written to a core: the scheduler's loop and the blocks before it
    "pick-up",  # written until it runs
    "next block",  # from the end of a block to the start of the one that waited for its core
    "notice",  # ended until the scheduler has seen it and released what waits
)
NO_PHASE, DISPATCH, PICK_UP, NEXT_BLOCK, NOTICE = range(5)
# columns of a step: class, from and to (ps), references of task and row (-1: none), phase
STEP_CLASS, STEP_START, STEP_STOP, STEP_TASK, STEP_ROW, STEP_PHASE = range(6)
STEP_WORDS: Final = 6
# words of the walk: the moment it has come to, the first of the window, steps so far, task it is at
_NOW, _BEGIN, _STEPS, _TASK = range(4)


@kernel
def _class_of(m, row):
    """Class of the time a row spends on its pipe."""
    kind, pipe = kind_of(m, row), pipe_of(m, row)
    if kind == c.TRANSFER or kind == c.PREFETCH:
        return GM_UB + path_of(m, row)
    if kind == c.SCALAR_CODE:
        return SCALAR
    if kind == c.REMOTE:
        return LINK
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
def _spend(walked, spent, steps, kind, until, row, phase):
    """Account for the time down to ``until``: a step of the path. The walk goes back, and not beyond its window."""
    until = max(until, walked[_BEGIN])
    if until >= walked[_NOW]:
        return
    spent[kind] += walked[_NOW] - until
    number = walked[_STEPS]
    if number < steps.shape[0]:
        steps[number, STEP_CLASS], steps[number, STEP_PHASE] = kind, phase
        steps[number, STEP_START], steps[number, STEP_STOP] = until, walked[_NOW]
        steps[number, STEP_TASK], steps[number, STEP_ROW] = walked[_TASK], row
    walked[_STEPS] = number + 1
    walked[_NOW] = until


@kernel
def _last_row(m, sub):
    """Row of a subtask that ends last, -1 when the scalar unit does."""
    last, end = -1, -1
    for row in range(m[sub + x.SUB_FIRST], m[sub + x.SUB_STOP], x.ROW_WORDS):
        if m[row + x.END] > end:
            last, end = row, m[row + x.END]
    return last


@kernel
def _row_time(m, row, walked, spent, steps):
    """The time of a row on its pipe, its share of a busy memory apart."""
    kind = _class_of(m, row)
    busy_until = m[row + x.START] + m[row + x.WORK]
    _spend(walked, spent, steps, kind, busy_until, row, NO_PHASE)
    if m[row + x.CONTENDED] > 0:
        memory = HBM if m[row + x.MISSED] > 0 else L2
        _spend(walked, spent, steps, memory, max(busy_until - m[row + x.CONTENDED], m[row + x.START]), row, NO_PHASE)
    _spend(walked, spent, steps, kind, m[row + x.START], row, NO_PHASE)


@entry
def walk(memory, previous, walked, spent, steps):
    """Fill ``spent`` int64[classes] (ps) and as many ``steps`` int64[:, STEP_WORDS] as there is room for, last first.

    ``previous`` int64[subtasks]: the subtask before it on its core, -1 for none. ``walked`` int64[4]: end and beginning
    of the window, 0, -1; afterwards its third word says how many steps there are.
    """
    m = pointer(memory)
    task = -1
    for k in range(m[x.TASK_COUNT]):
        candidate = m[x.TASKS] + k * x.TASK_WORDS
        if task < 0 or m[candidate + x.COMPLETE_AT] > m[task + x.COMPLETE_AT]:
            task = candidate
    if task < 0 or m[x.ENDED] >= m[task + x.COMPLETE_AT]:
        task = -1
    while task >= 0:
        walked[_TASK] = task
        _spend(walked, spent, steps, SCHEDULER, m[task + x.COMPLETE_AT], -1, NOTICE)
        sub = _last_subtask(m, task)
        if sub >= 0:
            task = _blocks(m, previous, sub, walked, spent, steps)
        _spend(walked, spent, steps, SCHEDULER, m[task + x.READY_AT], -1, DISPATCH)
        task = m[task + x.READY_CAUSE]
    _spend(walked, spent, steps, ORCHESTRATOR, walked[_BEGIN], -1, NO_PHASE)


@kernel
def _blocks(m, previous, sub, walked, spent, steps):
    """From the end of a block over those before it on its core to the first that waited for none; returns its task."""
    while True:
        walked[_TASK] = m[sub + x.SUB_TASK]
        _spend(walked, spent, steps, SCHEDULER, m[sub + x.SUB_END], -1, NOTICE)
        sub = _subtask_start(m, sub, walked, spent, steps)
        task = walked[_TASK] = m[sub + x.SUB_TASK]
        before = previous[(sub - m[x.SUBTASKS]) // x.SUB_WORDS]
        if before < 0 or m[before + x.SUB_END] <= m[task + x.READY_AT]:
            # a block staged behind its producers was written before it was ready
            written = max(m[sub + x.SUB_DISPATCH], m[task + x.READY_AT])
            _spend(walked, spent, steps, SCHEDULER, written, -1, PICK_UP)
            return task
        _spend(walked, spent, steps, SCHEDULER, m[before + x.SUB_END], -1, NEXT_BLOCK)
        sub = before


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
def _waited(m, before, row, now):
    """Did a row wait for the result of another one, not for its pipe?"""
    return pipe_of(m, before) != pipe_of(m, row) or m[before + x.START] + m[before + x.WORK] < now


@kernel
def _arrived_last(m, row):
    """The row that a row waited for at a barrier of all blocks: the last to arrive; itself when it waited for none."""
    if kind_of(m, row) == c.BARRIER and m[row + x.ISSUED] < m[row + x.START]:
        return m[m[row + x.LINK] + x.BARRIER_LATEST]
    return row


@kernel
def _subtask_start(m, sub, walked, spent, steps):
    """Walk the rows back to the start of a subtask and return it: the last one, or one that handed over to it."""
    row = _last_row(m, sub)
    while row >= 0:
        _row_time(m, row, walked, spent, steps)
        latest = _arrived_last(m, row)
        if latest != row:
            sub, row = _owner_of(m, latest, sub), latest
        elif kind_of(m, row) == c.STALL:
            _spend(walked, spent, steps, RANKS, m[row + x.ISSUED], row, NO_PHASE)
        before = m[row + x.CAUSE]
        if before == x.BY_ISSUE:
            before = m[row + x.ISSUE_CAUSE]
            if before >= 0:
                done = m[before + x.END]
                done = done if done <= walked[_NOW] else m[before + x.START]
                _spend(walked, spent, steps, SCALAR, done, row, NO_PHASE)
        elif before >= 0 and _waited(m, before, row, walked[_NOW]):
            _spend(walked, spent, steps, DEPENDENCY, m[before + x.END], row, NO_PHASE)
        if before >= 0 and not m[sub + x.SUB_FIRST] <= before < m[sub + x.SUB_STOP]:
            sub = _owner_of(m, before, sub)
        row = before
        walked[_TASK] = m[sub + x.SUB_TASK]
    _spend(walked, spent, steps, SCALAR, m[sub + x.SUB_START], -1, NO_PHASE)
    return sub


def path_sums(played: Played, begin_ps: int, end_ps: int) -> NDArray[np.int64]:
    """Time per class (ps) along the critical path of the window."""
    return _walk(played, begin_ps, end_ps, np.zeros((0, STEP_WORDS), np.int64))[0]


def path_steps(played: Played, begin_ps: int, end_ps: int) -> NDArray[np.int64]:
    """The steps of the critical path of the window, first to last, without a gap: int64[:, STEP_WORDS]."""
    steps = np.zeros((0, STEP_WORDS), np.int64)
    while True:
        count = _walk(played, begin_ps, end_ps, steps)[1]
        if count <= len(steps):
            return steps[:count][::-1]
        steps = np.zeros((count, STEP_WORDS), np.int64)


def _walk(played: Played, begin_ps: int, end_ps: int, steps: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Sums per class, and how many steps there are."""
    spent, walked = np.zeros(len(CLASSES), np.int64), np.array([end_ps, begin_ps, 0, -1], np.int64)
    walk(played.memory, previous_on_core(played.subtasks, int(played.memory[x.SUBTASKS])), walked, spent, steps)
    return spent, int(walked[_STEPS])


@entry
def busy(memory, pipe_busy, core_busy, path_bytes, hbm_bytes):
    """Sum up the work of every row: ``pipe_busy`` [cores, pipes], ``core_busy`` [cores] (ps), ``path_bytes`` [paths].

    ``hbm_bytes`` [subtasks, 2]: bytes a subtask moved, and those of them that came from HBM.
    """
    m = pointer(memory)
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

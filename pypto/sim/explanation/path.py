"""The critical path of a launch step by step: what was waited for, in which task and at which instruction.

The walk is the one behind ``Timeline.bottlenecks`` (``timing/critical.py``), which keeps sums only and is part of every
timing. This one names each step; it runs when somebody asks, and the sums per class are the same to the picosecond.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pypto.sim.layout import TRACE_PC
from pypto.sim.recording import Recording
from pypto.sim.timing import codes as c
from pypto.sim.timing import words as x
from pypto.sim.timing.critical import CLASSES, previous_on_core
from pypto.sim.timing.launch import Played

_MEMORY_PATHS: Final = CLASSES.index("GM->UB")
_ON_PIPE: Final = {
    c.M: "cube", c.V: "vector", c.MTE1: "L1->L0", c.FIX: "L0C->chip", c.MTE2: "UB->chip", c.MTE3: "UB->chip",
}  # fmt: skip
# what the time of class "scheduler" is made of
DISPATCH: Final = "dispatch"  # ready until written to a core: the scheduler's loop and the blocks before it
PICK_UP: Final = "pick-up"  # written until it runs
NEXT_BLOCK: Final = "next block"  # from the end of a block to the start of the one that waited for its core
NOTICE: Final = "notice"  # ended until the scheduler has seen it and released what waits


@dataclass(frozen=True)
class Step:
    """A stretch of the critical path; ``stop_ps`` of a step is ``start_ps`` of the next one.

    ``kind``: a class of ``Timeline.bottlenecks``. ``task``: index in submit order, -1 before the first one. ``what``:
    the instruction for time in a core, the phase for time of the scheduler, else empty. ``line``: source line, 0 for
    none.
    """

    kind: str
    start_ps: int
    stop_ps: int
    task: int
    what: str = ""
    line: int = 0

    @property
    def us(self) -> float:
        return (self.stop_ps - self.start_ps) / 1e6


def critical_steps(recording: Recording, played: Played, begin_ps: int, end_ps: int) -> list[Step]:
    """The steps of the window of a launch, first to last; nothing in it is left out or counted twice."""
    walk, found = _Walk(recording, played, end_ps), []
    for kind, until, task, row, what in walk.back():
        until = max(until, begin_ps)
        if until < walk.clock:
            found.append(Step(kind, until, walk.clock, task, *walk.told(row, what)))
            walk.clock = until
    if walk.clock > begin_ps:
        found.append(Step("orchestrator", begin_ps, walk.clock, found[-1].task if found else -1))
    return found[::-1]


# class, moment down to which the time is of that class, task, row or -1, phase
_Back = tuple[str, int, int, int, str]


class _Walk:
    """The tables of a played launch, read backwards."""

    def __init__(self, recording: Recording, played: Played, end_ps: int) -> None:
        self._recording, self._played, self._m = recording, played, played.memory
        self.clock = end_ps  # what is later has been accounted for; kept by whoever reads the steps
        self._previous = previous_on_core(played.subtasks, int(self._m[x.SUBTASKS]))

    def back(self) -> Iterator[_Back]:
        """The waits from the end of the launch to its beginning."""
        m, tasks = self._m, self._played.tasks
        if not len(tasks):
            return
        last = int(tasks[:, x.COMPLETE_AT].argmax())
        task = int(m[x.TASKS]) + last * x.TASK_WORDS
        if m[x.ENDED] >= m[task + x.COMPLETE_AT]:
            return
        while task >= 0:
            yield "scheduler", int(m[task + x.COMPLETE_AT]), self._number(task), -1, NOTICE
            sub = self._last_subtask(task)
            while sub >= 0:
                task = int(m[sub + x.SUB_TASK])
                yield "scheduler", int(m[sub + x.SUB_END]), self._number(task), -1, NOTICE
                sub = yield from self._through(sub)
                task = int(m[sub + x.SUB_TASK])
                before = int(self._previous[(sub - m[x.SUBTASKS]) // x.SUB_WORDS])
                if before < 0 or m[before + x.SUB_END] <= m[task + x.READY_AT]:
                    # a block staged behind its producers was written before it was ready
                    written = int(max(m[sub + x.SUB_DISPATCH], m[task + x.READY_AT]))
                    yield "scheduler", written, self._number(task), -1, PICK_UP
                    break
                yield "scheduler", int(m[before + x.SUB_END]), self._number(task), -1, NEXT_BLOCK
                sub = before
            yield "scheduler", int(m[task + x.READY_AT]), self._number(task), -1, DISPATCH
            task = int(m[task + x.READY_CAUSE])

    def told(self, row: int, what: str) -> tuple[str, int]:
        """Instruction and source line of a row, else the phase."""
        if row < 0:
            return what, 0
        recording, number = self._recording, (row - int(self._m[x.ROWS])) // x.ROW_WORDS
        subtask = int(self._subtask_of_row[number])
        program = recording.programs[int(recording.subtask_program[subtask])]
        pc = int(recording.trace[number, TRACE_PC])
        return program.mnemonics[int(program.mnemonic[pc])], int(program.line[pc])

    @cached_property
    def _subtask_of_row(self) -> NDArray[np.int64]:
        owners = np.zeros(len(self._recording.trace), np.int64)
        bounds = zip(self._recording.subtask_trace_start, self._recording.subtask_trace_stop)
        for number, (start, stop) in enumerate(bounds):
            owners[start:stop] = number
        return owners

    def _number(self, task: int) -> int:
        return (task - int(self._m[x.TASKS])) // x.TASK_WORDS

    def _last_subtask(self, task: int) -> int:
        """Reference of the subtask of a task that is seen last, -1 for a task on no core."""
        m = self._m
        subs = range(int(m[task + x.FIRST_SUB]), int(m[task + x.STOP_SUB]), x.SUB_WORDS)
        return max(subs, key=lambda sub: int(m[sub + x.SUB_FINISH]), default=-1)

    def _through(self, sub: int) -> Generator[_Back, None, int]:
        """From the end of a subtask to a start; returns the subtask that starts there."""
        m = self._m
        rows = range(int(m[sub + x.SUB_FIRST]), int(m[sub + x.SUB_STOP]), x.ROW_WORDS)
        row = max(rows, key=lambda row: int(m[row + x.END]), default=-1)
        while row >= 0:
            task = self._number(int(m[sub + x.SUB_TASK]))
            yield from self._row(row, task)
            before = int(m[row + x.CAUSE])
            if before == x.BY_ISSUE:
                before = int(m[row + x.ISSUE_CAUSE])
                if before >= 0:
                    done = int(m[before + x.END])
                    yield "scalar", done if done <= self.clock else int(m[before + x.START]), task, row, ""
            elif before >= 0 and self._waited(before, row):
                yield "dependency", int(m[before + x.END]), task, row, ""
            if before >= 0 and not m[sub + x.SUB_FIRST] <= before < m[sub + x.SUB_STOP]:
                sub = self._owner(before, sub)
            row = before
        yield "scalar", int(m[sub + x.SUB_START]), self._number(int(m[sub + x.SUB_TASK])), -1, ""
        return sub

    def _row(self, row: int, task: int) -> Iterator[_Back]:
        """The time of a row on its pipe, its share of a busy memory apart."""
        m, kind = self._m, self._class(row)
        start, busy_until = int(m[row + x.START]), int(m[row + x.START] + m[row + x.WORK])
        yield kind, busy_until, task, row, ""
        contended = int(m[row + x.CONTENDED])
        if contended > 0:
            memory = "HBM" if m[row + x.MISSED] > 0 else "L2"
            yield memory, max(busy_until - contended, start), task, row, ""
        yield kind, start, task, row, ""

    def _waited(self, before: int, row: int) -> bool:
        """Did a row wait for the result of another one, not for its pipe?"""
        m = self._m
        return self._pipe(before) != self._pipe(row) or bool(m[before + x.START] + m[before + x.WORK] < self.clock)

    def _pipe(self, row: int) -> int:
        return int(self._m[row + x.WHAT]) >> x.PIPE_SHIFT & x.BYTE

    def _class(self, row: int) -> str:
        what = int(self._m[row + x.WHAT])
        kind, path = what & x.BYTE, what >> x.PATH_SHIFT & x.BYTE
        if kind in (c.TRANSFER, c.PREFETCH):
            return CLASSES[_MEMORY_PATHS + path]
        return "scalar" if kind == c.SCALAR_CODE else _ON_PIPE.get(self._pipe(row), "scalar")

    def _owner(self, row: int, sub: int) -> int:
        m, task = self._m, int(self._m[sub + x.SUB_TASK])
        for other in range(int(m[task + x.FIRST_SUB]), int(m[task + x.STOP_SUB]), x.SUB_WORDS):
            if m[other + x.SUB_FIRST] <= row < m[other + x.SUB_STOP]:
                return other
        return sub

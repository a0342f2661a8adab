"""The critical path of a launch, step by step: where ``Timeline.bottlenecks`` spends its time.

The engine walks the path (``timing/critical.py``); here its steps get the names of instructions and source lines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pypto.sim.layout import TRACE_PC
from pypto.sim.recording import Recording
from pypto.sim.timing import critical
from pypto.sim.timing import words as x
from pypto.sim.timing.launch import Played


@dataclass(frozen=True)
class Step:
    """A stretch of the critical path; ``stop_ps`` of a step is ``start_ps`` of the next one.

    ``kind``: a class of ``Timeline.bottlenecks``. ``task``: index in submit order, -1 before the first one. ``what``:
    the instruction for time in a core, the phase for time of the scheduler, else empty. ``line``: source line, 0 for
    none. ``row``: of the trace, -1 for none.
    """

    kind: str
    start_ps: int
    stop_ps: int
    task: int
    what: str = ""
    line: int = 0
    row: int = -1

    @property
    def us(self) -> float:
        return (self.stop_ps - self.start_ps) / 1e6


def critical_steps(recording: Recording, played: Played, begin_ps: int, end_ps: int) -> list[Step]:
    """The steps of the window of a launch, first to last; nothing in it is left out or counted twice."""
    found = critical.path_steps(played, begin_ps, end_ps)
    tasks = _number(found[:, critical.STEP_TASK], played, x.TASKS, x.TASK_WORDS)
    rows = _number(found[:, critical.STEP_ROW], played, x.ROWS, x.ROW_WORDS)
    names = _Names(recording)
    return [
        Step(critical.CLASSES[kind], start, stop, task, *names.of(row, critical.PHASES[phase]), row)
        for (kind, start, stop, _, _, phase), task, row in zip(found.tolist(), tasks, rows)
    ]


def _number(references: np.ndarray, played: Played, table: int, words: int) -> list[int]:
    """Position in a table of the engine's memory, -1 for no reference."""
    numbers: list[int] = np.where(references < 0, -1, (references - int(played.memory[table])) // words).tolist()
    return numbers


class _Names:
    """Instruction and source line of trace rows."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._owner = np.zeros(len(recording.trace), np.int64)
        bounds = zip(recording.subtask_trace_start, recording.subtask_trace_stop)
        for number, (start, stop) in enumerate(bounds):
            self._owner[start:stop] = number

    def of(self, row: int, phase: str) -> tuple[str, int]:
        """Of a row, else the phase."""
        if row < 0:
            return phase, 0
        program = self._recording.programs[int(self._recording.subtask_program[self._owner[row]])]
        pc = int(self._recording.trace[row, TRACE_PC])
        if pc < 0:  # scalar instructions behind the last tile instruction
            return phase, 0
        return program.mnemonics[int(program.mnemonic[pc])], int(program.line[pc])

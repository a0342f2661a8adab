"""What a launch waited for, summed up by class, place, phase and task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from pypto.sim.chips import Chip
from pypto.sim.chips import chip as named
from pypto.sim.explanation.path import Step, critical_steps
from pypto.sim.recording import Recording
from pypto.sim.timing import DeviceState, Timeline

if TYPE_CHECKING:
    import numpy as np
    import pandas
    from numpy.typing import NDArray
    from rich.console import RenderableType


@dataclass(frozen=True)
class Explanation:
    """A timeline with the steps of its critical path; ``print`` shows both as a table.

    ``steps`` cover the effective window without a gap, first to last.
    """

    timeline: Timeline
    steps: tuple[Step, ...] = field(repr=False)
    tasks: tuple[str, ...] = field(repr=False)
    """Name per task, in submit order."""

    def class_us(self) -> dict[str, float]:
        """Time per class, most first; adds up to ``timeline.effective_us``."""
        return self._sums(lambda step: step.kind)

    def place_us(self, kind: str) -> dict[str, float]:
        """Time of a class per place, most first: ``task:line instruction`` in a core, else the phase."""
        return self._sums(self.place, kind)

    def instruction_us(self, kind: str) -> dict[str, float]:
        """Time of a class per instruction or phase, whatever the task and line, most first."""
        return self._sums(lambda step: step.what or self.task_name(step), kind)

    def path_tasks(self) -> list[tuple[str, int]]:
        """Tasks on the critical path in order, with how many blocks of one name follow each other."""
        visits = [task for task, _ in groupby(step.task for step in self.steps if step.kind != "orchestrator")]
        names = [self.tasks[task] for task in visits]
        return [(name, len(list(group))) for name, group in groupby(names)]

    def place(self, step: Step) -> str:
        """Where a step is, for people."""
        if not step.line:
            return step.what or self.task_name(step)
        return f"{self.task_name(step)}:{step.line} {step.what}"

    def task_name(self, step: Step) -> str:
        return self.tasks[step.task] if step.task >= 0 else ""

    def to_pandas(self) -> pandas.DataFrame:
        """One row per step: kind, task, what, line, start_us, us."""
        import pandas as pd

        columns = ["kind", "task", "what", "line", "start_us", "us"]
        rows = [(s.kind, self.task_name(s), s.what, s.line, s.start_ps / 1e6, s.us) for s in self.steps]
        return pd.DataFrame(rows, columns=columns)

    def __str__(self) -> str:
        from pypto.sim.explanation.text import explanation_text

        return explanation_text(self)

    def __rich__(self) -> RenderableType:
        from rich.text import Text

        return Text(str(self), no_wrap=True, overflow="ellipsis")

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def _sums(self, key: Callable[[Step], str], kind: str | None = None) -> dict[str, float]:
        sums: dict[str, int] = defaultdict(int)
        for step in self.steps:
            if kind is None or step.kind == kind:
                sums[key(step)] += step.stop_ps - step.start_ps
        return {name: ps / 1e6 for name, ps in sorted(sums.items(), key=lambda item: -item[1])}


def explain(recording: Recording, chip: Chip | None = None, state: DeviceState | None = None) -> Explanation:
    """Time ``recording`` on ``chip`` (default: the one recorded on) and say what the time went on.

    ``state`` is what earlier launches left in the caches (default: cold); it stays as it is. ``TypeError`` for what is
    no recording or no chip description.
    """
    if not isinstance(recording, Recording):
        raise TypeError(
            f"explain takes what pypto.sim.record gives, got {type(recording).__name__}; "
            "pypto.runtime.explain_ranks explains a program over several ranks"
        )
    kept = state.copy() if state is not None else None
    timeline = recording.time(chip, state.copy() if state is not None else None)
    return explanation_of(recording, chip or named(recording.platform), timeline, kept)


def explanation_of(
    recording: Recording,
    chip: Chip,
    timeline: Timeline,
    state: DeviceState | None = None,
    told: NDArray[np.int64] | None = None,
) -> Explanation:
    """What the time of ``timeline`` went on; ``state`` and ``told`` (``launch.play``) are those it was made with.

    The timeline keeps no rows of traces, so the launch is played again; ``state`` is used up.
    """
    from pypto.sim.timing.launch import cache_tags, play

    cache = (state or DeviceState()).cover(cache_tags(recording, chip), int(chip.memory.l2_line_bytes.value))
    start, duration = timeline.phases["sched"]
    begin_ps, end_ps = start * 1000, (start + duration) * 1000
    played = play(recording, chip, cache, begin_ps, told=told)
    steps = critical_steps(recording, played, begin_ps, end_ps)
    return Explanation(timeline, tuple(steps), tuple(recording.task_name))

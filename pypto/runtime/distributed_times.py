"""The times of runs as markers: the parent's ``node.*`` spans, and when every launch starts (spec profiling 1.6)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final

from pypto.runtime import log_config, markers
from pypto.runtime.distributed_clock import ClockedTask, RankClock, Settled
from pypto.runtime.distributed_host import CHIP, Task
from pypto.runtime.distributed_run import RankError
from pypto.runtime.host_clock import HostClock, ModelledClock, WallClock
from pypto.runtime.host_model import ARENA_BUILD_NS
from pypto.runtime.markers import Launch, Span
from pypto.runtime.ranks import GRACE_S
from pypto.runtime.ranks_protocol import Done, Explain, Finish
from pypto.runtime.ranks_pulse import LOOK_S, Pulses
from pypto.runtime.task_names import fnv1a_64

if TYPE_CHECKING:
    from pypto.runtime.distributed_crew import Crew
    from pypto.runtime.ranks_explanation import RanksExplanation

# Publishing a frame in a rank's mailbox and noticing its end: parts of the published round trip (spec hardware 13).
_FRAME_SHARE: Final = 2


class RunTimes:
    """The clock of a worker's host side; modelled where the chips have a device clock, the wall elsewhere."""

    def __init__(self, crew: Crew, log_level: int):
        from pypto.sim.chips import chip

        self.crew = crew
        self.writes = log_level <= log_config.TIMING
        self.clock: HostClock = ModelledClock() if crew.platform.clocked else WallClock()
        self.clock.advance(ARENA_BUILD_NS)  # the ranks have built theirs
        description = chip(crew.platform.chip)
        host = description.host
        self.run_ns, self.task_ns = round(host.run.value), round(host.run_subtask.value)
        self.hop_ns = round(host.mailbox.value)
        self.ranks = RankClock(description, self.hop_ns)

    def begin(self) -> RunClock:
        """A new run starts now."""
        return RunClock(self)


class RunClock:
    """One run."""

    def __init__(self, times: RunTimes):
        self.times = times
        self.start_ns = times.clock.now_ns()
        self.built_ns = self.start_ns
        self.writes_files = False

    def built(self, tasks: Sequence[Task]) -> None:
        """The driver has recorded its tasks."""
        times = self.times
        times.clock.advance(times.run_ns + times.task_ns * len(tasks))
        self.built_ns = times.clock.now_ns()

    def finish(
        self,
        tasks: Sequence[Task],
        done: Mapping[int, Done],
        run: int,
        writes_files: bool = False,
        explains: bool = False,
    ) -> RanksExplanation | None:
        """Everything has run: find the times, let the ranks write their markers, write the parent's.

        ``writes_files``: the ranks also write diagnostics, which takes long enough to be waited for. ``explains``: the
        answer says what the time went on.
        """
        self.writes_files = writes_files
        modelled, explanation = self.times.crew.platform.clocked, None
        if modelled or writes_files:
            clocked = self._clocked(tasks, done)
            settled = self.times.ranks.settle(clocked, self._ask)
            explanation = self._explained(clocked, settled, tasks) if explains else None
            self._release(clocked)
        spans = self._modelled(clocked) if modelled else self._measured(tasks, done)
        if self.times.writes:
            self._write(tasks, spans, run)
        return explanation

    def _clocked(self, tasks: Sequence[Task], done: Mapping[int, Done]) -> list[ClockedTask]:
        times = self.times
        order = {t.number: i for i, t in enumerate(tasks)}
        return [
            ClockedTask(
                t.number,
                t.target,
                tuple(sorted(t.after)),
                times.run_ns + times.task_ns * (order[t.number] + 1),
                done[t.number],
            )
            for t in tasks
            if t.kind == CHIP
        ]

    def _modelled(self, clocked: Sequence[ClockedTask]) -> dict[int, tuple[int, int]]:
        times = self.times
        end = max((t.end_ns for t in clocked), default=0)
        times.clock.advance(max(0, self.start_ns + end + times.hop_ns - times.clock.now_ns()))
        return {t.number: (self.start_ns + t.start_ns, self.start_ns + t.end_ns) for t in clocked}

    def _explained(self, clocked: Sequence[ClockedTask], settled: Settled, tasks: Sequence[Task]) -> RanksExplanation:
        """What every rank says of its launches, and whom they waited for."""
        from pypto.runtime.ranks_explanation import ranks_explanation

        numbers: dict[int, list[int]] = {}
        for task in clocked:
            numbers.setdefault(task.rank, []).append(task.number)
        answers = self._ask({rank: Explain(tuple(mine)) for rank, mine in numbers.items()})
        told = {number: one for rank, mine in numbers.items() for number, one in zip(mine, answers[rank].explanations)}
        names = {t.number: t.program.callable.name for t in tasks if t.program is not None}
        return ranks_explanation(clocked, self.times.ranks.senders(clocked, settled), told, names)

    def _ask(self, requests: Mapping[int, Any]) -> dict[int, Any]:
        """All ranks time, or explain, their dispatches at once."""
        crew = self.times.crew
        asked = {
            crew.chips[rank].connection: rank for rank, request in requests.items() if crew.chips[rank].send(request)
        }
        answers = self._answers(asked)
        lost = [rank for rank in requests if rank not in answers]
        if lost:
            process = crew.chips[lost[0]]
            crew.broken = f"{process.name} (pid {process.pid}) {process.end_text()} while it timed its launches"
            raise RankError(f"{crew.broken}; close this worker and open another")
        return answers

    def _answers(self, asked: dict[Any, int]) -> dict[int, Any]:
        """What the ranks in ``asked`` (by connection) answer; one that is gone is missing."""
        answers: dict[int, Any] = {}
        try:
            self._collect(asked, answers, None)
        except BaseException:  # an interruption: what is still to come must not be taken for an answer of the next run
            self._collect(asked, answers, time.monotonic() + GRACE_S)
            self._end_silent(asked)
            raise
        return answers

    def _collect(self, asked: dict[Any, int], answers: dict[int, Any], deadline: float | None) -> None:
        """Answers of the ranks in ``asked``, which loses those that answered or are gone."""
        crew, pulses = self.times.crew, Pulses()
        while asked:
            keys = crew.interruption.sources if deadline is None else []
            left_s = LOOK_S if deadline is None else min(LOOK_S, deadline - time.monotonic())
            if left_s < 0:
                return
            ready: list[Any] = wait([*asked, *keys], left_s)
            for source in ready:
                if source in asked:
                    rank = asked.pop(source)
                    with contextlib.suppress(EOFError, OSError):
                        answers[rank] = source.recv()
            if deadline is None:
                crew.interruption.check()
            for process in pulses.stalled(crew.chips[rank] for rank in asked.values()):
                process.give_up(f"did nothing for {pulses.stalled_s:g} s and was ended")

    def _end_silent(self, asked: Mapping[Any, int]) -> None:
        """Ranks that did not answer in time after an interruption: they can take no further part."""
        crew = self.times.crew
        for rank in asked.values():
            crew.broken = f"{crew.chips[rank].name} did not stop when the run was interrupted"
            crew.chips[rank].kill()

    def _release(self, clocked: Sequence[ClockedTask]) -> None:
        by_rank: dict[int, list[ClockedTask]] = {}
        for task in clocked:
            by_rank.setdefault(task.rank, []).append(task)
        asked: dict[Any, int] = {}
        for rank, mine in by_rank.items():
            starts = tuple(self.start_ns + t.start_ns for t in mine)
            chip = self.times.crew.chips[rank]
            if chip.send(Finish(tuple(t.number for t in mine), starts, self.writes_files)) and self.writes_files:
                asked[chip.connection] = rank
        if asked:
            self._answers(asked)

    def _measured(self, tasks: Sequence[Task], done: Mapping[int, Done]) -> dict[int, tuple[int, int]]:
        return {t.number: (self.built_ns, done[t.number].finished_ns) for t in tasks if t.kind == CHIP}

    # --- markers ------------------------------------------------------------------------------------------------------

    def _write(self, tasks: Sequence[Task], spans: Mapping[int, tuple[int, int]], run: int) -> None:
        times = self.times
        now = times.clock.now_ns()
        for task in tasks:
            if task.number not in spans:
                continue
            first, last = spans[task.number]
            identity = (
                f"run_id={run} task_slot={task.number} group_index=0 worker_id={task.target} dispatch_id=1 "
                "endpoint_kind=local_mailbox prepare_only=0"
            )
            hid = _task_hid(task)
            frame = times.hop_ns // _FRAME_SHARE if times.clock.modelled else 0
            submit = (
                self.start_ns + times.run_ns + times.task_ns * task.number if times.clock.modelled else self.start_ns
            )
            markers.write_spans(
                Launch(run, hid),
                [
                    Span(
                        "node.frame_submit",
                        0,
                        first - times.hop_ns if times.clock.modelled else first,
                        frame,
                        f"{identity} role=worker",
                    ),
                    Span(
                        "node.dispatch",
                        0,
                        first - times.hop_ns if times.clock.modelled else first,
                        frame,
                        f"{identity} role=scheduler slot_id=0 generation={run}",
                    ),
                    Span(
                        "node.submit",
                        0,
                        submit,
                        times.task_ns if times.clock.modelled else 0,
                        f"run_id={run} task_slot={task.number} group_index=0 group_size=1 "
                        f"worker_id={task.target} role=facade",
                    ),
                    Span("node.complete", 0, last, 0, f"{identity} role=worker outcome=0"),
                ],
                written_ns=now,
            )
        markers.write_spans(
            Launch(run, "0"),
            [
                Span("node.graph_build", 0, self.start_ns, self.built_ns - self.start_ns, f"run_id={run} role=facade"),
                Span("node.post_fence_retirement", 0, now, 0, f"run_id={run} slot_id=0 generation={run} role=facade"),
            ],
            written_ns=now,
        )


def _task_hid(task: Task) -> str:
    return f"{fnv1a_64(task.program.callable.digest.encode()):x}" if task.program is not None else "0"

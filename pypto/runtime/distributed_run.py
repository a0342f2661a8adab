"""One run of a distributed program: its tasks executed in dependency order, its failures turned into one error."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final

from pypto.runtime.distributed_host import CHIP, HostTensor, HostWindow, Task
from pypto.runtime.distributed_runner import SubCall
from pypto.runtime.rank_checks import deadlock_finding
from pypto.runtime.rank_deadlocks import Standstill, waits_now
from pypto.runtime.ranks import GRACE_S, RankProcess
from pypto.runtime.ranks_exchange import GO, holds
from pypto.runtime.ranks_protocol import (
    Abandoned,
    Blocked,
    Dispatch,
    Done,
    Failed,
    Recall,
    Recalled,
    TensorWords,
)
from pypto.runtime.ranks_pulse import LOOK_S, Pulses
from pypto.sim.checks.findings import CheckError, Finding, WaitError
from pypto.sim.checks.selection import NONE, Checks

if TYPE_CHECKING:
    from pypto.runtime.distributed_crew import Crew
    from pypto.runtime.distributed_memory import CardMemory

# When every rank says it sleeps, the parent looks twice that none was woken in between; this long apart.
SECOND_LOOK_S: Final = 0.05


class RankError(RuntimeError):
    """A run failed on a rank; the text names the rank, the dispatch and what happened there."""


class RankDeadlockError(RankError):
    """Every rank waits for a signal that nobody will send."""


class RankCheckError(CheckError, RankError):
    """Checks found something on a rank or between ranks."""

    def __init__(self, findings: Sequence[Finding], text: str = ""):
        super().__init__(findings)
        if text:
            self.args = (text,)


class RankWaitError(WaitError, RankDeadlockError):
    """Every rank waits for a signal that nobody will send; ``findings`` says what to change."""

    def __init__(self, findings: Sequence[Finding], text: str = ""):
        super().__init__(findings)
        if text:
            self.args = (text,)


@dataclass
class Execution:
    """State of one run."""

    crew: Crew
    tasks: Sequence[Task]
    run: int
    config: Any
    cards: Sequence[CardMemory]
    checks: Checks = NONE
    in_turns: bool = field(init=False)
    done: dict[int, Done] = field(default_factory=dict)
    _queues: dict[int, list[Task]] = field(default_factory=dict)
    _subs: list[Task] = field(default_factory=list)
    _flying: dict[int, Task] = field(default_factory=dict)  # chip rank -> its task
    _calls: dict[int, Task] = field(default_factory=dict)  # sub process -> its task
    _blocked: dict[int, Blocked] = field(default_factory=dict)
    _index: dict[int, int] = field(default_factory=dict)
    _turn: int = -1
    _failure: RankError | None = None
    _still: Standstill | None = None
    _pulses: Pulses = field(default_factory=Pulses)

    def __post_init__(self) -> None:
        self.in_turns = any(t.program is not None and t.program.in_turns for t in self.tasks)
        for task in self.tasks:
            (self._queues.setdefault(task.target, []) if task.kind == CHIP else self._subs).append(task)

    def execute(self) -> dict[int, Done]:
        """Run everything; raises :class:`RankError` once all ranks are quiet again."""
        try:
            self._send()
            while self._flying or self._calls:
                self._receive(SECOND_LOOK_S if self._all_blocked() and not self.in_turns else LOOK_S)
                self.crew.interruption.check()
                self._end_stalled()
                self._send()
                if not self.in_turns and self._all_blocked() and not self._calls:
                    self._look_for_deadlock()
        except BaseException:
            self._quiet()
            raise
        if self._still is not None:
            raise self._deadlocked(self._still)
        if self._failure is not None:
            raise self._failure
        if len(self.done) != len(self.tasks):
            left = next(t for t in self.tasks if t.number not in self.done)
            raise RankError(f"{left.name} never became ready; it waits for tasks {sorted(left.after)}")
        return self.done

    # --- sending ------------------------------------------------------------------------------------------------------

    def _ready(self, task: Task) -> bool:
        return self._failure is None and all(a in self.done for a in task.after)

    def _send(self) -> None:
        for process in range(len(self.crew.subs)):
            ready = next((t for t in self._subs if self._ready(t)), None)
            if process not in self._calls and ready is not None:
                self._subs.remove(ready)
                self._calls[process] = ready
                self._deliver(
                    self.crew.subs[process],
                    SubCall(ready.number, ready.name, tuple(map(_words, ready.arguments))),
                    ready,
                )
        if self.in_turns:
            self._next_turn()
            return
        for rank, queue in list(self._queues.items()):  # a rank that is lost empties them
            if queue and rank not in self._flying and self._ready(queue[0]):
                self._start(rank, queue.pop(0))

    def _start(self, rank: int, task: Task) -> None:
        assert task.program is not None
        index = self._index[rank] = self._index.get(rank, -1) + 1
        arguments = tuple(self._argument(value, rank) for value in task.arguments)
        space = self.cards[rank].space
        dispatch = Dispatch(
            task.number, index, task.program.number, arguments, self.config, self.run, task.place,
            space.behind, tuple(space.take_fresh()),
        )  # fmt: skip
        self._flying[rank] = task
        self._deliver(self.crew.chips[rank], (dispatch, self.in_turns), task)

    def _deliver(self, process: RankProcess, message: Any, task: Task) -> None:
        if not process.send(message):
            self._lost(process, task)

    def _argument(self, value: Any, rank: int) -> Any:
        if isinstance(value, HostWindow):
            address, context = value.domain.address(value.buffer, rank), value.domain.context(rank)
            device = value.domain.device(value.buffer, rank)
            return TensorWords(address, value.shape, value.dtype.code(), True, context, device)
        words = _words(value)
        if isinstance(words, TensorWords) and words.resident:
            return dataclasses.replace(words, device=self.cards[rank].device_address(words.address))
        return words

    def _next_turn(self) -> None:
        """Give the turn to the next rank that can use it."""
        if any(rank not in self._blocked for rank in self._flying):
            return
        ranks = self.crew.world_size
        for step in range(1, ranks + 1):
            rank = (self._turn + step) % ranks
            blocked = self._blocked.get(rank)
            if blocked is not None and (self._failure or any(holds(*w) for w in blocked.waits)):
                self._turn = rank
                del self._blocked[rank]
                self.crew.chips[rank].send(GO)
                return
            queue = self._queues.get(rank, [])
            if rank not in self._flying and queue and self._ready(queue[0]):
                self._turn = rank
                self._start(rank, queue.pop(0))
                return
        if self._flying and not self._calls:
            self._deadlock()
            self._next_turn()

    # --- receiving ----------------------------------------------------------------------------------------------------

    def _receive(self, timeout: float, keys: bool = True) -> None:
        sources: dict[Any, tuple[RankProcess, int, bool]] = {}
        for kind, processes, busy in ((True, self.crew.chips, self._flying), (False, self.crew.subs, self._calls)):
            for number in busy:
                sources[processes[number].connection] = (processes[number], number, kind)
                sources[processes[number].sentinel] = (processes[number], number, kind)
        for source in wait([*sources, *(self.crew.interruption.sources if keys else ())], timeout):
            if source in sources:
                self._take(*sources[source])

    def _end_stalled(self) -> None:
        """A rank that neither works nor says that it waits will never answer."""
        busy = [self.crew.chips[rank] for rank in self._flying if rank not in self._blocked]
        for process in self._pulses.stalled(busy):
            process.give_up(f"did nothing for {self._pulses.stalled_s:g} s and was ended")

    def _take(self, process: RankProcess, number: int, is_chip: bool) -> None:
        busy = self._flying if is_chip else self._calls
        if number not in busy:
            return
        try:
            if not process.connection.poll():
                if process.alive:
                    return
                raise EOFError
            message = process.connection.recv()
        except (EOFError, OSError):
            self._lost(process, busy[number])
            return
        if isinstance(message, Blocked):
            self._blocked[number] = message
            return
        task = busy.pop(number)
        self._blocked.pop(number, None)
        if isinstance(message, Done):
            self.done[task.number] = message
        elif isinstance(message, Failed):
            self._fail(self._failure_of(task, number, is_chip, message))
        elif not isinstance(message, Abandoned):
            self._fail(RankError(f"{process.name} answered with {type(message).__name__}"))

    def _failure_of(self, task: Task, number: int, is_chip: bool, message: Failed) -> RankError:
        if not is_chip:
            return RankError(
                f"sub-worker {task.name!r} failed\n{message.trace}sub_worker: {message.kind}: {message.text}"
            )
        place = f"\ndispatched at {task.place}" if task.place else ""
        text = (
            f"rank {number} (device {self.crew.device_ids[number]}) failed in {task.name}: "
            f"{message.kind}: {message.text}{place}\n"
            f"traceback of rank {number}:\n{message.trace.rstrip()}"
        )
        if message.findings:
            waits = message.findings[0].kind == "deadlock"
            return RankWaitError(message.findings, text) if waits else RankCheckError(message.findings, text)
        return (RankDeadlockError if message.kind == "DeadlockError" else RankError)(text)

    # --- failures -----------------------------------------------------------------------------------------------------

    def _fail(self, error: RankError) -> None:
        """Note the first failure and let every other rank give up."""
        if self._failure is None:
            self._failure = error
            self.crew.board.abandon(self.run)
            self._queues.clear()
            self._subs.clear()

    def _lost(self, process: RankProcess, task: Task) -> None:
        """A process is gone: it takes no further part."""
        self.crew.broken = f"{process.name} (pid {process.pid}) {process.end_text()} while it ran {task.name}"
        for busy in (self._flying, self._calls):
            for number in [n for n, t in busy.items() if t is task]:
                del busy[number]
                self._blocked.pop(number, None)
        self._fail(
            RankError(f"{self.crew.broken}: exited before mailbox completion; close this worker and open another")
        )

    def _all_blocked(self) -> bool:
        return bool(self._flying) and all(rank in self._blocked for rank in self._flying)

    def _look_for_deadlock(self) -> None:
        """Every rank has said that it sleeps. When none was woken between two looks and no cell is what is waited for,
        no rank ran in between, and none ever will."""
        if (
            self._failure is not None
            or not self._sleeping()
            or any(holds(*w) for b in self._blocked.values() for w in b.waits)
        ):
            return
        if self._sleeping():
            self._deadlock()

    def _sleeping(self) -> bool:
        return all(self.crew.board.asleep(rank) == self._blocked[rank].asleep for rank in self._flying)

    def _deadlock(self) -> None:
        """Nothing can move: note who waits for what, and let the ranks give up and say what they have told."""
        self._still = Standstill(
            self.crew.device_ids,
            {rank: task.name for rank, task in self._flying.items()},
            {rank: waits_now(rank, self._blocked[rank]) for rank in self._flying},
            frozenset(range(self.crew.world_size)) - {task.target for task in self.tasks if task.kind == CHIP},
            self._held_back(),
        )
        self._fail(RankDeadlockError("deadlock"))

    def _deadlocked(self, still: Standstill) -> RankError:
        """The error, once all ranks are quiet."""
        still = dataclasses.replace(still, recalled=self._recall())
        lines, names = still.lines(), tuple(dict.fromkeys(still.dispatches.values()))
        ahead = bool(still.ahead()) or not still.recalled
        finding = deadlock_finding(lines, names, still.setting(), still.silent(), ahead)
        finding = dataclasses.replace(finding, locations=still.places())
        if not self.checks.kinds & {"deadlock", finding.kind}:
            return RankDeadlockError("\n".join(lines))
        return RankWaitError([finding], f"{finding.message}\nto repair: {finding.suggestion}")

    def _recall(self) -> dict[int, Recalled]:
        """What every rank has told others in this run; nothing when a rank is lost."""
        found = {}
        for rank, process in enumerate(self.crew.chips):
            if self.crew.broken or not process.send(Recall(self.run)) or not process.connection.poll(GRACE_S):
                return {}
            found[rank] = process.connection.recv()
        return found

    def _held_back(self) -> list[str]:
        """Dispatches that have not started because they read what a waiting one writes."""
        lines = []
        for rank, queue in sorted(self._queues.items()):
            if queue and rank not in self._flying:
                task = queue[0]
                flying = [f"{t.name} on rank {r}" for r, t in sorted(self._flying.items()) if t.number in task.after]
                if flying:
                    place = f"\n  dispatched at {task.place}" if task.place else ""
                    lines.append(
                        f"rank {rank} has not started {task.name}: it uses a whole buffer that {', '.join(flying)} "
                        f"writes{place}"
                    )
        advice = "dependencies follow whole buffers: read and write different ones"
        return [*lines[:8], advice] if lines else []

    def _quiet(self) -> None:
        """After an interruption: every rank gives up and answers, or is ended."""
        self._fail(RankError("interrupted"))
        deadline = time.monotonic() + GRACE_S
        while (self._flying or self._calls) and time.monotonic() < deadline:
            if self.in_turns:
                for rank in list(self._blocked):
                    del self._blocked[rank]
                    self.crew.chips[rank].send(GO)
            self._receive(0.05, keys=False)
        left = [*(self.crew.chips[r] for r in self._flying), *(self.crew.subs[s] for s in self._calls)]
        if left:
            self.crew.broken = f"{', '.join(p.name for p in left)} did not stop when the run was interrupted"
            for process in left:
                process.kill()


def _words(value: Any) -> Any:
    if isinstance(value, HostTensor):
        return TensorWords(value.address, value.shape, value.dtype.code(), value.worker is not None)
    return value

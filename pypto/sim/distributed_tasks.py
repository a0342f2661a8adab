"""Tasks that signal other ranks or wait for them.

Other tasks run to their end when they are submitted. A task that waits for another rank may have to wait for a task
that is submitted later, here or there: it is set aside, and so is every task that depends on it. Set-aside tasks go on
when the orchestration needs one of them, at its end, or when no core is left for a new one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from pypto.sim import opcodes as op
from pypto.sim.crew import Channels, Seat, resume
from pypto.sim.faults import DeadlockError, where
from pypto.sim.frames import Core, Trace
from pypto.sim.recording import Words
from pypto.sim.tasks import TaskPlan
from pypto.sim.told_signals import ToldSignals, cell_operand, notifies
from pypto.sim.wait_answers import answers
from pypto.sim.waiting import overdue, waits_text

if TYPE_CHECKING:
    from pypto.sim.launch import Launch
    from pypto.sim.tile_program import TileProgram


@dataclass(frozen=True)
class Waiting:
    """A block that waits for a signal cell: where the cell is, what it must hold, who waits, the name of the cell."""

    address: int
    expected: int
    comparison: int
    text: str
    cell: int


class Exchange(Protocol):
    """How a launch reaches the other ranks; ``told``: what it has told them."""

    told: ToldSignals

    def wake(self, rank: int) -> None:
        """A signal cell of ``rank`` was changed."""

    def sleep(self, waits: Sequence[Waiting]) -> None:
        """Return when one of the cells may have changed; raises when none ever will."""

    def check(self) -> None:
        """Raise when the run was given up."""


@dataclass
class SetAside:
    """A task that has started and waits, or that waits for one to start."""

    task: int
    plan: TaskPlan
    values: Words
    blocks: int
    running: list[Seat] = field(default_factory=list)
    done: list[Seat] = field(default_factory=list)
    cores: list[Core] = field(default_factory=list)
    channels: Channels | None = None
    next_block: int = 0

    @property
    def signals(self) -> bool:
        return any(member.program.signals for member in self.plan.members)

    @property
    def seats_per_block(self) -> int:
        return sum(len(member.cores) for member in self.plan.members)

    @property
    def started(self) -> bool:
        return self.next_block > 0

    @property
    def finished(self) -> bool:
        return self.started and self.next_block == self.blocks and not self.running


class PendingTasks:
    """The set-aside tasks of one launch, in submit order."""

    def __init__(self, launch: Launch, exchange: Exchange | None):
        self.launch, self.exchange = launch, exchange
        self.tasks: dict[int, SetAside] = {}
        self._ready: dict[int, SetAside] = {}
        """Those that wait for no other task any more."""
        self._missing: dict[int, int] = {}
        """How many tasks each of the others waits for."""
        self._followers: defaultdict[int, list[int]] = defaultdict(list)
        self._released: list[int] = []
        self._free: list[Core] = []
        self.deferred = 0
        """Tasks that a deferred wait has held back at once, at most."""
        self._deferred_now: set[int] = set()
        self.first_deferred: tuple[TileProgram, int] | None = None

    def start(self, task: int, plan: TaskPlan, values: Words, blocks: int, producers: Sequence[int]) -> None:
        """Run a task that was just submitted, as far as it can go now."""
        waiting = {p for p in producers if p in self.tasks}
        entry = SetAside(task, plan, values, blocks)
        if not waiting and not entry.signals:
            self._begin(entry)
            self.launch.run_task(plan, values, blocks)
            self._end(entry)
            return
        self.tasks[task] = entry
        if waiting:
            self._missing[task] = len(waiting)
            for producer in waiting:
                self._followers[producer].append(task)
            return
        self._ready[task] = entry
        self._advance(entry)
        self._retire()

    def _remove(self, task: int) -> None:
        """A task has ended: those that waited for it alone are ready."""
        del self.tasks[task], self._ready[task]
        for follower in self._followers.pop(task, ()):
            self._missing[follower] -= 1
            if not self._missing[follower]:
                del self._missing[follower]
                self._ready[follower] = self.tasks[follower]
                self._released.append(follower)

    def _ready_in_order(self) -> list[SetAside]:
        return [self._ready[task] for task in sorted(self._ready)]

    def _begin(self, entry: SetAside) -> None:
        if self.launch.watch is not None:
            self.launch.watch.begin(entry.task, entry.plan)
        if self.launch.log is not None and not entry.started:
            self.launch.log.before(entry.task)

    def _end(self, entry: SetAside) -> None:
        if self.launch.log is not None:
            self.launch.log.after(entry.task)

    def wait_for(self, tasks: Iterable[int]) -> None:
        """Return when all of ``tasks`` are done."""
        wanted = set(tasks)
        while wanted & self.tasks.keys():
            self._step()

    def drain(self) -> None:
        """Return when every task is done."""
        while self.tasks:
            self._step()

    # --- progress -----------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        """Let everything go on that can; sleep when nothing can."""
        moved = False
        turns = sorted(self._ready)
        self._released.clear()
        while turns:
            moved = self._advance(self._ready[heappop(turns)]) or moved
            while self._released:
                heappush(turns, self._released.pop())
        moved = self._retire() or moved
        if not moved:
            self._sleep()

    def _retire(self) -> bool:
        finished = [entry for entry in self._ready_in_order() if entry.finished]
        for entry in finished:
            self._record(entry)
            self._end(entry)
            if entry.channels is not None:
                self.launch.left_behind += [(entry.plan, left) for left in entry.channels.left_behind()]
            self._free.extend(entry.cores)
            self._deferred_now.discard(entry.task)
            self._remove(entry.task)
        return bool(finished)

    def _advance(self, entry: SetAside) -> bool:
        """Start blocks while cores are free and run those that can; True when anything moved."""
        if not entry.signals:
            self._begin(entry)
            self.launch.run_late(entry.task, entry.plan, entry.values, entry.blocks)
            self._end(entry)
            self._remove(entry.task)
            return True
        moved = self._start_blocks(entry)
        for seat in list(entry.running):
            moved = self._resume(entry, seat) or moved
        return moved

    def _start_blocks(self, entry: SetAside) -> bool:
        started: list[list[Seat]] = []
        self._begin(entry)
        while entry.next_block < entry.blocks and self._has_room(entry):
            started.append(self._seat_block(entry))
            entry.running += started[-1]
            entry.next_block += 1
        programs = [member.program for member in entry.plan.members]
        if self.launch.watch is not None and any(program.waits for program in programs):
            crews = [sum(started, [])] if any(program.spans_blocks for program in programs) else started
            for seats in crews:
                if seats:
                    seats[0].frame.watch.together(seats)  # type: ignore[union-attr]
        return bool(started)

    def _seat_block(self, entry: SetAside) -> list[Seat]:
        """The next block of a task, on cores of its own."""
        if entry.channels is None:
            entry.channels = Channels.of(entry.plan, entry.blocks)
            entry.channels.reset(entry.plan, entry.blocks)
        block, seats = entry.next_block, []
        for member in entry.plan.members:
            for core in member.cores:
                holder = self._free.pop() if self._free else self.launch.workspace.new_core()
                entry.cores.append(holder)
                frame = holder.frames([member.program])[0]
                frame.start(member.places, entry.values, block, entry.blocks, core, record=self.launch.record)
                frame.words[op.CHANNELS] = entry.channels.clusters[block].ctypes.data
                seats.append(Seat(frame, block, core, Trace()))
        return seats

    def _has_room(self, entry: SetAside) -> bool:
        """Whether the chip has cores for one more block, beside those that blocked tasks hold."""
        held = [seat.core for other in self._ready.values() for seat in other.running if not self._is_deferred(seat)]
        wanted = [core for member in entry.plan.members for core in member.cores]
        vectors = sum(core > 0 for core in (*held, *wanted))
        cubes = sum(core == 0 for core in (*held, *wanted))
        return vectors <= 2 * self.launch.clusters and cubes <= self.launch.clusters

    @staticmethod
    def _is_deferred(seat: Seat) -> bool:
        return _mnemonic(seat) == "signal_defer"

    def _resume(self, entry: SetAside, seat: Seat) -> bool:
        """Run one block until it waits or ends; True when it got anywhere."""
        moved = False
        while True:
            before = _place(seat)
            status = resume(seat, [*entry.running, *entry.done], self.launch.allocations)
            if status == op.NOTIFIED:
                self._wake(seat)
            elif status == op.OUT_OF_FUEL:
                self._check()
            elif status == op.BLOCKED:
                self._note_deferred(entry, seat)
                return moved or _place(seat) != before
            else:
                entry.running.remove(seat)
                entry.done.append(seat)
                return True
            moved = True

    def _note_deferred(self, entry: SetAside, seat: Seat) -> None:
        """A block is blocked: count its task while it is one that a deferred wait holds back."""
        if not self._is_deferred(seat):
            return
        self._deferred_now.add(entry.task)
        if len(self._deferred_now) > self.deferred:
            self.deferred = len(self._deferred_now)
            self.first_deferred = seat.frame.program, int(seat.frame.words[op.SITE])

    # --- the other ranks ----------------------------------------------------------------------------------------------

    def _wake(self, seat: Seat) -> None:
        """A block has notified."""
        if self.exchange is not None:
            self.exchange.told.note(seat)
            self.exchange.wake(int(seat.frame.words[op.DETAIL]))

    def _check(self) -> None:
        if self.exchange is not None:
            self.exchange.check()

    def _sleep(self) -> None:
        blocked = [(entry, seat) for entry in self._ready_in_order() for seat in entry.running]
        waits = [w for entry, seat in blocked if (w := self._waiting(entry, seat)) is not None]
        if self.exchange is None or not waits:
            lines = ["deadlock: no block of this chip can go on", *map(_describe, blocked), *self._starved()]
            error = DeadlockError("\n".join(lines))
            error.waiting = tuple((seat.frame.program, int(seat.frame.words[op.SITE])) for _, seat in blocked)
            crews = [
                (entry.running, [*entry.running, *entry.done]) for entry in self._ready_in_order() if entry.running
            ]
            error.overdue = tuple(found for waiting, seats in crews for found in overdue(waiting, seats))
            error.answers = tuple(answer for waiting, seats in crews for answer in answers(waiting, seats))
            raise error
        others = [_describe((entry, seat)) for entry, seat in blocked if self._waiting(entry, seat) is None]
        starved = "".join(f"\n{line}" for line in (*self._starved(), *others))
        texts = [waits[0].text + starved, *(w.text for w in waits[1:])]
        try:
            self.exchange.sleep([replace(w, text=text) for w, text in zip(waits, texts)])
        except Exception:
            later = [m.program for entry in self.tasks.values() if not entry.started for m in entry.plan.members]
            self.exchange.told.note_ahead([seat for _, seat in blocked], later)
            raise

    def _waiting(self, entry: SetAside, seat: Seat) -> Waiting | None:
        if _mnemonic(seat) not in ("signal_wait", "signal_defer"):
            return None
        words = seat.frame.words
        address, expected, comparison = (int(word) for word in words[op.DETAIL : op.DETAIL + 3])
        return Waiting(address, expected, comparison, _describe((entry, seat)), int(words[op.ARGUMENTS]))

    def _starved(self) -> list[str]:
        """Tasks that could start if blocked ones did not hold the cores."""
        ready = [entry for entry in self._ready_in_order() if not entry.started]
        if not ready:
            return []
        telling = [entry for entry in ready if _notifies(entry)]
        names = ", ".join(dict.fromkeys(entry.plan.request.kernel for entry in telling or ready))
        end = "; it sends signals" if telling else ""
        return [f"  {names} cannot start: blocked waits hold every core; use pld.system.defer_wait{end}"]

    # --- recording ----------------------------------------------------------------------------------------------------

    def _record(self, entry: SetAside) -> None:
        trace, recorder = self.launch.workspace.trace, self.launch.recorder
        order = {id(member.program): number for number, member in enumerate(entry.plan.members)}
        rows = []
        for seat in sorted(entry.done, key=lambda s: (s.block, order[id(s.frame.program)], s.core)):
            first = trace.used
            trace.append(seat.trace)
            rows.append((recorder.program(seat.frame.program), seat.block, max(seat.core - 1, 0), first, trace.used))
        recorder.place(entry.task, rows)


def _notifies(entry: SetAside) -> bool:
    """Whether a task sends a signal."""
    return any(True for member in entry.plan.members for _ in notifies(member.program))


def _place(seat: Seat) -> tuple[int, int, int]:
    words = seat.frame.words
    return int(words[op.PC]), int(words[op.ARRIVED]), seat.trace.used


def _mnemonic(seat: Seat) -> str:
    statement = seat.frame.program.statements[int(seat.frame.words[op.SITE])]
    return str(getattr(statement, "mnemonic", ""))


def _describe(blocked: tuple[SetAside, Seat]) -> str:
    """Which block waits where, for what."""
    entry, seat = blocked
    words, program = seat.frame.words, seat.frame.program
    name = _mnemonic(seat)
    if name not in ("signal_wait", "signal_defer"):
        return waits_text(seat, entry.running, [*entry.running, *entry.done])
    index = int(words[op.SITE])
    signal, cell = cell_operand(seat, index)
    value = "" if not words[op.DETAIL] else f", holds {_cell_value(int(words[op.DETAIL]))}"
    comparison = "==" if int(words[op.DETAIL + 2]) == 0 else ">="
    verb = "wait" if name == "signal_wait" else "deferred wait"
    return (
        f"  {verb} of {program.name}, block {seat.block} of {entry.blocks}: signal {signal}[{cell}] {comparison} "
        f"{int(words[op.DETAIL + 1])}{value}{where(program, index)}"
    )


def _cell_value(address: int) -> int:
    import ctypes

    return ctypes.c_int32.from_address(address).value


__all__ = ["Exchange", "PendingTasks", "Waiting"]

"""Findings about queues between cores, and about events: misuse, slots that nobody frees, what tasks leave behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pypto.sim.checks import words as w
from pypto.sim.checks.findings import Finding, Location
from pypto.sim.checks.places import element_register, location, operand_at, operation
from pypto.sim.faults import source_place
from pypto.sim.queue_state import FREES, POPS, PUSHES, EventState, QueueState
from pypto.sim.syntax import Instruction, Register
from pypto.sim.wait_answers import queue_uses
from pypto.sim.waiting import core_name

if TYPE_CHECKING:
    from pypto.sim.checks.watch import LaunchWatch
    from pypto.sim.crew import LeftBehind
    from pypto.sim.faults import DeadlockError
    from pypto.sim.queue_faults import QueueError
    from pypto.sim.recording import Words
    from pypto.sim.tasks import TaskPlan
    from pypto.sim.tile_program import TileProgram
    from pypto.sim.waiting import Overdue

Site = tuple["TileProgram", int]


def misused_queue(failure: QueueError, message: str) -> Finding:
    """A push, pop or free that does not fit what was done before it."""
    assert failure.site is not None
    program, index = failure.site
    verb = {"tpush": "pushes", "tpop_": "pops", "tfree": "frees"}.get(_mnemonic(program, index)[:5], "waits")
    places = [location(program, index, f"'{program.name}' {verb}")]
    places += [location(other, at, what) for other, at, what in failure.others]
    tasks = dict.fromkeys((program.name, *(other.name for other, _, _ in failure.others)))
    return Finding(
        "fifo", message, failure.subject, tuple(tasks), tuple(places), None, failure.index_ranges, failure.repair
    )


def overdue_finding(failure: DeadlockError, overdue: Overdue) -> Finding:
    """A sender that waits for ever because the tiles of a queue are popped and never freed."""
    queue, sender, receiver = overdue.queue, overdue.sender.frame.program, overdue.receiver.frame.program
    held, pops = queue.held, dict.fromkeys(slot.pop for slot in queue.held)
    pushes = dict.fromkeys(slot.push for slot in queue.slots)
    first = receiver.author(_tile_of(receiver, next(iter(pops))))
    message = (
        f"'{sender.name}' waits for ever for a free slot of queue {queue.channel} ({PUSHES[queue.direction]}, depth "
        f"{queue.depth}): '{receiver.name}' has popped {_count(queue.popped)} and freed {queue.freed}; "
        f"{_tiles(held[0].sequence, held[-1].sequence)}, popped into '{first}', {_be(len(held))} not freed\n{failure}"
    )
    places = [location(sender, push, f"'{sender.name}' pushes") for push in pushes]
    places += [location(receiver, pop, f"'{receiver.name}' pops") for pop in pops]
    places += [location(*site, f"'{receiver.name}' frees") for site in _sites([receiver], FREES, queue)]
    ranges = ((held[0].sequence, held[-1].sequence + 1),)
    return Finding(
        "fifo", message, first, (sender.name, receiver.name), tuple(dict.fromkeys(places)), None, ranges,
        _free_repair(receiver, queue, list(pops)) + _in_time(overdue),
    )  # fmt: skip


def _in_time(overdue: Overdue) -> str:
    """What else helps a receiver that means to free, but asks for one tile more before."""
    queue, program = overdue.queue, overdue.receiver.frame.program
    if overdue.ended or not queue_uses(program, FREES, queue):
        return ""
    return f", and before the pop that waits; or let the ring hold more than {_count(queue.depth)} (slot_num)"


def left_behind_findings(left: Sequence[tuple[TaskPlan, LeftBehind]]) -> Iterator[Finding]:
    """One finding per task and queue or event of which something is left: the next task on the core starts with it."""
    seen: set[tuple[object, ...]] = set()
    for plan, found in left:
        for queue in found.queues:
            key = plan.request.kernel, queue.direction, queue.channel, queue.pushed == queue.popped
            if key not in seen:
                seen.add(key)
                yield _unpopped(plan, queue) if queue.pushed > queue.popped else _unfreed(plan, queue)
        for event in found.events:
            if (plan.request.kernel, event.event, event.core) not in seen:
                seen.add((plan.request.kernel, event.event, event.core))
                yield _unawaited(plan, event)


def _programs(plan: TaskPlan) -> list[TileProgram]:
    return [member.program for member in plan.members]


def _program_of(plan: TaskPlan, core: int) -> TileProgram:
    """What runs on a core of a block."""
    return next((m.program for m in plan.members if core in m.cores), plan.members[0].program)


def _tasks(plan: TaskPlan) -> tuple[str, ...]:
    return plan.request.kernel, *(program.name for program in _programs(plan))


def _of_lane(queue: QueueState) -> str:
    return f" of {core_name(1 + queue.lane)}" if queue.lane else ""


def _unpopped(plan: TaskPlan, queue: QueueState) -> Finding:
    push, pop, programs = PUSHES[queue.direction], POPS[queue.direction], _programs(plan)
    pushes = _sites(programs, PUSHES, queue)
    task = pushes[0][0].name if pushes else plan.request.kernel
    message = (
        f"'{task}' pushes {_count(queue.pushed)} into queue {queue.channel} ({push}){_of_lane(queue)} and "
        f"{queue.popped} {_be(queue.popped)} popped ({pop}): {queue.pushed - queue.popped} left behind, with which the "
        "next task on this core starts"
    )
    places = [location(program, index, f"'{program.name}' pushes") for program, index in pushes]
    places += [location(p, index, f"'{p.name}' pops") for p, index in _sites(programs, POPS, queue)]
    repair = f"pop every tile that is pushed: {queue.pushed} {pop}, or only {queue.popped} {push}"
    tile = pushes[0][0].author(element_register(*pushes[0])) if pushes else ""
    slots = ((queue.popped, queue.pushed),)
    return Finding("fifo", message, tile, _tasks(plan), tuple(places), None, slots, repair)


def _unfreed(plan: TaskPlan, queue: QueueState) -> Finding:
    receiver, count = _program_of(plan, queue.receiver), queue.popped - queue.freed
    pops = list(dict.fromkeys(slot.pop for slot in queue.held))
    tile = receiver.author(_tile_of(receiver, pops[0]))
    message = (
        f"'{receiver.name}' pops {_count(queue.popped)} from queue {queue.channel} ({POPS[queue.direction]})"
        f"{_of_lane(queue)} and frees {queue.freed}: {count} of the {queue.depth} slots stay taken, with which the "
        "next task on this core starts"
    )
    places = [location(receiver, pop, f"'{receiver.name}' pops") for pop in pops]
    places += [location(*site, f"'{receiver.name}' frees") for site in _sites([receiver], FREES, queue)]
    ranges = ((queue.held[0].sequence, queue.held[-1].sequence + 1),)
    return Finding(
        "fifo", message, tile, _tasks(plan), tuple(dict.fromkeys(places)), None, ranges,
        _free_repair(receiver, queue, pops),
    )  # fmt: skip


def _unawaited(plan: TaskPlan, event: EventState) -> Finding:
    waiter = _program_of(plan, event.core)
    sets = [(_program_of(plan, core), index) for core, index in event.places if core != event.core or not event.core]
    sets = sets or [(_program_of(plan, core), index) for core, index in event.places]
    setter = sets[0][0].name if sets else plan.request.kernel
    if event.missing and not event.pending:
        absent = ", ".join(core_name(1 + lane) for lane in event.missing)
        message = (
            f"event {event.event} is set by some lanes of '{setter}' and not by {absent}: {core_name(event.core)} gets "
            "it when all have set it, and the next task on this core starts with what is counted"
        )
        repair = f"set event {event.event} on every lane (sync_set outside of conditions on the lane)"
    else:
        message = (
            f"'{setter}' sets event {event.event} for {core_name(event.core)} (sync_set) more often than "
            f"'{waiter.name}' waits for it (sync_wait): {event.pending} left, and the next task's first wait for it "
            "is over at once"
        )
        repair = f"wait for every set: sync_wait({event.event}) once for each sync_set({event.event})"
    places: list[Location] = [location(program, index, f"'{program.name}' sets") for program, index in sets]
    places += [
        location(waiter, index, f"'{waiter.name}' waits")
        for index, statement in enumerate(waiter.statements)
        if isinstance(statement, Instruction)
        and statement.mnemonic == "sync_wait"
        and statement.operands[:1] == (event.event,)
    ]
    ranges = ((event.awaited, event.awaited + max(event.pending, 1)),)
    name, tasks = f"event {event.event}", _tasks(plan)
    return Finding("fifo", message, name, tasks, tuple(dict.fromkeys(places)), None, ranges, repair)


def used_after_free(watch: LaunchWatch, event: Words) -> Finding:
    """An instruction takes a tile whose slot a free has given back before."""
    program, index = watch.programs[int(event[w.OR_PROGRAM])], int(event[w.OR_INSTRUCTION])
    free = watch.origins[int(event[w.OR_VALUE]) - w.FIRST_ORIGIN]
    at, by_another = int(free[w.OR_INSTRUCTION]), bool(free[w.OR_OPERAND])
    position = int(event[w.OR_OPERAND])
    register = operand_at(program, index, position) if position else element_register(program, index)
    tile, name, freeing = program.author(register), operation(program, index), _mnemonic(program, at)
    freed = program.author(_tile_of(program, at))
    if by_another:
        why = f": {freeing} of '{freed}' gives the oldest slot back, which is that of '{tile}'"
        repair = (
            f"free tiles in the order in which they were popped, each after its last use: '{tile}' before '{freed}'"
        )
    else:
        of = "" if freed == tile else f" of '{freed}'"
        why = f" ({freeing}{of}), and the sender may have overwritten it"
        repair = f"move the {freeing} behind the last use of '{tile}', or copy the tile first (pl.move)"
    message = f"'{name}' in '{program.name}' uses '{tile}' after its slot was freed{why}"
    places = (
        location(program, at, f"'{program.name}' frees"), location(program, index, f"'{name}' in '{program.name}'"),
    )  # fmt: skip
    number = int(free[w.OR_ROW])
    return Finding("fifo", message, tile, (program.name,), places, None, ((number, number + 1),), repair)


# --- places


def _mnemonic(program: TileProgram, index: int) -> str:
    return str(getattr(program.statements[index], "mnemonic", "")) if index < len(program.statements) else ""


def _sites(programs: Sequence[TileProgram], mnemonics: Sequence[str], queue: QueueState) -> list[Site]:
    """Instructions that use a queue: ``mnemonics`` by its direction."""
    return [(program, index) for program in programs for index in queue_uses(program, mnemonics, queue)]


def _tile_of(program: TileProgram, pop: int) -> str:
    """Register that a pop fills."""
    operand = getattr(program.statements[pop], "operands", ("",))[0]
    return operand.name if isinstance(operand, Register) else ""


def _last_use(program: TileProgram, tile: str) -> int | None:
    """The last instruction in the text that takes a tile, frees left out."""
    uses = [
        index
        for index, statement in enumerate(program.statements)
        if isinstance(statement, Instruction)
        and not statement.mnemonic.startswith("tfree")
        and any(isinstance(operand, Register) and operand.name == tile for operand in statement.operands)
    ]
    return uses[-1] if uses else None


def _free_repair(receiver: TileProgram, queue: QueueState, pops: Sequence[int]) -> str:
    """Where the missing frees go."""
    advice = []
    for pop in pops:
        tile = _tile_of(receiver, pop)
        use = _last_use(receiver, tile)
        at = f" after its last use at {source_place(receiver, use)}" if use is not None else ""
        id_ = f", id={queue.channel}" if queue.channel else ""
        advice.append(f"pl.{FREES[queue.direction]}({receiver.author(tile)}{id_}){at}")
    return f"free every popped tile: {'; '.join(dict.fromkeys(advice))}"


def _count(tiles: int) -> str:
    return f"{tiles} tile" if tiles == 1 else f"{tiles} tiles"


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _tiles(first: int, last: int) -> str:
    return f"tile {first}" if first == last else f"tiles {first} to {last}"

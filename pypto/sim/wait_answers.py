"""What would let a waiting core go on: the places of the other side, and what is missing there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pypto.sim import opcodes as op
from pypto.sim.queue_state import FREES, POPS, PUSHES, QueueState, event_state, event_states, queue_states
from pypto.sim.syntax import Instruction
from pypto.sim.waiting import blocking_queue, cluster_of, core_name, statement_of

if TYPE_CHECKING:
    from pypto.sim.crew import Seat
    from pypto.sim.tile_program import TileProgram

Place = tuple["TileProgram", int, str]


class Answer(NamedTuple):
    """``places`` are (program, instruction, what happens there) on the other side; ``advice`` says what is missing."""

    places: tuple[Place, ...]
    advice: str


def answers(waiting: Sequence[Seat], seats: Sequence[Seat]) -> Iterator[Answer]:
    """One per core that waits for a queue or an event of its own block; equal ones once.

    A core that waits for one which itself waits for a third is not answered: the third is what is missing.
    """
    told = set()
    for seat in waiting:
        if not _is_cause(seat, waiting, seats):
            continue
        name = statement_of(seat).mnemonic
        answer = None
        if name in PUSHES or name in POPS:
            answer = _of_queue(seat, waiting, seats)
        elif name == "sync_wait":
            answer = _of_event(seat, waiting, seats)
        if answer is not None and answer not in told:
            told.add(answer)
            yield answer


def _other_side(seat: Seat, seats: Sequence[Seat]) -> Seat | None:
    """The core whose push, pop or event a core waits for."""
    name = statement_of(seat).mnemonic
    if name == "sync_wait":
        return next((s for s in seats if s.block == seat.block and s is not seat and _sets_event(s, seat)), None)
    if name not in PUSHES and name not in POPS:
        return None
    queue = blocking_queue(seat)
    return _seat(seat, queue.receiver if name in PUSHES else queue.sender, seats)


def _sets_event(seat: Seat, waiting: Seat) -> bool:
    """Whether a core of the other kind sets the event that ``waiting`` waits for, somewhere."""
    event = statement_of(waiting).operands[0]
    return (seat.core == 0) != (waiting.core == 0) and any(
        isinstance(statement, Instruction) and statement.mnemonic == "sync_set" and statement.operands[0] == event
        for statement in seat.frame.program.statements
    )


def _is_cause(seat: Seat, waiting: Sequence[Seat], seats: Sequence[Seat]) -> bool:
    """Whether a core waits for one that does not wait, or in a circle with it."""
    passed = [seat]
    while True:
        other = _other_side(passed[-1], seats)
        if other is None or other not in waiting:
            return len(passed) == 1
        if other in passed:
            return other is seat
        passed.append(other)


def queue_uses(program: TileProgram, mnemonics: Sequence[str], queue: QueueState) -> list[int]:
    """Instructions of a program that use a queue: ``mnemonics`` by its direction."""
    return [
        index
        for index, statement in enumerate(program.statements)
        if isinstance(statement, Instruction)
        and statement.mnemonic == mnemonics[queue.direction]
        and statement.attributes.get("id", 0) == queue.channel
    ]


def _seat(seat: Seat, core: int, seats: Sequence[Seat]) -> Seat | None:
    return next((other for other in seats if other.block == seat.block and other.core == core), None)


def _of_queue(seat: Seat, waiting: Sequence[Seat], seats: Sequence[Seat]) -> Answer | None:
    queue, pushes = blocking_queue(seat), statement_of(seat).mnemonic in PUSHES
    other = _seat(seat, queue.receiver if pushes else queue.sender, seats)
    if other is None:
        return None
    program, ends = other.frame.program, other not in waiting
    twins = sum(one.block == seat.block and one.frame.program is program for one in seats)
    who = f"'{program.name}'" + (f" on {core_name(other.core)}" if twins > 1 else "")
    wanted = POPS if pushes else PUSHES
    uses = queue_uses(program, wanted, queue)
    places = [(program, at, f"'{program.name}' {'pops' if pushes else 'pushes'}") for at in uses]
    if pushes:
        places += [(program, at, f"'{program.name}' frees") for at in queue_uses(program, FREES, queue)]
        return Answer(tuple(places), _for_push(who, queue, bool(uses), ends))
    strays = list(_strays(seat, queue, seats))
    return Answer((*places, *strays), _for_pop(who, queue, bool(uses), ends, bool(strays)))


def _for_push(who: str, queue: QueueState, pops: bool, ends: bool) -> str:
    id_, pop = queue.channel, POPS[queue.direction]
    if queue.popped < queue.pushed and (ends or not pops):
        return f"pop every tile that is pushed into queue {id_}: {who} has popped {queue.popped} ({pop})"
    if queue.popped < queue.pushed:
        return (
            f"let {who} pop from queue {id_} before it waits: at most {queue.depth} tiles are on their way "
            "(slot_num of the pipes)"
        )
    return f"let {who} free what it has popped from queue {id_} ({FREES[queue.direction]}) before it waits"


def _for_pop(who: str, queue: QueueState, uses: bool, ends: bool, strays: bool) -> str:
    id_, push = queue.channel, PUSHES[queue.direction]
    if not uses:
        where = "; it uses other ids" if strays else ""
        return f"push as many tiles as are popped, with the same id: {who} has no {push} with id {id_}{where}"
    if ends:
        return (
            f"push as many tiles as are popped, with the same id: {who} pushes {queue.pushed} into queue "
            f"{id_}, and one more is popped"
        )
    return f"let {who} push into queue {id_} before it waits: {push} first, then the wait"


def _strays(seat: Seat, queue: QueueState, seats: Sequence[Seat]) -> Iterator[Place]:
    """Pushes of the same direction into queues with other ids, whose tiles nobody has popped."""
    for other in queue_states(cluster_of(seat)):
        if other.direction != queue.direction or other.channel == queue.channel or other.popped == other.pushed:
            continue
        sender = _seat(seat, other.sender, seats)
        if sender is not None:
            program = sender.frame.program
            for push in dict.fromkeys(slot.push for slot in other.slots if slot.pop < 0):
                yield program, push, f"'{program.name}' pushes to id {other.channel}"


def _of_event(seat: Seat, waiting: Sequence[Seat], seats: Sequence[Seat]) -> Answer:
    event, cluster = int(seat.frame.words[op.ARGUMENTS]), cluster_of(seat)
    state = event_state(cluster, event, seat.core)
    places = list(_sets(seat, state.places, seats))
    others = [s for s in event_states(cluster) if s.core == seat.core and s.event != event and s.pending]
    for other in others:
        places += _sets(seat, other.places, seats)
    advice = f"set the event that is awaited: sync_set with the same number, {event}"
    if state.missing:
        advice = f"set event {event} on every vector lane: the cube gets it when all have set it"
    elif others:
        advice += f" ({', '.join(str(other.event) for other in others)} is set and not awaited)"
    elif state.awaited:
        advice = f"set event {event} as often as it is awaited"
    elif any(other in waiting and other.block == seat.block and other is not seat for other in seats):
        advice += ", before the other side waits itself"
    return Answer(tuple(places), advice)


def _sets(seat: Seat, places: Sequence[tuple[int, int]], seats: Sequence[Seat]) -> Iterator[Place]:
    for core, index in places:
        setter = _seat(seat, core, seats)
        if setter is not None:
            yield setter.frame.program, index, f"'{setter.frame.program.name}' sets"

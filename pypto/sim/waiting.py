"""Who waits for what: the state of blocks that cannot go on, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pypto.sim import crosscore, tile_queues
from pypto.sim import opcodes as op
from pypto.sim.faults import source_place, where
from pypto.sim.memory import memory_view
from pypto.sim.queue_state import FREES, POPS, PUSHES, QueueState, event_state, event_states, queue_state
from pypto.sim.recording import Words
from pypto.sim.syntax import Instruction

if TYPE_CHECKING:
    from pypto.sim.crew import Seat

_SHOWN: Final = 8
_BARRIER_KINDS: Final = {"aiv_only": 0, "aic_only": 1, "mix": 2}


class Overdue(NamedTuple):
    """A queue whose slots are all held by its receiver, which frees none of them any more, and the sender that waits.

    ``ended``: the receiver's block has ended.
    """

    queue: QueueState
    sender: Seat
    receiver: Seat
    ended: bool


def deadlock_text(waiting: Sequence[Seat], seats: Sequence[Seat], total: int) -> str:
    """Every core that waits, and those that have ended without coming where others wait."""
    lines = [f"deadlock: {len(waiting)} of the cores that run wait and none can go on"]
    lines += [waits_text(seat, waiting, seats) for seat in waiting[:_SHOWN]]
    if len(waiting) > _SHOWN:
        lines.append(f"  … and {len(waiting) - _SHOWN} more")
    lines += _absent(waiting, seats)
    running = len({seat.block for seat in seats})
    if running < total:
        lines.append(
            f"  {total - running} of the {total} blocks cannot start before these end: a task whose blocks wait for "
            f"each other must fit the chip, which runs {running} of its blocks at once"
        )
    return "\n".join(lines)


def waits_text(seat: Seat, waiting: Sequence[Seat] = (), seats: Sequence[Seat] = ()) -> str:
    """Which core of which block waits where, for what; some of ``seats``, which run together, are ``waiting``."""
    program, index = seat.frame.program, int(seat.frame.words[op.SITE])
    reason = _reason(seat, statement_of(seat), waiting, seats)
    return f"  {program.name}, block {seat.block}, {core_name(seat.core)}: {reason}{where(program, index)}"


def core_name(core: int) -> str:
    """``AIC``, or the vector lane of a core."""
    return "AIC" if core == 0 else f"AIV{core - 1}"


def statement_of(seat: Seat) -> Instruction:
    """The instruction a block stands at."""
    statement = seat.frame.program.statements[int(seat.frame.words[op.SITE])]
    if not isinstance(statement, Instruction):
        raise TypeError(f"{seat.frame.program.name} waits at something that is no instruction")
    return statement


def cluster_of(seat: Seat) -> Words:
    """The words of a block's cluster."""
    return memory_view(int(seat.frame.words[op.CHANNELS]), 8 * crosscore.CLUSTER_WORDS).view(np.int64)


def _reason(seat: Seat, instruction: Instruction, waiting: Sequence[Seat], seats: Sequence[Seat]) -> str:
    words, name = seat.frame.words, instruction.mnemonic
    if name == "syncall":
        return _at_barrier(seat, str(instruction.attributes.get("core_type", "mix")))
    if name == "syncall_soft":
        used, came = int(words[op.ARGUMENTS + 2]), int(words[op.ARGUMENTS + 3])
        return f"waits at a soft barrier of {used} cores, {came} of which have come to its workspace"
    if name == "sync_wait":
        return _for_event(seat, int(words[op.ARGUMENTS]), seats)
    queue = blocking_queue(seat)
    peer = core_name(queue.receiver if name in PUSHES else queue.sender)
    other = _state_of(seat, queue.receiver if name in PUSHES else queue.sender, waiting, seats)
    if name in PUSHES:
        return f"waits for a free slot in queue {queue.channel}: {peer} {_holds(seat, queue, seats)}{other}"
    return f"waits for a tile in queue {queue.channel}: {peer} has pushed {queue.pushed} into it{other}"


def blocking_queue(seat: Seat) -> QueueState:
    """The queue a push or pop waits for: of several lanes the first that keeps it."""
    instruction = statement_of(seat)
    pushes = instruction.mnemonic in PUSHES
    direction = (PUSHES if pushes else POPS).index(instruction.mnemonic)
    cluster, channel = cluster_of(seat), int(str(instruction.attributes.get("id", 0)))
    if (direction == tile_queues.CUBE_TO_VECTOR) != pushes:
        return queue_state(cluster, direction, channel, int(seat.frame.words[op.LANE]))
    queues = [queue_state(cluster, direction, channel, lane) for lane in range(max(int(cluster[tile_queues.LANES]), 1))]
    stops = [q for q in queues if (q.pushed - q.freed >= q.depth if pushes else q.pushed == q.popped)]
    return (stops or queues)[0]


def _holds(seat: Seat, queue: QueueState, seats: Sequence[Seat]) -> str:
    """What keeps the slots of a queue taken."""
    text = f"frees none of its {queue.depth}"
    held, lying = queue.popped - queue.freed, queue.pushed - queue.popped
    parts = []
    if held:
        receiver = next((s for s in seats if s.block == seat.block and s.core == queue.receiver), None)
        pops = dict.fromkeys(slot.pop for slot in queue.held)
        at = ", ".join(source_place(receiver.frame.program, pop) for pop in pops) if receiver is not None else ""
        parts.append(f"{held} popped and not freed" + (f" ({at})" if at else ""))
    if lying:
        parts.append(f"{lying} not popped")
    return f"{text}: {', '.join(parts)}" if parts else text


def _state_of(seat: Seat, core: int, waiting: Sequence[Seat], seats: Sequence[Seat]) -> str:
    """``, and has ended`` of the core of the same block that another one waits for."""
    if not any(other.block == seat.block and other.core == core for other in seats):
        return ""
    if any(other.block == seat.block and other.core == core for other in waiting):
        return ", and waits itself"
    return ", and has ended"


def _for_event(seat: Seat, event: int, seats: Sequence[Seat]) -> str:
    """What is known of an event that does not come."""
    cluster = cluster_of(seat)
    state = event_state(cluster, event, seat.core)
    if state.missing:
        lanes = ", ".join(core_name(1 + lane) for lane in state.missing)
        text = f"waits for event {event}, which {lanes} has not set"
    elif state.awaited:
        text = f"waits for event {event} again: it has come {state.awaited} time{'s' if state.awaited > 1 else ''}"
    else:
        text = f"waits for event {event}, which nobody sets"
    others = []
    for other in event_states(cluster):
        if other.core == seat.core and other.event != event and other.pending:
            others.append(f"event {other.event} is set{_set_at(seat, other.places, seats)}")
    return text + (f"; {', '.join(others)}" if others else "")


def _set_at(seat: Seat, places: Sequence[tuple[int, int]], seats: Sequence[Seat]) -> str:
    found = [
        source_place(other.frame.program, index)
        for core, index in places
        for other in seats
        if other.block == seat.block and other.core == core
    ]
    return f" ({', '.join(dict.fromkeys(found))})" if found else ""


def _at_barrier(seat: Seat, kind: str) -> str:
    cluster = cluster_of(seat)
    launch = memory_view(int(cluster[tile_queues.LAUNCH]), 8 * crosscore.LAUNCH_WORDS).view(np.int64)
    number = _BARRIER_KINDS.get(kind, 2)
    cores = int(launch[crosscore.PARTICIPANTS + number])
    came = int(launch[crosscore.BARRIER_ARRIVALS + number])
    passed = int(cluster[crosscore.BARRIERS_PASSED + 3 * seat.core + number])
    return f"waits at a barrier of all blocks ({kind}), to which {came - passed * cores} of {cores} cores have come"


def _absent(waiting: Sequence[Seat], seats: Sequence[Seat]) -> list[str]:
    """Cores that have ended while others of their kind wait at a barrier."""
    kinds = {str(statement_of(seat).attributes.get("core_type", "mix")) for seat in waiting if _is_at_barrier(seat)}
    if not kinds:
        return []
    ended = [seat for seat in seats if seat not in waiting and any(_takes_part(seat, kind) for kind in kinds)]
    if not ended:
        return []
    names = [f"{seat.frame.program.name}, block {seat.block}, {core_name(seat.core)}" for seat in ended[:_SHOWN]]
    more = f" and {len(ended) - _SHOWN} more" if len(ended) > _SHOWN else ""
    return [f"  have ended and come to no barrier any more: {'; '.join(names)}{more}"]


def _is_at_barrier(seat: Seat) -> bool:
    return statement_of(seat).mnemonic in ("syncall", "syncall_soft")


def _takes_part(seat: Seat, kind: str) -> bool:
    return kind not in ("aiv_only", "aic_only") or (kind == "aic_only") == (seat.core == 0)


def overdue(waiting: Sequence[Seat], seats: Sequence[Seat]) -> list[Overdue]:
    """Queues that keep a sender waiting although nothing but a free of what was popped is missing.

    The receiver has ended, asks the same queue for one tile more, or has no free for this queue in its program.
    """
    found = []
    for sender in waiting:
        if statement_of(sender).mnemonic not in PUSHES:
            continue
        queue = blocking_queue(sender)
        receiver = next((s for s in seats if s.block == sender.block and s.core == queue.receiver), None)
        if receiver is None or queue.popped != queue.pushed or not queue.slots:
            continue
        ended = receiver not in waiting
        if ended or _asks_for_more(receiver, queue) or not _frees(receiver, queue):
            found.append(Overdue(queue, sender, receiver, ended))
    return found


def _asks_for_more(receiver: Seat, queue: QueueState) -> bool:
    if statement_of(receiver).mnemonic != POPS[queue.direction]:
        return False
    asked = blocking_queue(receiver)
    return (asked.channel, asked.lane) == (queue.channel, queue.lane)


def _frees(receiver: Seat, queue: QueueState) -> bool:
    from pypto.sim.wait_answers import queue_uses

    return bool(queue_uses(receiver.frame.program, FREES, queue))

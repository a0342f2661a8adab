"""Deferred waits beyond what schedulers hold, and on cells that an unsigned comparison misreads (spec 2.11, D20)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pypto.sim.checks.findings import Finding
from pypto.sim.checks.places import location, tensor_operand
from pypto.sim.distributed import REACHED_UNSIGNED

if TYPE_CHECKING:
    from pypto.sim.checks.rank_order import Event, RunOrder
    from pypto.sim.checks.selection import Rings
    from pypto.sim.distributed_tasks import PendingTasks

CONDITIONS: Final = 64
"""Conditions of one task, and tasks deferred at once per scheduler."""


def crowded_findings(pending: PendingTasks, rings: Rings) -> Iterator[Finding]:
    """More tasks deferred at once than all schedulers together can hold."""
    limit = CONDITIONS * rings.schedulers
    if pending.deferred <= limit or pending.first_deferred is None:
        return
    program, index = pending.first_deferred
    message = (
        f"{pending.deferred} tasks like '{program.name}' are deferred at once; {rings.schedulers} schedulers hold "
        f"{CONDITIONS} each, {limit} together (error code 102 on a card)"
    )
    repair = (
        f"register up to {CONDITIONS} conditions in one task, or let later waits follow earlier ones with deps=[...]"
    )
    places = (location(program, index, f"'{program.name}' is deferred"),)
    yield Finding("deferred-wait", message, tensor_operand(program, index), (program.name,), places, None, (), repair)


def deferred_findings(order: RunOrder) -> Iterator[Finding]:
    """Deferred waits of a run that compare with or find a negative number, or are too many for one task."""
    waits = [wait for wait in order.waits if int(wait.words[3]) == REACHED_UNSIGNED]
    for wait in waits:
        held, expected = int(wait.words[1]), int(wait.words[2])
        if expected < 0:
            yield _misread(order, wait, f"for '{wait.place.tensor}' >= {expected}, which is {expected & 0xFFFFFFFF}")
        elif held < 0:
            yield _misread(order, wait, f"while the cell holds {held}, which is {held & 0xFFFFFFFF}")
    for (_, node), count in Counter((wait.dispatch, wait.node) for wait in waits).items():
        if count > CONDITIONS:
            first = next(wait for wait in waits if wait.node == node)
            yield _too_many(order, first, count)


def _misread(order: RunOrder, wait: Event, what: str) -> Finding:
    from pypto.sim.checks.signal_names import cell_of

    message = (
        f"rank {wait.rank} defers '{wait.place.task}' on '{wait.place.tensor}' {what} when it is compared without a "
        "sign: the wait is over at once"
    )
    repair = (
        "keep cells of deferred waits at 0 or above and let them only grow (pld.NotifyOp.AtomicAdd with a positive "
        "value); wait with pld.system.wait where a counter goes down"
    )
    tasks, places = (wait.place.task,), (wait.place.location,)
    return Finding("deferred-wait", message, wait.place.tensor, tasks, places, *cell_of(order, wait), repair)


def _too_many(order: RunOrder, wait: Event, count: int) -> Finding:
    from pypto.sim.checks.signal_names import cell_of

    message = f"'{wait.place.task}' registers {count} conditions; a task has at most {CONDITIONS}"
    repair = f"spread the conditions over several tasks of up to {CONDITIONS}, and name all of them in deps=[...]"
    tasks, places = (wait.place.task,), (wait.place.location,)
    return Finding("deferred-wait", message, wait.place.tensor, tasks, places, *cell_of(order, wait), repair)

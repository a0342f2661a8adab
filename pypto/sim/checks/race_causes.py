"""Why accesses of two ranks are not ordered: what is told too early, to nobody, or waited for too late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from pypto.sim.checks import words as w
from pypto.sim.checks.boxes import overlaps
from pypto.sim.checks.collectives import collective_at
from pypto.sim.checks.findings import Location
from pypto.sim.checks.rank_order import NOTIFIES, Event, RunOrder, sets_cell
from pypto.sim.checks.signal_names import cell_text
from pypto.sim.recording import Words

_COMPARED_AT_ONCE: Final = 4096
_APART: Final = "in a block or task that nothing orders with it"


@dataclass(frozen=True)
class Cause:
    """What is wrong, as the end of a sentence about both accesses; ``places`` beside theirs."""

    kind: str
    text: str
    repair: str
    places: tuple[Location, ...] = ()


def cause_of(order: RunOrder, write: Event, other: Event) -> Cause | None:
    """What is missing between ``write`` and an access of another rank; None when the two never speak of it."""
    told = _last_told(order, write, other)
    if told is not None and _published_before(order, write, told):
        return _overwritten(order, write, other)
    if other.writes:
        return None
    if told is not None and _is_meant_for(order, write, told, other):
        return _told_too_early(told)
    first, answer = next(_notifies_after(order, write), None), _first_notify(order, write, other)
    if first is not None and _is_awaited_too_early(order, write, first, other):
        return None
    aside = _told_aside(order, write, other)
    if aside is not None or first is None:
        return aside
    unheard = answer is not None and all(wait.cell != answer.cell for wait in order.waits)
    if answer is not None and (unheard or not _is_for_another(order, write, first, other)):
        return _not_awaited(order, write, other, answer)
    passed_on = _passed_on(order, write, other) if answer is None else None
    cause = _not_awaited(order, write, other, passed_on) if passed_on is not None else None
    return cause or _told_another(order, write, other, first)


def _told_too_early(told: Event) -> Cause:
    """The reader has waited for ``told``, which comes before the write."""
    call = _call(told)
    what = f"{call} that the reader has waited in is called" if call else "notify that the reader waited for is sent"
    return Cause(
        "publish-order",
        f"; the {what} before the data is there",
        f"move the {call or 'notify'} after the store: publish, then notify (the peers read as soon as they are told)",
        _place(told),
    )


def _overwritten(order: RunOrder, write: Event, other: Event) -> Cause:
    """A reader may still be at what ``write`` overwrites."""
    done = _first_notify(order, other, write)
    missing = "nothing says that its reader is done"
    if done is not None:
        waits = any(wait.cell == done.cell and order.reaches(wait, write) for wait in order.waits)
        short = f"rank {write.rank} {'has not waited for as much' if waits else 'does not wait for that'}"
        missing = f"its reader is not known to be done: rank {other.rank} {_notifies(order, done)} then, and {short}"
    return Cause(
        "window-race",
        f"; what was published before is overwritten and {missing}",
        "a second barrier: every rank notifies after its reads, and the owner waits for that before it overwrites; "
        "or take turns between two buffers",
        () if done is None else _place(done),
    )


def _not_awaited(order: RunOrder, write: Event, other: Event, answer: Event) -> Cause | None:
    """Rank ``other`` does not wait, before its access, for the notify ``answer`` that follows the write."""
    waits = [wait for wait in order.waits if wait.cell == answer.cell]
    if any(order.reaches(wait, other) for wait in waits):
        return None
    told, cell = f"; rank {answer.rank} {_notifies(order, answer)}", cell_text(order, answer)
    told += " after it" if _call(answer) else f" of rank {other.rank} after it"
    late = next((wait for wait in waits if order.reaches(other, wait)), None)
    beside = next((wait for wait in waits if wait.rank == other.rank), None) if late is None else None
    if beside is not None:
        what = f"{told}, and rank {other.rank} waits for that in '{beside.place.task}', {_APART}"
        repair = (
            "let the task that reads depend on the one that waits (deps=[...], or a window that both take), or wait in "
            "every block that reads"
        )
        return Cause("window-race", what, repair, (*_place(answer), *_place(beside)))
    repair = (
        f"wait for {cell} before the line that reads (pld.system.wait), or notify the cell that is waited for there: "
        "publish, notify, wait, read"
    )
    if _call(answer):
        repair = f"read after the {_call(answer)} that follows the write, or call one between the two"
    if late is None:
        return Cause("window-race", f"{told}, and rank {other.rank} does not wait for that", repair, _place(answer))
    if _touches_again(order, write, other, late):
        return _overwritten(order, write, other)
    places = (*_place(answer), *_place(late))
    return Cause("window-race", f"{told}, and rank {other.rank} waits for that only after it reads", repair, places)


def _told_aside(order: RunOrder, write: Event, other: Event) -> Cause | None:
    """What was waited for comes from another block or task of the writer, which the write is not ordered with."""
    for number in _of_rank(order, write.rank, True).tolist():
        notify = order.events[number]
        if order.reaches(notify, write) or order.reaches(write, notify):
            continue
        if any(wait.cell == notify.cell and order.reaches(wait, other) for wait in order.waits):
            return Cause(
                "window-race",
                f"; the notify that the reader waited for is sent in '{notify.place.task}', {_APART}",
                "let every block that writes notify, and wait for all of them; or notify in a task that depends on the "
                "writes (deps=[...], or a window that both take)",
                _place(notify),
            )
    return None


def _told_another(order: RunOrder, write: Event, other: Event, first: Event) -> Cause:
    """The notify that follows the write goes to another rank than the one that reads."""
    whom = "itself" if first.cell[1] == write.rank else f"rank {first.cell[1]}"
    return Cause(
        "window-race",
        f"; the notify after the write is for {whom}, {cell_text(order, first)}, and rank {other.rank} is not told",
        f"notify rank {other.rank} after the write (peer=) and wait for that before it reads, or wait for one that was",
        _place(first),
    )


def _call(signal: Event) -> str:
    """The collective that a signal is part of, or nothing."""
    return collective_at(signal.place.location).split("(")[0]


def _notifies(order: RunOrder, notify: Event) -> str:
    """``notifies 'signal'[1, 0]``, or the collective that does."""
    return f"calls {_call(notify)}" if _call(notify) else f"notifies {cell_text(order, notify)}"


def _place(signal: Event) -> tuple[Location, ...]:
    return (signal.place.location,)


def _of_rank(order: RunOrder, rank: int, notifies: bool) -> Words:
    """Numbers of the notifies, or of the accesses to windows, of a rank."""
    kinds = order.events.kind
    chosen = kinds == NOTIFIES if notifies else kinds < NOTIFIES
    return np.flatnonzero(chosen & (order.events.ranks() == rank))


def _behind(order: RunOrder, first: Event, numbers: Words) -> Words:
    """Those of ``numbers`` that happen after ``first``."""
    return numbers[order.clocks[numbers, order.chain[first.number]] > order.position[first.number]]


def _before(order: RunOrder, second: Event, numbers: Words) -> Words:
    """Those of ``numbers`` that have happened when ``second`` does."""
    return numbers[order.clocks[second.number, order.chain[numbers]] > order.position[numbers]]


def _last_told(order: RunOrder, a: Event, b: Event) -> Event | None:
    """The last notify before access ``a`` of its rank that the rank of ``b`` knows of."""
    numbers = _before(order, b, _before(order, a, _of_rank(order, a.rank, True)))
    return order.events[int(numbers[np.argmax(order.position[numbers])])] if len(numbers) else None


def _notifies_after(order: RunOrder, a: Event) -> Iterator[Event]:
    """The notifies after ``a`` of its rank, in their order."""
    numbers = _behind(order, a, _of_rank(order, a.rank, True))
    return (order.events[n] for n in numbers[np.argsort(order.position[numbers], kind="stable")].tolist())


def _passed_on(order: RunOrder, a: Event, b: Event) -> Event | None:
    """A notify of a third rank, which knows of ``a``, for the rank of ``b``."""
    told = (notify for cell, found in order.notifies.items() if cell[1] == b.rank for notify in found)
    return next((n for n in told if n.rank not in (a.rank, b.rank) and order.reaches(a, n)), None)


def _first_notify(order: RunOrder, a: Event, b: Event) -> Event | None:
    """The first notify after ``a`` with which its rank tells the rank of ``b``."""
    return next((notify for notify in _notifies_after(order, a) if notify.cell[1] == b.rank), None)


def _is_awaited_too_early(order: RunOrder, write: Event, first: Event, other: Event) -> bool:
    """Whether a wait for the cell of ``first``, of any rank, comes before ``other`` and proves too little."""
    waits = (wait for wait in order.waits if wait.cell == first.cell and order.reaches(wait, other))
    return any(order.credits_behind(write, wait, adding_only=True) for wait in waits)


def _is_for_another(order: RunOrder, write: Event, first: Event, other: Event) -> bool:
    """Whether the line that notifies first after the write never tells the rank of ``other`` there."""
    return not any(n.place == first.place and n.cell[1] == other.rank for n in _notifies_after(order, write))


def _is_meant_for(order: RunOrder, write: Event, told: Event, reader: Event) -> bool:
    """Whether ``told`` is all that the reader relies on: sent right before the write, or the last it has heard of.

    A line that notifies after the last write of its line, too, is not one that comes too early; nor is one while
    another line notifies a cell that the reader never waits for.
    """
    after = _first_notify(order, write, reader)
    if after is not None and after.place != told.place and all(wait.cell != after.cell for wait in order.waits):
        return False
    if any(notify.place == told.place for notify in _notifies_after(order, _last_of_line(order, write))):
        return False
    if not any(_proves(order, wait, told, reader) for wait in order.waits):
        return False
    said = _behind(order, told, _before(order, reader, _of_rank(order, reader.rank, True))).tolist()
    return _is_next(order, told, write) or all(order.events[number].cell[1] == reader.rank for number in said)


def _is_next(order: RunOrder, told: Event, write: Event) -> bool:
    """Whether there is no signal between the two."""
    signals = np.flatnonzero((order.events.kind >= NOTIFIES) & (order.events.ranks() == told.rank))
    between = _before(order, write, _behind(order, told, signals))
    return not len(between[between != told.number])


def _last_of_line(order: RunOrder, access: Event) -> Event:
    """The last access of the line of ``access`` by its rank."""
    numbers = _of_rank(order, access.rank, False)
    numbers = numbers[np.argsort(order.position[numbers], kind="stable")][::-1]
    return next(event for number in numbers.tolist() if (event := order.events[number]).place == access.place)


def _proves(order: RunOrder, wait: Event, told: Event, reader: Event) -> bool:
    """Whether ``wait``, before the reader, is one for ``told``, and for no later credit of the same rank."""
    if wait.cell != told.cell or not order.reaches(wait, reader):
        return False
    notifies = order.notifies[told.cell]
    given = sum(int(n.words[2]) for n in notifies if n.rank == told.rank and not order.reaches(told, n))
    return sets_cell(told) or int(wait.words[2]) <= (given or int(told.words[2])) * len({n.rank for n in notifies})


def _published_before(order: RunOrder, a: Event, notify: Event) -> bool:
    """Whether the rank of write ``a`` has written some of its bytes already before ``notify``."""
    accesses = _before(order, notify, _of_rank(order, a.rank, False))
    return _any_shared(order, a, accesses[order.events.kind[accesses] & w.WRITES != 0])


def _touches_again(order: RunOrder, write: Event, other: Event, wait: Event) -> bool:
    """Whether another line of the rank of ``other`` uses the written bytes after ``wait``: that one waits for them."""
    accesses = _behind(order, wait, _of_rank(order, other.rank, False))
    later = [number for number in accesses.tolist() if order.events[number].place != other.place]
    return _any_shared(order, write, np.array(later, np.int64))


def _any_shared(order: RunOrder, a: Event, numbers: Words) -> bool:
    return any(
        bool(np.any(overlaps(boxes, np.repeat(a.words[None], len(boxes), 0)))) for boxes in _boxes(order, numbers)
    )


def _boxes(order: RunOrder, numbers: Words) -> Iterator[Words]:
    for first in range(0, len(numbers), _COMPARED_AT_ONCE):
        yield order.events.boxes(numbers[first : first + _COMPARED_AT_ONCE])

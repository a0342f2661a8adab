"""Races on windows between ranks, and signals used against their discipline, from the order of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from pypto.sim.checks.boxes import overlaps, shared_runs
from pypto.sim.checks.collectives import collective_at
from pypto.sim.checks.deferred import deferred_findings
from pypto.sim.checks.doubled import doubled_findings
from pypto.sim.checks.findings import Finding, Location
from pypto.sim.checks.places import index_ranges, ranges_text
from pypto.sim.checks.race_causes import cause_of
from pypto.sim.checks.rank_log import Place, Window
from pypto.sim.checks.rank_order import NOTIFIES, Event, RunOrder, sets_cell
from pypto.sim.checks.signal_names import cell_of, cell_text
from pypto.sim.checks.unordered import Unordered
from pypto.sim.checks.watch import Memory
from pypto.sim.recording import Words

_EQUAL: Final = 0
_RACES_PER_PAIR: Final = 64
"""Races of one pair of instructions that are looked at: a loop repeats the same one."""
_COMPARED_AT_ONCE: Final = 4096
"""Accesses whose boxes are compared with one at a time."""


def rank_findings(order: RunOrder) -> Iterator[Finding]:
    """Races on windows, and signals used against their discipline."""
    seen: set[tuple[object, ...]] = set()
    for finding in (*_races(order), *_discipline(order), *deferred_findings(order), *doubled_findings(order)):
        key = finding.kind, finding.tensor, finding.locations
        if key not in seen:
            seen.add(key)
            yield finding


def _races(order: RunOrder) -> Iterator[Finding]:
    numbers = np.flatnonzero(order.events.kind < NOTIFIES)
    if not len(numbers):
        return
    unordered = Unordered(order, numbers)
    looked_at: Counter[tuple[Place, Place]] = Counter()
    told: set[tuple[Place, Place]] = set()
    for at in unordered.doubtful.tolist():
        rest = unordered.later(at)
        for first in range(0, len(rest), _COMPARED_AT_ONCE):
            others = numbers[rest[first : first + _COMPARED_AT_ONCE]]
            yield from _races_of(order, int(numbers[at]), others, looked_at, told)


def _races_of(
    order: RunOrder, number: int, others: Words, looked_at: Counter[tuple[Place, Place]], told: set[tuple[Place, Place]]
) -> Iterator[Finding]:
    """Races of one access with some of those that it is not ordered with.

    The first race of two lines says why; what is missing between later ones, in a loop, is the same.
    """
    a, boxes = order.events[number], order.events.boxes(others)
    for index in np.flatnonzero(overlaps(boxes, np.repeat(a.words[None], len(boxes), 0))).tolist():
        b = order.events[int(others[index])]
        pair = a.place, b.place
        if looked_at[pair] < _RACES_PER_PAIR and not _within_one_collective(a, b):
            looked_at[pair] += 1
            stale = _early_credit(order, a, b) or _early_credit(order, b, a)
            if stale is not None or not {pair, pair[::-1]} & told:
                yield _race(order, a, b, stale)
            if stale is None:
                told.add(pair)


def _within_one_collective(a: Event, b: Event) -> bool:
    """Whether both are of one call: the root of a broadcast stores the bytes it has read itself (spec 2.13.7)."""
    one, other = a.place.location, b.place.location
    return (one.file, one.line) == (other.file, other.line) and bool(collective_at(one))


def _window_of(order: RunOrder, event: Event, low: int) -> tuple[Window | None, int, int]:
    """(window, owner, first byte of the owner's copy) of an absolute address."""
    for window in order.logs[event.dispatch][1].windows:
        base = window.address - window.rank * window.stride
        owner = (low - base) // window.stride if window.stride else 0
        start = base + owner * window.stride
        if 0 <= owner < window.ranks and start <= low < start + window.size:
            return window, owner, start
    return None, -1, low


def _race(order: RunOrder, a: Event, b: Event, early: Event | None) -> Finding:
    if b.writes and not a.writes:
        a, b = b, a  # the write first
    shared = shared_runs(a.words, b.words)
    window, owner, start = _window_of(order, a, int(shared[0, 0]))
    tensor = window.name if window is not None else a.place.tensor
    shared = shared - start
    span = int(shared[:, 0].min()), int(shared[:, 1].max())
    ranges: tuple[tuple[int, int], ...] = ()
    text = f"bytes {span[0]}..{span[1]}"
    if window is not None:
        memory = Memory(tensor, window.shape, window.bits, 0, window.size)
        ranges = index_ranges(memory, shared)
        text = ranges_text(memory, ranges)
    acts = [
        f"rank {e.rank} {'writes' if e.writes else 'reads'} ('{e.place.operation}' in '{e.place.task}')" for e in (a, b)
    ]
    what = f"{acts[0]} and {acts[1]} {text} of the window '{tensor}' of rank {owner}"
    places = tuple(dict.fromkeys((a.place.location, b.place.location)))
    tasks = tuple(dict.fromkeys((a.place.task, b.place.task)))
    if early is not None:
        return _stale(order, what, early, (*places, early.place.location), tasks)
    cause = cause_of(order, a, b)
    if cause is not None:
        places = tuple(dict.fromkeys((*places, *cause.places)))
        return Finding(cause.kind, what + cause.text, tensor, tasks, places, span, ranges, cause.repair)
    weak = _weak_wait(order, a, b)
    if weak is not None:
        return _too_weak(order, what, weak, tensor, (*places, weak.place.location), tasks, span, ranges)
    message = f"{what}, and no notify and wait order the two"
    if a.writes and b.writes:
        repair = (
            "give every rank a part of the window of its own, as with an offset of its rank; add with "
            "atomic=pl.AtomicType.Add; or notify after the first write and wait before the second"
        )
        return Finding("window-race", message, tensor, tasks, places, span, ranges, repair)
    repair = (
        "notify after the write and wait for that signal before the other rank reads; a reused window needs a second "
        "barrier"
    )
    return Finding("window-race", message, tensor, tasks, places, span, ranges, repair)


def _early_credit(order: RunOrder, first: Event, second: Event) -> Event | None:
    """A wait before ``second`` that was meant for a notify after ``first`` but is satisfied without it."""
    for wait in order.waits:
        if wait.rank != second.rank or not order.reaches(wait, second) or not _is_stale(order, wait):
            continue
        if order.credits_behind(first, wait, adding_only=False):
            return wait
    return None


def _weak_wait(order: RunOrder, first: Event, second: Event) -> Event | None:
    """A wait before ``second`` for the cell of a notify after ``first``, satisfied by others' credits or by none."""
    for wait in order.waits:
        if collective_at(wait.place.location):
            continue  # its thresholds are not the author's
        adding_only = not _proves_nothing(order, wait)
        if order.reaches(wait, second) and order.credits_behind(first, wait, adding_only=adding_only):
            return wait
    return None


def _proves_nothing(order: RunOrder, wait: Event) -> bool:
    """Whether a wait is over before anybody notifies."""
    return int(wait.words[3]) != _EQUAL and int(wait.words[2]) <= order.before_run.get(wait.cell, 0)


def _too_weak(
    order: RunOrder, what: str, wait: Event, tensor: str, places: tuple[Location, ...], tasks: tuple[str, ...],
    span: tuple[int, int], ranges: tuple[tuple[int, int], ...],
) -> Finding:  # fmt: skip
    expected, total, cell = int(wait.words[2]), order.reachable_value(wait), cell_text(order, wait)
    if _proves_nothing(order, wait):
        by, repair = (
            "before anybody notifies",
            f"raise the threshold: the wait has to need the notify, >= {expected + 1}",
        )
    else:
        one = len({notify.rank for notify in order.notifies.get(wait.cell, ())}) == 1
        by = f"by the credits of other {'blocks' if one else 'ranks'}: the cell reaches {total}"
        repair = (
            f"wait for the credits of all {'blocks' if one else 'ranks'} that write ({total} here), or give every "
            f"{'block' if one else 'rank'} a cell of its own"
        )
    message = f"{what}; the wait for {cell} >= {expected} in '{wait.place.task}' is satisfied {by}"
    return Finding("window-race", message, tensor, tasks, places, span, ranges, repair)


def _is_stale(order: RunOrder, wait: Event) -> bool:
    """Whether a wait proves nothing that the waits for its cell before it, or the run before, had not told already."""
    if order.before_run.get(wait.cell, 0) > 0:
        return True
    return order.tells_nothing_new(wait)


def _stale(order: RunOrder, what: str, wait: Event, places: tuple[Location, ...], tasks: tuple[str, ...]) -> Finding:
    expected, held = int(wait.words[2]), order.before_run.get(wait.cell, 0)
    sets = any(sets_cell(notify) for notify in order.notifies.get(wait.cell, ()))
    compared = "==" if int(wait.words[3]) == _EQUAL else ">="
    signal, by = wait.place.tensor, f"wait for '{wait.place.tensor}' {compared} {expected} in '{wait.place.task}'"
    reached = "" if sets else f" and reaches {order.reachable_value(wait)}"
    if held > 0:
        message = (
            f"the {by} is satisfied by credits of an earlier run: the cell held {held} when the run began{reached}; "
            f"{what}"
        )
        repair = "reset the windows between runs (reset_persistent_windows=True), or raise the threshold with every run"
        return Finding("residue", message, signal, tasks, places, *cell_of(order, wait), repair)
    if sets:
        message = f"the {by} is already satisfied by the value that an earlier round has set; {what}"
        repair = "set a new value in every round, as the number of the round, and wait for that threshold"
    else:
        total = order.reachable_value(wait)
        message = f"the {by} is already satisfied by the credits of an earlier round: the cell reaches {total}; {what}"
        repair = (
            f"raise the threshold with every round (here {total}), or take the credits back before the cell is reused"
        )
    return Finding("signal-reuse", message, signal, tasks, places, *cell_of(order, wait), repair)


def _discipline(order: RunOrder) -> Iterator[Finding]:
    """Cells that are set and added to, set by several ranks, or compared with == while they can pass the value."""
    for wait in order.waits:
        expected, reached = int(wait.words[2]), order.reachable_value(wait)
        if int(wait.words[3]) == _EQUAL and reached > expected:
            message = (
                f"rank {wait.rank} waits in '{wait.place.task}' for '{wait.place.tensor}' == "
                f"{expected} (WaitCmp.Eq), and the "
                f"counter can reach {reached} before it looks"
            )
            repair = "wait with WaitCmp.Ge, and raise the threshold with every round"
            place, cell = wait.place, cell_of(order, wait)
            yield Finding("signal-misuse", message, place.tensor, (place.task,), (place.location,), *cell, repair)
    for notifies in order.notifies.values():
        sets = [n for n in notifies if sets_cell(n)]
        ranks = {n.rank for n in sets}
        adds = [n for n in notifies if not sets_cell(n)]
        first = notifies[0]
        if sets and adds:
            message = f"a cell of '{first.place.tensor}' is both set and added to (NotifyOp.Set and NotifyOp.AtomicAdd)"
        elif len(ranks) > 1:
            message = (
                f"{len(ranks)} ranks set one cell of '{first.place.tensor}' (NotifyOp.Set): their signals are "
                "lost in each other"
            )
        else:
            continue
        places = tuple(dict.fromkeys(n.place.location for n in notifies))[:4]
        repair = "use NotifyOp.AtomicAdd when several ranks or rounds share a cell, and wait with WaitCmp.Ge"
        cell = cell_of(order, first)
        yield Finding("signal-misuse", message, first.place.tensor, (first.place.task,), places, *cell, repair)

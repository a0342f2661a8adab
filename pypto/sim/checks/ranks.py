"""Order between ranks: vector clocks over signals, worked out from the logs of a run after its end.

What a wait proves does not depend on how the run went: a wait for a cell proves that a notify has happened only when
the cell cannot reach the threshold without it (spec distributed 2.9, 2.10). Credits of earlier rounds, or of earlier
runs in a window that was kept, therefore prove nothing about later ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pypto.sim.checks import words as w
from pypto.sim.checks.boxes import overlaps, shared_runs
from pypto.sim.checks.collectives import collective_at
from pypto.sim.checks.findings import Finding, Location
from pypto.sim.checks.places import index_ranges, ranges_text
from pypto.sim.checks.rank_log import EV_BOX, EV_KIND, EV_NODE, EV_PLACE, EV_SEAT, Place, RankLog, Window
from pypto.sim.checks.watch import Memory
from pypto.sim.recording import Words

NOTIFIES, WAITED = w.NOTIFIES, w.WAITED
_EQUAL: Final = 0
_SET: Final = 1
Cell = tuple[int, int]
"""Name of a cell (domain and byte) and the world rank that owns it."""


@dataclass(frozen=True)
class Event:
    """One event of the run; ``number`` is its position in the graph, ``thread`` what runs in program order."""

    number: int
    rank: int
    dispatch: int
    thread: tuple[int, int]
    node: int
    kind: int
    place: Place
    words: Words

    @property
    def cell(self) -> Cell:
        owner = int(self.words[1]) if self.kind == NOTIFIES else self.rank
        return int(self.words[0]), owner

    @property
    def writes(self) -> bool:
        return bool(self.kind & w.WRITES)


class RunOrder:
    """The events of one run and what happened before what, whatever the schedule."""

    def __init__(
        self,
        logs: Mapping[int, tuple[int, RankLog]],
        after: Mapping[int, Sequence[int]],
        before_run: Mapping[Cell, int],
    ):
        self.logs, self.after, self.before_run = logs, after, before_run
        self.events: list[Event] = []
        self._edges: defaultdict[int, set[int]] = defaultdict(set)  # event -> events directly before it
        self._ancestors: list[int] = []
        self.notifies: defaultdict[Cell, list[Event]] = defaultdict(list)
        self.waits: list[Event] = []
        self.proofs: dict[int, set[int]] = {}
        self._gather()
        self._settle()

    def _gather(self) -> None:
        by_node: defaultdict[tuple[int, int], list[list[Event]]] = defaultdict(list)
        for dispatch, (rank, log) in sorted(self.logs.items()):
            threads: dict[tuple[int, int], list[Event]] = {}
            for row in log.events:
                seat = dispatch, int(row[EV_SEAT])
                event = Event(
                    len(self.events), rank, dispatch, seat, int(row[EV_NODE]), int(row[EV_KIND]),
                    log.places[int(row[EV_PLACE])], row[EV_BOX:],
                )  # fmt: skip
                if seat in threads:
                    self._edges[event.number].add(threads[seat][-1].number)
                threads.setdefault(seat, []).append(event)
                self._note(event)
            for chain in threads.values():
                by_node[dispatch, chain[0].node].append(chain)
            for a, b in log.before:
                self._join(by_node[dispatch, a], by_node[dispatch, b])
        self._join_dispatches(by_node)

    def _note(self, event: Event) -> None:
        self.events.append(event)
        if event.kind == NOTIFIES:
            self.notifies[event.cell].append(event)
        elif event.kind == WAITED:
            self.waits.append(event)

    def _join(self, first: list[list[Event]], second: list[list[Event]]) -> None:
        for a in first:
            for b in second:
                self._edges[b[0].number].add(a[-1].number)

    def _join_dispatches(self, by_node: Mapping[tuple[int, int], list[list[Event]]]) -> None:
        """Dispatches of one rank run one after the other; others when the host makes them wait."""
        chains: defaultdict[int, list[list[Event]]] = defaultdict(list)
        for (dispatch, _), found in by_node.items():
            chains[dispatch] += found
        last_of_rank: dict[int, int] = {}
        for dispatch, (rank, _) in sorted(self.logs.items()):
            waits_for = set(self.after.get(dispatch, ()))
            if rank in last_of_rank:
                waits_for.add(last_of_rank[rank])
            for other in waits_for:
                self._join(chains[other], chains[dispatch])
            last_of_rank[rank] = dispatch

    # order

    def _close(self) -> None:
        """Ancestors of every event as bits, in an order that respects the edges."""
        ancestors = [0] * len(self.events)
        state = [0] * len(self.events)
        for root in range(len(self.events)):
            stack = [root]
            while stack:
                number = stack[-1]
                if state[number] == 0:
                    state[number] = 1
                    stack += [other for other in self._edges[number] if state[other] == 0]
                else:
                    stack.pop()
                    if state[number] == 1:
                        state[number] = 2
                        for other in self._edges[number]:
                            ancestors[number] |= ancestors[other] | 1 << other
        self._ancestors = ancestors

    def reaches(self, first: Event, second: Event) -> bool:
        return bool(self._ancestors[second.number] >> first.number & 1)

    def _settle(self) -> None:
        """Add what the waits prove until nothing new follows."""
        while True:
            self._close()
            grown = False
            for wait in self.waits:
                proved = {n.number for n in self.notifies[wait.cell] if self._proves(wait, n)}
                self.proofs[wait.number] = proved
                grown = grown or not proved <= self._edges[wait.number]
                self._edges[wait.number] |= proved
            if not grown:
                return

    def _proves(self, wait: Event, notify: Event) -> bool:
        """Whether the cell cannot reach what ``wait`` expects before ``notify`` has happened."""
        if self.reaches(wait, notify):
            return False
        expected = int(wait.words[2])
        value = self.before_run.get(wait.cell, 0)
        best_set = None
        for other in self.notifies[wait.cell]:
            if other is notify or self.reaches(wait, other) or self.reaches(notify, other):
                continue
            amount = int(other.words[2])
            if int(other.words[3]) == _SET:
                best_set = amount if best_set is None else max(best_set, amount)
            elif amount > 0 or self.reaches(other, wait):
                value += amount
        return max(value, value if best_set is None else best_set) < expected

    def reachable_value(self, wait: Event) -> int:
        """Most the cell of ``wait`` can hold while it waits."""
        value = self.before_run.get(wait.cell, 0)
        for other in self.notifies[wait.cell]:
            if int(other.words[3]) != _SET and not self.reaches(wait, other):
                value += int(other.words[2])
        return value


def rank_findings(order: RunOrder) -> Iterator[Finding]:
    """Races on windows, and signals used against their discipline."""
    seen: set[tuple[object, ...]] = set()
    for finding in (*_races(order), *_discipline(order)):
        key = finding.kind, finding.tensor, finding.locations
        if key not in seen:
            seen.add(key)
            yield finding


def _races(order: RunOrder) -> Iterator[Finding]:
    accesses = [event for event in order.events if event.kind < NOTIFIES]
    if not accesses:
        return
    boxes = np.stack([event.words for event in accesses])
    for at, a in enumerate(accesses):
        rest = accesses[at + 1 :]
        if not rest:
            return
        hits = overlaps(boxes[at + 1 :], np.repeat(boxes[at][None], len(rest), 0))
        for index in np.flatnonzero(hits):
            b = rest[index]
            if a.rank == b.rank or not (a.writes or b.writes) or a.kind & b.kind & w.ATOMIC:
                continue
            if _within_one_collective(a, b):
                continue
            if not order.reaches(a, b) and not order.reaches(b, a):
                yield _race(order, a, b)


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


def _race(order: RunOrder, a: Event, b: Event) -> Finding:
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
    early = _early_credit(order, a, b) or _early_credit(order, b, a)
    if early is not None:
        return _stale(order, what, early, (*places, early.place.location), tasks)
    told = _told_before(order, a, b)
    if told is not None and _published_before(order, a, told):
        message = f"{what}; what was published before is overwritten and nothing says that its reader is done"
        repair = (
            "a second barrier: every rank notifies after its reads, and the owner waits for that before it overwrites; "
            "or take turns between two buffers"
        )
        return Finding("window-race", message, tensor, tasks, places, span, ranges, repair)
    if told is not None:
        message = f"{what}; the notify that the reader waited for is sent before the data is there"
        repair = "move the notify after the store: publish, then notify (the peers read as soon as they are told)"
        return Finding("publish-order", message, tensor, tasks, (*places, told.place.location), span, ranges, repair)
    weak = _weak_wait(order, a, b)
    if weak is not None:
        return _too_weak(order, what, weak, tensor, (*places, weak.place.location), tasks, span, ranges)
    message = f"{what}, and no notify and wait order the two"
    repair = (
        "notify after the write and wait for that signal before the other rank reads; a reused window needs a second "
        "barrier"
    )
    return Finding("window-race", message, tensor, tasks, places, span, ranges, repair)


def _told_before(order: RunOrder, a: Event, b: Event) -> Event | None:
    """A notify that comes before access ``a`` of its rank and that the rank of ``b`` has waited for."""
    for found in order.notifies.values():
        for notify in found:
            if notify.rank == a.rank and order.reaches(notify, a) and order.reaches(notify, b):
                return notify
    return None


def _published_before(order: RunOrder, a: Event, notify: Event) -> bool:
    """Whether the rank of write ``a`` has written some of its bytes already before ``notify``."""
    earlier = [e for e in order.events if e.rank == a.rank and e.kind < NOTIFIES and e.writes]
    boxes = [e.words for e in earlier if order.reaches(e, notify)]
    return bool(boxes) and bool(np.any(overlaps(np.stack(boxes), np.repeat(a.words[None], len(boxes), 0))))


def _early_credit(order: RunOrder, first: Event, second: Event) -> Event | None:
    """A wait before ``second`` that was meant for a notify after ``first`` but is satisfied without it."""
    for wait in order.waits:
        if wait.rank != second.rank or not order.reaches(wait, second) or not _is_stale(order, wait):
            continue
        for notify in order.notifies[wait.cell]:
            meant = notify.rank == first.rank and order.reaches(first, notify)
            if meant and notify.number not in order.proofs[wait.number] and not order.reaches(wait, notify):
                return wait
    return None


def _weak_wait(order: RunOrder, first: Event, second: Event) -> Event | None:
    """A wait before ``second`` on the cell that a notify after ``first`` adds to, satisfied by other ranks' credits."""
    for wait in order.waits:
        if wait.rank == second.rank and order.reaches(wait, second):
            for notify in order.notifies[wait.cell]:
                meant = notify.rank == first.rank and order.reaches(first, notify) and int(notify.words[3]) != _SET
                if meant and notify.number not in order.proofs[wait.number] and not order.reaches(wait, notify):
                    return wait
    return None


def _too_weak(
    order: RunOrder, what: str, wait: Event, tensor: str, places: tuple[Location, ...], tasks: tuple[str, ...],
    span: tuple[int, int], ranges: tuple[tuple[int, int], ...],
) -> Finding:  # fmt: skip
    expected, total = int(wait.words[2]), order.reachable_value(wait)
    message = (
        f"{what}; the wait for '{wait.place.tensor}' >= {expected} in '{wait.place.task}' is satisfied by the credits "
        f"of other ranks: the cell reaches {total}"
    )
    repair = f"wait for the credits of all ranks that write ({total} here), or give every rank a cell of its own"
    return Finding("window-race", message, tensor, tasks, places, span, ranges, repair)


def _is_stale(order: RunOrder, wait: Event) -> bool:
    """Whether a wait proves nothing that the waits for its cell before it, or the run before, had not told already."""
    if order.before_run.get(wait.cell, 0) > 0:
        return True
    earlier = [e for e in order.waits if e.cell == wait.cell and order.reaches(e, wait)]
    known = set().union(*(order.proofs[e.number] for e in earlier))
    return bool(earlier) and order.proofs[wait.number] <= known


def _stale(order: RunOrder, what: str, wait: Event, places: tuple[Location, ...], tasks: tuple[str, ...]) -> Finding:
    expected, held = int(wait.words[2]), order.before_run.get(wait.cell, 0)
    sets = any(int(notify.words[3]) == _SET for notify in order.notifies[wait.cell])
    compared = "==" if int(wait.words[3]) == _EQUAL else ">="
    signal, by = wait.place.tensor, f"wait for '{wait.place.tensor}' {compared} {expected} in '{wait.place.task}'"
    reached = "" if sets else f" and reaches {order.reachable_value(wait)}"
    if held > 0:
        message = (
            f"the {by} is satisfied by credits of an earlier run: the cell held {held} when the run began{reached}; "
            f"{what}"
        )
        repair = "reset the windows between runs (reset_persistent_windows=True), or raise the threshold with every run"
        return Finding("residue", message, signal, tasks, places, None, (), repair)
    if sets:
        message = f"the {by} is already satisfied by the value that an earlier round has set; {what}"
        repair = "set a new value in every round, as the number of the round, and wait for that threshold"
    else:
        total = order.reachable_value(wait)
        message = f"the {by} is already satisfied by the credits of an earlier round: the cell reaches {total}; {what}"
        repair = (
            f"raise the threshold with every round (here {total}), or take the credits back before the cell is reused"
        )
    return Finding("signal-reuse", message, signal, tasks, places, None, (), repair)


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
            yield Finding(
                "signal-misuse",
                message,
                wait.place.tensor,
                (wait.place.task,),
                (wait.place.location,),
                None,
                (),
                repair,
            )
    for notifies in order.notifies.values():
        sets = [n for n in notifies if int(n.words[3]) == _SET]
        ranks = {n.rank for n in sets}
        adds = [n for n in notifies if int(n.words[3]) != _SET]
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
        yield Finding("signal-misuse", message, first.place.tensor, (first.place.task,), places, None, (), repair)

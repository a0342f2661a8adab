"""Collectives that the ranks of a domain do not call alike (spec distributed 2.13, 5.2 D9).

A collective is expanded where it is called, so the signals of its barrier carry the line of the call. The calls of a
rank are read off the signals it sent and awaited, in program order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

import numpy as np

from pypto.sim.checks import words as w
from pypto.sim.checks.findings import Finding, Location
from pypto.sim.distributed import DOMAIN_SHIFT

if TYPE_CHECKING:
    from pypto.sim.checks.rank_order import Event, RunOrder

_CALL: Final = re.compile(
    r"\.((?:allreduce|barrier|broadcast|allgather|reduce_scatter|all_to_all_v|all_to_all)\s*\(.*)$"
)
_PLACE: Final = re.compile(r"(?m)^.*\bwaits?\b.* at (\S+):(\d+)$")
_RANK: Final = re.compile(r"(?m)^rank (\d+) \(")
REPAIR: Final = (
    "let every rank of the domain make the same collectives with the same operation and operands, in the same order: "
    "take the call out of the branch or loop that depends on the rank"
)


def collective_at(place: Location) -> str:
    """The call of a collective on a source line, from its name on; empty when there is none."""
    found = _CALL.search(place.code)
    return re.sub(r"\s+", "", found[1]) if found else ""


def uneven_collectives(order: RunOrder) -> Iterator[Finding]:
    """The first call, per domain, in which two ranks differ."""
    domains: dict[int, dict[int, list[Event]]] = {}
    calls_at = _calls_at(order)
    for number in np.flatnonzero(order.events.kind >= w.NOTIFIES).tolist() if any(calls_at.values()) else ():
        event = order.events[number]
        if calls_at[event.place.location]:
            domain = int(event.words[0]) >> DOMAIN_SHIFT
            domains.setdefault(domain, {}).setdefault(event.rank, []).append(event)
    for ranks in domains.values():
        calls = {rank: _calls(events) for rank, events in sorted(ranks.items())}
        first, *others = calls
        for other in others:
            finding = _divergence(order, first, calls[first], other, calls[other])
            if finding is not None:
                yield finding
                break


def _calls_at(order: RunOrder) -> dict[Location, str]:
    """The calls of collectives at the places of a run."""
    places = {place.location for _, log in order.logs.values() for place in log.places}
    return {place: collective_at(place) for place in places}


def _calls(events: Sequence[Event]) -> list[Event]:
    """The first signal of each run of signals from one call."""
    found: list[Event] = []
    last = None
    for event in sorted(events, key=lambda event: (event.dispatch, event.node, event.thread, event.number)):
        key = event.dispatch, event.thread, event.place.location
        if key != last:
            found.append(event)
        last = key
    return found


def _divergence(order: RunOrder, one: int, calls: Sequence[Event], two: int, others: Sequence[Event]) -> Finding | None:
    from pypto.sim.checks.signal_names import cell_of

    for number, (a, b) in enumerate(zip_longest(calls, others)):
        if a is not None and b is not None and collective_at(a.place.location) == collective_at(b.place.location):
            continue
        acts = [
            f"rank {rank} calls {collective_at(event.place.location)} in '{event.place.task}'"
            if event is not None
            else f"rank {rank} makes no further call"
            for rank, event in ((one, a), (two, b))
        ]
        present = [event for event in (a, b) if event is not None]
        message = f"the ranks call different collectives: as number {number}, {acts[0]} and {acts[1]}"
        places = tuple(dict.fromkeys(event.place.location for event in present))
        tasks = tuple(dict.fromkeys(event.place.task for event in present))
        cell = cell_of(order, present[0])
        return Finding("collective", message, present[0].place.tensor, tasks, places, *cell, REPAIR)
    return None


def waiting_places(text: str) -> tuple[Location, ...]:
    """Source lines at which something waits, from the text of a deadlock."""
    return tuple(dict.fromkeys(Location(file, int(line), "waits") for file, line in _PLACE.findall(text)))


def unmet_collective(text: str, places: Sequence[Location]) -> str:
    """What the ``text`` of a deadlock says of a collective that not all ranks call, or nothing."""
    calls = list(dict.fromkeys(call for place in places if (call := collective_at(place))))
    everyone = re.search(r"\((\d+) of (\d+) ranks\)", text)
    if not calls or len(calls) == 1 and everyone is not None and everyone[1] == everyone[2]:
        return ""
    ranks = list(dict.fromkeys(_RANK.findall(text)))
    waiting = f"rank {ranks[0]} waits" if len(ranks) == 1 else f"ranks {', '.join(ranks)} wait"
    if len(calls) > 1:
        return f"the ranks call different collectives: {' and '.join(calls)}"
    return f"{waiting} in {calls[0]}, which another rank of the domain has not called, or not as often"

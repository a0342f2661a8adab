"""The transfers of a run on the links between chips, each direction of a link shared equally (spec hardware 13b).

A core moves one piece after the other, so when a piece takes longer, those behind it start later and meet other
transfers on their links. The pieces of all ranks are therefore played together: a chain is what one pipe of one task
moves, with the pauses between its pieces as the last timing of its launch had them.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pypto.sim.chips import Chip

Way = tuple[int, int]
"""From one rank to another."""

PS: Final = 1000
_BEGIN, _FINISH, _LOAD = 0, 1, 2
_ROUNDING_BYTES: Final = 1e-6


@dataclass(frozen=True)
class Piece:
    """One remote transfer. ``way``: ``None`` within the own memory; times in ps as the last timing had them."""

    way: Way | None
    nbytes: int
    start: int
    end: int


@dataclass
class _Link:
    """One direction of a link: all its transfers run at ``rate`` bytes per ps, so bytes served to each say who ends."""

    served: float = 0.0
    rate: float = 0.0
    at: float = 0.0
    version: int = 0
    waiting: list[tuple[float, int, int]] = field(default_factory=list)


class LinkTimes:
    """Plays the chains once. ``loads``: per rank, (ps, share of its cubes at work from then on), in order."""

    def __init__(self, chip: Chip, chains: Sequence[Sequence[Piece]], loads: dict[int, list[tuple[int, float]]]):
        link = chip.link
        self._own, self._whole = link.staged_gbps.value / PS, link.gbps.value / PS  # bytes per ps
        self._fixed, self._slowed = round(link.staged_ns.value * PS), link.busy_gbps.value / link.idle_gbps.value
        self._chains = chains
        self._links: dict[Way, _Link] = {p.way: _Link() for chain in chains for p in chain if p.way is not None}
        self._busy = dict.fromkeys(loads, 0.0)
        self._begun: dict[int, float] = {}
        self._events: list[tuple[float, int, int, int]] = []  # time, kind, chain or number of the way, detail
        self._ways = list(self._links)
        self._numbers = {way: number for number, way in enumerate(self._ways)}
        self._loads = loads
        self.work = [[0] * len(chain) for chain in chains]

    def play(self) -> list[list[int]]:
        """How long every piece takes, in ps."""
        for number, chain in enumerate(self._chains):
            if chain:
                self._push(chain[0].start, _BEGIN, number, 0)
        for rank, changes in self._loads.items():
            for index, (at, _) in enumerate(changes):
                self._push(at, _LOAD, rank, index)
        while self._events:
            now, kind, number, detail = heapq.heappop(self._events)
            if kind == _BEGIN:
                self._begin(now, number, detail)
            elif kind == _FINISH:
                self._finish(now, number, detail)
            else:
                self._load(now, number, detail)
        return self.work

    def _push(self, at: float, kind: int, number: int, detail: int) -> None:
        heapq.heappush(self._events, (at, kind, number, detail))

    def _begin(self, now: float, number: int, index: int) -> None:
        piece = self._chains[number][index]
        self._begun[number] = now
        if piece.way is None:
            self._over(now + piece.nbytes / self._own, number, index)
            return
        self._serve(piece.way, now)
        link = self._links[piece.way]
        heapq.heappush(link.waiting, (link.served + piece.nbytes, number, index))
        self._share(piece.way, now)

    def _over(self, end: float, number: int, index: int) -> None:
        """A piece has moved: note its time, and start what follows it after the pause it had."""
        chain = self._chains[number]
        taken = self.work[number][index] = round(end - self._begun[number]) + self._fixed
        if index + 1 < len(chain):
            pause = max(0, chain[index + 1].start - chain[index].end)
            self._push(self._begun[number] + taken + pause, _BEGIN, number, index + 1)

    def _finish(self, now: float, number: int, version: int) -> None:
        way = self._ways[number]
        link = self._links[way]
        if version != link.version:
            return
        self._serve(way, now)
        while link.waiting and link.waiting[0][0] <= link.served + _ROUNDING_BYTES:
            _, chain, index = heapq.heappop(link.waiting)
            self._over(now, chain, index)
        self._share(way, now)

    def _load(self, now: float, rank: int, index: int) -> None:
        self._busy[rank] = self._loads[rank][index][1]
        for way in self._ways:
            if rank in way and self._links[way].waiting:
                self._serve(way, now)
                self._share(way, now)

    def _serve(self, way: Way, now: float) -> None:
        link = self._links[way]
        if not link.waiting:
            link.served = 0.0
        link.served += (now - link.at) * link.rate
        link.at = now

    def _share(self, way: Way, now: float) -> None:
        """A transfer has come or gone, or a chip has become busier: a new rate, and when the next one ends."""
        link = self._links[way]
        link.version += 1
        if not link.waiting:
            link.rate = 0.0
            return
        load = max(self._busy.get(rank, 0.0) for rank in way)
        link.rate = min(self._own, self._whole / len(link.waiting)) * (1 - load * (1 - self._slowed))
        left = max(0.0, link.waiting[0][0] - link.served)
        self._push(now + left / link.rate, _FINISH, self._numbers[way], link.version)


__all__ = ["LinkTimes", "Piece", "Way"]

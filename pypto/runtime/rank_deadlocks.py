"""What to say when no rank can go on: who waits for which cell, what the cell has got, and who might still send."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pypto.runtime.ranks_exchange import cell_value
from pypto.runtime.ranks_protocol import Blocked, Recalled
from pypto.sim.checks.findings import Location
from pypto.sim.told_signals import Told

_RANKS_SHOWN: Final = 8
_WAITS_SHOWN: Final = 4
_SIGNAL: Final = re.compile(r"signal (\w+)\[[\d, -]*\]")
_PLACE: Final = re.compile(r"(?m) at (\S+:\d+)$")


@dataclass(frozen=True)
class Wait:
    """A block that waits: ``cell`` names domain and byte of the cell of its rank, ``text`` describes all of it."""

    rank: int
    cell: int
    expected: int
    held: int
    text: str

    @property
    def called(self) -> str:
        """The cell as the kernel names it."""
        found = _SIGNAL.search(self.text)
        return f"{found[0].removeprefix('signal ') if found else 'the cell'} of rank {self.rank}"

    @property
    def signal(self) -> str:
        """The tensor of the cell as the kernel names it."""
        found = _SIGNAL.search(self.text)
        return found[1] if found else ""

    @property
    def place(self) -> str:
        """``file:line`` of the wait."""
        found = _PLACE.search(self.text)
        return found[1] if found else ""


@dataclass(frozen=True)
class Standstill:
    """``waits`` by rank with the name of its dispatch, as they were when nothing moved any more.

    ``idle``: ranks that get no dispatch; ``held_back``: dispatches that have not started, in words.
    """

    device_ids: Sequence[int]
    dispatches: Mapping[int, str]
    waits: Mapping[int, Sequence[Wait]]
    idle: frozenset[int] = frozenset()
    held_back: Sequence[str] = ()
    recalled: Mapping[int, Recalled] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The report."""
        world = len(self.device_ids)
        lines = [
            f"deadlock: every rank waits for a signal and none is left to send it ({len(self.waits)} of {world} ranks)"
        ]
        for rank in sorted(self.waits)[:_RANKS_SHOWN]:
            lines.append(f"rank {rank} (device {self.device_ids[rank]}) in {self.dispatches[rank]}:")
            shown = self.waits[rank][:_WAITS_SHOWN]
            lines += [wait.text for wait in shown]
            lines += [f"  {self._got(wait)}" for wait in {wait.cell: wait for wait in shown}.values()]
        if len(self.waits) > _RANKS_SHOWN:
            lines.append(f"... and {len(self.waits) - _RANKS_SHOWN} more ranks")
        lines += self._others()
        return [*lines, *self.held_back] if self.held_back else lines

    def credits(self, wait: Wait) -> Iterator[tuple[int, Told]]:
        """(rank, what it has told) of the notifies of the cell of a wait."""
        for rank, recalled in sorted(self.recalled.items()):
            alike: dict[Told, int] = {}  # a collective notifies in several instructions of one line
            for told in recalled.told:
                if (told.cell, told.rank) == (wait.cell, wait.rank):
                    key = replace(told, count=0)
                    alike[key] = alike.get(key, 0) + told.count
            yield from ((rank, replace(told, count=count)) for told, count in alike.items())

    def ahead(self) -> dict[int, tuple[str, ...]]:
        """Rank that waits: places of the notifies of signals that are waited for which it has not come to."""
        awaited = {wait.signal for waits in self.waits.values() for wait in waits}
        found = {}
        for rank in sorted(self.waits.keys() & self.recalled.keys()):
            own = {wait.place for wait in self.waits[rank]}  # in a collective: what it gives back at its end
            places = tuple(p for signal, p in self.recalled[rank].ahead if signal in awaited and p not in own)
            if places:
                found[rank] = places
        return found

    def setting(self) -> list[str]:
        """Kernels that set cells that are waited for."""
        waits = (wait for waits in self.waits.values() for wait in waits)
        return list(dict.fromkeys(told.kernel for wait in waits for _, told in self.credits(wait) if told.sets))

    def silent(self) -> str:
        """Whose signal is missing, as an advice; nothing when that is not known."""
        first = next(wait for _, waits in sorted(self.waits.items()) for wait in waits)
        senders = {rank for rank, _ in self.credits(first)}
        others = [rank for rank in self.recalled if rank not in senders and rank != first.rank]
        if self.recalled and not senders and not self.ahead():
            return (
                f"let the rank that is awaited notify {first.called} before it ends; compare peer and cell with those "
                "that are notified: the writer indexes by its own rank, the reader by the source"
            )
        if len(senders) < 2 or not others:
            return ""
        return f"{_ranks(others)} {'has' if len(others) == 1 else 'have'} not notified {first.called}"

    def places(self) -> tuple[Location, ...]:
        """The lines that wait, and those that have notified or would notify the same signals."""
        waits = [(wait.place, "waits") for waits in self.waits.values() for wait in waits]
        sent = [
            (told.place, "notifies")
            for waits in self.waits.values()
            for wait in waits
            for _, told in self.credits(wait)
        ]
        ahead = [(place, "would notify") for places in self.ahead().values() for place in places]
        found = [*waits[:_WAITS_SHOWN], *sent[:_WAITS_SHOWN], *ahead[:_WAITS_SHOWN]]
        return tuple(dict.fromkeys(_location(place, what) for place, what in found if place))

    def _got(self, wait: Wait) -> str:
        acts = [f"rank {rank} {_act(told)}" for rank, told in self.credits(wait)]
        if not acts:
            return f"nobody has notified {wait.called}"
        more = f" and {len(acts) - _WAITS_SHOWN} more" if len(acts) > _WAITS_SHOWN else ""
        return f"{wait.called} was notified: {', '.join(acts[:_WAITS_SHOWN])}{more}"

    def _others(self) -> Iterator[str]:
        """What the ranks that have ended have told the waiting ones, and who would still have told something."""
        for rank in [rank for rank in self.recalled if rank not in self.waits][:_RANKS_SHOWN]:
            if rank in self.idle:
                yield f"rank {rank} gets no dispatch"
                continue
            told = [t for t in self.recalled[rank].told if t.rank in self.waits]
            sent = list(dict.fromkeys(f"{t.signal}[{t.index}] of rank {t.rank}" for t in told))
            more = " and others" if len(sent) > _WAITS_SHOWN else ""
            what = (
                f"has notified {', '.join(sent[:_WAITS_SHOWN])}{more}"
                if sent
                else "has notified none of those that wait"
            )
            yield f"rank {rank} has ended and {what}"
        alike: dict[tuple[str, ...], list[int]] = {}
        for rank, places in self.ahead().items():
            alike.setdefault(places, []).append(rank)
        for places, ranks in alike.items():
            verb = "has not come to its" if len(ranks) == 1 else "have not come to their"
            yield f"{_ranks(ranks)} {verb} notify at {', '.join(places[:_WAITS_SHOWN])}"


def waits_now(rank: int, blocked: Blocked) -> tuple[Wait, ...]:
    """What a rank waits for, with what the cells hold now: peers may have notified after it began to wait."""
    found = []
    for text, (address, expected, _), cell in zip(blocked.texts, blocked.waits, blocked.cells):
        held = cell_value(address)
        found.append(Wait(rank, cell, expected, held, re.sub(r", holds -?\d+", f", holds {held}", text)))
    return tuple(found)


def _location(place: str, what: str) -> Location:
    file, _, line = place.rpartition(":")
    return Location(file, int(line), what)


def _act(told: Told) -> str:
    times = f", {told.count} times," if told.count > 1 else ""
    values = f"{told.value}" if told.last == told.value else f"{told.value}, at last {told.last}"
    return f"{'sets' if told.sets else 'adds'} {values}{times} at {told.place}"


def _ranks(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, sorted(numbers)[:_RANKS_SHOWN])) + (", ..." if len(numbers) > _RANKS_SHOWN else "")
    return f"rank {shown}" if len(numbers) == 1 else f"ranks {shown}"

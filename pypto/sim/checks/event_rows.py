"""Rows of events kept small: what many have in common is kept once, as a pattern, and the rest is packed.

A row is ``int64[n]``: kind, node of the order graph, block, then what and where; the last ``BOX_WORDS`` words are a box
or the four words of a signal, whose third is an amount. Node and block are those of a thread, the amount differs from
event to event; all else is one of a few places and cells of a program. Loops repeat the same events with amounts that
grow evenly, so a chunk of events shrinks to some hundred bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pypto.sim.checks import words as w
from pypto.sim.checks.boxes import BOX_WORDS
from pypto.sim.recording import Words

KIND, NODE, SEAT = 0, 1, 2
AMOUNT: Final = 2 - BOX_WORDS
"""Place of the amount, from the end of a row; only signals have one."""
CHUNK: Final = 4096
"""Events that are packed together."""
_EVENT: Final = np.dtype([("pattern", "<i4"), ("node", "<i4"), ("seat", "<i4"), ("amount", "<i8")])
Columns = tuple[Words, Words, Words]
"""Pattern, thread and amount of some events."""


@dataclass(frozen=True)
class Chunk:
    """``count`` events that follow each other, packed; ``lowest``: the least of their amounts."""

    count: int
    lowest: int
    packed: bytes

    @staticmethod
    def of(pattern: Words, thread: Words, amount: Words) -> Chunk:
        """Pack columns: threads as differences, amounts as differences between events of one pattern."""
        order, starts = _by_pattern(pattern)
        steps = amount[order]
        steps[1:] = np.where(starts[1:], steps[1:], steps[1:] - amount[order][:-1])
        of_event = np.empty_like(steps)
        of_event[order] = steps
        threads = np.diff(thread, prepend=0)
        columns = pattern.astype("<i4"), threads.astype("<i4"), of_event.astype("<i8")
        packed = zlib.compress(b"".join(column.tobytes() for column in columns), 1)
        return Chunk(len(pattern), int(amount.min(initial=0)), packed)

    def columns(self) -> Columns:
        """The columns as they were."""
        data = zlib.decompress(self.packed)
        pattern = np.frombuffer(data, "<i4", self.count).astype(np.int64)
        thread = np.cumsum(np.frombuffer(data, "<i4", self.count, 4 * self.count), dtype=np.int64)
        steps = np.frombuffer(data, "<i8", self.count, 8 * self.count)
        order, starts = _by_pattern(pattern)
        sums = np.cumsum(steps[order])
        before = (sums - steps[order])[starts]
        amount = np.empty(self.count, np.int64)
        amount[order] = sums - before[np.cumsum(starts) - 1]
        return pattern, thread, amount


def _by_pattern(pattern: Words) -> tuple[Words, NDArray[np.bool_]]:
    """Order of the events by pattern, and where in it a pattern begins."""
    order = np.argsort(pattern, kind="stable")
    starts = np.ones(len(order), bool)
    starts[1:] = pattern[order][1:] != pattern[order][:-1]
    return order, starts


@dataclass(frozen=True)
class EventRows:
    """``patterns``: rows without node, block and amount; ``threads``: int64[n, 3], block, node and how many events."""

    patterns: Words
    threads: Words
    chunks: tuple[Chunk, ...]

    @staticmethod
    def of(rows: Words, together: int = CHUNK) -> EventRows:
        """The events of plain rows, ``together`` of them in a chunk; a block belongs to one node."""
        patterns, signals = rows.copy(), rows[:, KIND] >= w.NOTIFIES
        patterns[:, [NODE, SEAT]] = 0
        patterns[signals, AMOUNT] = 0
        own, pattern = np.unique(patterns, axis=0, return_inverse=True)
        _, first, thread = np.unique(rows[:, SEAT], return_index=True, return_inverse=True)
        by_first = np.argsort(first)
        threads = rows[first[by_first]][:, [SEAT, NODE, NODE]]
        threads[:, 2] = np.bincount(thread)[by_first]
        columns = pattern.reshape(-1), np.argsort(by_first)[thread], np.where(signals, rows[:, AMOUNT], 0)
        starts = range(0, len(rows), together)
        chunks = (Chunk.of(*(column[at : at + together] for column in columns)) for at in starts)
        return EventRows(own, threads, tuple(chunks))

    def __len__(self) -> int:
        return sum(chunk.count for chunk in self.chunks)

    def row(self, index: int) -> Words:
        """One event as a plain row."""
        return self.plain(slice(index, index + 1))[0]

    def plain(self, chosen: slice = slice(None)) -> Words:
        """Events as plain rows."""
        coded = self.coded[chosen]
        found: Words = self.patterns[coded["pattern"]]
        found[:, NODE], found[:, SEAT] = coded["node"], coded["seat"]
        signals = found[:, KIND] >= w.NOTIFIES
        found[signals, AMOUNT] = coded["amount"][signals]
        return found

    @cached_property
    def coded(self) -> NDArray[Any]:
        """All events unpacked: pattern, node, seat and amount of each."""
        found = np.empty(len(self), _EVENT)
        at = 0
        for pattern, thread, amount in self.columns():
            part = found[at : at + len(pattern)]
            part["pattern"], part["amount"] = pattern, amount
            part["seat"], part["node"] = self.threads[thread, 0], self.threads[thread, 1]
            at += len(pattern)
        return found

    def columns(self) -> Iterator[Columns]:
        """The events chunk by chunk."""
        return (chunk.columns() for chunk in self.chunks)

    def translated(self, translate: Callable[[Words], Words]) -> EventRows:
        """The same events with other patterns."""
        return EventRows(translate(self.patterns), self.threads, self.chunks)

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return self.patterns.nbytes + self.threads.nbytes + sum(len(chunk.packed) for chunk in self.chunks)


__all__ = ["AMOUNT", "CHUNK", "KIND", "NODE", "SEAT", "Chunk", "Columns", "EventRows"]

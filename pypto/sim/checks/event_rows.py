"""Rows of events kept small: what many have in common is kept once, as a pattern.

A row is ``int64[n]``: kind, node of the order graph, block, then what and where; the last ``BOX_WORDS`` words are a box
or the four words of a signal, whose third is an amount. Node, block and amount differ from event to event; the rest
are the places and cells of a program, few of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pypto.sim.checks import words as w
from pypto.sim.checks.boxes import BOX_WORDS
from pypto.sim.recording import Words

KIND, NODE, SEAT = 0, 1, 2
_AMOUNT: Final = 2 - BOX_WORDS  # from the end of a row; only signals have one
_EVENT: Final = np.dtype([("pattern", "<i4"), ("node", "<i4"), ("seat", "<i4"), ("amount", "<i8")])


@dataclass(frozen=True)
class EventRows:
    """``patterns``: rows without node, block and amount; ``coded``: one entry per event."""

    patterns: Words
    coded: NDArray[Any]

    @staticmethod
    def of(rows: Words) -> EventRows:
        """The events of plain rows."""
        coder = EventCoder()
        coder.append(rows)
        return coder.rows(rows.shape[1])

    def __len__(self) -> int:
        return len(self.coded)

    def row(self, index: int) -> Words:
        """One event as a plain row."""
        return self.plain(slice(index, index + 1))[0]

    def plain(self, chosen: slice = slice(None)) -> Words:
        """Events as plain rows."""
        coded = self.coded[chosen]
        found: Words = self.patterns[coded["pattern"]]
        found[:, NODE], found[:, SEAT] = coded["node"], coded["seat"]
        signals = found[:, KIND] >= w.NOTIFIES
        found[signals, _AMOUNT] = coded["amount"][signals]
        return found

    def column(self, word: int) -> Words:
        """A word that is part of the patterns, of every event."""
        found: Words = self.patterns[:, word][self.coded["pattern"]]
        return found

    def translated(self, translate: Callable[[Words], Words]) -> EventRows:
        """The same events with other patterns."""
        return EventRows(translate(self.patterns), self.coded)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.patterns.nbytes + self.coded.nbytes


class EventCoder:
    """Gathers events of rows of one length."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._chunks: list[NDArray[Any]] = []

    def append(self, rows: Words) -> None:
        """Events that come behind those so far."""
        patterns, coded = rows.copy(), np.empty(len(rows), _EVENT)
        signals = rows[:, KIND] >= w.NOTIFIES
        coded["node"], coded["seat"] = rows[:, NODE], rows[:, SEAT]
        coded["amount"] = np.where(signals, rows[:, _AMOUNT], 0)
        patterns[:, [NODE, SEAT]] = 0
        patterns[signals, _AMOUNT] = 0
        own, places = np.unique(patterns, axis=0, return_inverse=True)
        numbers = [self._numbers.setdefault(pattern.tobytes(), len(self._numbers)) for pattern in own]
        coded["pattern"] = np.array(numbers, np.int32)[places.reshape(-1)]
        self._chunks.append(coded)
        if len(self._chunks) > 64:
            self._chunks = [np.concatenate(self._chunks)]

    def nodes(self) -> set[int]:
        """Nodes that events name."""
        return {node for chunk in self._chunks for node in np.unique(chunk["node"]).tolist()}

    def rows(self, length: int) -> EventRows:
        """All events; ``length`` of a row."""
        patterns = np.frombuffer(b"".join(self._numbers), np.int64).reshape(-1, length)
        return EventRows(patterns, np.concatenate(self._chunks) if self._chunks else np.empty(0, _EVENT))

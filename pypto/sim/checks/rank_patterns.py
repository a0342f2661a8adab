"""What the events of a run on several chips have in common: one table over all its logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from pypto.sim.checks import held_words as h
from pypto.sim.checks import words as w
from pypto.sim.checks.boxes import BOX_WORDS, runs_of
from pypto.sim.checks.cells import PAIRS
from pypto.sim.checks.collectives import collective_at
from pypto.sim.checks.rank_log import EV_BOX, EV_KIND, EV_PLACE, EVENT_WORDS, RankLog
from pypto.sim.checks.signal_cells import SET
from pypto.sim.recording import Words

_EQUAL = 0


@dataclass(frozen=True)
class RankPatterns:
    """``table`` as held_words.py lays it out; ``rows`` and ``boxes`` of the same patterns; ``starts``: first of a log.

    ``cells``: (cell, world rank that owns it), as the table numbers them.
    """

    starts: tuple[int, ...]
    rows: Words
    table: Words
    boxes: Words
    cells: tuple[tuple[int, int], ...]

    def held(self, before_run: Mapping[tuple[int, int], int]) -> Words:
        """What every cell held when the run began."""
        return np.array([before_run.get(cell, 0) for cell in self.cells], np.int64)


def patterns_of(logs: Iterable[tuple[int, RankLog]]) -> RankPatterns:
    """The patterns of logs, each given as (rank, log)."""
    rows, tables = [np.zeros((0, EVENT_WORDS), np.int64)], [np.zeros((0, h.PATTERN_WORDS), np.int64)]
    cells: dict[tuple[int, int], int] = {}
    calls: dict[tuple[str, int], int] = {}
    for rank, log in logs:
        rows.append(log.events.patterns)
        tables.append(_table(rank, log, cells, calls))
    every = np.concatenate(rows)
    starts = np.cumsum([len(part) for part in rows]).tolist()
    boxes = np.ascontiguousarray(every[:, EV_BOX : EV_BOX + BOX_WORDS])
    return RankPatterns(tuple(starts), every, np.concatenate(tables), boxes, tuple(cells))


def _table(rank: int, log: RankLog, cells: dict[tuple[int, int], int], calls: dict[tuple[str, int], int]) -> Words:
    rows = log.events.patterns
    table = np.zeros((len(rows), h.PATTERN_WORDS), np.int64)
    kind = table[:, h.PT_KIND] = rows[:, EV_KIND]
    table[:, h.PT_SETS] = (kind == w.NOTIFIES) & (rows[:, EV_BOX + 3] == SET)
    table[:, h.PT_EQUAL] = (kind == w.WAITED) & (rows[:, EV_BOX + 3] == _EQUAL)
    of_place = [
        calls.setdefault((place.location.file, place.location.line), len(calls))
        if collective_at(place.location)
        else -1
        for place in log.places
    ]
    table[:, h.PT_COLLECTIVE] = np.array(of_place, np.int64)[rows[:, EV_PLACE]] if of_place else -1
    accesses = kind < w.NOTIFIES
    table[accesses, h.PT_LOW], table[accesses, h.PT_HIGH] = _spans(rows[accesses, EV_BOX : EV_BOX + BOX_WORDS])
    for index in np.flatnonzero(~accesses).tolist():
        owner = int(rows[index, EV_BOX + 1]) if kind[index] == w.NOTIFIES else rank
        table[index, h.PT_CELL] = cells.setdefault((int(rows[index, EV_BOX]), owner), len(cells))
    return table


def _spans(boxes: Words) -> tuple[Words, Words]:
    """First byte of every box, and first byte behind it."""
    pairs = (boxes[:, PAIRS::2] - 1) * boxes[:, PAIRS + 1 :: 2]
    low, high = boxes[:, 0].copy(), boxes[:, 0] + boxes[:, 1] + pairs.sum(axis=1)
    for index in np.flatnonzero(boxes[:, PAIRS] == 0).tolist():  # separate cells
        starts, run = runs_of(boxes[index])
        low[index], high[index] = starts.min(), starts.max() + run
    return low, high


__all__ = ["RankPatterns", "patterns_of"]

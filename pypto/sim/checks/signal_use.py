"""How the signals of a run are used, as far as the order of events plays no part; read from its logs chunk by chunk."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from pypto.sim.checks import held_words as h
from pypto.sim.checks import words as w
from pypto.sim.checks.collectives import collective_at
from pypto.sim.checks.deferred import CONDITIONS
from pypto.sim.checks.event_rows import Columns
from pypto.sim.checks.rank_chains import RankChains
from pypto.sim.checks.rank_log import EV_BOX, EV_PLACE, RankLog
from pypto.sim.checks.rank_patterns import RankPatterns, patterns_of
from pypto.sim.distributed import DOMAIN_SHIFT, REACHED_UNSIGNED
from pypto.sim.recording import Words

Cell = tuple[int, int]
_PRIME: Final = (1 << 61) - 1
_BASE: Final = 1_000_003


def may_be_misused(chains: RankChains, patterns: RankPatterns) -> bool:
    """Whether ``signal-misuse``, ``deferred-wait``, ``duplicate-notify`` or ``collective`` may be found in a run."""
    ranks = np.repeat([rank for rank, _ in chains.logs], np.diff(patterns.starts)).astype(np.int64)
    return (
        _mixed(patterns, ranks)
        or _deferred_too_much(chains, patterns)
        or _doubled(chains, patterns)
        or _calls_differ(chains, patterns)
    )


def cells_after(logs: Iterable[tuple[int, RankLog]], before: Mapping[Cell, int]) -> dict[Cell, int]:
    """What the cells hold when a run has ended; logs in the order of their dispatches, each with its rank."""
    every, held = list(logs), dict(before)
    patterns = patterns_of(every)
    values = patterns.held(before)
    for number, (_, log) in enumerate(every):
        for pattern, _, amount in log.events.columns():
            table = patterns.table[pattern + patterns.starts[number]]
            notifies = table[:, h.PT_KIND] == w.NOTIFIES
            _apply(values, table[notifies], amount[notifies])
    told = np.unique(patterns.table[patterns.table[:, h.PT_KIND] == w.NOTIFIES, h.PT_CELL]).tolist()
    return held | {patterns.cells[cell]: int(values[cell]) for cell in told}


def _apply(values: Words, table: Words, amount: Words) -> None:
    """Let notifies happen one after the other."""
    sets = table[:, h.PT_SETS] != 0
    last = np.full(len(values), -1, np.int64)
    places = np.flatnonzero(sets)
    last[table[places, h.PT_CELL]] = places  # the last one of a cell stays
    cells = np.flatnonzero(last >= 0)
    values[cells] = amount[last[cells]]
    behind = ~sets & (np.arange(len(table)) > last[table[:, h.PT_CELL]])
    np.add.at(values, table[behind, h.PT_CELL], amount[behind])


def _events(chains: RankChains, patterns: RankPatterns) -> Iterator[Columns]:
    """All events of a run by chunks; patterns and threads as numbered in it."""
    for number, (_, log) in enumerate(chains.logs):
        for pattern, thread, amount in log.events.columns():
            yield pattern + patterns.starts[number], thread + chains.starts[number], amount


def _mixed(patterns: RankPatterns, ranks: Words) -> bool:
    """Whether a cell is set and added to, or set by several ranks."""
    table = patterns.table
    notifies, sets = table[:, h.PT_KIND] == w.NOTIFIES, table[:, h.PT_SETS] != 0
    set_by = np.unique(np.stack((table[:, h.PT_CELL], ranks))[:, notifies & sets], axis=1)
    return bool(
        np.isin(table[notifies & ~sets, h.PT_CELL], set_by[0]).any() or len(np.unique(set_by[0])) < set_by.shape[1]
    )


def _deferred_too_much(chains: RankChains, patterns: RankPatterns) -> bool:
    """Whether a deferred wait sees a negative number, or a task has too many of them."""
    unsigned = (patterns.table[:, h.PT_KIND] == w.WAITED) & (patterns.rows[:, EV_BOX + 3] == REACHED_UNSIGNED)
    if not unsigned.any():
        return False
    if np.any(patterns.rows[unsigned, EV_BOX + 1] < 0):
        return True
    nodes = np.concatenate([log.events.threads[:, 1] for _, log in chains.logs])
    counts: Counter[tuple[int, int]] = Counter()
    for pattern, thread, amount in _events(chains, patterns):
        chosen = unsigned[pattern]
        if np.any(amount[chosen] < 0):
            return True
        tasks = np.stack((chains.threads[thread[chosen], h.TH_DISPATCH], nodes[thread[chosen]]))
        own, times = np.unique(tasks, axis=1, return_counts=True)
        counts.update(dict(zip(map(tuple, own.T.tolist()), times.tolist())))
    return max(counts.values(), default=0) > CONDITIONS


def _doubled(chains: RankChains, patterns: RankPatterns) -> bool:
    """Whether both lanes of a block add to a cell that nobody needs both additions of."""
    extra: defaultdict[int, int] = defaultdict(int)
    numbers = {cell: number for number, cell in enumerate(patterns.cells)}
    most: defaultdict[int, int] = defaultdict(int)  # of what one dispatch adds
    for _, log in chains.logs:
        extra.clear()
        for _, cell, rank, value in log.doubled:
            extra[numbers[cell, rank]] += value
        for cell, value in extra.items():
            most[cell] = max(most[cell], value)
    if not most:
        return False
    credits, needed = np.zeros((2, len(patterns.cells)), np.int64)
    for pattern, _, amount in _events(chains, patterns):
        kind, cell = patterns.table[pattern, h.PT_KIND], patterns.table[pattern, h.PT_CELL]
        adds, waits = (kind == w.NOTIFIES) & (amount > 0), kind == w.WAITED
        np.add.at(credits, cell[adds], amount[adds])
        np.maximum.at(needed, cell[waits], amount[waits])
    return any(needed[cell] <= credits[cell] - value for cell, value in most.items())


@dataclass
class _Calls:
    """The collectives that a block has called on one domain: where the last one is, and a hash of all."""

    place: int = -1
    hash: int = 0
    shift: int = 1


def _calls_differ(chains: RankChains, patterns: RankPatterns) -> bool:
    """Whether two ranks may call the collectives of a domain unlike each other."""
    texts: dict[str, int] = {"": 0}
    places: dict[object, int] = {}
    columns = [np.zeros((0, 2), np.int64)]
    for _, log in chains.logs:
        of_place = [
            (
                texts.setdefault(collective_at(place.location), len(texts)),
                places.setdefault(place.location, len(places)),
            )
            for place in log.places
        ]
        columns.append(np.array(of_place, np.int64).reshape(-1, 2)[log.events.patterns[:, EV_PLACE]])
    if len(texts) == 1:
        return False
    of_pattern = np.concatenate(columns)
    told = patterns.table[:, h.PT_KIND] >= w.NOTIFIES
    domains = np.where(told, patterns.rows[:, EV_BOX] >> DOMAIN_SHIFT, 0)
    calls: defaultdict[tuple[int, int], _Calls] = defaultdict(_Calls)
    for pattern, thread, _ in _events(chains, patterns):
        chosen = told[pattern] & (of_pattern[pattern, 0] != 0)
        _note_calls(calls, domains[pattern[chosen]], thread[chosen], of_pattern[pattern[chosen]])
    return _unequal(chains, calls)


def _note_calls(calls: defaultdict[tuple[int, int], _Calls], domain: Words, thread: Words, call: Words) -> None:
    """Signals of collectives in the order of every block; those of one call follow each other."""
    order = np.lexsort((np.arange(len(thread)), thread, domain))
    rows = np.stack((domain, thread, call[:, 0], call[:, 1]), axis=1)[order]
    changes = np.ones(len(rows), bool)
    changes[1:] = np.any(rows[1:, [0, 1, 3]] != rows[:-1, [0, 1, 3]], axis=1)
    for of_domain, of_thread, text, place in rows[changes].tolist():
        own = calls[of_domain, of_thread]
        if own.place != place:
            own.place, own.hash, own.shift = place, (own.hash * _BASE + text) % _PRIME, own.shift * _BASE % _PRIME


def _unequal(chains: RankChains, calls: Mapping[tuple[int, int], _Calls]) -> bool:
    nodes = np.concatenate([log.events.threads[:, :2] for _, log in chains.logs])
    of_rank: defaultdict[int, dict[int, int]] = defaultdict(dict)
    by_place = sorted(
        calls, key=lambda key: (int(chains.threads[key[1], h.TH_DISPATCH]), *nodes[key[1], ::-1].tolist())
    )
    for domain, thread in by_place:
        rank, own = int(chains.threads[thread, h.TH_RANK]), calls[domain, thread]
        of_rank[domain][rank] = (of_rank[domain].get(rank, 0) * own.shift + own.hash) % _PRIME
    return any(len(set(ranks.values())) > 1 for ranks in of_rank.values())


__all__ = ["cells_after", "may_be_misused"]

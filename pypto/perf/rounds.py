"""Cuts launches into warm-up and rounds (``profiling.md`` 3.2) and places what a damaged log still allows to place."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from pypto.perf.grouping import LaunchGroups, busiest_hid, busiest_incarnations, launches_of
from pypto.perf.table import Sentinel, SpanTable


@dataclass(frozen=True)
class Place:
    """Where a dispatch belongs; ``launch`` is None for a dispatch whose records were lost."""

    round: int | None
    pid: int
    slot: int | None
    launch: int | None


@dataclass
class Cut:
    """The outcome of cutting a log into rounds; ``launch`` numbers index ``groups``.

    ``measured`` holds launches in the order of ``BenchmarkStats.invocations``; ``grid[k][pid]`` the launches of round k
    (empty without a grid); ``places`` one entry per dispatch that there should be, for the frame.
    """

    groups: LaunchGroups
    warm: list[int] = field(default_factory=list)
    measured: list[int] = field(default_factory=list)
    grid: list[dict[int, list[int]]] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    flattened: bool = False
    warnings: list[str] = field(default_factory=list)


def cut_single_chip(table: SpanTable, *, rounds: int, warmup: int) -> Cut:
    """The L2 rule: launches of the busiest callable, warm-up dropped; the count is not forced to ``rounds``."""
    groups, warnings = _one_process_per_pid(launches_of(table))
    busiest = busiest_hid(groups.hid)
    cut = Cut(groups.pick(groups.hid == busiest) if busiest is not None else groups, warnings=warnings)
    every = list(range(len(cut.groups)))
    cut.warm, cut.measured = every[:warmup], every[warmup:]
    expected = warmup + rounds
    pids = cut.groups.pid.tolist()
    cut.places = [Place(k, pids[g], 0, g) for k, g in enumerate(cut.measured)]
    if len(every) != expected:
        cut.warnings.append(
            f"{len(every)} launches of the busiest callable in the log, expected {expected} "
            f"({warmup} warm-up + {rounds} rounds)"
        )
    if 0 < len(every) < expected and len(set(pids)) == 1 and len(groups) == len(cut.groups):
        _place_single_chip(cut, expected, warmup)
    return cut


def _place_single_chip(cut: Cut, launches: int, warmup: int) -> None:
    positions = _positions(cut.groups.inv.tolist(), cut.groups.hid.tolist(), launches)
    if positions is None:
        return
    pid, at = int(cut.groups.pid[0]), {position: g for g, position in enumerate(positions)}
    cut.places = [Place(p - warmup, pid, 0, at.get(p)) for p in range(warmup, launches)]
    lost = [p - warmup for p in range(warmup, launches) if p not in at]
    cut.warnings += [f"pid {pid}: the launch of round {k} is lost" for k in lost]


def cut_distributed(table: SpanTable, *, rounds: int, warmup: int) -> Cut:
    """The L3 rule: every rank's launches in equal parts, one per round; pooled when the counts do not allow it."""
    launches = warmup + rounds
    within, trouble = timing_regions(table.sentinels, len(table), launches)
    everything = launches_of(table, within)
    if trouble is not None:
        return Cut(everything.pick(np.zeros(len(everything), bool)), flattened=True, warnings=[trouble])
    groups, warnings = _one_process_per_pid(everything)
    rooted = groups.first_named(groups.words.run, depth=0) >= 0
    walled = groups.first_named(groups.words.wall) >= 0
    ranks = np.unique(groups.pid[rooted & walled])
    of_rank = np.isin(groups.pid, ranks)
    dispatches = groups.pick(rooted & of_rank)
    cut = Cut(dispatches, warnings=warnings)
    streams = {pid: np.flatnonzero(dispatches.pid == pid).tolist() for pid in ranks.tolist()}
    if not streams:
        return cut
    uneven = [pid for pid, own in streams.items() if len(own) % launches]
    if uneven:
        _flatten(cut, streams, warmup)
        cut.warnings.append(_uneven_text(streams, uneven, launches))
        _place_around_losses(cut, groups.pick(of_rank), launches, warmup)
        return cut
    _segment(cut, streams, rounds, warmup)
    return cut


def _segment(cut: Cut, streams: dict[int, list[int]], rounds: int, warmup: int) -> None:
    for k in range(warmup + rounds):
        parts = {}
        for pid, own in streams.items():
            size = len(own) // (warmup + rounds)
            parts[pid] = own[k * size : (k + 1) * size]
        if k < warmup:
            cut.warm += [g for part in parts.values() for g in part]
            continue
        cut.grid.append(parts)
        cut.places += [Place(k - warmup, pid, slot, g) for pid, part in parts.items() for slot, g in enumerate(part)]
    cut.measured = [g for pid in streams for parts in cut.grid for g in parts[pid]]


def _flatten(cut: Cut, streams: dict[int, list[int]], warmup: int) -> None:
    cut.flattened = True
    for own in streams.values():
        cut.warm += own[:warmup]
        cut.measured += own[warmup:]
    pids = cut.groups.pid.tolist()
    cut.places = [Place(None, pids[g], None, g) for g in cut.measured]


def _uneven_text(streams: dict[int, list[int]], uneven: list[int], launches: int) -> str:
    counts = ", ".join(f"pid {pid} has {len(streams[pid])}" for pid in uneven[:4])
    more = f" and {len(uneven) - 4} more ranks" if len(uneven) > 4 else ""
    return (
        f"dispatches per rank are no multiple of {launches} launches ({counts}{more}): no rounds, "
        f"the series pool single dispatches"
    )


def _place_around_losses(cut: Cut, dispatches: LaunchGroups, launches: int, warmup: int) -> None:
    """Rebuild the grid for the frame from the gaps in the launch numbers; a rank that stays unclear stays pooled.

    ``dispatches`` also holds launches whose root was lost: what is left of them still tells where they belong.
    """
    places: list[Place] = []
    renumber = {int(row): g for g, row in enumerate(cut.groups.heads.tolist())}
    for pid in np.unique(dispatches.pid).tolist():
        own = np.flatnonzero(dispatches.pid == pid)
        heads = dispatches.heads[own].tolist()
        positions = _positions(dispatches.inv[own].tolist(), dispatches.hid[own].tolist(), launches)
        if positions is None:
            places += [place for place in cut.places if place.pid == pid]
            continue
        per_round = _per_round(len(own), launches)
        at = {p: renumber.get(row) for p, row in zip(positions, heads)}
        for position in range(warmup * per_round, launches * per_round):
            k, slot = position // per_round - warmup, position % per_round
            places.append(Place(k, pid, slot, at.get(position)))
            if at.get(position) is None:
                cut.warnings.append(f"pid {pid}: dispatch of round {k} slot {slot} is lost; its round reads nan")
    cut.places = sorted(places, key=lambda p: (p.round is None, p.round or 0, p.pid, p.slot or 0))


def _per_round(count: int, launches: int) -> int:
    return -(-count // launches)


def _positions(numbers: list[int], hids: list[int], launches: int) -> list[int] | None:
    """Ordinals of launches in a complete stream of ``launches`` equal rounds, None when several fit equally well.

    Launch numbers count up by one per launch of a process, so a gap is a lost launch. Where launches are missing at
    either end, the offset under which every slot keeps one callable wins, then a stream that begins at number 1.
    """
    per_round = _per_round(len(numbers), launches)
    total = per_round * launches
    if len(numbers) == total:
        return list(range(total))
    if numbers[-1] - numbers[0] >= total:
        return None
    scored = []
    for base in range(numbers[-1] - total + 1, numbers[0] + 1):
        slots: dict[int, Counter[int]] = {}
        for number, hid in zip(numbers, hids):
            slots.setdefault((number - base) % per_round, Counter())[hid] += 1
        agreement = sum(counter.most_common(1)[0][1] for counter in slots.values())
        scored.append((agreement, base == 1, base))
    scored.sort(reverse=True)
    if len(scored) > 1 and scored[0][:2] == scored[1][:2]:
        return None
    return [number - scored[0][2] for number in numbers]


def _one_process_per_pid(groups: LaunchGroups) -> tuple[LaunchGroups, list[str]]:
    warnings = _repeated(groups)
    keep = busiest_incarnations(groups)
    if keep.all():
        return groups, warnings
    dropped = np.unique(groups.pid[~keep]).tolist()
    text = ", ".join(f"pid {pid} ({int((~keep & (groups.pid == pid)).sum())} launches)" for pid in dropped[:4])
    return groups.pick(keep), [*warnings, f"only the busiest process of a reused pid is counted; left out: {text}"]


def _repeated(groups: LaunchGroups) -> list[str]:
    """A launch has one run root; more of them mean that its records were written, or the log was joined, twice."""
    table = groups.table
    roots = (table.name[groups.rows] == table.name_code(groups.words.run)) & (table.depth[groups.rows] == 0)
    times = np.bincount(groups.owner()[roots], minlength=len(groups))
    twice = int((times > 1).sum())
    if not twice:
        return []
    worded = f"{twice} launches stand up to {times.max()} times in the log; each is counted once"
    return [f"{worded} (were logs joined twice?)"]


def timing_regions(sentinels: list[Sentinel], spans: int, launches: int) -> tuple[np.ndarray | None, str | None]:
    """Spans between the two-pass sentinels (1.11, 3.2), as a mask, or the sentence that says why there are none."""
    if not sentinels:
        return None, None
    events = [s for s in sentinels if s.kind == "timing"]
    paired = [s.event for s in events] == ["begin", "end"] * (len(events) // 2)
    if not events or len(events) % 2 or not paired:
        order = " ".join(str(s.event) for s in events[:8]) or "none"
        return None, f"malformed two-pass sentinels: expected timing begin/end pairs, found {order}"
    if len(events) // 2 != launches:
        return None, f"{len(events) // 2} timing regions in the log, expected {launches} (one per launch)"
    mask = np.zeros(spans, bool)
    for begin, end in zip(events[::2], events[1::2]):
        mask[begin.row : end.row] = True
    return mask, None

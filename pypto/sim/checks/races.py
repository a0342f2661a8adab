"""Findings about accesses that nothing orders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from pypto.sim.checks import conflicts as c
from pypto.sim.checks import words as w
from pypto.sim.checks.alias_edits import alias_edits
from pypto.sim.checks.boxes import shared_runs
from pypto.sim.checks.findings import Finding
from pypto.sim.checks.places import first_byte, index_ranges, location, memory_at, ranges_text
from pypto.sim.checks.race_repairs import Access, listed, repair_between, repair_within

if TYPE_CHECKING:
    from pypto.sim.checks.watch import LaunchWatch, Memory


def race_findings(watch: LaunchWatch) -> Iterator[Finding]:
    """One finding per pair of instructions that conflict."""
    for row in watch.table.findings:
        a = Access(watch, row[2 : 2 + c.ENTRY_WORDS])
        b = Access(watch, row[2 + c.ENTRY_WORDS :])
        if (b.node, b.seat) < (a.node, a.seat):
            a, b = b, a
        if row[0] == c.RACE:
            yield _race(watch, a, b, int(row[1]))
        elif row[0] == c.ALIAS:
            yield _alias(watch, a, b, int(row[1]))
        else:
            yield _false_sharing(watch, a, b, int(row[1]))
    yield from _mixed(watch)


def _overlap(watch: LaunchWatch, a: Access, b: Access) -> tuple[str, tuple[int, int], tuple[tuple[int, int], ...], str]:
    """(tensor, bytes, index ranges, their text) that two accesses share."""
    shared = shared_runs(a.box, b.box)
    memories = watch.memories[int(a.entry[w.ACCESS_ALLOCATION])]
    if not len(shared):
        shared = np.array([[int(a.box[0]), int(a.box[0]) + int(a.box[1])]], np.int64)
    memory = memory_at(memories, int(shared[0, 0]))
    shared = shared - first_byte(memory, memories)
    ranges = index_ranges(memory, shared)
    span = int(shared[:, 0].min()), int(shared[:, 1].max())
    return memory.name, span, ranges, ranges_text(memory, ranges)


def _kind(a: Access, b: Access) -> str:
    if a.node == b.node:
        return "parallel-overlap" if a.writes and b.writes else "raw"
    if a.writes and b.writes:
        return "parallel-overlap" if a.site == b.site and a.task == b.task else "waw"
    return "raw" if a.writes else "war"


def _race(watch: LaunchWatch, a: Access, b: Access, count: int) -> Finding:
    tensor, span, ranges, text = _overlap(watch, a, b)
    kind = _kind(a, b)
    acts = [f"{x.who(y)} {'writes' if x.writes else 'reads'}" for x, y in ((a, b), (b, a))]
    message = f"{acts[0]} and {acts[1]} {text} of '{tensor}', and nothing orders the two"
    repair = repair_within(a, b, tensor) if a.node == b.node else repair_between(kind, a, b, tensor)
    return Finding(kind, message, tensor, (a.task, b.task), (a.location(), b.location()), span, ranges, repair, count)


def _alias(watch: LaunchWatch, a: Access, b: Access, count: int) -> Finding:
    tensor, span, ranges, text = _overlap(watch, a, b)
    message = (
        f"'{a.task}' stores {text} of '{tensor}' through '{a.through()}' and loads them through '{b.through()}': under "
        "two names the compiler sees no dependence between the store and the load"
    )
    repair = f"pass '{tensor}' once, as one InOut parameter, and use the same name for both accesses"
    places = a.location(), b.location()
    repair += listed(alias_edits(places[0].file, a.task, a.through(), b.through()))
    return Finding("alias-view", message, tensor, (a.task,), places, span, ranges, repair, count)


def _false_sharing(watch: LaunchWatch, a: Access, b: Access, count: int) -> Finding:
    memories = watch.memories[int(a.entry[w.ACCESS_ALLOCATION])]
    memory = memory_at(memories, int(a.box[0]))
    line, shift = int(a.box[0]) // c.LINE_BYTES * c.LINE_BYTES, first_byte(memory, memories)
    first, second = int(a.box[0]) - shift, int(b.box[0]) - shift
    message = (
        f"{a.who(b)} and {b.who(a)} write bytes {first} and {second} of '{memory.name}' through the "
        f"scalar caches: both lie in the {c.LINE_BYTES}-byte line at {line - shift}, and one of the words can be lost"
    )
    repair = f"keep words that different cores write {c.LINE_BYTES} bytes apart, or write them from one task"
    places = a.location(), b.location()
    span, ranges = _line_of(memory, line - shift)
    return Finding("false-sharing", message, memory.name, (a.task, b.task), places, span, ranges, repair, count)


def _line_of(memory: Memory, first: int) -> tuple[tuple[int, int], tuple[tuple[int, int], ...]]:
    """(bytes, index ranges) of the part of a tensor in the cache line at its byte ``first``."""
    span = max(first, 0), min(first + c.LINE_BYTES, memory.size)
    return span, index_ranges(memory, np.array([span], np.int64))


def _mixed(watch: LaunchWatch) -> Iterator[Finding]:
    seen = set()
    for number, node, bulk, scalar in watch.mixed_stores:
        key = number, int(bulk[w.ACCESS_INSTRUCTION]), int(scalar[w.ACCESS_INSTRUCTION])
        if key in seen:
            continue
        seen.add(key)
        program, task = watch.programs[number], watch.nodes[node].name if node >= 0 else watch.orchestration.name
        memories = watch.memories[int(bulk[w.ACCESS_ALLOCATION])]
        memory = memory_at(memories, int(scalar[w.ACCESS_BOX]))
        low = int(scalar[w.ACCESS_BOX]) - first_byte(memory, memories)
        span = low, low + int(scalar[w.ACCESS_BOX + 1])
        message = (
            f"'{task}' stores '{memory.name}' in bulk and byte {low} of it with a scalar write: both reach the "
            f"{c.LINE_BYTES}-byte line at {low // c.LINE_BYTES * c.LINE_BYTES}, and the two store "
            "paths do not see each other"
        )
        repair = (
            "make the scalar write in a separate task, put pl.system.fence() between, or change the tile before "
            "its store"
        )
        places = tuple(
            sorted(
                (
                    location(program, key[1], f"'{task}' stores a tile"),
                    location(program, key[2], f"'{task}' writes a word"),
                ),
                key=lambda place: place.line,
            )
        )
        yield Finding(
            "coherence", message, memory.name, (task,), places, span,
            index_ranges(memory, np.array([span], np.int64)), repair,
        )  # fmt: skip

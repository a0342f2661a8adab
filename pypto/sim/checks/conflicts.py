"""Accesses that nothing orders: every new access of an allocation is compared with those that can still matter.

A table keeps, per allocation, the boxes of writes and reads. An entry is dropped when a later access covers its bytes
and is ordered after it: whatever conflicts with the dropped one then also conflicts with the other, or is ordered after
both. So the table is bounded by how the buffers are divided, not by how often they are used.

Two accesses are ordered when they are of one block, when the order graph of the tasks has a path, or when the vector
clocks of the cores of one task say so. Where they stand in the run that was observed does not matter.
"""

# ruff: noqa: SIM102, SIM109, SIM110, SIM114 - compiled code compares; a tuple of constants would be built and searched

from __future__ import annotations

from functools import cache
from typing import Any, Final

from pypto.sim.checks import words as w
from pypto.sim.checks.boxes import DIMENSIONS, box_covers, box_end, box_low, boxes_overlap, times_shared
from pypto.sim.checks.buckets import (
    COUNT,
    CROWD,
    LAST_WRITER,
    LEVELS,
    LINE_BUCKETS,
    LINES,
    ROW_WORDS,
    WRITERS,
    bucket_of,
    first_bucket,
    first_line,
    is_forgotten,
    is_of_a_line,
    last_bucket,
    last_line,
    level_of,
    line_bucket,
    note_line,
)
from pypto.sim.checks.cells import BASE, PAIRS, RUN, cells_join, cells_without, is_cells, same_cells
from pypto.sim.checks.search import reaches
from pypto.sim.entry import compiled_entry
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_word, store_word

# a seat: the block that made an access
S_NODE: Final = 0
S_SEAT: Final = 1
S_PROGRAM: Final = 2
S_CREW: Final = 3  # number of the crew of the block, -1: none
S_CREW_INDEX: Final = 4
S_BLOCK: Final = 5
S_LANE: Final = 6
S_CORE: Final = 7
S_INDEX: Final = 8  # place of the node in the order graph
S_CREW_WORDS: Final = 9  # address of the words of the crew
S_CREW_SIZE: Final = 10
SEAT_WORDS: Final = 11
_SEAT_KEPT: Final = 9  # words of the seat that an entry keeps

# an entry: a row of the access log, the words of its seat, then
_E_SEAT_WORDS: Final = w.ACCESS_WORDS
E_NODE: Final = _E_SEAT_WORDS + S_NODE
E_SEAT: Final = _E_SEAT_WORDS + S_SEAT
E_PROGRAM: Final = _E_SEAT_WORDS + S_PROGRAM
E_CREW: Final = _E_SEAT_WORDS + S_CREW
E_CREW_INDEX: Final = _E_SEAT_WORDS + S_CREW_INDEX
E_BLOCK: Final = _E_SEAT_WORDS + S_BLOCK
E_LANE: Final = _E_SEAT_WORDS + S_LANE
E_CORE: Final = _E_SEAT_WORDS + S_CORE
E_INDEX: Final = _E_SEAT_WORDS + S_INDEX
E_LOW: Final = _E_SEAT_WORDS + _SEAT_KEPT
E_HIGH: Final = E_LOW + 1
E_NEXT: Final = E_LOW + 2
ENTRY_WORDS: Final = E_LOW + 3

# kinds of conflict, first word of a row of the findings
RACE: Final = 1
ALIAS: Final = 2
FALSE_SHARING: Final = 3
FINDING_WORDS: Final = 2 + 2 * ENTRY_WORDS
FINDING_CAPACITY: Final = 128
LINE_BYTES: Final = 64  # the unit of the scalar caches

_READS_TRIED: Final = 16  # earlier reads of a bucket that a read may take the place of
_JOINED: Final = 64  # accesses of a bucket among which one of cells looks for an earlier one of its instruction
_STANDS_FOR_SOME: Final = 1
_STANDS_FOR_ALL: Final = 2

# words of a request
(
    Q_ENTRIES,
    Q_HEADS,  # two per bucket: reads, writes
    Q_ALLOCATIONS,  # rows of buckets.py
    Q_FREE,
    Q_CAPACITY,
    Q_UNUSED,
    Q_RECORDS,
    Q_COUNT,
    Q_DONE,
    Q_SEATS,
    Q_SEARCH,
    Q_FINDINGS,
    Q_FOUND,
    Q_WRITERS,  # rows (allocation, node, program, instruction, first byte, end) of first writes
    Q_WRITERS_USED,
    Q_WRITERS_CAPACITY,
    Q_CROWDED,  # allocation that needs buckets of cache lines, -1: none
) = range(17)
REQUEST_WORDS: Final = 17
WRITER_WORDS: Final = 6
WRITERS_NOTED: Final = 64  # per allocation


@kernel_code
def _clock_reaches(entry, record, seat):
    """Whether one core of a crew knew the access of the other when it made its own."""
    own, other = record[w.ACCESS_SNAPSHOT], entry[w.ACCESS_SNAPSHOT]
    if own < 0 or other < 0 or entry[E_CREW] != seat[S_CREW]:
        return False
    snapshots, width = as_pointer(seat[S_CREW_WORDS])[w.CREW_SNAPSHOTS], 8 * seat[S_CREW_SIZE]
    knows = load_word(snapshots + own * width + 8 * entry[E_CREW_INDEX]) >= entry[w.ACCESS_EPOCH]
    known = load_word(snapshots + other * width + 8 * seat[S_CREW_INDEX]) >= record[w.ACCESS_EPOCH]
    return knows or known


@kernel_code
def _ordered(request, entry, record, seat):
    first, second = entry[E_INDEX], seat[S_INDEX]
    if first != second:
        return reaches(as_pointer(request[Q_SEARCH]), min(first, second), max(first, second))
    return entry[E_SEAT] == seat[S_SEAT] or _clock_reaches(entry, record, seat)


@kernel_code
def _note(request, kind, times, entry, record, seat):
    """Keep a pair unless one from the same two instructions is known."""
    count = request[Q_FOUND]
    for k in range(count):
        row = as_pointer(request[Q_FINDINGS] + 8 * FINDING_WORDS * k)
        same = row[0] == kind and row[2 + E_PROGRAM] == entry[E_PROGRAM]
        same = same and row[2 + w.ACCESS_INSTRUCTION] == entry[w.ACCESS_INSTRUCTION]
        same = same and row[2 + ENTRY_WORDS + E_PROGRAM] == seat[S_PROGRAM]
        same = same and row[2 + ENTRY_WORDS + w.ACCESS_INSTRUCTION] == record[w.ACCESS_INSTRUCTION]
        same = same and row[2 + w.ACCESS_ALLOCATION] == record[w.ACCESS_ALLOCATION]
        if same:
            row[1] += times
            return
    if count >= FINDING_CAPACITY:
        return
    request[Q_FOUND] = count + 1
    row = as_pointer(request[Q_FINDINGS] + 8 * FINDING_WORDS * count)
    row[0], row[1] = kind, times
    for word in range(ENTRY_WORDS):
        row[2 + word] = entry[word]
    _write_entry(record, seat, as_pointer(request[Q_FINDINGS] + 8 * (FINDING_WORDS * count + 2 + ENTRY_WORDS)))


@kernel_code
def _write_entry(record, seat, entry):
    for word in range(w.ACCESS_WORDS):
        entry[word] = record[word]
    for word in range(_SEAT_KEPT):
        entry[_E_SEAT_WORDS + word] = seat[word]


@kernel_code
def _equal_stores(entry, record, seat):
    """Whether two lanes of one block store the same values to the same place, which has one outcome."""
    if record[w.ACCESS_SUM] == 0 or entry[w.ACCESS_SUM] != record[w.ACCESS_SUM]:
        return False
    same = entry[E_NODE] == seat[S_NODE]
    for word in range(w.ACCESS_BOX, w.ACCESS_WORDS):
        same = same and entry[word] == record[word]
    return same


@kernel_code
def _conflict(entry, entry_box, record, record_box, seat, ordered):
    """Kind of the conflict of two accesses; 0: none."""
    both = entry[w.ACCESS_KIND] & record[w.ACCESS_KIND]
    writes, was_write = record[w.ACCESS_KIND] & w.WRITES != 0, entry[w.ACCESS_KIND] & w.WRITES != 0
    kind = 0
    if ordered:
        other_name = entry[w.ACCESS_ROOT] != record[w.ACCESS_ROOT]
        known = entry[w.ACCESS_ROOT] >= 0 and record[w.ACCESS_ROOT] >= 0
        if entry[E_SEAT] == seat[S_SEAT] and was_write and not writes and other_name and known:
            kind = ALIAS
    elif (writes or was_write) and both & w.ATOMIC == 0:
        kind = RACE
    if kind != 0 and boxes_overlap(entry_box, record_box):
        return 0 if kind == RACE and _equal_stores(entry, record, seat) else kind
    if not ordered and both & w.WRITES != 0 and both & w.BY_SCALAR != 0:
        if entry_box[BASE] // LINE_BYTES == record_box[BASE] // LINE_BYTES and entry_box[BASE] != record_box[BASE]:
            return FALSE_SHARING
    return 0


@kernel_code
def _compare(request, entry, entry_box, record, record_box, seat):
    """Note a conflict; whether the new access stands for the bytes of the entry that it covers, and covers all."""
    ordered = _ordered(request, entry, record, seat)
    kind = _conflict(entry, entry_box, record, record_box, seat, ordered)
    if kind != 0:
        _note(request, kind, times_shared(entry_box, record_box), entry, record, seat)
    later = entry[E_NODE] <= seat[S_NODE] and (entry[E_NODE] != seat[S_NODE] or entry[E_SEAT] == seat[S_SEAT])
    if not ordered or not later:
        return 0
    stands_for = record[w.ACCESS_KIND] & w.WRITES != 0 or entry[w.ACCESS_KIND] & w.WRITES == 0
    stands_for = stands_for and entry[w.ACCESS_KIND] & w.ATOMIC >= record[w.ACCESS_KIND] & w.ATOMIC
    if not stands_for:
        return 0
    covers = cells_without(entry_box, record_box) if is_cells(entry_box) else box_covers(record_box, entry_box)
    return _STANDS_FOR_ALL if covers else _STANDS_FOR_SOME


@kernel_code
def _touch(a, b):
    """Whether two boxes may have a byte in common: at most their outer bounds are told apart."""
    if a[PAIRS + 2 * DIMENSIONS - 2] == 1 and a[BASE] + a[RUN] <= b[BASE]:
        return False
    return b[PAIRS + 2 * DIMENSIONS - 2] != 1 or b[BASE] + b[RUN] > a[BASE]


@kernel_code
def _meet(request, head, row, level, record, record_box, low, high, seat, tries):
    """Compare one access with those of one list, of which ``tries`` are looked at; True when one stands for it."""
    heads = as_pointer(request[Q_HEADS])
    previous, current = -1, heads[head]
    while current >= 0 and tries > 0:
        tries -= 1
        address = request[Q_ENTRIES] + 8 * ENTRY_WORDS * current
        entry = as_pointer(address)
        following, dropped, entry_box = entry[E_NEXT], False, as_pointer(address + 8 * w.ACCESS_BOX)
        if entry[E_LOW] < high and low < entry[E_HIGH]:
            own = entry[E_SEAT] == seat[S_SEAT] and entry[E_NODE] == seat[S_NODE]
            if own and not _touch(entry_box, record_box):
                previous, current = current, following
                continue
            if own:
                same = entry[w.ACCESS_KIND] == record[w.ACCESS_KIND] and entry[w.ACCESS_EPOCH] == record[w.ACCESS_EPOCH]
                if same and entry[w.ACCESS_ROOT] == record[w.ACCESS_ROOT] and box_covers(entry_box, record_box):
                    return True
            stands_for = _compare(request, entry, entry_box, record, record_box, seat)
            dropped = stands_for == _STANDS_FOR_ALL
            if stands_for != 0 and is_cells(record_box):
                tries += 1  # cells become fewer by every one: there cannot be many
        elif is_cells(entry_box):
            tries += 1  # of another block of memory
        if dropped:
            if previous < 0:
                heads[head] = following
            else:
                as_pointer(request[Q_ENTRIES] + 8 * ENTRY_WORDS * previous)[E_NEXT] = following
            entry[E_NEXT], entry[E_CREW], entry[E_NODE] = request[Q_UNUSED], -1, -1
            request[Q_UNUSED] = current
            row[COUNT + level] -= 1
        else:
            previous = current
        current = following
    return False


@kernel_code
def _note_writer(request, row, record, seat, low, high):
    at = as_pointer(request[Q_WRITERS] + 8 * WRITER_WORDS * request[Q_WRITERS_USED])
    at[0], at[1], at[2], at[3] = (
        record[w.ACCESS_ALLOCATION],
        seat[S_NODE],
        seat[S_PROGRAM],
        record[w.ACCESS_INSTRUCTION],
    )
    at[4], at[5] = low, high
    request[Q_WRITERS_USED] += 1
    row[WRITERS] += 1
    row[LAST_WRITER] = 1 + seat[S_NODE]


@kernel_code
def _met_before(request, row, record, record_box, low, high, seat):
    """Compare one access with all that lie near it; True when one stands for it."""
    writes = record[w.ACCESS_KIND] & w.WRITES
    for level in range(LEVELS):
        if row[COUNT + level] > 0:
            for bucket in range(first_bucket(row, level, low), last_bucket(row, level, high) + 1):
                for kind in range(2):
                    tries = _READS_TRIED if kind + writes == 0 else request[Q_CAPACITY]
                    if _meet(request, 2 * bucket + kind, row, level, record, record_box, low, high, seat, tries):
                        return True
    if row[COUNT + LINES] > 0:
        for line in range(first_line(row, low), last_line(row, low, high) + 1):
            for kind in range(2):
                tries = _READS_TRIED if kind + writes == 0 else request[Q_CAPACITY]
                head = 2 * line_bucket(row, line) + kind
                if _meet(request, head, row, LINES, record, record_box, low, high, seat, tries):
                    return True
    return False


@kernel_code
def _join(request, head, record, record_box, seat, low, high):
    """Add the cells of one access to those of an earlier one of its instruction that is like it; True when done."""
    current = load_word(head)
    for _ in range(_JOINED):
        if current < 0:
            return False
        address = request[Q_ENTRIES] + 8 * ENTRY_WORDS * current
        entry, entry_box = as_pointer(address), as_pointer(address + 8 * w.ACCESS_BOX)
        current = entry[E_NEXT]
        same = is_cells(entry_box) and same_cells(entry_box, record_box)
        same = same and entry[E_SEAT] == seat[S_SEAT] and entry[E_NODE] == seat[S_NODE]
        for word in range(w.ACCESS_FENCES):
            same = same and (entry[word] == record[word] or word == w.ACCESS_SEAT)
        if same:
            cells_join(entry_box, record_box)
            entry[E_LOW], entry[E_HIGH] = min(entry[E_LOW], low), max(entry[E_HIGH], high)
            return True
    return False


@kernel_code
def _take(request, record_address):
    """Compare one access with those that lie near it, and keep it."""
    record, record_box = as_pointer(record_address), as_pointer(record_address + 8 * w.ACCESS_BOX)
    seat = as_pointer(request[Q_SEATS] + 8 * SEAT_WORDS * record[w.ACCESS_SEAT])
    row = as_pointer(request[Q_ALLOCATIONS] + 8 * ROW_WORDS * record[w.ACCESS_ALLOCATION])
    writes = record[w.ACCESS_KIND] & w.WRITES
    if seat[S_NODE] < 0 or is_forgotten(row):
        return
    low, high = box_low(record_box), box_end(record_box)
    if writes and row[LAST_WRITER] != 1 + seat[S_NODE] and row[WRITERS] < WRITERS_NOTED:
        _note_writer(request, row, record, seat, low, high)
    if record[w.ACCESS_KIND] & w.BY_SCALAR != 0:
        low, high = low // LINE_BYTES * LINE_BYTES, low // LINE_BYTES * LINE_BYTES + LINE_BYTES
    if _met_before(request, row, record, record_box, low, high, seat):
        return
    of_a_line = is_of_a_line(low, high) and not is_cells(record_box)
    if row[LINE_BUCKETS] > 0 and of_a_line:
        level, bucket = LINES, line_bucket(row, note_line(row, low, high))
    else:
        level = level_of(low, high)
        bucket = bucket_of(row, level, low)
    head = request[Q_HEADS] + 8 * (2 * bucket + writes)
    if is_cells(record_box) and _join(request, head, record, record_box, seat, low, high):
        return
    number = request[Q_UNUSED]
    if number >= 0:
        request[Q_UNUSED] = as_pointer(request[Q_ENTRIES] + 8 * ENTRY_WORDS * number)[E_NEXT]
    else:
        number = request[Q_FREE]
        request[Q_FREE] = number + 1
    entry = as_pointer(request[Q_ENTRIES] + 8 * ENTRY_WORDS * number)
    _write_entry(record, seat, entry)
    entry[E_LOW], entry[E_HIGH], entry[E_NEXT] = low, high, load_word(head)
    store_word(head, number)
    row[COUNT + level] += 1
    if row[COUNT] > CROWD and row[LINE_BUCKETS] == 0 and of_a_line:
        request[Q_CROWDED] = record[w.ACCESS_ALLOCATION]


def _absorb(request):
    """Take records until all are in the table, or until it has to grow; Q_DONE says how far it got."""
    while request[Q_DONE] < request[Q_COUNT]:
        full = request[Q_FREE] >= request[Q_CAPACITY] or request[Q_WRITERS_USED] >= request[Q_WRITERS_CAPACITY]
        if full or request[Q_CROWDED] >= 0:
            return 1
        _take(request, request[Q_RECORDS] + 8 * w.ACCESS_WORDS * request[Q_DONE])
        request[Q_DONE] += 1
    return 0


_CHECKS: Final = ("conflicts", "boxes", "cells", "buckets", "search", "words")
_SOURCES: Final = (*(f"checks/{name}" for name in _CHECKS), "native")


@cache
def absorb() -> Any:
    """The compiled function of one request."""
    return compiled_entry("conflicts", _absorb, _SOURCES)

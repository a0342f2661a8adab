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
from pypto.sim.checks.boxes import BASE, box_covers, box_end, boxes_overlap
from pypto.sim.entry import compiled_entry
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_word

# an entry: a row of the access log, then
E_NODE: Final = w.ACCESS_WORDS
E_SEAT: Final = E_NODE + 1
E_PROGRAM: Final = E_NODE + 2
E_LOW: Final = E_NODE + 3
E_HIGH: Final = E_NODE + 4
E_NEXT: Final = E_NODE + 5
E_CREW_INDEX: Final = E_NODE + 6
E_LANE: Final = E_NODE + 7
E_CREW: Final = E_NODE + 8
ENTRY_WORDS: Final = E_NODE + 9

# kinds of conflict, first word of a row of the findings
RACE: Final = 1
ALIAS: Final = 2
FALSE_SHARING: Final = 3
FINDING_WORDS: Final = 2 + 2 * ENTRY_WORDS
FINDING_CAPACITY: Final = 128
LINE_BYTES: Final = 64  # the unit of the scalar caches

# words of a request
(
    Q_ENTRIES,
    Q_HEADS,
    Q_FREE,
    Q_CAPACITY,
    Q_RECORDS,
    Q_COUNT,
    Q_DONE,
    Q_NODE,
    Q_SEAT,
    Q_PROGRAM,
    Q_CREW_INDEX,
    Q_LANE,
    Q_REACH,
    Q_REACH_WORDS,
    Q_CLOCKS,
    Q_CREW_SIZE,
    Q_FINDINGS,
    Q_FOUND,
    Q_UNUSED,
    Q_CREW,
) = range(20)
REQUEST_WORDS: Final = 20


@kernel_code
def _reaches(request, first, second):
    """Whether a path leads from node ``first`` to node ``second`` of the order graph."""
    word = load_word(request[Q_REACH] + 8 * (second * request[Q_REACH_WORDS] + (first >> 6)))
    return word >> (first & 63) & 1 != 0


@kernel_code
def _clock_reaches(request, entry, record):
    """Whether one core of a crew knew the access of the other when it made its own."""
    own, other = record[w.ACCESS_SNAPSHOT], entry[w.ACCESS_SNAPSHOT]
    if own < 0 or other < 0 or entry[E_CREW] != request[Q_CREW]:
        return False
    width = 8 * request[Q_CREW_SIZE]
    knows = load_word(request[Q_CLOCKS] + own * width + 8 * entry[E_CREW_INDEX]) >= entry[w.ACCESS_EPOCH]
    known = load_word(request[Q_CLOCKS] + other * width + 8 * request[Q_CREW_INDEX]) >= record[w.ACCESS_EPOCH]
    return knows or known


@kernel_code
def _ordered(request, entry, record):
    first, second = entry[E_NODE], request[Q_NODE]
    if first != second:
        return _reaches(request, min(first, second), max(first, second))
    return entry[E_SEAT] == request[Q_SEAT] or _clock_reaches(request, entry, record)


@kernel_code
def _note(request, kind, entry, record):
    """Keep a pair unless one from the same two instructions is known."""
    count = request[Q_FOUND]
    for k in range(count):
        row = as_pointer(request[Q_FINDINGS] + 8 * FINDING_WORDS * k)
        same = row[0] == kind and row[2 + E_PROGRAM] == entry[E_PROGRAM]
        same = same and row[2 + w.ACCESS_INSTRUCTION] == entry[w.ACCESS_INSTRUCTION]
        same = same and row[2 + ENTRY_WORDS + E_PROGRAM] == request[Q_PROGRAM]
        same = same and row[2 + ENTRY_WORDS + w.ACCESS_INSTRUCTION] == record[w.ACCESS_INSTRUCTION]
        same = same and row[2 + w.ACCESS_ALLOCATION] == record[w.ACCESS_ALLOCATION]
        if same:
            row[1] += 1
            return
    if count >= FINDING_CAPACITY:
        return
    request[Q_FOUND] = count + 1
    row = as_pointer(request[Q_FINDINGS] + 8 * FINDING_WORDS * count)
    row[0], row[1] = kind, 1
    for word in range(ENTRY_WORDS):
        row[2 + word] = entry[word]
    _write_entry(request, record, as_pointer(request[Q_FINDINGS] + 8 * (FINDING_WORDS * count + 2 + ENTRY_WORDS)))


@kernel_code
def _write_entry(request, record, entry):
    for word in range(w.ACCESS_WORDS):
        entry[word] = record[word]
    entry[E_NODE], entry[E_SEAT], entry[E_PROGRAM] = request[Q_NODE], request[Q_SEAT], request[Q_PROGRAM]
    entry[E_CREW_INDEX], entry[E_LANE] = request[Q_CREW_INDEX], request[Q_LANE]
    entry[E_CREW] = request[Q_CREW]


@kernel_code
def _equal_stores(request, entry, record):
    """Whether two lanes of one block store the same values to the same place, which has one outcome."""
    if record[w.ACCESS_SUM] == 0 or entry[w.ACCESS_SUM] != record[w.ACCESS_SUM]:
        return False
    same = entry[E_NODE] == request[Q_NODE]
    for word in range(w.ACCESS_BOX, w.ACCESS_WORDS):
        same = same and entry[word] == record[word]
    return same


@kernel_code
def _compare(request, entry, entry_box, record, record_box):
    """Note a conflict; True when the entry can be dropped because the new access stands for it."""
    kinds = entry[w.ACCESS_KIND] | record[w.ACCESS_KIND]
    both = entry[w.ACCESS_KIND] & record[w.ACCESS_KIND]
    ordered = _ordered(request, entry, record)
    writes, was_write = record[w.ACCESS_KIND] & w.WRITES != 0, entry[w.ACCESS_KIND] & w.WRITES != 0
    if ordered:
        if entry[E_SEAT] == request[Q_SEAT] and was_write and not writes:
            other_name = entry[w.ACCESS_ROOT] != record[w.ACCESS_ROOT]
            if other_name and entry[w.ACCESS_ROOT] >= 0 and record[w.ACCESS_ROOT] >= 0:
                if boxes_overlap(entry_box, record_box):
                    _note(request, ALIAS, entry, record)
        later = entry[E_NODE] <= request[Q_NODE] and (
            entry[E_NODE] != request[Q_NODE] or entry[E_SEAT] == request[Q_SEAT]
        )
        stands_for = (writes or not was_write) and entry[w.ACCESS_KIND] & w.ATOMIC >= record[w.ACCESS_KIND] & w.ATOMIC
        return later and stands_for and box_covers(record_box, entry_box)
    if kinds & w.WRITES != 0 and both & w.ATOMIC == 0 and boxes_overlap(entry_box, record_box):
        if not _equal_stores(request, entry, record):
            _note(request, RACE, entry, record)
    elif both & w.WRITES != 0 and both & w.BY_SCALAR != 0:
        if entry_box[BASE] // LINE_BYTES == record_box[BASE] // LINE_BYTES and entry_box[BASE] != record_box[BASE]:
            _note(request, FALSE_SHARING, entry, record)
    return False


@kernel_code
def _take(request, record_address):
    """Compare one access with the table and put it there."""
    record, record_box = as_pointer(record_address), as_pointer(record_address + 8 * w.ACCESS_BOX)
    heads = as_pointer(request[Q_HEADS])
    allocation = record[w.ACCESS_ALLOCATION]
    low, high = record_box[BASE], box_end(record_box)
    if record[w.ACCESS_KIND] & w.BY_SCALAR != 0:
        low, high = low // LINE_BYTES * LINE_BYTES, low // LINE_BYTES * LINE_BYTES + LINE_BYTES
    previous, current = -1, heads[allocation]
    while current >= 0:
        address = request[Q_ENTRIES] + 8 * ENTRY_WORDS * current
        entry = as_pointer(address)
        following, dropped = entry[E_NEXT], False
        if entry[E_LOW] < high and low < entry[E_HIGH]:
            entry_box = as_pointer(address + 8 * w.ACCESS_BOX)
            if entry[E_SEAT] == request[Q_SEAT] and entry[E_NODE] == request[Q_NODE]:
                same = entry[w.ACCESS_KIND] == record[w.ACCESS_KIND] and entry[w.ACCESS_EPOCH] == record[w.ACCESS_EPOCH]
                if same and entry[w.ACCESS_ROOT] == record[w.ACCESS_ROOT] and box_covers(entry_box, record_box):
                    return
            dropped = _compare(request, entry, entry_box, record, record_box)
        if dropped:
            if previous < 0:
                heads[allocation] = following
            else:
                as_pointer(request[Q_ENTRIES] + 8 * ENTRY_WORDS * previous)[E_NEXT] = following
            entry[E_NEXT] = request[Q_UNUSED]
            request[Q_UNUSED] = current
        else:
            previous = current
        current = following
    number = request[Q_UNUSED]
    if number >= 0:
        request[Q_UNUSED] = as_pointer(request[Q_ENTRIES] + 8 * ENTRY_WORDS * number)[E_NEXT]
    else:
        number = request[Q_FREE]
        request[Q_FREE] = number + 1
    entry = as_pointer(request[Q_ENTRIES] + 8 * ENTRY_WORDS * number)
    _write_entry(request, record, entry)
    entry[E_LOW], entry[E_HIGH], entry[E_NEXT] = low, high, heads[allocation]
    heads[allocation] = number


def _absorb(request):
    """Take records until all are in the table or the table is full; Q_DONE says how far it got."""
    while request[Q_DONE] < request[Q_COUNT]:
        if request[Q_FREE] >= request[Q_CAPACITY]:
            return 1
        _take(request, request[Q_RECORDS] + 8 * w.ACCESS_WORDS * request[Q_DONE])
        request[Q_DONE] += 1
    return 0


@cache
def absorb() -> Any:
    """The compiled function of one request."""
    return compiled_entry("conflicts", _absorb, ("checks/conflicts", "checks/boxes", "checks/words", "native"))

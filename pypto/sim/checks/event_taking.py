"""From the access log to events of a rank, compiled: every access between two signals of its block once.

A table finds the pattern of an event (event_rows.py), another the thread it belongs to. A third says which accesses a
thread has made since its last signal; what it no longer has room for may be noted twice, which changes nothing but the
length of the log.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from pypto.sim.checks import words as w
from pypto.sim.checks.boxes import BOX_WORDS
from pypto.sim.checks.conflicts import S_NODE, S_PROGRAM, S_SEAT, SEAT_WORDS
from pypto.sim.distributed import REACHED_UNSIGNED
from pypto.sim.entry import compiled_entry
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_word, store_word
from pypto.sim.recording import Words

PATTERN_WORDS: Final = 5 + BOX_WORDS  # kind, 0, 0, program, instruction, box
P_KIND, P_PROGRAM, P_INSTRUCTION, P_BOX = 0, 3, 4, 5
_FOUND: Final = P_BOX + 1
_AMOUNT: Final = P_BOX + 2
_COMPARISON: Final = P_BOX + 3

T_SEAT, T_NODE, T_EVENTS, T_SIGNALS = 0, 1, 2, 3
THREAD_WORDS: Final = 4

# an access since the last signal of a thread: thread + 1, pattern, signals of the thread until then
OPEN_WORDS: Final = 3
_TRIES: Final = 8

# words of a request
RECORDS: Final = 0  # address of int64[COUNT, ACCESS_WORDS]
COUNT: Final = 1
DONE: Final = 2
SEATS: Final = 3  # address of int64[n, SEAT_WORDS]
ALLOCATIONS: Final = 4  # address of int64[n, ALLOCATION_WORDS]
PATTERNS: Final = 5  # address of int64[capacity, PATTERN_WORDS]
PATTERN_COUNT: Final = 6
PATTERN_SLOTS: Final = 7  # address of int64[2 * capacity]: a pattern + 1, or 0
PATTERN_CAPACITY: Final = 8  # a power of two, as the others
THREADS: Final = 9  # address of int64[capacity, THREAD_WORDS]
THREAD_COUNT: Final = 10
THREAD_SLOTS: Final = 11
THREAD_CAPACITY: Final = 12
OPEN: Final = 13  # address of int64[OPEN_CAPACITY, OPEN_WORDS]
OPEN_CAPACITY: Final = 14
OUT: Final = 15  # address of int64[3, OUT_CAPACITY]: pattern, thread, amount
OUT_COUNT: Final = 16
OUT_CAPACITY: Final = 17
ROW: Final = 18  # address of int64[PATTERN_WORDS] to work in
CROWDED: Final = 19  # accesses that found no room in OPEN
REQUEST_WORDS: Final = 20

# why a request ended
ALL_TAKEN, OUT_IS_FULL, PATTERNS_ARE_FULL, THREADS_ARE_FULL = 0, 1, 2, 3


def mixed(value: Any) -> Any:
    """A hash of a number, or of each of an array."""
    value = (value ^ (value >> 29)) * 0x27D4EB2F165667C5
    return value ^ (value >> 32)


_mixed = kernel_code(mixed)


def pattern_keys(patterns: Words) -> Words:
    """The hash of each pattern."""
    key = np.zeros(len(patterns), np.int64)
    for column in patterns.T:
        key = mixed(key * 31 + column)
    return key


def slots(keys: Words, capacity: int) -> Words:
    """The table of ``2 * capacity`` slots that finds numbers by their keys."""
    table, mask = np.zeros(2 * capacity, np.int64), 2 * capacity - 1
    for number, key in enumerate(keys.tolist()):
        at = key & mask
        while table[at]:
            at = (at + 1) & mask
        table[at] = number + 1
    return table


@kernel_code
def _write_row(row, record, seat, base):
    """The pattern of a record, without its amount; returns that."""
    row[P_KIND], row[1], row[2] = record[w.ACCESS_KIND], 0, 0
    row[P_PROGRAM], row[P_INSTRUCTION] = seat[S_PROGRAM], record[w.ACCESS_INSTRUCTION]
    for k in range(BOX_WORDS):
        row[P_BOX + k] = record[w.ACCESS_BOX + k]
    amount = 0
    if row[P_KIND] >= w.NOTIFIES:
        amount = row[_AMOUNT]
        row[_AMOUNT] = 0
        if row[P_KIND] == w.WAITED and (row[_FOUND] >= 0 or row[_COMPARISON] != REACHED_UNSIGNED):
            row[_FOUND] = 0  # only what a deferred wait misreads is asked for
    else:
        row[P_BOX] += base
    return amount


@kernel_code
def _pattern_of(request, row):
    """Number of the pattern in ``row``, which is new when it equals PATTERN_COUNT."""
    key = 0
    for k in range(PATTERN_WORDS):
        key = _mixed(key * 31 + row[k])
    mask = 2 * request[PATTERN_CAPACITY] - 1
    at = key & mask
    while True:
        found = load_word(request[PATTERN_SLOTS] + 8 * at) - 1
        if found < 0:
            break
        other = as_pointer(request[PATTERNS] + 8 * PATTERN_WORDS * found)
        same = True
        for k in range(PATTERN_WORDS):
            same = same and other[k] == row[k]
        if same:
            return found
        at = (at + 1) & mask
    number = request[PATTERN_COUNT]
    if number < request[PATTERN_CAPACITY]:
        store_word(request[PATTERN_SLOTS] + 8 * at, number + 1)
        new = as_pointer(request[PATTERNS] + 8 * PATTERN_WORDS * number)
        for k in range(PATTERN_WORDS):
            new[k] = row[k]
        request[PATTERN_COUNT] = number + 1
    return number


@kernel_code
def _thread_of(request, seat):
    """Number of the thread of a seat, or the capacity when it is new and has no room."""
    mask = 2 * request[THREAD_CAPACITY] - 1
    at = _mixed(seat[S_SEAT]) & mask
    while True:
        found = load_word(request[THREAD_SLOTS] + 8 * at) - 1
        if found < 0:
            break
        if as_pointer(request[THREADS] + 8 * THREAD_WORDS * found)[T_SEAT] == seat[S_SEAT]:
            return found
        at = (at + 1) & mask
    number = request[THREAD_COUNT]
    if number < request[THREAD_CAPACITY]:
        store_word(request[THREAD_SLOTS] + 8 * at, number + 1)
        new = as_pointer(request[THREADS] + 8 * THREAD_WORDS * number)
        new[T_SEAT], new[T_NODE], new[T_EVENTS], new[T_SIGNALS] = seat[S_SEAT], seat[S_NODE], 0, 0
        request[THREAD_COUNT] = number + 1
    return number


@kernel_code
def _is_repeated(request, thread, pattern, signals):
    """Whether the thread has made this access since its last signal; notes it."""
    mask = request[OPEN_CAPACITY] - 1
    first = _mixed(thread * 1000003 + pattern)
    free = -1
    for k in range(_TRIES):
        slot = as_pointer(request[OPEN] + 8 * OPEN_WORDS * ((first + k) & mask))
        if slot[0] == thread + 1 and slot[1] == pattern:
            same = slot[2] == signals
            slot[2] = signals
            return same
        if free < 0:
            if slot[0] == 0:
                free = k
            else:
                owner = as_pointer(request[THREADS] + 8 * THREAD_WORDS * (slot[0] - 1))
                if owner[T_SIGNALS] != slot[2]:
                    free = k
    if free < 0:
        request[CROWDED] += 1
        free = 0
    slot = as_pointer(request[OPEN] + 8 * OPEN_WORDS * ((first + free) & mask))
    slot[0], slot[1], slot[2] = thread + 1, pattern, signals
    return False


def _take_all(request):
    """Take records until all are events, or something is full; DONE says how far it got."""
    row = as_pointer(request[ROW])
    while request[DONE] < request[COUNT]:
        if request[OUT_COUNT] == request[OUT_CAPACITY]:
            return OUT_IS_FULL
        record = as_pointer(request[RECORDS] + 8 * w.ACCESS_WORDS * request[DONE])
        seat = as_pointer(request[SEATS] + 8 * SEAT_WORDS * record[w.ACCESS_SEAT])
        base = 0
        if record[w.ACCESS_KIND] < w.NOTIFIES:
            place = request[ALLOCATIONS] + 8 * w.ALLOCATION_WORDS * record[w.ACCESS_ALLOCATION]
            base = load_word(place + 8 * w.GM_BASE)
        amount = _write_row(row, record, seat, base)
        pattern = _pattern_of(request, row)
        if pattern >= request[PATTERN_CAPACITY]:
            return PATTERNS_ARE_FULL
        number = _thread_of(request, seat)
        if number >= request[THREAD_CAPACITY]:
            return THREADS_ARE_FULL
        thread = as_pointer(request[THREADS] + 8 * THREAD_WORDS * number)
        request[DONE] += 1
        if row[P_KIND] >= w.NOTIFIES:
            thread[T_SIGNALS] += 1
        elif _is_repeated(request, number, pattern, thread[T_SIGNALS]):
            continue
        thread[T_EVENTS] += 1
        at = request[OUT_COUNT]
        store_word(request[OUT] + 8 * at, pattern)
        store_word(request[OUT] + 8 * (request[OUT_CAPACITY] + at), number)
        store_word(request[OUT] + 8 * (2 * request[OUT_CAPACITY] + at), amount)
        request[OUT_COUNT] = at + 1
    return ALL_TAKEN


_SOURCES: Final = ("checks/event_taking", "checks/conflicts", "checks/boxes", "checks/words", "distributed", "native")


@cache
def take_all() -> Any:
    """The compiled function of one request."""
    return compiled_entry("events", _take_all, _SOURCES)

"""The run of several chips once more, with one chain of events held back, for every chain at once (compiled).

A run holds a chain after its first n steps and lets all others go on as far as they can (rank_clocks.py). How
far they get is final as soon as nobody in it lacks events that have not been read yet; then step n + 1 is let go. One
more run holds nobody: it goes ahead of the others and says which events are to be read. So only the events between the
last of these runs and the first are kept.
"""

# ruff: noqa: SIM102 - compiled code is written as it runs

from __future__ import annotations

from functools import cache
from typing import Any, Final

from pypto.sim.checks import held_words as h
from pypto.sim.checks import words as w
from pypto.sim.checks.held_segments import add_access, forget, meets_others, vector_of
from pypto.sim.checks.held_words import cell_at, chain_at, pattern_at, place_at, run_at, segment_at, step_at, thread_at
from pypto.sim.entry import compiled_entry
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_int32, load_word, store_int32, store_word


@kernel_code
def _push(request, run, chain):
    """``chain`` may go on in ``run``."""
    state = run_at(request, run)
    store_int32(place_at(request, run, chain) + 4 * h.PL_STATUS, h.READY)
    store_int32(place_at(request, run, state[h.RN_READY]) + 4 * h.PL_STACK, chain)
    state[h.RN_READY] += 1


@kernel_code
def _wake(request, run, first):
    """All chains of a list, given by the first of them + 1, may go on."""
    while first > 0:
        chain = first - 1
        first = load_int32(place_at(request, run, chain) + 4 * h.PL_LINK)
        _push(request, run, chain)


@kernel_code
def _wait_for_end(request, run, place, chain, other):
    """Put a chain in the list of those that wait for an end of a thread of ``other``, or of a dispatch (-1 - other)."""
    if other >= 0:
        head = place_at(request, run, other) + 4 * h.PL_WAITERS
    else:
        head = request[h.ENDED] + 8 * (run * request[h.DISPATCHES] - 1 - other) + 4
    store_int32(place + 4 * h.PL_LINK, load_int32(head))
    store_int32(head, chain + 1)


@kernel_code
def _may_start(request, run, place, chain, thread):
    """Whether what comes before a thread has ended; else the chain waits for it."""
    need = load_int32(place + 4 * h.PL_NEED)
    while need < thread[h.TH_NEEDS]:
        pair = as_pointer(request[h.NEEDS] + 16 * (thread[h.TH_NEED] + need))
        if pair[0] >= 0:
            ended = load_int32(place_at(request, run, pair[0]) + 4 * h.PL_ENDED)
        else:
            ended = load_int32(request[h.ENDED] + 8 * (run * request[h.DISPATCHES] - 1 - pair[0]))
        if ended < pair[1]:
            store_int32(place + 4 * h.PL_NEED, need)
            _wait_for_end(request, run, place, chain, pair[0])
            return False
        need += 1
    store_int32(place + 4 * h.PL_NEED, need)
    return True


@kernel_code
def _notify(request, run, step):
    """A notify happens; returns the list of those that wait for its cell."""
    cell = cell_at(request, run, step[h.ST_CELL])
    if step[h.ST_SETS] != 0:
        cell[h.CE_LARGEST] = max(cell[h.CE_LARGEST], step[h.ST_AMOUNT])
    elif step[h.ST_AMOUNT] > 0:
        cell[h.CE_GAINS] += step[h.ST_AMOUNT]
    else:
        cell[h.CE_LOSSES] += step[h.ST_AMOUNT]
    waiters = cell[h.CE_WAITERS]
    cell[h.CE_WAITERS] = 0
    return waiters


@kernel_code
def _is_satisfied(request, cell, step):
    held = max(load_word(request[h.STARTS] + 8 * step[h.ST_CELL]) + step[h.ST_LOST], cell[h.CE_LARGEST])
    return cell[h.CE_GAINS] + held >= step[h.ST_AMOUNT] or step[h.ST_PASSED] != 0


@kernel_code
def _end_thread(request, run, place, thread):
    """A thread ends; returns the list of those that wait for its dispatch."""
    store_int32(place + 4 * h.PL_INSIDE, 0)
    store_int32(place + 4 * h.PL_NEED, 0)
    store_int32(place + 4 * h.PL_THREAD, thread[h.TH_NEXT])
    store_int32(place + 4 * h.PL_ENDED, load_int32(place + 4 * h.PL_ENDED) + 1)
    ended = request[h.ENDED] + 8 * (run * request[h.DISPATCHES] + thread[h.TH_DISPATCH])
    store_int32(ended, load_int32(ended) + 1)
    waiters = load_int32(ended + 4)
    store_int32(ended + 4, 0)
    return waiters


@kernel_code
def _go_on(request, run, chain):
    """Let a chain go on until it waits, is held or has no more events; returns its status."""
    place, state = place_at(request, run, chain), run_at(request, run)
    ahead = place_at(request, request[h.ROWS] - 1, chain) + 4 * h.PL_COUNT
    follows, stage = run != request[h.ROWS] - 1, chain_at(request, chain)[h.CH_STAGE]
    while True:
        count = load_int32(place + 4 * h.PL_COUNT)
        unknown = follows and count >= load_int32(ahead)
        held = state[h.RN_HELD] == chain and count >= stage
        number = load_int32(place + 4 * h.PL_THREAD)
        if number < 0:
            return h.COMPLETE
        thread = thread_at(request, number)
        inside = load_int32(place + 4 * h.PL_INSIDE) != 0
        at = load_int32(place + 4 * h.PL_STEP)
        step = step_at(request, max(at, 0))
        if not inside:
            if not _may_start(request, run, place, chain, thread):
                return h.WAITS
        elif at < 0:
            return h.STARVED
        elif step[h.ST_KIND] == w.WAITED:
            cell = cell_at(request, run, step[h.ST_CELL])
            if not _is_satisfied(request, cell, step):
                if unknown:
                    return h.STARVED  # the run ahead may still pass it
                store_int32(place + 4 * h.PL_LINK, cell[h.CE_WAITERS])
                cell[h.CE_WAITERS] = chain + 1
                return h.WAITS
        if held:
            return h.PARKED
        if unknown:
            return h.STARVED
        store_int32(place + 4 * h.PL_COUNT, count + 1)
        if not inside:
            store_int32(place + 4 * h.PL_INSIDE, 1)
            continue
        store_int32(place + 4 * h.PL_STEP, step[h.ST_NEXT])
        waiters, others = 0, 0
        if step[h.ST_KIND] == w.NOTIFIES:
            waiters = _notify(request, run, step)
        elif step[h.ST_KIND] == h.ENDS:
            waiters = _end_thread(request, run, place, thread)
            others = load_int32(place + 4 * h.PL_WAITERS)
            store_int32(place + 4 * h.PL_WAITERS, 0)
        while waiters > 0 or others > 0:
            _wake(request, run, waiters)
            waiters, others = others, 0


@kernel_code
def _exhaust(request, run):
    """Let everybody go on in ``run``."""
    state = run_at(request, run)
    while state[h.RN_READY] > 0:
        state[h.RN_READY] -= 1
        chain = load_int32(place_at(request, run, state[h.RN_READY]) + 4 * h.PL_STACK)
        status = _go_on(request, run, chain)
        store_int32(place_at(request, run, chain) + 4 * h.PL_STATUS, status)
        state[h.RN_STARVED] += status == h.STARVED


@kernel_code
def _feed(request, run):
    """Those that lacked events may go on when there are some."""
    state, ahead = run_at(request, run), request[h.ROWS] - 1
    if state[h.RN_STARVED] == 0:
        return
    for chain in range(request[h.CHAINS]):
        place = place_at(request, run, chain)
        if load_int32(place + 4 * h.PL_STATUS) == h.STARVED:
            known = load_int32(place_at(request, ahead, chain) + 4 * h.PL_COUNT)
            more = known > load_int32(place + 4 * h.PL_COUNT)
            if run == ahead:
                more = load_int32(place + 4 * h.PL_STEP) >= 0
            if more:
                state[h.RN_STARVED] -= 1
                _push(request, run, chain)


@kernel_code
def _pass_one(request):
    """The run ahead passes a wait that nothing satisfies, as the run itself did; False when there is none."""
    ahead, first, chosen = request[h.ROWS] - 1, -1, -1
    for chain in range(request[h.CHAINS]):
        place = place_at(request, ahead, chain)
        inside = load_int32(place + 4 * h.PL_INSIDE) != 0
        number = load_int32(place + 4 * h.PL_THREAD)
        if inside and load_int32(place + 4 * h.PL_STATUS) == h.WAITS and (first < 0 or number < first):
            first, chosen = number, chain
    if chosen < 0 or request[h.TAKEN_BACK] != 0:
        return False
    step = step_at(request, load_int32(place_at(request, ahead, chosen) + 4 * h.PL_STEP))
    step[h.ST_PASSED] = 1
    cell = cell_at(request, ahead, step[h.ST_CELL])
    waiters = cell[h.CE_WAITERS]
    cell[h.CE_WAITERS] = 0
    _wake(request, ahead, waiters)
    return True


@kernel_code
def _settle(request, run):
    """How far all get while a chain is held is known: settle its segment; False when something may be wrong."""
    chain = run_at(request, run)[h.RN_HELD]
    place, own = place_at(request, run, chain), chain_at(request, chain)
    if load_int32(place + 4 * h.PL_STATUS) != h.PARKED:
        return False
    at = load_int32(place + 4 * h.PL_STEP)
    if load_int32(place + 4 * h.PL_INSIDE) != 0:
        step = step_at(request, at)
        if step[h.ST_KIND] == w.WAITED and step[h.ST_EQUAL] != 0:
            cell = cell_at(request, run, step[h.ST_CELL])
            most = load_word(request[h.STARTS] + 8 * step[h.ST_CELL]) + cell[h.CE_GAINS] + cell[h.CE_LOSSES]
            if most > step[h.ST_AMOUNT]:
                return False
    number = own[h.CH_FIRST]
    if number >= 0 and segment_at(request, number)[h.SG_STEPS] == own[h.CH_STAGE]:
        vector = vector_of(request, number)
        for other in range(request[h.CHAINS]):
            store_int32(vector + 4 * other, load_int32(place_at(request, run, other) + 4 * h.PL_COUNT))
        segment = segment_at(request, number)
        own[h.CH_FIRST] = segment[h.SG_NEXT]
        if own[h.CH_FIRST] < 0:
            own[h.CH_LAST] = -1
        if meets_others(request, chain, number):
            return False
        segment[h.SG_NEXT] = own[h.CH_KEPT]
        own[h.CH_KEPT] = number
    own[h.CH_STAGE] += 1
    _push(request, run, chain)
    return True


@kernel_code
def _append(request, thread, kind, pattern, amount):
    """One more step of a thread's chain."""
    chain, number = thread[h.TH_CHAIN], request[h.STEP_COUNT]
    own, step = chain_at(request, chain), step_at(request, number)
    step[h.ST_KIND], step[h.ST_NEXT], step[h.ST_PASSED], step[h.ST_AMOUNT] = kind, -1, 0, amount
    step[h.ST_CELL], step[h.ST_SETS], step[h.ST_EQUAL], step[h.ST_LOST] = 0, 0, 0, 0
    if kind != h.ENDS:
        step[h.ST_CELL], step[h.ST_SETS], step[h.ST_EQUAL] = pattern[h.PT_CELL], pattern[h.PT_SETS], pattern[h.PT_EQUAL]
    if request[h.TAKEN_BACK] != 0 and kind != h.ENDS:
        lost = request[h.TAKEN_BACK] + 8 * (chain * request[h.CELLS] + step[h.ST_CELL])
        step[h.ST_LOST] = load_word(lost)
        if kind == w.NOTIFIES and step[h.ST_SETS] == 0 and amount < 0:
            store_word(lost, load_word(lost) + amount)
    if own[h.CH_TAIL] >= request[h.STEP_BASE]:
        step_at(request, own[h.CH_TAIL])[h.ST_NEXT] = number
    if own[h.CH_HEAD] < 0:
        own[h.CH_HEAD] = number
    for run in range(request[h.ROWS]):
        place = place_at(request, run, chain) + 4 * h.PL_STEP
        if load_int32(place) < 0:
            store_int32(place, number)
    own[h.CH_TAIL] = number
    own[h.CH_STEPS] += 1
    request[h.STEP_COUNT] = number + 1


@kernel_code
def _read(request):
    """Take in the events; there is room for them."""
    count = request[h.EVENT_COUNT]
    for index in range(count):
        number = load_word(request[h.EVENTS] + 8 * index)
        thread = thread_at(request, load_word(request[h.EVENTS] + 8 * (count + index)))
        pattern = pattern_at(request, number)
        if thread[h.TH_SEEN] == 0:
            chain_at(request, thread[h.TH_CHAIN])[h.CH_STEPS] += 1
        thread[h.TH_SEEN] += 1
        ends = thread[h.TH_SEEN] == thread[h.TH_EVENTS]
        if pattern[h.PT_KIND] < w.NOTIFIES:
            add_access(request, thread, number)
        kind, amount = pattern[h.PT_KIND], load_word(request[h.EVENTS] + 8 * (2 * count + index))
        while kind >= w.NOTIFIES or ends:
            if kind < w.NOTIFIES:
                kind, ends = h.ENDS, False
            _append(request, thread, kind, pattern, amount)
            kind = h.ENDS
    request[h.EVENT_COUNT] = 0


@kernel_code
def _is_complete(request, run):
    left = 0
    for chain in range(request[h.CHAINS]):
        left += load_int32(place_at(request, run, chain) + 4 * h.PL_STATUS) != h.COMPLETE
    return left == 0


@kernel_code
def _follow(request, run):
    """Let a run go on as far as is known; False when something may be wrong."""
    state = run_at(request, run)
    _feed(request, run)
    while state[h.RN_FINISHED] == 0:
        _exhaust(request, run)
        if state[h.RN_STARVED] > 0:
            return True
        if run == request[h.ROWS] - 1:
            if _is_complete(request, run):
                state[h.RN_FINISHED] = 1
            elif not _pass_one(request):
                return False
        elif load_int32(place_at(request, run, state[h.RN_HELD]) + 4 * h.PL_STATUS) == h.COMPLETE:
            state[h.RN_FINISHED] = 1
            chain_at(request, state[h.RN_HELD])[h.CH_STAGE] = h.EVER
        elif not _settle(request, run):
            return False
    return True


def _advance(request):
    """Take in the events and let all runs go on; says what is wanted then."""
    _read(request)
    unfinished = 0
    for index in range(request[h.ROWS]):
        run = (index + request[h.ROWS] - 1) % request[h.ROWS]  # the one that holds nobody goes ahead
        if not _follow(request, run):
            return h.SUSPECT
        unfinished += run_at(request, run)[h.RN_FINISHED] == 0
    forget(request)
    return h.READ_ON if unfinished > 0 else h.ALL_ORDERED


_SOURCES: Final = (
    "checks/held_runs",
    "checks/held_segments",
    "checks/held_words",
    "checks/boxes",
    "checks/cells",
    "checks/words",
    "native",
)


@cache
def advance() -> Any:
    """The compiled function of one request."""
    return compiled_entry("held_runs", _advance, _SOURCES)

"""Segments of the runs with one chain held back: what a chain does between two of its steps (compiled).

The vector of a segment says how many steps of every chain can have happened before the step that follows it. Two
segments are not ordered when each lies within the vector of the other.
"""

# ruff: noqa: SIM102 - compiled code is written as it runs

from __future__ import annotations

from pypto.sim.checks import held_words as h
from pypto.sim.checks import words as w
from pypto.sim.checks.boxes import BOX_WORDS, boxes_overlap
from pypto.sim.checks.held_words import chain_at, pattern_at, segment_at
from pypto.sim.kernels.compilation import kernel_code
from pypto.sim.native import as_pointer, load_int32


@kernel_code
def _conflict(request, one, other):
    """Whether an access of a segment has a byte in common with one of another, and one of them writes."""
    a = one[h.SG_ACCESS]
    while a >= 0:
        pair = as_pointer(request[h.ACCESSES] + 16 * a)
        mine, box = pattern_at(request, pair[0]), as_pointer(request[h.BOXES] + 8 * BOX_WORDS * pair[0])
        a = pair[1]
        b = other[h.SG_ACCESS]
        while b >= 0:
            pair = as_pointer(request[h.ACCESSES] + 16 * b)
            theirs = pattern_at(request, pair[0])
            b = pair[1]
            either, both = mine[h.PT_KIND] | theirs[h.PT_KIND], mine[h.PT_KIND] & theirs[h.PT_KIND]
            if either & w.WRITES == 0 or both & w.ATOMIC != 0:
                continue
            if mine[h.PT_COLLECTIVE] >= 0 and mine[h.PT_COLLECTIVE] == theirs[h.PT_COLLECTIVE]:
                continue
            if mine[h.PT_LOW] < theirs[h.PT_HIGH] and theirs[h.PT_LOW] < mine[h.PT_HIGH]:
                if boxes_overlap(box, as_pointer(request[h.BOXES] + 8 * BOX_WORDS * pair[0])):
                    return True
    return False


@kernel_code
def vector_of(request, segment):
    """Address of the vector of a segment: ``int32[CHAINS]``."""
    return request[h.VECTORS] + 4 * segment * request[h.CHAINS]


@kernel_code
def meets_others(request, chain, number):
    """Whether a settled segment has a conflict with one that it is not ordered with and that was settled before."""
    segment, own = segment_at(request, number), vector_of(request, number)
    for other in range(request[h.CHAINS]):
        kept = chain_at(request, other)[h.CH_KEPT] if other != chain else -1
        while kept >= 0:
            theirs = segment_at(request, kept)
            if load_int32(vector_of(request, kept) + 4 * chain) < segment[h.SG_STEPS]:
                break  # it comes before, and so do those before it
            near = theirs[h.SG_LOW] < segment[h.SG_HIGH] and segment[h.SG_LOW] < theirs[h.SG_HIGH]
            writes = segment[h.SG_WRITES] + theirs[h.SG_WRITES] > 0
            if near and writes and theirs[h.SG_RANK] != segment[h.SG_RANK]:
                if theirs[h.SG_STEPS] <= load_int32(own + 4 * other) and _conflict(request, segment, theirs):
                    return True
            kept = theirs[h.SG_NEXT]
    return False


@kernel_code
def _is_past(request, chain, number):
    """Whether a settled segment comes before all that is to be settled."""
    vector = vector_of(request, number)
    for other in range(request[h.CHAINS]):
        if other != chain and chain_at(request, other)[h.CH_STAGE] <= load_int32(vector + 4 * other):
            return False
    return True


@kernel_code
def _free(request, number):
    segment = segment_at(request, number)
    access = segment[h.SG_ACCESS]
    while access >= 0:
        pair = as_pointer(request[h.ACCESSES] + 16 * access)
        following = pair[1]
        pair[1] = request[h.FREE_ACCESS]
        request[h.FREE_ACCESS] = access
        request[h.FREE_ACCESSES] += 1
        access = following
    segment[h.SG_NEXT] = request[h.FREE_SEGMENT]
    request[h.FREE_SEGMENT] = number
    request[h.FREE_SEGMENTS] += 1


@kernel_code
def forget(request):
    """Give back the settled segments that come before all that is to be settled."""
    for chain in range(request[h.CHAINS]):
        before, number = -1, chain_at(request, chain)[h.CH_KEPT]
        while number >= 0 and not _is_past(request, chain, number):
            before, number = number, segment_at(request, number)[h.SG_NEXT]
        if before >= 0:
            segment_at(request, before)[h.SG_NEXT] = -1
        else:
            chain_at(request, chain)[h.CH_KEPT] = -1
        while number >= 0:
            following = segment_at(request, number)[h.SG_NEXT]
            _free(request, number)
            number = following


@kernel_code
def add_access(request, thread, number):
    """One more access of the segment that a thread is in."""
    own, pattern = chain_at(request, thread[h.TH_CHAIN]), pattern_at(request, number)
    at = own[h.CH_LAST]
    if at < 0 or segment_at(request, at)[h.SG_STEPS] != own[h.CH_STEPS]:
        at = request[h.FREE_SEGMENT]
        new = segment_at(request, at)
        request[h.FREE_SEGMENT] = new[h.SG_NEXT]
        request[h.FREE_SEGMENTS] -= 1
        new[h.SG_STEPS], new[h.SG_RANK], new[h.SG_ACCESS], new[h.SG_NEXT] = own[h.CH_STEPS], thread[h.TH_RANK], -1, -1
        new[h.SG_LOW], new[h.SG_HIGH], new[h.SG_WRITES] = pattern[h.PT_LOW], pattern[h.PT_HIGH], 0
        if own[h.CH_LAST] >= 0:
            segment_at(request, own[h.CH_LAST])[h.SG_NEXT] = at
        else:
            own[h.CH_FIRST] = at
        own[h.CH_LAST] = at
    segment, access = segment_at(request, at), request[h.FREE_ACCESS]
    pair = as_pointer(request[h.ACCESSES] + 16 * access)
    request[h.FREE_ACCESS] = pair[1]
    request[h.FREE_ACCESSES] -= 1
    pair[0], pair[1] = number, segment[h.SG_ACCESS]
    segment[h.SG_ACCESS] = access
    segment[h.SG_LOW] = min(segment[h.SG_LOW], pattern[h.PT_LOW])
    segment[h.SG_HIGH] = max(segment[h.SG_HIGH], pattern[h.PT_HIGH])
    segment[h.SG_WRITES] |= pattern[h.PT_KIND] & w.WRITES

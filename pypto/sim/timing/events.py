"""The event queue: a binary heap by time, then by order of insertion, so that a run repeats exactly."""

from __future__ import annotations

from . import words as x
from .compiled import kernel

REQUEST, FINISH, LOOP, ORCHESTRATE, REMOTE_OVER, DISPATCH = range(6)


@kernel
def _move(m, target, source):
    for word in range(x.EVENT_WORDS):
        m[target + word] = m[source + word]


@kernel
def _before(m, event, time, order):
    return m[event] < time or (m[event] == time and m[event + x.EVENT_ORDER] < order)


@kernel
def push(m, time, kind, who):
    """Insert an event."""
    heap, size, order = m[x.QUEUE], m[x.EVENT_COUNT], m[x.INSERTIONS]
    m[x.INSERTIONS] = order + 1
    m[x.EVENT_COUNT] = size + 1
    while size > 0:
        parent = (size - 1) >> 1
        if m[heap + parent * x.EVENT_WORDS] <= time:
            break
        _move(m, heap + size * x.EVENT_WORDS, heap + parent * x.EVENT_WORDS)
        size = parent
    event = heap + size * x.EVENT_WORDS
    m[event], m[event + 1], m[event + 2], m[event + 3] = time, order, kind, who


@kernel
def pop(m):
    """Remove the first event; returns its kind and whom it concerns."""
    heap = m[x.QUEUE]
    kind, who = m[heap + x.EVENT_KIND], m[heap + x.EVENT_WHO]
    size = m[x.EVENT_COUNT] - 1
    m[x.EVENT_COUNT] = size
    last = heap + size * x.EVENT_WORDS
    time, order, last_kind, last_who = m[last], m[last + 1], m[last + 2], m[last + 3]
    hole = 0
    while 2 * hole + 1 < size:
        child = 2 * hole + 1
        right = heap + (child + 1) * x.EVENT_WORDS
        if child + 1 < size and _before(m, right, m[right - x.EVENT_WORDS], m[right - x.EVENT_WORDS + 1]):
            child += 1
        if not _before(m, heap + child * x.EVENT_WORDS, time, order):
            break
        _move(m, heap + hole * x.EVENT_WORDS, heap + child * x.EVENT_WORDS)
        hole = child
    event = heap + hole * x.EVENT_WORDS
    m[event], m[event + 1], m[event + 2], m[event + 3] = time, order, last_kind, last_who
    return kind, who

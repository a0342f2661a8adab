"""Transfers that share HBM and L2 at each instant.

A transfer belongs to a class with a rate of its own path and a pool with an aggregate rate. All transfers of a class
run at the same rate, so the class keeps the bytes served per transfer so far, and a transfer ends when that reaches its
target; an arrival or an end changes rates in a few operations however many transfers there are.
"""

from __future__ import annotations

import numpy as np

from . import words as x
from .compiled import kernel

VECTOR_MISS, CUBE_MISS, EVICTION = 0, 1, 2                    # pool HBM
VECTOR_HIT, CUBE_HIT, VECTOR_WRITE, CUBE_WRITE = 3, 4, 5, 6   # pool L2
CLASSES = 7
HBM_CLASSES = 3
NEVER = 2**62


@kernel
def _class(m, kind):
    """Record of a class."""
    return m[x.SHARES] + kind * x.SHARE_WORDS


@kernel
def _heap(m, kind):
    """First (target, owner) pair of a class."""
    return m[x.SHARES] + CLASSES * x.SHARE_WORDS + kind * 2 * m[x.SHARE_OWNERS]


@kernel
def _fill_pool(m, f, kind):
    """Equal shares of a pool, nobody above the rate of its path; what is left over goes to the others."""
    first, stop = (0, HBM_CLASSES) if kind < HBM_CLASSES else (HBM_CLASSES, CLASSES)
    left = 1.0
    waiting = 0
    for k in range(first, stop):
        share_class = _class(m, k)
        f[share_class + x.RATE] = -1.0
        waiting += m[share_class + x.ACTIVE]
    while waiting > 0:
        share = left / waiting
        limited = False
        for k in range(first, stop):
            s = _class(m, k)
            if m[s + x.ACTIVE] > 0 and f[s + x.RATE] < 0 and f[s + x.PATH_RATE] <= share * f[s + x.POOL_RATE]:
                f[s + x.RATE] = f[s + x.PATH_RATE]
                left -= m[s + x.ACTIVE] * f[s + x.PATH_RATE] / f[s + x.POOL_RATE]
                waiting -= m[s + x.ACTIVE]
                limited = True
        if not limited:
            for k in range(first, stop):
                s = _class(m, k)
                if m[s + x.ACTIVE] > 0 and f[s + x.RATE] < 0:
                    f[s + x.RATE] = share * f[s + x.POOL_RATE]
            return


@kernel
def _next_end(m, f):
    end, which = NEVER, -1
    for k in range(CLASSES):
        s = _class(m, k)
        if m[s + x.ACTIVE] > 0:
            wait = (f[_heap(m, k)] - f[s + x.SERVED]) / f[s + x.RATE]
            time = m[x.SHARE_CLOCK] + np.int64(np.ceil(max(wait, 0.0)))
            if time < end:
                end, which = time, k
    m[x.SHARE_END], m[x.SHARE_CLASS] = end, which


@kernel
def _serve(m, f, now):
    passed = now - m[x.SHARE_CLOCK]
    if passed > 0:
        for k in range(CLASSES):
            s = _class(m, k)
            if m[s + x.ACTIVE] > 0:
                f[s + x.SERVED] += passed * f[s + x.RATE]
        m[x.SHARE_CLOCK] = now


@kernel
def begin(m, f, now, kind, nbytes, owner):
    """A transfer of ``nbytes`` begins."""
    _serve(m, f, now)
    s, heap = _class(m, kind), _heap(m, kind)
    size = m[s + x.ACTIVE]
    if size == 0:
        f[s + x.SERVED] = 0.0
    target = f[s + x.SERVED] + nbytes
    m[s + x.ACTIVE] = size + 1
    while size > 0:
        parent = (size - 1) >> 1
        if f[heap + 2 * parent] <= target:
            break
        f[heap + 2 * size] = f[heap + 2 * parent]
        m[heap + 2 * size + 1] = m[heap + 2 * parent + 1]
        size = parent
    f[heap + 2 * size] = target
    m[heap + 2 * size + 1] = owner
    _fill_pool(m, f, kind)
    _next_end(m, f)


@kernel
def finish(m, f):
    """The transfer that ends next has ended, at ``m[SHARE_END]``; returns its owner."""
    now, kind = m[x.SHARE_END], m[x.SHARE_CLASS]
    _serve(m, f, now)
    s, heap = _class(m, kind), _heap(m, kind)
    owner = m[heap + 1]
    f[s + x.SERVED] = max(f[s + x.SERVED], f[heap])
    size = m[s + x.ACTIVE] - 1
    m[s + x.ACTIVE] = size
    target, last = f[heap + 2 * size], m[heap + 2 * size + 1]
    hole = 0
    while 2 * hole + 1 < size:
        child = 2 * hole + 1
        if child + 1 < size and f[heap + 2 * child + 2] < f[heap + 2 * child]:
            child += 1
        if f[heap + 2 * child] >= target:
            break
        f[heap + 2 * hole] = f[heap + 2 * child]
        m[heap + 2 * hole + 1] = m[heap + 2 * child + 1]
        hole = child
    f[heap + 2 * hole] = target
    m[heap + 2 * hole + 1] = last
    _fill_pool(m, f, kind)
    _next_end(m, f)
    return owner

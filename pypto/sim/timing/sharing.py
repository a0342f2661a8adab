"""Transfers that share HBM and L2 at each instant.

A transfer belongs to a class with a rate of its own path and a pool with an aggregate rate. All transfers of a class
run at the same rate, so the class keeps the bytes served per transfer so far, and a transfer ends when that reaches its
target; an arrival or an end changes rates in a few operations however many transfers there are.
"""

from __future__ import annotations

import numpy as np

from . import words as x
from .compiled import kernel

VECTOR_MISS, CUBE_MISS, EVICTION = 0, 1, 2  # pool HBM
VECTOR_HIT, CUBE_HIT = 3, 4  # pool L2 reads
VECTOR_WRITE, CUBE_WRITE = 5, 6  # pool L2 writes: reads and writes together exceed either
CLASSES = 7
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
def _pool_of(kind):
    """First and last class that draw on the same pool."""
    if kind < VECTOR_HIT:
        return 0, VECTOR_HIT
    return (VECTOR_HIT, VECTOR_WRITE) if kind < VECTOR_WRITE else (VECTOR_WRITE, CLASSES)


@kernel
def _serve(m, f, kind, now):
    """Bring the bytes served to the transfers of a class up to date."""
    s = _class(m, kind)
    f[s + x.SERVED] += (now - m[s + x.SERVED_AT]) * f[s + x.RATE]
    m[s + x.SERVED_AT] = now


@kernel
def _plan_end(m, f, kind):
    """When the first transfer of a class ends at the present rate."""
    s = _class(m, kind)
    if m[s + x.ACTIVE] == 0:
        m[s + x.CLASS_END] = NEVER
        return
    wait = (f[_heap(m, kind)] - f[s + x.SERVED]) / f[s + x.RATE]
    m[s + x.CLASS_END] = m[s + x.SERVED_AT] + np.int64(np.ceil(max(wait, 0.0)))


@kernel
def _fill_pool(m, f, first, stop):
    """Equal shares of a pool, nobody above the rate of its path; what is left over goes to the others."""
    left = 1.0
    waiting = 0
    for k in range(first, stop):
        s = _class(m, k)
        f[s + x.RATE] = -1.0
        waiting += m[s + x.ACTIVE]
    while waiting > 0:
        share = left / waiting
        limited = False
        for k in range(first, stop):
            s = _class(m, k)
            if m[s + x.ACTIVE] > 0 and f[s + x.RATE] < 0 and f[s + x.WEIGHT] <= share:
                f[s + x.RATE] = f[s + x.PATH_RATE]
                left -= m[s + x.ACTIVE] * f[s + x.WEIGHT]
                waiting -= m[s + x.ACTIVE]
                limited = True
        if not limited:
            for k in range(first, stop):
                s = _class(m, k)
                if m[s + x.ACTIVE] > 0 and f[s + x.RATE] < 0:
                    f[s + x.RATE] = share * f[s + x.POOL_RATE]
            return


@kernel
def _share_out_pool(m, f, first, stop, now):
    """The numbers of transfers have changed in a pool: new rates, for everybody if the pool was or is the limit."""
    load = 0.0
    for k in range(first, stop):
        load += m[_class(m, k) + x.ACTIVE] * f[_class(m, k) + x.WEIGHT]
    limits = load > 1.0
    if limits or m[_class(m, first) + x.POOL_FULL]:
        for k in range(first, stop):
            _serve(m, f, k, now)
        _fill_pool(m, f, first, stop)
        m[_class(m, first) + x.POOL_FULL] = limits
        for k in range(first, stop):
            _plan_end(m, f, k)
        return
    for k in range(first, stop):
        if m[x.SHARE_CHANGED] >> k & 1:
            f[_class(m, k) + x.RATE] = f[_class(m, k) + x.PATH_RATE]
            _plan_end(m, f, k)


@kernel
def share_out(m, f):
    """Bring rates and ends up to date after all arrivals and ends of one moment."""
    now, changed = m[x.SHARE_NOW], m[x.SHARE_CHANGED]
    first = 0
    while first < CLASSES:
        _, stop = _pool_of(first)
        if changed >> first & ((1 << (stop - first)) - 1):
            _share_out_pool(m, f, first, stop, now)
        first = stop
    m[x.SHARE_CHANGED] = 0
    end, which = NEVER, -1
    for k in range(CLASSES):
        if m[_class(m, k) + x.CLASS_END] < end:
            end, which = m[_class(m, k) + x.CLASS_END], k
    m[x.SHARE_END], m[x.SHARE_CLASS] = end, which


@kernel
def _changed(m, kind, now):
    m[x.SHARE_CHANGED] |= 1 << kind
    m[x.SHARE_NOW] = now


@kernel
def slow_cubes(m, f, factor, now):
    """From now on, what the cube cores move takes ``factor`` times as long; ``share_out`` follows."""
    for kind in (CUBE_MISS, CUBE_HIT, CUBE_WRITE):
        _serve(m, f, kind, now)
        s = _class(m, kind)
        f[s + x.PATH_RATE] = f[s + x.FULL_PATH_RATE] / factor
        f[s + x.POOL_RATE] = f[s + x.FULL_POOL_RATE] / factor
        _changed(m, kind, now)


@kernel
def begin(m, f, now, kind, nbytes, owner):
    """A transfer of ``nbytes`` begins; ``share_out`` follows before time goes on."""
    _serve(m, f, kind, now)
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
    _changed(m, kind, now)


@kernel
def finish(m, f):
    """The transfer that ends next has ended, at ``m[SHARE_END]``; returns its owner. ``share_out`` follows."""
    now, kind = m[x.SHARE_END], m[x.SHARE_CLASS]
    _serve(m, f, kind, now)
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
    _changed(m, kind, now)
    return owner

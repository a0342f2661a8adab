"""The L2 as a sectored LRU over addresses.

A tag covers 64 lines (32 KiB on a2a3, 8 KiB on a5) and has one valid and one dirty bit per line: hits and misses are
exact per line, only the order of eviction is that of the 64-line neighbourhood. Transfers worth their start-up move
16 KiB and more (spec hardware 3.2), so neighbours are used together. Addresses are small (allocations are numbered
from 0), hence tags are an array and a touch costs a few loads.

One ``int64`` array holds it all: eight words of state, then seven words per tag. The last three know who is reading
right now, because cores that want the same lines together are served one after the other (spec hardware 3.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compiled import kernel

LINES_PER_TAG = 64
HEADER = 8
TAG_WORDS = 7
_NEWEST, _OLDEST, _USED, MISSED, WRITTEN_BACK, ALLOCATED = range(6)
_VALID, _DIRTY, _NEWER, _OLDER, _READ_FROM, _READ_UNTIL, _READERS = range(7)
_UNLISTED = -2

Cache = NDArray[np.int64]


def empty_cache(tags: int) -> Cache:
    """A cold cache for addresses below ``tags`` times 64 lines."""
    cache = np.zeros(HEADER + TAG_WORDS * tags, np.int64)
    cache[_NEWEST] = cache[_OLDEST] = -1
    cache[HEADER + _NEWER :: TAG_WORDS] = _UNLISTED
    return cache


def grown(cache: Cache, tags: int) -> Cache:
    """The same content with room for at least ``tags`` tags."""
    have = (len(cache) - HEADER) // TAG_WORDS
    if have >= tags:
        return cache
    larger = empty_cache(tags)
    larger[: len(cache)] = cache
    return larger


def content(cache: Cache) -> NDArray[np.int64]:
    """What is cached, most recent first: int64[tags, 3] of tag, valid lines, dirty lines."""
    table = cache[HEADER:].reshape(-1, TAG_WORDS)
    found = np.empty((len(table), 3), np.int64)
    count, tag = 0, int(cache[_NEWEST])
    while tag >= 0:
        found[count] = tag, table[tag, _VALID], table[tag, _DIRTY]
        count, tag = count + 1, int(table[tag, _OLDER])
    return found[:count]


def forget(cache: Cache, first: int, last: int) -> None:
    """Drop the lines ``first`` to ``last`` without writing anything back."""
    table = cache[HEADER:].reshape(-1, TAG_WORDS)
    stop = min(last // LINES_PER_TAG + 1, len(table))
    tags = np.arange(first // LINES_PER_TAG, stop)
    if not len(tags):
        return
    gone = np.full(len(tags), ~np.uint64(0))
    gone[0] &= ~np.uint64(0) << np.uint64(first % LINES_PER_TAG)
    if last // LINES_PER_TAG < len(table):
        gone[-1] &= ~np.uint64(0) >> np.uint64(LINES_PER_TAG - 1 - last % LINES_PER_TAG)
    kept = ~gone
    valid, dirty = (table[tags, word].view(np.uint64) for word in (_VALID, _DIRTY))
    cache[_USED] -= int(np.bitwise_count(valid & gone).sum())
    table[tags, _VALID], table[tags, _DIRTY] = (valid & kept).view(np.int64), (dirty & kept).view(np.int64)


@kernel
def _count(word):
    """Bits set in an unsigned 64-bit word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def _tag(tag):
    return HEADER + TAG_WORDS * tag


def forget_readers(cache: Cache) -> None:
    """Time begins anew: nobody reads."""
    cache[HEADER + _READ_UNTIL :: TAG_WORDS] = 0


@kernel
def join_readers(cache, tag, address, now, until):
    """A read from ``address`` (in neighbourhood ``tag``) begins; returns how many began there while its first lasts."""
    word = _tag(tag)
    if cache[word + _READ_UNTIL] <= now or cache[word + _READ_FROM] != address:
        cache[word + _READ_FROM] = address
        cache[word + _READ_UNTIL] = until
        cache[word + _READERS] = 0
    cache[word + _READERS] += 1
    return cache[word + _READERS]


@kernel
def _unlink(cache, tag):
    newer, older = cache[_tag(tag) + _NEWER], cache[_tag(tag) + _OLDER]
    if newer >= 0:
        cache[_tag(newer) + _OLDER] = older
    else:
        cache[_NEWEST] = older
    if older >= 0:
        cache[_tag(older) + _NEWER] = newer
    else:
        cache[_OLDEST] = newer


@kernel
def _make_newest(cache, tag):
    newest = cache[_NEWEST]
    if newest == tag:
        return
    if cache[_tag(tag) + _NEWER] != _UNLISTED:
        _unlink(cache, tag)
        newest = cache[_NEWEST]
    cache[_tag(tag) + _NEWER] = -1
    cache[_tag(tag) + _OLDER] = newest
    if newest >= 0:
        cache[_tag(newest) + _NEWER] = tag
    else:
        cache[_OLDEST] = tag
    cache[_NEWEST] = tag


@kernel
def _evict(cache, capacity):
    """Drop the oldest tags until the lines fit; the dirty ones among them are written back."""
    while cache[_USED] > capacity and cache[_OLDEST] != cache[_NEWEST]:
        tag = cache[_OLDEST]
        _unlink(cache, tag)
        word = _tag(tag)
        cache[_USED] -= _count(np.uint64(cache[word + _VALID]))
        cache[WRITTEN_BACK] += _count(np.uint64(cache[word + _DIRTY]))
        cache[word + _VALID] = 0
        cache[word + _DIRTY] = 0
        cache[word + _NEWER] = _UNLISTED


@kernel
def access(cache, address, nbytes, writes, line_shift, capacity):
    """Touch the lines of ``[address, address + nbytes)``; adds to ``cache[MISSED]`` (reads), ``[ALLOCATED]``
    (writes) and ``[WRITTEN_BACK]``. A written line is never fetched.
    """
    first, last = address >> line_shift, (address + nbytes - 1) >> line_shift
    for tag in range(first >> 6, (last >> 6) + 1):
        word = _tag(tag)
        low = first & 63 if tag == first >> 6 else 0
        high = last & 63 if tag == last >> 6 else 63
        mask = (~np.uint64(0) >> np.uint64(63 - (high - low))) << np.uint64(low)
        missing = mask & ~np.uint64(cache[word + _VALID])
        if missing:
            lines = _count(missing)
            cache[word + _VALID] = np.int64(np.uint64(cache[word + _VALID]) | mask)
            cache[_USED] += lines
            cache[ALLOCATED if writes else MISSED] += lines
        if writes:
            cache[word + _DIRTY] = np.int64(np.uint64(cache[word + _DIRTY]) | mask)
        _make_newest(cache, tag)
        if missing and cache[_USED] > capacity:
            _evict(cache, capacity)

"""Regions of shared memory: pieces never overlap, freed pieces come back, children see what the parent writes."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto.runtime.shared_memory import ALIGNMENT, SharedRegion


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 5000)), max_size=40))
def test_pieces_are_apart_and_come_back(steps):
    region = SharedRegion(1 << 28, "test memory")
    live: dict[int, int] = {}
    for frees, value in steps:
        if frees and live:
            address = sorted(live)[value % len(live)]
            region.release(address, live.pop(address))
            continue
        address = region.allocate(value)
        assert address % ALIGNMENT == 0 and region.base <= address and address + value <= region.base + region.size
        assert all(address + value <= other or other + size <= address for other, size in live.items())
        live[address] = value
    for address, size in list(live.items()):
        region.release(address, size)
    assert region.allocate(region.size) == region.base
    region.close()


def test_released_pages_read_as_zero():
    region = SharedRegion(1 << 28, "test memory")
    address = region.allocate(1 << 16)
    region.view(address, 1 << 16)[:] = 7
    region.release(address, 1 << 16)
    assert not region.view(region.allocate(1 << 16), 1 << 16).any()
    region.close()


def test_a_child_and_its_parent_see_the_same_bytes():
    region = SharedRegion(1 << 28, "test memory")
    words = region.words(region.allocate(16), 2)
    pid = os.fork()
    if pid == 0:
        words[1] = words[0] + 1
        os._exit(0)
    words[0] = 41
    os.waitpid(pid, 0)
    assert words[1] in (1, 42)
    region.close()


def test_a_region_that_is_used_up():
    region = SharedRegion(1 << 28, "test memory")
    region.allocate((1 << 28) - ALIGNMENT)
    with pytest.raises(MemoryError, match="of test memory"):
        region.allocate(2 * ALIGNMENT)
    region.close()

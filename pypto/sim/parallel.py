"""Blocks of an SPMD task on several host threads, where the order of the blocks cannot change a value.

The interpreter releases the GIL. A task qualifies when its program is listable (footprint.py) and no block writes what
another block touches; how long the first block took only decides whether threads are worth starting.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from pypto.sim import opcodes as op
from pypto.sim.footprint import ENTRY_WORDS, order_matters
from pypto.sim.frames import FUEL, Frame, Trace
from pypto.sim.memory import Allocations
from pypto.sim.recording import Words

WORTHWHILE_S: Final = 0.5e-3
"""Threads are started when the blocks that are left take longer than this, in seconds."""
_MOST_ROWS: Final = 1 << 16
Span = tuple[int, int, int]
"""Block, first trace row, last trace row + 1."""


@dataclass(frozen=True)
class Blocks:
    """The blocks of one program in a task: parameter words, how many there are, the core they run on (opcodes.CORE)."""

    places: Words
    values: Words
    count: int
    core: int
    record: bool

    def run(self, frame: Frame, trace: Trace, allocations: Allocations, first: int, stop: int) -> list[Span]:
        """Run blocks ``first`` to ``stop`` (excluded) in order."""
        spans = []
        for block in range(first, stop):
            begin = trace.used
            frame.start(self.places, self.values, block, self.count, self.core, record=self.record)
            frame.finish(trace, allocations)
            spans.append((block, begin, trace.used))
        return spans


def independent(blocks: Blocks, frame: Frame, bases: Words) -> bool:
    """Whether no block touches what another one writes. ``bases``: first address of every allocation."""
    rows = np.empty((256, ENTRY_WORDS), np.int64)
    used = 0
    for block in range(blocks.count):
        frame.start(blocks.places, blocks.values, block, blocks.count, blocks.core, record=False)
        frame.words[op.RECORD] = op.LIST
        while (status := frame.list_accesses(rows, used)) != op.DONE:
            if status == op.OUT_OF_FUEL:
                frame.words[op.FUEL] = FUEL
            elif status != op.TRACE_FULL or len(rows) >= _MOST_ROWS:
                return False
            else:
                rows = np.concatenate((rows, np.empty_like(rows)))
            used = int(frame.words[op.ROWS])
        used = int(frame.words[op.ROWS])
    return not order_matters(rows[:used], bases)


def run_parts(
    blocks: Blocks, frames: Sequence[Frame], allocations: Allocations, first: int
) -> list[tuple[Trace, list[Span]]]:
    """Run the blocks from ``first`` on, a part on each frame's own thread; trace and spans of each part, in order.

    An error of the lowest block is the one that is raised, whatever the threads did meanwhile.
    """
    bounds = np.linspace(first, blocks.count, len(frames) + 1).astype(int).tolist()
    parts = [(frame, Trace(), low, high) for frame, low, high in zip(frames, bounds, bounds[1:])]
    work = [_pool().submit(blocks.run, frame, trace, allocations, low, high) for frame, trace, low, high in parts[1:]]
    frame, trace, low, high = parts[0]
    try:
        spans = [blocks.run(frame, trace, allocations, low, high)]
    finally:
        errors = [future.exception() for future in work]
    for error in errors:
        if error is not None:
            raise error
    spans += [future.result() for future in work]
    return [(trace, span) for (_, trace, _, _), span in zip(parts, spans)]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, "pypto-block")


if hasattr(os, "register_at_fork"):  # a forked process has the pool, not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)

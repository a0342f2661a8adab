"""Where a signal cell lies in its window, and what it is called in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pypto.sim.checks.places import index_ranges
from pypto.sim.checks.watch import Memory
from pypto.sim.distributed import DOMAIN_SHIFT

if TYPE_CHECKING:
    from pypto.sim.checks.rank_order import Event, RunOrder


def cell_of(order: RunOrder, signal: Event) -> tuple[tuple[int, int] | None, tuple[tuple[int, int], ...]]:
    """(bytes, index ranges) of a signal cell within its window."""
    name = int(signal.words[0])
    domain, byte = name >> DOMAIN_SHIFT, name & (1 << DOMAIN_SHIFT) - 1
    for window in order.logs[signal.dispatch][1].windows:
        low = byte - window.offset
        if window.domain == domain and 0 <= low < window.size:
            span = low, low + window.bits // 8
            memory = Memory(window.name, window.shape, window.bits, 0, window.size)
            return span, index_ranges(memory, np.array([span], np.int64))
    return None, ()


def cell_text(order: RunOrder, signal: Event) -> str:
    """A cell as the source would name it: ``'signal'[2, 0]``."""
    _, ranges = cell_of(order, signal)
    return f"'{signal.place.tensor}'" + (f"[{', '.join(str(low) for low, _ in ranges)}]" if ranges else "")

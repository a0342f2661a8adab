"""Whether the process of a rank still moves, seen from outside (spec distributed 3.6: liveness sampling).

A rank that is dead is noticed by its end. One that lives and will never answer (a lock that a thread held when the
rank was forked, a stopped process) looks like one that computes, except that it does nothing: it is not running, has
used no processor time and has not woken since the look before. A rank that waits for a signal has said so and is not
looked at.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pypto.runtime.ranks import RankProcess

LOOK_S: Final = 1.0
"""The parent wakes this often while it waits for ranks, so that no lost event makes it wait for ever."""
STALLED_S: Final = 30.0
"""A process that did nothing for so long will not answer."""
_IDLE_STATES: Final = ("S", "T")  # asleep, stopped by a signal; not D, which waits for a disk, nor t, in a debugger

Signs = tuple[str, int, int]
"""State, processor time in clock ticks, how often the process gave the processor away."""


def signs(pid: int) -> Signs | None:
    """What ``/proc`` says of a process; ``None`` where it says nothing."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    switches = [line.split()[1] for line in status.splitlines() if "ctxt_switches" in line]
    return fields[0], int(fields[11]) + int(fields[12]), sum(map(int, switches))


@dataclass
class Pulses:
    """When each process of a run last did something."""

    stalled_s: float = field(default_factory=lambda: STALLED_S)
    _seen: dict[int, tuple[Signs, float]] = field(default_factory=dict)
    _next: float = 0.0

    def stalled(self, processes: Iterable[RankProcess]) -> list[RankProcess]:
        """Those of ``processes`` that have done nothing for ``stalled_s``; looks at most every :data:`LOOK_S`."""
        now = time.monotonic()
        if now < self._next:
            return []
        self._next = now + LOOK_S
        seen: dict[int, tuple[Signs, float]] = {}
        still = []
        for process in processes:
            found = signs(process.pid)
            if found is None or found[0] not in _IDLE_STATES:
                continue
            before = self._seen.get(process.pid)
            since = before[1] if before is not None and before[0][1:] == found[1:] else now
            seen[process.pid] = found, since
            if now - since >= self.stalled_s:
                still.append(process)
        self._seen = seen
        return still


__all__ = ["LOOK_S", "STALLED_S", "Pulses", "signs"]

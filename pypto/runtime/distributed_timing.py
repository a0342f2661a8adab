"""The clock of one rank: its launches timed with what other ranks decide about them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pypto.runtime.callable import ChipCallable
from pypto.runtime.ranks_protocol import QUARTERS, Signals, Timed, TimeIt, Words
from pypto.runtime.task_runtime import Sizing
from pypto.runtime.timing_memo import recording_digest, timing_memo

if TYPE_CHECKING:
    from pypto.sim.chips import Chip
    from pypto.sim.recording import Recording
    from pypto.sim.task_log import TaskLog
    from pypto.sim.timing import DeviceState, Timeline

CAPACITY: Final = 512
_NONE: Final = np.zeros((0, 2), np.int64)


# timeline, state of the caches after it, times as in ``Timed``
_Memory = tuple["Timeline", "DeviceState", Words, Words, Words, Words, Words, Words]


@dataclass
class TimedLaunch:
    """One launch of the run; ``timeline`` is its latest timing."""

    program: ChipCallable
    recording: Recording
    sizing: Sizing
    signals: Signals
    timeline: Timeline | None = None
    state_before: DeviceState | None = None
    told: Words | None = None
    log: TaskLog | None = None

    @cached_property
    def digest(self) -> bytes:
        """Equal work, equal digests."""
        return hashlib.blake2b(
            recording_digest(self.recording) + self.program.digest.encode() + repr(self.sizing).encode(), digest_size=16
        ).digest()


class ChipTiming:
    """Times the launches of a run in order, as often as asked; the caches advance when the run is over."""

    def __init__(self, chip_name: str):
        self._chip_name = chip_name
        self._memo: OrderedDict[Any, _Memory] = OrderedDict()
        self.forget_caches()

    def forget_caches(self) -> None:
        """Start the next launch with cold caches."""
        self._state: DeviceState | None = None
        self._next: DeviceState | None = None

    def forget(self, memory: Sequence[tuple[int, int]]) -> None:
        """Drop what the caches hold of ``memory``, (address, bytes) pairs: it has changed hands."""
        if self._state is None or not memory:
            return
        self._state = self._state.copy()
        for address, nbytes in memory:
            self._state.forget(address, nbytes)

    def keep_state(self) -> None:
        """The run is over: what its launches left in the caches stays."""
        if self._next is not None:
            self._state = self._next

    def chip_of(self, launch: TimedLaunch) -> Chip:
        """The chip, with its task runtime sized as for ``launch``."""
        return timing_memo(self._chip_name, launch.sizing).chip

    def time(self, launches: Sequence[TimedLaunch], request: TimeIt) -> Timed:
        """Times of ``launches``, one after the other from the state before the run."""
        from pypto.sim.timing import DeviceState

        state = self._state or DeviceState()
        walls, cubes = [], []
        times: tuple[list[Words], ...] = ([], [], [], [], [], [])
        for launch, until, work in zip(launches, request.until, request.work):
            launch.state_before, launch.told = state, _told(launch, until, work)
            timeline, state, *rows = self._one(launch, state, until, work)
            launch.timeline = timeline
            walls.append(timeline.device_wall_ns)
            cubes.append(_cubes_at_work(timeline, self.chip_of(launch)) if len(work) else _NONE)
            for of_all, of_launch in zip(times, rows):
                of_all.append(of_launch)
        self._next = state
        notified, begun, over, *waits = map(tuple, times)
        return Timed(tuple(walls), notified, begun, over, tuple(cubes), *waits)

    def _one(self, launch: TimedLaunch, state: DeviceState, until: Words, work: Words) -> _Memory:
        from pypto.sim.timing import time_ranks

        key = (launch.digest, state.digest(), until.tobytes(), work.tobytes())
        found = self._memo.pop(key, None)
        if found is None:
            after, signals = state.copy(), launch.signals
            timeline, start, end = time_ranks(launch.recording, self.chip_of(launch), after, _told(launch, until, work))
            remote, wait = signals.remote_row, signals.wait_row
            found = (
                timeline,
                after,
                end[signals.notify_row],
                start[remote],
                end[remote],
                start[wait],
                end[wait],
                timeline.subtask_starts_ps(),
            )
            if len(self._memo) >= CAPACITY:
                self._memo.popitem(last=False)
        self._memo[key] = found
        return found


def _cubes_at_work(timeline: Timeline, chip: Chip) -> Words:
    """[n, 2]: from when on (ps) how many quarters of the cubes work."""
    times = timeline.cube_times_ps()
    at = np.concatenate([times[:, 0], times[:, 1]])
    change = np.repeat([1, -1], len(times))
    order = np.lexsort((change, at))
    quarters = np.rint(np.cumsum(change[order]) * QUARTERS / chip.clusters).astype(np.int64)
    changed = np.flatnonzero(np.diff(quarters, prepend=0))
    return np.stack([at[order][changed], quarters[changed]], axis=1)


def _told(launch: TimedLaunch, until: Words, work: Words) -> Words:
    """Per trace row, what other ranks decide."""
    told = np.zeros(len(launch.recording.trace), np.int64)
    told[launch.signals.wait_row], told[launch.signals.remote_row] = until, work
    return told

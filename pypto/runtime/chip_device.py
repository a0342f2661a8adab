"""One opened chip: its memory, its clock, the contents of its caches, the callables loaded on it.

A worker has one for each life, from ``init()`` to ``close()``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from pypto.backend.platforms import Platform
from pypto.runtime import log_config, markers
from pypto.runtime.callable import DEFAULT_RUNTIME, ChipCallable
from pypto.runtime.device_memory import DeviceMemory
from pypto.runtime.host_clock import HostClock, ModelledClock, WallClock
from pypto.runtime.host_model import ARENA_BUILD_NS, ARENA_REUSE_NS, HostModel, host_model
from pypto.runtime.run_config import RunConfig
from pypto.runtime.spans import PREWARM, SpanLog
from pypto.runtime.task_runtime import Sizing, sizing
from pypto.runtime.timing_memo import timing_memo

if TYPE_CHECKING:
    from pypto.sim.chips import Chip
    from pypto.sim.recording import Recording
    from pypto.sim.timing import DeviceState, Timeline

RUNTIMES: Final = (DEFAULT_RUNTIME,)


class Timed(NamedTuple):
    """A timeline with the chip it holds for and the state it started from (``None``: cold)."""

    timeline: Timeline
    chip: Chip
    state_before: DeviceState | None


class ChipDevice:
    """A simulated chip as a worker sees it.

    ``clock`` is the modelled host clock on a clocked platform, the wall elsewhere; ``host`` holds the costs charged to
    it. ``log_level`` is the threshold when the device was opened: later changes do not reach it. ``owner`` names the
    worker in errors.
    """

    def __init__(self, platform: Platform, device_id: int, runtime: str, owner: str = "a one-shot worker"):
        if runtime not in RUNTIMES:
            raise ValueError(
                f"runtime {runtime!r} is not available for platform {platform.name!r}; it offers {', '.join(RUNTIMES)}"
            )
        self.platform = platform
        self.device_id = device_id
        self.log_level = log_config.current_level()
        self.clock: HostClock = ModelledClock() if platform.clocked else WallClock()
        self.memory = DeviceMemory(owner)
        self.host: HostModel = host_model(platform.chip)
        self._loaded: dict[str, int] = {}
        self._arena: Sizing | None = None
        self._generation = 0
        self.forget_caches()
        self._prewarm()

    @property
    def clocked(self) -> bool:
        """Whether launches have a device clock."""
        return self.platform.clocked

    @property
    def callables(self) -> int:
        """How many distinct callables, by content, were loaded."""
        return len(self._loaded)

    @property
    def clusters(self) -> int:
        """Clusters that values are computed for: the chip's on every platform, as its programs are compiled for it."""
        from pypto.sim.chips import chip

        return chip(self.platform.chip).clusters

    @property
    def writes_markers(self) -> bool:
        return self.log_level <= log_config.TIMING

    def register(self, chip_callable: ChipCallable) -> int:
        """Load ``chip_callable`` unless its content is there already; its number on this device."""
        return self._loaded.setdefault(chip_callable.digest, len(self._loaded))

    def hid(self, chip_callable: ChipCallable) -> str:
        """Identity of ``chip_callable`` in markers: content hash with a device clock, number on the device without."""
        return chip_callable.hid if self.clocked else f"{self._loaded[chip_callable.digest]:x}"

    def next_generation(self) -> int:
        """The number of the next launch on this device, from 1."""
        self._generation += 1
        return self._generation

    def forget_caches(self) -> None:
        """Start the next launch with cold caches."""
        self._state: DeviceState | None = None

    def use_arena(self, sizing: Sizing) -> None:
        """Make the runtime arena of ``sizing`` the current one; that of one ring sizing is cached."""
        cached = self._arena is not None and self._arena.rings == sizing.rings
        self.clock.advance(ARENA_REUSE_NS if cached else ARENA_BUILD_NS)
        self._arena = sizing

    def time(self, chip_callable: ChipCallable, recording: Recording, sizing: Sizing) -> Timed:
        """When everything in ``recording`` happened, given what the launches before it left in the caches."""
        memo, before = timing_memo(self.platform.chip, sizing), self._without_new_memory()
        timeline, self._state = memo.time(chip_callable.digest, recording, before)
        return Timed(timeline, memo.chip, before)

    def _without_new_memory(self) -> DeviceState | None:
        """The caches, without what they held of memory that has changed hands since the last launch."""
        fresh = self.memory.space.take_fresh()
        if self._state is None or not fresh:
            return self._state
        state = self._state.copy()
        for address, nbytes in fresh:
            state.forget(address, nbytes)
        return state

    def close(self) -> None:
        """Give all memory back."""
        self.memory.free_all()

    def _prewarm(self) -> None:
        """Build the arena of the default sizing, which the hardware runtime does when a worker opens."""
        log = SpanLog(self.clock)
        with log.span(PREWARM):
            self.use_arena(sizing(RunConfig(platform=self.platform.name), {}, self.platform))
        if self.writes_markers:
            markers.write_spans(markers.OUTSIDE_LAUNCHES, log.spans, written_ns=self.clock.now_ns())


def device_spans_enabled() -> bool:
    """Whether ``clk=dev`` markers are written (``SIMPLER_DEVICE_STRACE_ENABLE``, exactly ``0`` turns them off)."""
    return os.environ.get("SIMPLER_DEVICE_STRACE_ENABLE") != "0"

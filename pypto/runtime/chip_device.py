"""One opened chip: its memory, its clock, the contents of its caches, the callables loaded on it.

A worker has one for each life, from ``init()`` to ``close()``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TypeAlias

from pypto.backend.platforms import SIM_CLUSTERS, Platform
from pypto.runtime import log_config, markers
from pypto.runtime.callable import DEFAULT_RUNTIME, ChipCallable
from pypto.runtime.device_memory import DeviceMemory
from pypto.runtime.host_clock import HostClock, ModelledClock, WallClock
from pypto.runtime.host_model import ARENA_BUILD_NS, ARENA_REUSE_NS, HostModel, host_model
from pypto.runtime.run_config import RunConfig
from pypto.runtime.spans import PREWARM, SpanLog
from pypto.runtime.timing_memo import timing_memo

if TYPE_CHECKING:
    from pypto.sim.recording import Recording
    from pypto.sim.timing import Timeline

RingSizing: TypeAlias = tuple[object, object, object]

RUNTIMES: Final = (DEFAULT_RUNTIME,)


def ring_sizing(config: RunConfig) -> RingSizing:
    """The ring sizes a launch asks for, as a comparable value (spec runtime 8.3)."""
    rings = (config.ring_task_window, config.ring_heap, config.ring_dep_pool)
    return tuple(tuple(r) if isinstance(r, list) else r for r in rings)  # type: ignore[return-value]


class ChipDevice:
    """A simulated chip as a worker sees it.

    ``clock`` is the modelled host clock on a clocked platform, the wall elsewhere; ``host`` holds the costs charged to
    it. ``log_level`` is the threshold when the device was opened: later changes do not reach it.
    """

    def __init__(self, platform: Platform, device_id: int, runtime: str):
        if runtime not in RUNTIMES:
            raise ValueError(
                f"runtime {runtime!r} is not available for platform {platform.name!r}; it offers {', '.join(RUNTIMES)}"
            )
        self.platform = platform
        self.device_id = device_id
        self.log_level = log_config.current_level()
        self.clock: HostClock = ModelledClock() if platform.clocked else WallClock()
        self.memory = DeviceMemory()
        self.host: HostModel = host_model(platform.chip)
        self._loaded: dict[str, int] = {}
        self._arena: RingSizing | None = None
        self._generation = 0
        self.forget_caches()
        self._prewarm()

    @property
    def callables(self) -> int:
        """How many distinct callables, by content, were loaded."""
        return len(self._loaded)

    @property
    def clusters(self) -> int:
        """Clusters that values are computed for."""
        if not self.platform.clocked:
            return SIM_CLUSTERS
        from pypto.sim.chips import chip

        return chip(self.platform.chip).clusters

    @property
    def writes_markers(self) -> bool:
        return self.log_level <= log_config.TIMING

    def register(self, callable: ChipCallable) -> int:
        """Load ``callable`` unless its content is there already; its number on this device."""
        return self._loaded.setdefault(callable.digest, len(self._loaded))

    def hid(self, callable: ChipCallable) -> str:
        """Identity of ``callable`` in markers: content hash with a device clock, number on the device without."""
        return callable.hid if self.platform.clocked else f"{self._loaded[callable.digest]:x}"

    def next_generation(self) -> int:
        """The number of the next launch on this device, from 1."""
        self._generation += 1
        return self._generation

    def forget_caches(self) -> None:
        """Start the next launch with cold caches."""
        if self.platform.clocked:
            from pypto.sim.timing import DeviceState

            self._state = DeviceState()

    def use_arena(self, sizing: RingSizing) -> None:
        """Make the runtime arena of ``sizing`` the current one; one sizing is cached."""
        self.clock.advance(ARENA_REUSE_NS if sizing == self._arena else ARENA_BUILD_NS)
        self._arena = sizing

    def time(self, callable: ChipCallable, recording: Recording) -> Timeline:
        """When everything in ``recording`` happened, given what the launches before it left in the caches."""
        timeline, self._state = timing_memo(self.platform.chip).time(callable.digest, recording, self._state)
        return timeline

    def close(self) -> None:
        """Give all memory back."""
        self.memory.free_all()

    def _prewarm(self) -> None:
        """Build the arena of the default sizing, which the hardware runtime does when a worker opens."""
        log = SpanLog(self.clock)
        with log.span(PREWARM):
            self.use_arena(ring_sizing(RunConfig(platform=self.platform.name)))
        if self.writes_markers:
            markers.write_spans(markers.OUTSIDE_LAUNCHES, log.spans, written_ns=self.clock.now_ns())


def device_spans_enabled() -> bool:
    """Whether ``clk=dev`` markers are written (``SIMPLER_DEVICE_STRACE_ENABLE``, exactly ``0`` turns them off)."""
    return os.environ.get("SIMPLER_DEVICE_STRACE_ENABLE") != "0"

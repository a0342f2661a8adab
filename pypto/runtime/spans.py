"""The spans of one launch: their names, and a log that collects them in scope-exit order (spec profiling 1.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pypto.runtime.host_clock import HostClock
from pypto.runtime.markers import DEVICE_CLOCK, Span

RUN: Final = "chip.run"
BIND: Final = "chip.run.bind"
BIND_ARGS: Final = "chip.run.bind.args"
BIND_PREBUILT: Final = "chip.run.bind.prebuilt"
RUNNER_RUN: Final = "chip.run.runner_run"
VALIDATE: Final = "chip.run.validate"
CLAIM_RELEASE: Final = "chip.run.claim_release"
DEVICE_WALL: Final = "chip.run.runner_run.device_wall"
PREWARM: Final = "chip.prewarm.build"

# The order phases are written in.
DEVICE_PHASES: Final = (
    "preamble",
    "so_load",
    "graph_build",
    "config_validate",
    "arena_wire",
    "sm_reset",
    "post_orch",
    "orch",
    "sched",
)


class SpanLog:
    """Spans in the order their scopes close, on one host clock."""

    def __init__(self, clock: HostClock):
        self._clock = clock
        self.spans: list[Span] = []

    @contextmanager
    def span(self, name: str, attributes: str = "") -> Iterator[None]:
        """A host span around the block; it is noted even when the block raises."""
        start_ns = self._clock.now_ns()
        try:
            yield
        finally:
            duration_ns = self._clock.now_ns() - start_ns
            self.spans.append(Span(name, depth_of(name), start_ns, duration_ns, attributes))

    def device_spans(
        self, wall_ns: int, phases: Mapping[str, tuple[int, int]], slots: Mapping[int, tuple[int, int]]
    ) -> None:
        """The device's wall, its phases (name → start, duration) and its task-timing slots."""
        self._device_span(DEVICE_WALL, 0, wall_ns)
        for name in DEVICE_PHASES:
            start_ns, duration_ns = phases.get(name, (0, 0))
            if duration_ns:
                self._device_span(f"{DEVICE_WALL}.{name}", start_ns, duration_ns)
        for number in sorted(slots):
            self._device_span(f"{DEVICE_WALL}.task_slot_{number}", *slots[number])

    def _device_span(self, name: str, start_ns: int, duration_ns: int) -> None:
        self.spans.append(Span(name, depth_of(name), start_ns, duration_ns, DEVICE_CLOCK))


def depth_of(name: str) -> int:
    """Nesting depth of a chip span: dotted segments below ``chip.run``."""
    return 0 if name == PREWARM else name.count(".") - 1

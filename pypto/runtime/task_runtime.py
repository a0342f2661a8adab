"""How the task runtime of a launch is sized: control threads and rings (spec runtime 8.3)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from pypto.backend.platforms import Platform
from pypto.runtime.run_config import RING_COUNT, RunConfig, ring_sizes
from pypto.sim.checks.selection import Rings

RingSize: TypeAlias = int | tuple[int, ...] | None
FEWEST_THREADS: Final = 2

_ENVIRONMENT: Final = {
    "ring_task_window": "PTO2_RING_TASK_WINDOW",
    "ring_heap": "PTO2_RING_HEAP",
    "ring_dep_pool": "PTO2_RING_DEP_POOL",
}


@dataclass(frozen=True)
class Sizing:
    """``aicpu_threads``: one orchestrator, the rest schedulers. Ring sizes: one, four (0: default) or ``None``."""

    aicpu_threads: int
    ring_task_window: RingSize = None
    ring_heap: RingSize = None
    ring_dep_pool: RingSize = None

    @property
    def rings(self) -> tuple[RingSize, RingSize, RingSize]:
        """What a cached arena is good for."""
        return self.ring_task_window, self.ring_heap, self.ring_dep_pool

    @cache  # noqa: B019 - there are few sizes
    def capacities(self, platform: str) -> Rings:
        """What each of the rings holds, and how many schedulers there are."""
        from pypto.sim.chips import chip

        runtime = chip(platform).runtime
        defaults = int(runtime.ring_window.value), int(runtime.ring_heap.value)
        sizes = (self.ring_task_window, self.ring_heap)
        window, heap = (
            tuple(one or default for one in (size if isinstance(size, tuple) else (size,) * RING_COUNT))
            for size, default in zip(sizes, defaults)
        )
        return Rings(window, heap, self.aicpu_threads - 1)

    def chip_figures(self) -> dict[str, float]:
        """The figures of a chip description that this sizing sets.

        The clock has one window and one heap for all rings: of four sizes it takes the smallest, the first to stall.
        """
        figures: dict[str, float] = {"scheduler_threads": self.aicpu_threads - 1}
        for figure, size in (("ring_window", self.ring_task_window), ("ring_heap", self.ring_heap)):
            given = [s for s in (size if isinstance(size, tuple) else (size,)) if s]
            if given:
                figures[figure] = min(given)
        return figures


def sizing(config: RunConfig, runtime_config: Mapping[str, Any], platform: Platform) -> Sizing:
    """The sizing of a launch: its configuration, else the environment (rings) or the program (threads), else defaults.

    ``TypeError`` for control threads that are no number, ``RuntimeError`` for more or fewer than the platform has.
    """
    threads = config.aicpu_thread_num or runtime_config.get("aicpu_thread_num") or platform.aicpu_threads
    if type(threads) is not int:
        raise TypeError(f"aicpu_thread_num must be an int, got {type(threads).__name__} {threads!r}")
    if not FEWEST_THREADS <= threads <= platform.aicpu_threads:
        raise RuntimeError(
            f"prepare_native_run failed: aicpu_thread_num={threads}, "
            f"{platform.name} runs with {FEWEST_THREADS} to {platform.aicpu_threads}"
        )
    return Sizing(threads, *(_ring(config, name) for name in _ENVIRONMENT))


def _ring(config: RunConfig, name: str) -> RingSize:
    size = getattr(config, name)
    if size is None:
        size = _from_environment(name)
    return tuple(size) if isinstance(size, list) else size


def _from_environment(name: str) -> Any:
    """The size the environment gives: one number, or four separated by commas."""
    variable = _ENVIRONMENT[name]
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{variable} must be one number or four separated by commas, got {text!r}") from None
    return ring_sizes(name, numbers[0] if len(numbers) == 1 else numbers)

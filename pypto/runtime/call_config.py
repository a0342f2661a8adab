"""Options of one launch as a plain record, for callers below compiled programs (spec runtime 4.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pypto.runtime.run_config import RING_COUNT, DfxOptions, RunConfig


def _per_ring(size: int | list[int] | None) -> list[int]:
    """One size per ring, 0 for the default."""
    if isinstance(size, list):
        return list(size)
    return [size or 0] * RING_COUNT


@dataclass
class RuntimeEnvironment:
    """Ring sizes, one per scope depth; 0 keeps a ring's default."""

    ring_task_window: list[int] = field(default_factory=lambda: [0] * RING_COUNT)
    ring_heap: list[int] = field(default_factory=lambda: [0] * RING_COUNT)
    ring_dep_pool: list[int] = field(default_factory=lambda: [0] * RING_COUNT)


@dataclass
class CallConfig:
    """Control threads (0: runtime default), diagnostics and their folder, ring sizes."""

    aicpu_thread_num: int = 0
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    output_prefix: str = ""
    runtime_env: RuntimeEnvironment = field(default_factory=RuntimeEnvironment)


def make_call_config(
    config: RunConfig,
    compiled_threads: int,
    *,
    aicpu_thread_num: int | None = None,
    dfx_dir: str | Path | None = None,
) -> CallConfig:
    """The record of ``config``; the thread count is the keyword's, else the configuration's, else the program's."""
    rings = (config.ring_task_window, config.ring_heap, config.ring_dep_pool)
    return CallConfig(
        aicpu_thread_num=aicpu_thread_num or config.aicpu_thread_num or compiled_threads,
        **DfxOptions.from_run_config(config).options(),
        output_prefix="" if dfx_dir is None else str(dfx_dir),
        runtime_env=RuntimeEnvironment(*map(_per_ring, rings)),
    )

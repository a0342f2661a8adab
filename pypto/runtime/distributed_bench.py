"""Benchmarks of programs over several chips (spec distributed 4, runtime 11.5)."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pypto.perf import BenchmarkStats
from pypto.runtime import markers
from pypto.runtime.distributed_worker import DistributedWorker
from pypto.runtime.log_config import configure_log, current_level
from pypto.runtime.run_config import RunConfig
from pypto.runtime.stderr_capture import capture_stderr
from pypto.runtime.task_names import rank_task_names


def benchmark_ranks(
    compiled: Any,
    args: Sequence[Any],
    rounds: int,
    warmup: int,
    config: RunConfig | None,
    persistent: bool,
    reset_persistent_windows: bool | None,
    values: bool = True,
) -> BenchmarkStats:
    """Statistics of ``warmup + rounds`` runs on a worker of their own; ``args`` are shared host tensors.

    ``values=False``: times alone, no tensor is touched (:class:`DistributedWorker`).
    """
    level = current_level()
    configure_log("timing")
    try:
        text, walls_us = _measure(compiled, args, warmup + rounds, config, persistent, reset_persistent_windows, values)
    finally:
        configure_log(level)
    stats = BenchmarkStats.from_strace(
        text,
        rounds=rounds,
        warmup=warmup,
        distributed=True,
        task_names=rank_task_names(),
        simulation_wall_us=walls_us[warmup:],
    )
    if not stats.host_wall_us:
        raise RuntimeError(f"no [STRACE] markers captured across {warmup + rounds} runs of {compiled}")
    return stats


def _measure(
    compiled: Any,
    args: Sequence[Any],
    launches: int,
    config: RunConfig | None,
    persistent: bool,
    resets: bool | None,
    values: bool,
) -> tuple[str, list[float]]:
    """What the parent and the ranks wrote to descriptor 2, and the real time of every run in microseconds."""
    with tempfile.TemporaryDirectory(prefix="pypto-bench-") as folder:
        log = Path(folder, "strace.log")
        try:
            with capture_stderr(log):
                walls_us = _loop(compiled, args, launches, config, persistent, resets, values)
        except BaseException:
            markers.write(log.read_bytes())
            raise
        return log.read_text(encoding="utf-8", errors="replace"), walls_us


def _loop(
    compiled: Any,
    args: Sequence[Any],
    launches: int,
    config: RunConfig | None,
    persistent: bool,
    resets: bool | None,
    values: bool,
) -> list[float]:
    walls_us = []
    with DistributedWorker(
        compiled, config, persistent=persistent, reset_persistent_windows=resets, values=values
    ) as worker:
        handle = worker.register(compiled)
        for _ in range(launches):
            start_ns = time.perf_counter_ns()
            handle(*args, config=config)
            walls_us.append((time.perf_counter_ns() - start_ns) / 1000)
    return walls_us

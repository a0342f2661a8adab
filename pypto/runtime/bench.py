"""Launch a program many times and read the time of every launch from its markers (spec runtime 11)."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pypto.perf import BenchmarkStats, TraceInvocation, TraceSpan
from pypto.runtime import active_workers, markers
from pypto.runtime.log_config import configure_log, current_level
from pypto.runtime.run_config import RunConfig
from pypto.runtime.stderr_capture import capture_stderr as _capture_fd_stderr
from pypto.runtime.task_names import task_names
from pypto.runtime.worker import ChipWorker

if TYPE_CHECKING:
    from pypto.runtime.registration import RegistrationHandle

__all__ = ["BenchmarkStats", "TraceInvocation", "TraceSpan", "benchmark"]

_STRACE_LOG_LEVEL: Final = "timing"


def benchmark(
    compiled: Any,
    args: Sequence[Any],
    *,
    rounds: int = 100,
    warmup: int = 3,
    platform: str | None = None,
    device_id: int | None = None,
    config: RunConfig | None = None,
    persistent: bool = False,
    reset_persistent_windows: bool | None = None,
) -> BenchmarkStats:
    """Register ``compiled`` once, launch it ``warmup + rounds`` times with ``args``, return the statistics.

    ``args`` are those of one call and are reused in place. Give ``platform`` and ``device_id``, or a whole ``config``,
    or neither (the platform of the compile). ``persistent`` and ``reset_persistent_windows`` are for programs of
    several chips. Everything written to descriptor 2 during the loop goes to a temporary file; the log level and the
    descriptor are restored, also after an exception, which propagates.

    On a ``*sim`` platform there is no device clock: ``stats.all_zero_device`` is true and ``host_wall_us`` is real
    time. What simulating took is ``stats.simulation_wall_us`` (one value per measured launch), never part of the rest.
    """
    _check_counts(rounds, warmup)
    if not hasattr(compiled, "platform"):
        raise TypeError(
            f"benchmark launches compiled programs, got {type(compiled).__name__}; "
            "make one with kernel.compile(...) or ir.compile(kernel.lower(...))"
        )
    if hasattr(compiled, "distributed_config"):
        from pypto.runtime.distributed_bench import benchmark_ranks

        if platform is not None or device_id is not None:
            raise ValueError("platform= and device_id= do not apply to an L3 program: its config names the devices")
        return benchmark_ranks(compiled, args, rounds, warmup, config, persistent, reset_persistent_windows)
    _check_call(platform, device_id, config, persistent, reset_persistent_windows)
    if config is None:
        config = RunConfig(platform=platform or compiled.platform, device_id=device_id or 0)
    level = current_level()
    configure_log(_STRACE_LOG_LEVEL)
    try:
        text, walls_us = _measure(compiled, args, config, warmup + rounds)
    finally:
        configure_log(level)
    stats = _parse_stats_from_strace(text, rounds=rounds, warmup=warmup, simulation_wall_us=walls_us[warmup:])
    if not stats.host_wall_us:
        raise RuntimeError(f"no [STRACE] markers captured across {warmup + rounds} launches of {compiled}")
    return stats


def _check_counts(rounds: int, warmup: int) -> None:
    for name, value in (("rounds", rounds), ("warmup", warmup)):
        if not isinstance(value, int):
            raise TypeError(f"{name} must be an int, got {type(value).__name__} {value!r}")
    if rounds <= 0:
        raise ValueError(f"rounds must be positive, got {rounds}")
    if warmup < 0:
        raise ValueError(f"warmup must be non-negative, got {warmup}")


def _check_call(
    platform: str | None,
    device_id: int | None,
    config: RunConfig | None,
    persistent: bool,
    reset_persistent_windows: bool | None,
) -> None:
    if persistent or reset_persistent_windows is not None:
        raise ValueError("persistent= and reset_persistent_windows= apply only to an L3 program")
    if config is not None and (platform is not None or device_id is not None):
        raise ValueError("give config= or platform=/device_id=, not both")


def _measure(compiled: Any, args: Sequence[Any], config: RunConfig, launches: int) -> tuple[str, list[float]]:
    """What ``launches`` launches wrote to descriptor 2, and the real time of each in microseconds."""
    program = compiled.chip_callable
    worker = ChipWorker(config, runtime=program.runtime_name, enable_sdma=program.enable_sdma, auto_init=False)
    active_workers.refuse_nesting(worker.binding)  # also where checks would let the worker open beside the other
    with tempfile.TemporaryDirectory(prefix="pypto-bench-") as folder, contextlib.ExitStack() as opened:
        with markers.muted():
            opened.enter_context(worker)
            handle = worker.register(compiled)
        loop = Path(folder, "strace.log")
        with _capture_fd_stderr(loop):
            walls_us = [_timed_us(handle, args, config) for _ in range(launches)]
        return loop.read_text(encoding="utf-8", errors="replace"), walls_us


def _timed_us(handle: RegistrationHandle, args: Sequence[Any], config: RunConfig) -> float:
    start_ns = time.perf_counter_ns()
    handle(*args, config=config)
    return (time.perf_counter_ns() - start_ns) / 1000


def _parse_stats_from_strace(
    text: str, *, rounds: int, warmup: int, distributed: bool = False, simulation_wall_us: Sequence[float] | None = None
) -> BenchmarkStats:
    """Statistics of captured markers, with the names of the callables assembled in this process."""
    return BenchmarkStats.from_strace(
        text,
        rounds=rounds,
        warmup=warmup,
        distributed=distributed,
        task_names=task_names(),
        simulation_wall_us=simulation_wall_us,
    )

"""Launches per second of a registered add kernel, with and without a device clock."""

from __future__ import annotations

import os
import time
from typing import Any

ROWS, COLS = 128, 128
LAUNCHES = 300


def _compiled(platform: str) -> Any:
    import torch

    import pypto.language as pl
    from pypto import ir

    @pl.jit
    def add_kernel(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            ta = pl.load(a, [0, 0], [ROWS, COLS])
            tb = pl.load(b, [0, 0], [ROWS, COLS])
            pl.store(pl.add(ta, tb), [0, 0], out)
        return out

    sample = torch.zeros(ROWS, COLS)
    return ir.compile(add_kernel.lower(sample, sample, sample.clone()), platform=platform)


def _registered_us(platform: str) -> float:
    """Median real time of one launch, markers written to nowhere."""
    import torch

    from pypto.runtime import ChipWorker, RunConfig
    from pypto.runtime.stderr_capture import capture_stderr

    a, b, out = torch.ones(ROWS, COLS), torch.ones(ROWS, COLS), torch.zeros(ROWS, COLS)
    times_us = []
    with capture_stderr(os.devnull), ChipWorker(RunConfig(platform=platform)) as worker:
        handle = worker.register(_compiled(platform))
        for _ in range(LAUNCHES):
            start_ns = time.perf_counter_ns()
            handle(a, b, out)
            times_us.append((time.perf_counter_ns() - start_ns) / 1000)
    return sorted(times_us)[LAUNCHES // 2]


def _benchmark_s() -> float:
    """Real time of ``benchmark(rounds=100)``, everything included."""
    import torch

    from pypto.runtime import benchmark

    compiled = _compiled("a2a3")
    arguments = [torch.ones(ROWS, COLS), torch.ones(ROWS, COLS), torch.zeros(ROWS, COLS)]
    start_s = time.perf_counter()
    benchmark(compiled, arguments, rounds=100)
    return time.perf_counter() - start_s


def _torch_us() -> float:
    """Median time of the same addition in torch on one thread."""
    import torch

    a, b, out = torch.ones(ROWS, COLS), torch.ones(ROWS, COLS), torch.zeros(ROWS, COLS)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        times_us = []
        for _ in range(LAUNCHES):
            start_ns = time.perf_counter_ns()
            torch.add(a, b, out=out)
            times_us.append((time.perf_counter_ns() - start_ns) / 1000)
    finally:
        torch.set_num_threads(threads)
    return sorted(times_us)[LAUNCHES // 2]


def measure() -> list[dict[str, Any]]:
    """Rows of name, value and unit."""
    torch_us = _torch_us()
    rows: list[dict[str, Any]] = [{"name": "torch.add 128x128 fp32, one thread", "value": torch_us, "unit": "us"}]
    for platform in ("a2a3sim", "a2a3"):
        launch_us = _registered_us(platform)
        rows.append({"name": f"registered launch of add 128x128 on {platform}", "value": launch_us, "unit": "us"})
        rows.append({"name": f"launches a second on {platform}", "value": 1e6 / launch_us, "unit": "1/s"})
    rows.append({"name": "benchmark(rounds=100) of add 128x128 on a2a3", "value": _benchmark_s(), "unit": "s"})
    return rows

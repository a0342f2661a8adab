"""Real time of programs over several ranks: starting the processes, and one run beside the kernels' own work.

``python -m benchmarks.ranks [ranks ...]`` prints a line per number of ranks. Wanted: 8 ranks start in less than 3 s
after the first time, and a run costs less than 2 ms per rank.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, configure_log

ROUNDS = 30
NR = pl.dynamic("NR")


@pl.jit.incore
def copy_kernel(src: pl.Tensor[[1, 64], pl.FP32], dst: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
    dst = pl.store(pl.load(src, [0, 0], [1, 64]), [0, 0], dst)
    return dst


@pl.jit
def copy(src: pl.Tensor[[1, 64], pl.FP32], dst: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
    return copy_kernel(src, dst)


@pl.jit.host
def copies(x: pl.Tensor[[NR, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, 64], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        copy(x[r], y[r], device=r)


def times(ranks: int, platform: str) -> tuple[float, float]:
    """Seconds to open a worker, and the median of the milliseconds per rank of a run."""
    x, y = torch.randn(ranks, 1, 64).share_memory_(), torch.zeros(ranks, 1, 64).share_memory_()
    config = RunConfig(platform=platform, distributed_config=DistributedConfig(list(range(ranks))))
    compiled: Any = copies.compile(x, y, config=config)
    compiled.prepare().close()
    started = time.perf_counter()
    with compiled.prepare() as worker:
        opened_s = time.perf_counter() - started
        runs = []
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            worker(x, y)
            runs.append((time.perf_counter() - begin) * 1000 / ranks)
    return opened_s, statistics.median(runs)


def measure(counts: tuple[int, ...] = (2, 8)) -> list[dict[str, Any]]:
    """Rows of ``python -m benchmarks``."""
    configure_log("error")
    rows = []
    for platform in ("a2a3sim", "a2a3"):
        for ranks in counts:
            opened_s, run_ms = times(ranks, platform)
            rows.append({"platform": platform, "ranks": ranks, "open s": opened_s, "run ms per rank": run_ms})
    return rows


def main(counts: list[int]) -> None:
    """One line per platform and number of ranks."""
    configure_log("error")
    for platform in ("a2a3sim", "a2a3"):
        for ranks in counts:
            opened_s, run_ms = times(ranks, platform)
            print(f"{platform:8} {ranks:3} ranks: open {opened_s:6.3f} s, run {run_ms:6.3f} ms per rank")


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [2, 8, 16])

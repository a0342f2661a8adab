"""Run a program over several simulated chips, compare with torch, and print its times per rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, benchmark, configure_log

PLATFORM = "a2a3"


def ranks(count: int) -> RunConfig:
    """A configuration of ``count`` chips."""
    return RunConfig(platform=PLATFORM, distributed_config=DistributedConfig(device_ids=list(range(count))))


def shared(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A zero tensor that the ranks can see; make it before the worker."""
    return torch.zeros(*shape, dtype=dtype).share_memory_()


def check_and_time(
    program: Any, args: Sequence[Any], expected: dict[int, torch.Tensor], count: int, tolerance: float = 1e-5
) -> Any:
    """Run ``program`` on ``count`` ranks; argument ``i`` must equal ``expected[i]``. Prints a report of ten rounds."""
    configure_log("error")
    compiled = program.compile(*args, config=ranks(count))
    compiled(*args)
    for position, want in expected.items():
        torch.testing.assert_close(args[position], want, rtol=tolerance, atol=tolerance)
    stats = benchmark(compiled, list(args), rounds=10, warmup=2)
    report(program.__name__, stats)
    return stats


def report(name: str, stats: Any) -> None:
    """Device time per rank, the span over all ranks, and the mean tree of the slowest dispatch."""
    print(f"{name}: equal to torch on {len(stats.per_rank())} ranks")
    for number, (_, series) in enumerate(sorted(stats.per_rank("device").items())):
        print(f"  rank {number}: device {series[0]:8.1f} us")
    span, union = stats.per_round("device_span")[0], stats.per_round("union")[0]
    print(f"  all ranks: device span {span:.1f} us, union {union:.1f} us")
    mean = {key: sum(series) / len(series) for key, series in stats.per_dispatch("device").items()}
    pid, slot = max(mean, key=lambda key: mean[key])
    stats.print_mean_tree(spread="none", pid=pid, slot=slot)

"""Check a kernel against torch, then time it on the modelled chip and print where the time goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pypto.runtime import RunConfig, benchmark

PLATFORM = "a2a3"


def check_and_time(
    kernel: Any, args: Sequence[Any], expected: dict[int, torch.Tensor], rtol: float, atol: float
) -> Any:
    """Run ``kernel`` on ``args``; output ``i`` must equal ``expected[i]``. Prints the mean tree of 20 launches."""
    compiled = kernel.compile(*args, config=RunConfig(platform=PLATFORM))
    compiled(*args)
    for position, want in expected.items():
        torch.testing.assert_close(args[position], want, rtol=rtol, atol=atol)
    stats = benchmark(compiled, list(args), rounds=20, warmup=3)
    print(f"{kernel.__name__}: equal to torch; device {stats.device_us_median:.1f} us on {PLATFORM}")
    stats.print_mean_tree(spread="none")
    return stats

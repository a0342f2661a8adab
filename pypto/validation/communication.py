"""Programs over several chips beside published times: GEMM with AllReduce (C1, C6) and remote reads (C3).

They are programs of the language, compiled and run on simulated ranks; no value but their signals decides what they
do, so nothing else is computed. This command stands on top of every layer, so what it runs is imported when it runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .programs import recorded, tensor
from .rows import Row

if TYPE_CHECKING:
    from .rank_programs import Split

_PARTS: Final = {"910B": "a2a3", "950PR": "a5", "A2": "a2a3"}
# M=5416 padded to whole tiles of 256 x 128; K, N per rank
_C1: Final = (5632, 6144, 1408)
_HISTORY: Final = "what the kernels of this step did is not published"


def communication() -> list[Row]:
    """Every row."""
    return [*_fused("910B", 8), *_fused("950PR", 2), *_history(), *_remote_reads(), *_unfused()]


# --- rows -------------------------------------------------------------------------------------------------------------

# part: compute alone, communication alone, both in sequence, overlapped; per published version
_FUSED_US: Final = {
    "910B": {"README": (368.1, 437.3, 808.9, 560.6), "76fcaf40": (366.6, 420.7, 789.9, 542.1)},
    "950PR": {"44088da3": (316.8, 539.0, 855.9, 651.4), "67ca0e39": (310.1, 523.1, 835.1, 582.8)},
}


def fused_us(part: str, ranks: int) -> tuple[float, float, float, float]:
    """Simulated: product alone, sum alone, one after the other, overlapped."""
    from .rank_programs import Split, in_sequence, overlapped

    split = Split(ranks, *_C1, width=256 if part == "950PR" else 128)
    walls = fused_walls_us(split, in_sequence(split), _PARTS[part])
    both = fused_walls_us(split, overlapped(split), _PARTS[part])
    return walls[0], walls[1], walls[0] + walls[1], both[0]


def _fused(part: str, ranks: int) -> list[Row]:
    simulated = fused_us(part, ranks)
    names = ("product alone", "sum alone", "in sequence", "overlapped")
    return [
        Row("C1", f"{ranks} ranks, {version}: {name} ({part})", "us", us, found)
        for version, published in _FUSED_US[part].items()
        for name, us, found in zip(names, published, simulated)
    ]


def _history() -> list[Row]:
    steps = {"baseline": 808.0, "RS atomic add": 736.0, "48 AIV skip/participate": 639.0, "df2d8d5b": 631.0}
    return [Row("C1", f"8 ranks, history: {step} (910B)", "us", us, reason=_HISTORY) for step, us in steps.items()]


_TICKS: Final = {4096: 36.28, 16384: 149.98, 65536: 579.62, 262144: 2409.72, 1048576: 9317.93, 4194304: 37924.12}


def _remote_reads() -> list[Row]:
    """Ticks of 20 ns; the constants of a core's remote reads were chosen with these in view."""
    rows = [
        Row("C3", f"staged, {nbytes} bytes (A2)", "us", ticks * 0.02, remote_read_us(nbytes), "fitted")
        for nbytes, ticks in _TICKS.items()
    ]
    engine = "reads by the asynchronous engine have no spelling in this language"
    return [*rows, Row("C3", "asynchronous engine, all sizes (A2)", "us", 205.0, reason=engine)]


def _unfused() -> list[Row]:
    """M=4096 K=3072 N=8192 half on 8 ranks, and the sum of 6 MB."""
    product, total = product_us(), sum_us(4096, 8192)
    return [
        Row("C6", "matmul alone (A2)", "us", 803.0, product),
        Row("C6", "unfused total (A2)", "us", 1874.0, product + total),
        Row("C6", "AllReduce of 6 MB (A2)", "us", 143.0, sum_us(384, 8192)),
    ]


# --- runs -------------------------------------------------------------------------------------------------------------


def fused_walls_us(split: Split, host: Any, platform: str) -> list[float]:
    """Device walls per dispatch of a program that multiplies and sums."""
    shapes = [(split.m, split.k), (split.k, split.n), (split.m, split.n), (split.m, split.n)]
    return _walls_us(host, [(split.ranks, *shape) for shape in shapes], split.ranks, platform)


def product_us() -> float:
    """The product of C6 on one chip."""
    from pypto.sim.chips import chip
    from pypto.sim.timing import time_recording

    from .rank_programs import Split, multiply_program

    split = Split(1, 4096, 3072, 8192)
    arguments = [tensor(*shape) for shape in ((split.m, split.k), (split.k, split.n), (split.m, split.n))]
    return time_recording(recorded(multiply_program(split), *arguments), chip("a2a3")).device_wall_us


def sum_us(rows: int, cols: int, ranks: int = 8) -> float:
    """The sum of ``[rows, cols]`` halves over the ranks, read by all vector cores."""
    from .rank_programs import pulled_sum

    return _walls_us(pulled_sum(ranks, rows, cols, 48), [(ranks, rows, cols)] * 2, ranks, "a2a3")[0]


def remote_read_us(nbytes: int) -> float:
    """What one vector core adds to its launch by reading ``nbytes`` of a peer's window once more."""
    from .rank_programs import remote_reads

    once, twice = (_walls_us(remote_reads(nbytes, times), [(2, 1, 1024)], 2, "a2a3", "float32")[0] for times in (1, 2))
    return twice - once


def _walls_us(
    host: Any, shapes: Sequence[tuple[int, ...]], ranks: int, platform: str, dtype: str = "float16"
) -> list[float]:
    """Per dispatch, the device wall of the rank that starts last: from then on all ranks work."""
    from pypto.ir.distributed_compiled_program import DistributedConfig
    from pypto.ir.pass_manager import DiagnosticPhase
    from pypto.runtime import RunConfig
    from pypto.runtime.distributed_bench import benchmark_ranks

    with tempfile.TemporaryDirectory() as folder:
        config = RunConfig(
            platform=platform, checks="none", save_kernels_dir=str(Path(folder, "build")),
            diagnostic_phase=DiagnosticPhase.NONE, distributed_config=DistributedConfig(list(range(ranks))),
        )  # fmt: skip
        arguments = [_shared(Path(folder, f"argument{i}"), shape, dtype) for i, shape in enumerate(shapes)]
        program = host.compile(*arguments, config=config)
        stats = benchmark_ranks(program, arguments, 1, 0, config, False, None, values=False)
    walls: dict[int, list[float]] = {}
    for (_, slot), values in stats.per_dispatch("device").items():
        walls.setdefault(slot, []).append(values[0])
    return [min(walls[slot]) for slot in sorted(walls)]


def _shared(path: Path, shape: tuple[int, ...], dtype: str) -> Any:
    """A tensor that ranks share and nobody fills: a file of holes."""
    import torch

    return torch.from_file(str(path), shared=True, size=prod(shape), dtype=getattr(torch, dtype)).view(shape)


__all__ = ["communication", "fused_us", "product_us", "remote_read_us", "sum_us"]

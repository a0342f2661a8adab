"""Whole kernels: GEMM (G1 to G3), attention (A1, A4), copies (V1), vector add (V2), banks (V3), orchestration (R1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pypto.sim.chips import Chip, chip
from pypto.sim.recording import SCOPE_BEGIN, SCOPE_END, Recording
from pypto.sim.timing import DeviceState, Timeline, time_recording

from .attention import Attention, attention
from .gemm import Gemm, gemm
from .rows import Row, Use
from .streams import bank_test, copies, vector_add
from .writer import Kernel, Launch

_A2, _A5 = "910B1", "950PR"
_SHARED = "every core reads the same lines at once; the model has no limit per line"
_BYPASS = "reads that do not allocate in L2 have no spelling in this language"
_API = "the library kernel's split and pre-amble are not published"
_SCALAR = "a loop of scalar code, not a tile program"


def kernel_us(recording: Recording, target: Chip, warm: bool = False) -> float:
    """First start to last end of the cores, in us; ``warm``: after a launch of the same."""
    state = DeviceState()
    if warm:
        time_recording(recording, target, state)
    records = time_recording(recording, target, state).records()
    return (max(r.end_ns for r in records) - min(r.start_ns for r in records)) / 1000


def workloads() -> list[Row]:
    """Every kernel-sized row, those without a re-creation included."""
    return [*_gemms(), *_attentions(), *_copies(), *_adds(), *_banks(), *_orchestration(), *_without()]


def _timed(
    family: str, case: str, published: float, make: Callable[[], Recording], part: str, warm: bool = False,
    use: Use = "untouched",
) -> Row:
    return Row(family, f"{case} ({part})", "us", published, kernel_us(make(), chip(part), warm), use)


def _gemms() -> list[Row]:
    base = (128, 256, 64)
    rows = []
    for n, published in ((1536, 38.8), (6144, 1506.0)):
        shape = Gemm(n, n, n, (4, 6), base, 4, 4, out="fp32")
        rows.append(_timed("G1", f"{n}^3 fp16 -> fp32", published, partial(gemm, shape), _A2))
    big = (8192, 8192, 8192)
    for case, published, grid, depth, buffers in (
        (2, 12537.56, (2, 12), (1, 1), 1), (4, 4487.89, (4, 6), (2, 2), 2), (8, 3559.06, (4, 6), (8, 4), 2)
    ):
        shape = Gemm(*big, grid, base, *depth, buffers=buffers)
        rows.append(_timed("G2", f"case {case}", published, partial(gemm, shape), _A2))
    for case, published, grid, depth in ((4, 2667.49, (4, 8), (2, 2)), (8, 2557.49, (4, 8), (4, 4))):
        shape = Gemm(*big, grid, (256, 256, 64), *depth)
        rows.append(_timed("G3", f"case {case}", published, partial(gemm, shape), _A5))
    return rows


# a vendor launch on many blocks: core scheduler, hardware and software start, report (spec hardware 11)
_LAUNCH_US = 0.15 + 0.05 + 1.0 + 0.5 + 6.0


def _attentions() -> list[Row]:
    """One head of width 128, all clusters; the published times are those of a vendor launch."""
    rows = []
    for length, fused, from_python in ((1024, 20.96, 21.0), (4096, 88.902, 105.0), (16384, 909.058, 1001.0)):
        simulated = kernel_us(attention(Attention(length, length, 24)), chip("910B2")) + _LAUNCH_US
        rows += [
            Row("A1", f"S = {length} (910B2)", "us", fused, simulated, "fitted" if length == 4096 else "untouched"),
            Row("A4", f"S = {length} (910C)", "us", from_python, simulated),
        ]
    return sorted(rows, key=lambda row: row.family)


_MATRIX = (12288, 12288)
# destination is L1, scenario: tile rows, tile columns, true row length, passes, in quarters
_SCENARIOS = {
    (False, "2"): (64, 64, 12288, 1, False),
    (False, "3"): (64, 1024, 12288, 1, False),
    (False, "4 unaligned"): (64, 1024, 12287, 1, False),
    (False, "5 full repeat"): (64, 1024, 12288, 4, False),
    (False, "6 quarter slices"): (64, 1024, 12288, 4, True),
    (True, "1"): (64, 64, 12288, 1, False),
    (True, "2"): (64, 256, 12288, 1, False),
    (True, "3 unaligned"): (64, 256, 12287, 1, False),
    (True, "4 full repeat"): (64, 1024, 12288, 4, False),
    (True, "5 quarter slices"): (64, 1024, 12288, 4, True),
}
_MTE2_US = {
    (_A2, False): (220.772, 202.657, 259.047, 816.05, 354.56), (_A5, False): (205.99, 185.66, 189.16, 740.75, 354.19),
    (_A2, True): (283.508, 214.519, 422.515, 872.19, 397.8), (_A5, True): (241.56, 187.19, 202.97, 732.11, 389.64),
}
_CORES = {(_A2, False): 48, (_A2, True): 24, (_A5, False): 64, (_A5, True): 32}


def _copies() -> list[Row]:
    rows = []
    for (part, cube), published in _MTE2_US.items():
        scenarios = [(name, shape) for (to_l1, name), shape in _SCENARIOS.items() if to_l1 == cube]
        for (name, (height, width, length, passes, sliced)), us in zip(scenarios, published):
            recording = copies(_CORES[part, cube], height, width, _MATRIX, passes, cube, sliced, matrix_cols=length)
            use: Use = "fitted" if name[0] in "34" or (cube and name == "1") else "untouched"
            rows.append(Row("V1", f"{'L1' if cube else 'UB'} {name} ({part})", "us", us,
                            kernel_us(recording, chip(part)), use))
    return rows


def _adds() -> list[Row]:
    elements = 8192 * 8192
    return [
        _timed("V2", "case 2", 297.14, lambda: vector_add(48, elements, 4096, 1), _A2, True),
        _timed("V2", "case 4", 257.56, lambda: vector_add(48, elements, 16384, 2), _A2, True, "fitted"),
        _timed("V2", "case 1, a 64th", 139.44, lambda: vector_add(1, elements // 64, 4096, 1), _A5, use="fitted"),
        _timed("V2", "case 3", 251.684, lambda: vector_add(64, elements, 21760, 1), _A5, True),
    ]


def _banks() -> list[Row]:
    cases = (
        ("1 none", 0x10100, 0x20000, 2390), ("2 same bank", 0x4000, 0x10000, 4167),
        ("3 same group", 0x10000, 0x14100, 4167), ("4 write delayed", 0x10100, 0x4000, 2389),
        ("5 read-write", 0x10100, 0x4020, 3751), ("6 in place", 0x10100, 0x10100, 2390),
    )
    return [
        _timed("V3", name, ticks * 0.02, partial(bank_test, 0, second, result), _A2, use="fitted")
        for name, second, result, ticks in cases
    ]


def _orchestration() -> list[Row]:
    """16704 small tasks of a paged attention, about five tensors each; the orchestrator's share alone."""
    kernel = Kernel("small")
    kernel.load(kernel.tile(16, 64), 0)
    launch = Launch("orchestration")
    for task in range(16704):
        if task % 64 == 0:
            launch.events.append((SCOPE_BEGIN, 1, 0, 0))
        launch.submit(kernel, deps=[task - 4] if task >= 4 else [], tensors=6, lookups=4, scalars=2)
        if task % 64 == 63:
            launch.events.append((SCOPE_END, 1, 0, 0))
    timeline: Timeline = time_recording(launch.recording(memory=1 << 20), chip("a2a3"))
    simulated = timeline.phases["orch"][1] / 1000
    return [Row("R1", "g: 16704 tasks, submits and scope ends", "us", 14601.58 + 364, simulated, "fitted")]


def _without() -> list[Row]:
    """Rows that are not re-created, with the reason."""
    rows = [
        Row("V2", "case 6 (910B1)", "us", 178.49, reason=_BYPASS),
        Row("V2", "case 5 (950PR)", "us", 182.04, reason=_BYPASS),
        Row("V2", "case 0 (910B1)", "us", 1239688.63, reason=_SCALAR),
        Row("G2", "case 0", "us", 759363.46, reason=_API), Row("G2", "case 6", "us", 3786.26, reason=_API),
        Row("G3", "case 0", "us", 1096625.66, reason=_API), Row("G3", "case 2", "us", 4293.9, reason=_API),
        Row("G3", "case 6", "us", 2589.18, reason=_API),
    ]
    for part, cases in (("910B1", (474.717, 307.38, 240.198, 209.8)), ("950PR", (339.38, 333.08, 366.24, 185.03))):
        names = ("UB 7 same order", "UB 8 rotated order", "L1 6 same order", "L1 7 rotated order")
        rows += [Row("V1", f"{name} ({part})", "us", us, reason=_SHARED) for name, us in zip(names, cases)]
    not_yet = "not re-created yet"
    rows += [
        Row("A2", "all rows", "us", 1.0, reason="40 us of every row is a launch the source does not describe"),
        Row("A4", "S = 65536 (910C)", "us", 12106.0, reason="sixteen times the row before, six million rows of trace"),
    ]
    later = ("G8", "V6", "V7", "V10", "V13")
    rows += [Row(family, "all rows", "us", 1.0, reason=not_yet) for family in later]
    api = "the kernels of the workload are not published"
    rows += [Row(family, "all rows", "us", 1.0, reason=api) for family in ("P1", "P2", "P3", "B6")]
    return rows

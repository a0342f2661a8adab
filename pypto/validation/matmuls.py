"""GEMM families: G1 (hand-written), G2 and G3 (tuning steps of the library), G8 (its tuning cases)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from .gemm import Gemm, gemm, padded_gemm, resident_gemm, split_k_gemm
from .programs import Launched, launched
from .rows import Pair, Row
from .tables import Line, table

_A2, _A5, _A2_20 = "910B1", "950PR", "910B3"
_BASE, _BASE_A5 = (128, 256, 64), (256, 256, 64)
_GENERATION = {_A2: "a2a3", _A5: "a5", _A2_20: "a2a3"}
# time of the library before its first transfer, tiling read at run time or known at compile time (spec hardware 8)
_PREAMBLE_US, _SHORT_PREAMBLE_US = 3.5, 2.2


@cache
def _run(shape: Gemm, part: str, unit_flag: bool = False) -> Launched:
    return launched(gemm(shape, _GENERATION[part]), part, unit_flag=unit_flag)


def hand_written() -> list[Row]:
    """G1: device time of the pto-isa sample."""
    rows = []
    for line in table("G1"):
        n = int(line["m"])
        run = _run(Gemm(n, n, n, (4, 6), _BASE, 4, 4, out="float32"), _A2)
        rows.append(Row("G1", f"{n}^3 fp16 -> fp32 ({_A2})", "us", 1000 * float(line["time_ms"]), run.task_us))
    return rows


_CUBE = 8192
_STEPS = {
    _A2: {
        "2": Gemm(_CUBE, _CUBE, _CUBE, (2, 12), _BASE, buffers=1, l0=1),
        "4": Gemm(_CUBE, _CUBE, _CUBE, (4, 6), _BASE, 2, 2),
        "6": Gemm(_CUBE, _CUBE, _CUBE, (4, 6), _BASE, 8, 4, bands=2),
    },
    _A5: {
        "2": Gemm(_CUBE, _CUBE, _CUBE, (4, 8), _BASE_A5, buffers=1, l0=1),
        "4": Gemm(_CUBE, _CUBE, _CUBE, (4, 8), _BASE_A5, 2, 2),
        "6": Gemm(_CUBE, _CUBE, _CUBE, (4, 8), _BASE_A5, 4, 4, bands=2),
    },
}
_PART = 64  # a one-core product is timed on this share of its result


@cache
def step_us(family: str, case: str) -> float:
    """Mean time of a core in a tuning step; case 8 is case 6 with tiling known at compile time and unit flags."""
    part = _A2 if family == "G2" else _A5
    if case == "0":
        edge = _CUBE // 8
        one = _run(Gemm(edge, edge, _CUBE, (1, 1), (64, 64, 64), buffers=1, l0=1), part)
        return one.core_us * _PART + _PREAMBLE_US
    if case == "8":
        return _run(_STEPS[part]["6"], part, unit_flag=True).mean_core_us + _SHORT_PREAMBLE_US
    return _run(_STEPS[part][case], part).mean_core_us + _PREAMBLE_US


def tuning_steps() -> list[Row]:
    """G2 and G3: mean time of a core."""
    rows = []
    for family, part in (("G2", _A2), ("G3", _A5)):
        for line in table(family):
            us = step_us(family, line["case"])
            case = f"case {line['case']} ({part})" + (f", from a {_PART}th" if line["case"] == "0" else "")
            # the costs per instruction in the hardware notes are derived in part from these measurements
            rows.append(Row(family, case, "us", float(line["aicore_us"]), us, "fitted"))
    return rows


def step_pairs() -> list[Pair]:
    """G2 and G3: every tuning step against the one before it."""
    pairs = []
    for family in ("G2", "G3"):
        lines = table(family)
        for before, after in zip(lines, lines[1:]):
            pairs.append(
                Pair(
                    family, f"case {before['case']} -> {after['case']}", float(before["task_us"]),
                    float(after["task_us"]), step_us(family, before["case"]), step_us(family, after["case"]),
                )
            )  # fmt: skip
    return pairs


# G8: shapes of the cases that say how they are tiled
_ND2NZ = Gemm(1024, 4095, 1024, (8, 3), _BASE, 4, 4, turned=False, n_core=1408)
_SHARED_B = Gemm(64, 256, 384, (1, 1), (32, 256, 64), turned=False)
_WIDE = Gemm(128, 30720, 1024, (1, 24), _BASE, buffers=1, l0=1, turned=False)
_SMALL = Gemm(256, 512, 192, (1, 2), _BASE, buffers=1, l0=1, turned=False)
_FLAT = Gemm(128, 30720, 64, (1, 20), _BASE, turned=False)
_FOUR = Gemm(4096, 5120, 4096, (2, 2), (64, 64, 256), out="float32", turned=False)
_TWENTY = Gemm(4096, 5120, 4096, (4, 5), _BASE, buffers=1, l0=1, out="float32", turned=False)
_OVERHEAD = "34 us for twelve MMADs of resident data: what the sample does besides is not described"
_DRAINS = "37 us for six MMADs and drains per core: what the sample does besides is not described"
_UNTILED = "its tiling is not given"


def _many_blocks(shape: Gemm) -> Gemm:
    """Several base blocks per load, two buffers everywhere."""
    return replace(shape, depth_a=4, depth_b=4, buffers=2, l0=2)


def _mte2_us(shape: Gemm, part: str) -> float:
    run = _run(shape, part)
    return run.pipe_busy_us["MTE2"] / run.cores


def _library_us(run: Launched) -> float:
    return run.core_us + _PREAMBLE_US


@cache
def tuning_case(case: str) -> tuple[float, float]:
    """Before and after, in us."""
    word = case.split(" ")[0]
    if word == "on-the-fly":
        converted = launched(padded_gemm(_ND2NZ, 4096), _A2)
        return _run(_ND2NZ, _A2).task_us + _PREAMBLE_US, converted.task_us + _PREAMBLE_US
    if word == "share":
        return _library_us(_run(_SHARED_B, _A2)), _library_us(launched(resident_gemm(_SHARED_B), _A2))
    if word == "MDL":
        return _library_us(_run(_WIDE, _A2)), _library_us(_run(_many_blocks(_WIDE), _A2))
    if word == "NBuffer33":
        return _library_us(_run(_SMALL, _A2)), _library_us(launched(resident_gemm(_SMALL), _A2))
    if word == "unit":
        return _library_us(_run(_FLAT, _A2_20)), _library_us(_run(_FLAT, _A2_20, unit_flag=True))
    if word == "multi-core":
        one, two = (_library_us(launched(split_k_gemm(16, 16, 1024, cores), _A2)) for cores in (1, 2))
        return one, two
    if "step 1" in case:
        many = replace(_FOUR, grid=(4, 5))
        return _run(_FOUR, _A2_20).task_us + _PREAMBLE_US, _run(many, _A2_20).task_us + _PREAMBLE_US
    return _mte2_us(_TWENTY, _A2_20), _mte2_us(_many_blocks(_TWENTY), _A2_20)


_WHY_NOT = {"NBuffer33": _OVERHEAD, "unit flag": _DRAINS, "multi-core K split": _UNTILED}
"""Cases whose change is re-created and whose time is not."""


def tuning_cases() -> list[Row]:
    """G8, both sides of each case."""
    rows = []
    for line in table("G8"):
        case = line["case"]
        for after, us in enumerate(tuning_case(case)):
            side = ("before", "after")[after]
            reason = _WHY_NOT.get(case, "")
            rows.append(
                Row(
                    "G8", f"{case}, {side}: {line[f'{side}_metric']}", "us", float(line[f"{side}_us"]),
                    None if reason else us, reason=reason,
                )
            )  # fmt: skip
    return rows


def case_pairs() -> list[Pair]:
    """G8: every tuning case before and after."""

    def pair(line: Line) -> Pair:
        return Pair("G8", line["case"], float(line["before_us"]), float(line["after_us"]), *tuning_case(line["case"]))

    return [pair(line) for line in table("G8")]


def rows() -> list[Row]:
    """G1, G2, G3, G8."""
    return [*hand_written(), *tuning_steps(), *tuning_cases()]


def pairs() -> list[Pair]:
    """Tuning steps and cases."""
    return [*step_pairs(), *case_pairs()]

"""Copy and vector families of a2a3 and a5: V1 (copies), V2 (vector add), V3 (bank clashes)."""

from __future__ import annotations

from functools import cache

from .programs import Launched, launched
from .rows import Pair, Row, Use
from .scalar_loop import scalar_add_us
from .streams import Copies, bank_test, copies, vector_add
from .tables import Line, table

_PARTS = {"A2/A3": "910B1", "A5": "950PR", "910B1": "910B1", "950PR": "950PR"}
_PLATFORMS = {"910B1": "a2a3", "950PR": "a5"}
_BYPASS = "reads that do not allocate in L2 have no spelling in this language"
_STRIDES = "the language has no block and repeat strides"
# scenarios whose figures are the source of a constant (chips/): path rates, row costs, line charges
_FITTED = {
    ("A2/A3", "UB"): "1 3 4 6", ("A2/A3", "L1 ND2NZ"): "1 3 5", ("A5", "UB"): "1 3 4 6 8", ("A5", "L1 ND2NZ"): "1 3 5",
}  # fmt: skip


def _copies(line: Line) -> Copies:
    rows, cols = map(int, line["tile"].split("x"))
    cores, cube = int(line["cores"]), line["dst"] != "UB"
    name = line["scenario"]
    if " order" in name:
        height, width = map(int, line["matrix"].split(" ")[0].split("x"))
        order = "same" if "same" in name else "rotated"
        return Copies(cores, rows, cols, height, width, order=order, cube=cube)  # type: ignore[arg-type]
    height, length = map(int, line["matrix"].split("x"))
    return Copies(
        cores, rows, cols, height, length=length, passes=int(line["passes"]), sliced="quarter" in name, cube=cube
    )


@cache
def _copied(shape: Copies, part: str) -> Launched:
    return launched(copies(shape, _PLATFORMS[part]), part)


def _mte2_us(line: Line) -> float:
    part = _PARTS[line["platform"]]
    return _copied(_copies(line), part).pipe_busy_us["MTE2"] / int(line["cores"])


def _copy_rows() -> list[Row]:
    """V1: time of the copy pipe, mean of the cores."""
    rows = []
    for line in table("V1"):
        fitted = line["scenario"][0] in _FITTED[line["platform"], line["dst"]].split()
        use: Use = "fitted" if fitted else "untouched"
        case = f"{line['dst']} {line['scenario']} ({_PARTS[line['platform']]})"
        rows.append(Row("V1", case, "us", float(line["mte2_us"]), _mte2_us(line), use))
    return rows


def _copy_pairs() -> list[Pair]:
    """What the sample advises: longer copies, whole lines, slices that fit L2, a rotated order."""
    lines = {(x["platform"], x["dst"], x["scenario"].split(" ")[0]): x for x in table("V1")}
    advice = {"UB": "1-2 2-3 4-3 5-6 7-8", "L1 ND2NZ": "1-2 3-2 4-5 6-7"}
    pairs = []
    for (platform, target), steps in [((p, t), s) for p in ("A2/A3", "A5") for t, s in advice.items()]:
        for before, after in (step.split("-") for step in steps.split()):
            a, b = lines[platform, target, before], lines[platform, target, after]
            case = f"{target} {a['scenario']} -> {b['scenario']} ({_PARTS[platform]})"
            pairs.append(Pair("V1", case, float(a["mte2_us"]), float(b["mte2_us"]), _mte2_us(a), _mte2_us(b)))
    return pairs


_ELEMENTS = 8192 * 8192
_ONE_CORE = 64  # a single core adds this part of the vector


@cache
def _add_us(part: str, case: str) -> float | None:
    """Longest core, after a launch of the same."""
    cores, platform = {"910B1": 48, "950PR": 64}[part], _PLATFORMS[part]
    if case == "0":
        return scalar_add_us(part) * _ELEMENTS
    if case == "1":
        return launched(vector_add(1, _ELEMENTS // _ONE_CORE, 4096, 1, platform), part).task_us * _ONE_CORE
    steps = {"2": (4096, 1), "3": (16384 if platform == "a2a3" else 21760, 1), "4": (16384, 2)}
    if case not in steps:
        return None
    return launched(vector_add(cores, _ELEMENTS, *steps[case], platform), part, warm=True).task_us


def _add_rows() -> list[Row]:
    """V2: task duration."""
    rows = []
    for line in table("V2"):
        part, case = line["platform"], line["case"]
        us = _add_us(part, case)
        use: Use = "fitted" if (part, case) in (("910B1", "4"), ("950PR", "1"), ("910B1", "0")) else "untouched"
        name = f"case {case} ({part})" + {"0": ", from a part", "1": f", from a {_ONE_CORE}th"}.get(case, "")
        rows.append(Row("V2", name, "us", float(line["task_us"]), us, use, "" if us else _BYPASS))
    return rows


def _add_pairs() -> list[Pair]:
    pairs = []
    for before, after in zip(table("V2"), table("V2")[1:]):
        part = before["platform"]
        if after["platform"] == part:
            a, b = _add_us(part, before["case"]), _add_us(part, after["case"])
            case = f"case {before['case']} -> {after['case']} ({part})"
            reason = "" if a and b else _BYPASS
            pairs.append(Pair("V2", case, float(before["task_us"]), float(after["task_us"]), a, b, reason))
    return pairs


@cache
def _banks_us(line: tuple[str, str, str]) -> float | None:
    if any("blk" in address for address in line):
        return None
    first, second, result = (int(address, 16) for address in line)
    return launched(bank_test(first, second, result), "910B1").pipe_busy_us["V"]


def _addresses(line: Line) -> tuple[str, str, str]:
    return line["src0_addr"], line["src1_addr"], line["dst_addr"]


def _bank_rows() -> list[Row]:
    """V3: a thousand adds. Recordings made by hand: the language leaves addresses to the memory plan."""
    rows = []
    for line in table("V3"):
        us = _banks_us(_addresses(line))
        case = f"{line['scenario']} {line['conflict']}" + (", recording by hand" if us else "")
        ticks = float(line["ticks_50MHz_per_1000"])
        rows.append(Row("V3", case, "us", ticks * 0.02, us, "fitted", "" if us else _STRIDES))
    return rows


def _bank_pairs() -> list[Pair]:
    """Layouts with a clash against the first one, which has none."""
    free, *others = table("V3")
    pairs = []
    for line in others:
        if "none" in line["conflict"]:
            continue
        us, clear = _banks_us(_addresses(line)), _banks_us(_addresses(free))
        before, after = (0.02 * float(x["ticks_50MHz_per_1000"]) for x in (line, free))
        reason = "" if us else _STRIDES
        pairs.append(Pair("V3", f"{line['scenario']} {line['conflict']} -> 1 none", before, after, us, clear, reason))
    return pairs


def rows() -> list[Row]:
    """V1, V2, V3."""
    return [*_copy_rows(), *_add_rows(), *_bank_rows()]


def pairs() -> list[Pair]:
    """V1 to V4: changes of transfers, tuning steps and bank strides, before and after."""
    return [*_copy_pairs(), *_add_pairs(), *_bank_pairs()]

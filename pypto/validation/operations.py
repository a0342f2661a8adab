"""Single tile operations: tables X1 and X2 (a2a3), X3 (a5)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from importlib import resources

from pypto.ir.dtype import DataType
from pypto.sim.chips import Chip, chip
from pypto.sim.recording import AIC, AIV

from .rows import Row
from .writer import Kernel, one

_DTYPES = {
    "float": "fp32",
    "half": "fp16",
    "int32_t": "int32",
    "int16_t": "int16",
    "int8_t": "int8",
    "int8": "int8",
    "bfloat16": "bfloat16",
    "float8e4m3": "fp8e4m3fn",
    "float8e5m2": "fp8e5m2",
    "hfloat8": "hf8",
    "float4e1m2": "fp4",
    "float4e2m1": "fp4",
}
_SOURCES = {"tadd": 2, "tsub": 2, "tmul": 2, "tdiv": 2, "tsel": 3}
_BYTES_PER_CYCLE = 128.0
"""No path from global memory is published with more (hardware notes 3.3); copies above that were not timed whole."""


def single_operations(
    a2a3: Chip | None = None,
    a5: Chip | None = None,
    families: Sequence[str] = ("X1", "X2", "X3"),
    operations: Sequence[str] = (),
) -> list[Row]:
    """The rows of X1, X2 (on ``a2a3``) and X3 (on ``a5``), all of them or those of some families and operations.

    Rows are counted from 0 in the order of the published table: even ones may be fitted, odd ones are left out of any
    fitting.
    """
    old, new = a2a3 or chip("a2a3"), a5 or chip("a5")
    rows = []
    for name, target, measured in (
        ("X1", old, "measured_cyc"),
        ("X2", old, "expected_cyc"),
        ("X3", new, "measured_cyc"),
    ):
        for number, line in enumerate(_table(name) if name in families else ()):
            if operations and line["op"] not in operations:
                continue
            rows.append(_row(name, line, target, float(line[measured]), number % 2 == 1))
    return rows


def precision(rows: Iterable[Row]) -> float:
    """Mean of 1 - |simulated - published| / published over the rows that are re-created."""
    found = [1 - row.error for row in rows if row.error is not None]
    return sum(found) / len(found)


def precision_of_all(rows: Iterable[Row]) -> float:
    """The same over every row, as the published table counts: a row far off, or not re-created, counts 0."""
    found = [0.0 if row.error is None else max(1 - row.error, 0.0) for row in rows]
    return sum(found) / len(found)


def _table(name: str) -> list[dict[str, str]]:
    text = resources.files(__package__).joinpath("published", f"{name.lower()}.tsv").read_text()
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


def _row(family: str, line: dict[str, str], target: Chip, published: float, held_out: bool) -> Row:
    simulated, reason = None, _reason(line, published)
    if not reason:
        simulated = _cycles(line, target)
    return Row(
        family,
        f"{line['op']} {line['params']}",
        "cycles",
        published,
        simulated,
        "untouched" if held_out else "fitted",
        reason,
    )


def _parameters(line: dict[str, str]) -> dict[str, str]:
    if "=" not in line["params"]:
        kind, shape = line["params"].split()
        return {"T": kind, "rows": shape.split("x")[0], "cols": shape.split("x")[1]}
    return dict(item.split("=", 1) for item in line["params"].split(";") if "=" in item)


def _reason(line: dict[str, str], published: float) -> str:
    """Why the figure cannot be the time of the operation; empty when it can."""
    p = _parameters(line)
    if line["op"] in ("TLOAD", "TLOADCONV"):
        count, nbytes = _copies_of(line["op"], p)
        rate = count * nbytes / published
        if rate > _BYTES_PER_CYCLE:
            return f"{count * nbytes} bytes in {published:g} cycles are {rate:.0f} a cycle; no path carries as many"
    if line["op"] == "TROWMIN" and published < int(p["rows"]):
        return f"{p['rows']} rows in {published:g} cycles: the profile did not see the operation"
    return ""


def _copies_of(op: str, p: dict[str, str]) -> tuple[int, int]:
    """Copies of a profile, and contiguous bytes of each: a tile per leading index, or a whole feature map."""
    if op == "TLOAD":
        size = DataType.from_string(_DTYPES[p["T"]]).get_byte()
        count = int(p["gShape0"]) * int(p["gShape1"]) * int(p["gShape2"])
        return count, int(p["shape3"]) * int(p["shape4"]) * size
    block_bytes = 32
    return 1, int(p["N"]) * int(p["C1"]) * int(p["H"]) * int(p["W"]) * block_bytes


def _dtypes(p: dict[str, str]) -> tuple[str, str]:
    if "SrcT" in p:
        return _DTYPES[p["SrcT"].lower()], _DTYPES[p["DstT"].lower()]
    names = (p.get("T") or p.get("dtype") or p["T0"]).lower().split("->")
    return _DTYPES[names[0]], _DTYPES[names[-1]]


def _cycles(line: dict[str, str], target: Chip) -> float:
    """Price one operation on tiles of the given shape."""
    from pypto.sim.timing.costs import program_costs
    from pypto.sim.timing.cycles import cycles

    p, mnemonic = _parameters(line), line["op"].lower()
    if mnemonic == "tmatmul":
        return _matmul_cycles(p, target)
    if mnemonic.startswith("tload"):
        return _copy_cycles(line["op"], p, target)
    rows, cols = int(p.get("rows") or p["row"]), int(p.get("cols") or p["col"])
    valid = int(p.get("valid_rows") or p.get("validRow") or rows), int(p.get("valid_cols") or p.get("validCol") or cols)
    source, result = _dtypes(p)
    kernel = Kernel("one", AIV)
    tiles = [kernel.tile(rows, cols, source) for _ in range(_SOURCES.get(mnemonic, 1))]
    if mnemonic.startswith("trow") and "expand" not in mnemonic:
        out = kernel.tile(rows, 1, result)
    elif mnemonic.startswith("tcol"):
        out = kernel.tile(1, cols, result)
    else:
        out = kernel.tile(rows, cols, result)
    precise = int("high_precision" in line["params"] + line.get("group", ""))
    kernel.do(mnemonic, [out], tiles, valid=valid, dtype=DataType.from_string(result), high_precision=precise)
    if mnemonic == "tdivs" and p.get("T") == "int32_t":
        return _pipe_cycles(kernel, "V", target)  # scalar code does the work, the profile counts the vector pipe
    costs = program_costs(kernel.program(), target)
    return float(cycles(costs[0], *valid, 0, 0, 0))


def _copy_cycles(op: str, p: dict[str, str], target: Chip) -> float:
    """Time of the copies on their pipe, from L2: profiles repeat a kernel whose data fits the cache."""
    count, nbytes = _copies_of(op, p)
    kernel = Kernel("copies", AIV if op == "TLOAD" else AIC)
    tile = kernel.tile(1, nbytes, "int8", "vec" if op == "TLOAD" else "mat")
    for i in range(count):
        kernel.load(tile, i * nbytes)
    return _pipe_cycles(kernel, "MTE2", target)


def _pipe_cycles(kernel: Kernel, pipe: str, target: Chip) -> float:
    """Busy cycles of a pipe in a second launch of ``kernel``."""
    from pypto.sim.timing import DeviceState, time_recording

    state, recording = DeviceState(), one(kernel)
    time_recording(recording, target, state)
    return time_recording(recording, target, state).pipe_busy_us()[pipe] * target.clock_mhz


def _matmul_cycles(p: dict[str, str], target: Chip) -> float:
    from pypto.sim.timing.costs import program_costs
    from pypto.sim.timing.cycles import cycles

    m, k, n = int(p["validM"]), int(p["validK"]), int(p["validN"])
    operand = _DTYPES[p["AType"]]
    kernel = Kernel("one", AIC)
    left, right = kernel.tile(128, 128, operand, "left"), kernel.tile(128, 128, operand, "right")
    kernel.matmul(kernel.tile(128, 128, "fp32", "acc"), left, right)
    costs = program_costs(kernel.program(), target)
    return float(cycles(costs[0], m, n, m, k, n)) + target.cube.start.value

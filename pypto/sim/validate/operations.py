"""Single tile operations: tables X1 and X2 (a2a3), X3 (a5)."""

from __future__ import annotations

import csv
from importlib import resources

from pypto.ir.dtype import DataType
from pypto.sim.chips import Chip, chip
from pypto.sim.recording import AIC, AIV

from .rows import Row
from .writer import Kernel

_DTYPES = {
    "float": "fp32", "half": "fp16", "int32_t": "int32", "int16_t": "int16", "int8_t": "int8", "int8": "int8",
    "bfloat16": "bfloat16", "float8e4m3": "fp8e4m3fn", "float8e5m2": "fp8e5m2", "hfloat8": "hf8", "float4e1m2": "fp4",
    "float4e2m1": "fp4",
}
_SOURCES = {"tadd": 2, "tsub": 2, "tmul": 2, "tdiv": 2, "tsel": 3}
_NO_COPY = "a copy of five axes into one tile; the profile counts the instructions of its loop, not a transfer"
_SCALAR_WORK = "the profile counts the vector pipe; the division is done by scalar code"
_TOO_SHORT = "fewer cycles than repeats: the profile did not see the operation"


def single_operations() -> list[Row]:
    """All rows of X1, X2 and X3. Every second row of an operation is left out of any fitting."""
    rows = []
    for name, target, measured in (
        ("X1", chip("a2a3"), "measured_cyc"), ("X2", chip("a2a3"), "expected_cyc"), ("X3", chip("a5"), "measured_cyc")
    ):
        seen: dict[str, int] = {}
        for line in _table(name):
            turn = seen[line["op"]] = seen.get(line["op"], -1) + 1
            rows.append(_row(name, line, target, float(line[measured]), turn % 2 == 1))
    return rows


def _table(name: str) -> list[dict[str, str]]:
    text = resources.files(__package__).joinpath("published", f"{name.lower()}.tsv").read_text()
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


def _row(family: str, line: dict[str, str], target: Chip, published: float, held_out: bool) -> Row:
    simulated, reason = None, _reason(line, published)
    if not reason:
        simulated = _cycles(line, target)
    return Row(family, f"{line['op']} {line['params']}", "cycles", published, simulated,
               "untouched" if held_out else "fitted", reason)


def _parameters(line: dict[str, str]) -> dict[str, str]:
    if "=" not in line["params"]:
        kind, shape = line["params"].split()
        return {"T": kind, "rows": shape.split("x")[0], "cols": shape.split("x")[1]}
    return dict(item.split("=", 1) for item in line["params"].split(";") if "=" in item)


def _reason(line: dict[str, str], published: float) -> str:
    p = _parameters(line)
    if line["op"] in ("TLOAD", "TLOADCONV"):
        return _NO_COPY
    if line["op"] == "TDIVS" and p.get("T") == "int32_t":
        return _SCALAR_WORK
    if line["op"] == "TROWMIN" and published < int(p["rows"]):
        return _TOO_SHORT
    return ""


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
    costs = program_costs(kernel.program(), target)
    return float(cycles(costs[0], *valid, 0, 0, 0))


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

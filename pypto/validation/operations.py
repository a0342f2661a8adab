"""Single tile operations: tables X1 and X2 (a2a3), X3 (a5)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
_MOST_BYTES_PER_CYCLE = {"TLOAD": 128.0, "TLOADCONV": 256.0}
"""The largest rates published for a core, GM to UB and GM to L1 (hardware notes 3.3, ISA documents)."""
_REPEAT_BYTES = 256


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
        for number, line in enumerate(published_rows(name) if name in families else ()):
            if operations and line["op"] not in operations:
                continue
            rows.append(_row(name, line, target, float(line[measured]), number % 2 == 1))
    return rows


def precision(rows: Iterable[Row]) -> float:
    """Mean of 1 - |simulated - published| / published over the rows whose figure is not in doubt."""
    found = [_score(row) for row in rows if not row.doubt]
    return sum(found) / len(found)


def precision_of_all(rows: Iterable[Row]) -> float:
    """The same over every row."""
    found = [_score(row) for row in rows]
    return sum(found) / len(found)


def _score(row: Row) -> float:
    """A row off by more than its figure counts 0, as in the published column of accuracies."""
    return 0.0 if row.error is None else max(1 - row.error, 0.0)


def published_rows(name: str) -> list[dict[str, str]]:
    """The lines of table X1, X2 or X3 as they are printed."""
    text = resources.files(__package__).joinpath("published", f"{name.lower()}.tsv").read_text()
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


def _row(family: str, line: dict[str, str], target: Chip, published: float, held_out: bool) -> Row:
    return Row(
        family,
        f"{line['op']} {line['params']}",
        "cycles",
        published,
        _cycles(line, target),
        "untouched" if held_out else "fitted",
        doubt=_doubt(line, published) if family == "X1" else "",
    )


def _parameters(line: dict[str, str]) -> dict[str, str]:
    if "=" not in line["params"]:
        kind, shape = line["params"].split()
        return {"T": kind, "rows": shape.split("x")[0], "cols": shape.split("x")[1]}
    return dict(item.split("=", 1) for item in line["params"].split(";") if "=" in item)


def _doubt(line: dict[str, str], published: float) -> str:
    """Why the figure cannot be the time of the operation; empty when it can.

    The bounds are published for the chip: what a path carries, and one repeat per cycle at most (hardware notes 6.2).
    """
    p, op = _parameters(line), line["op"]
    if op in _MOST_BYTES_PER_CYCLE:
        copies = _copies_of(line, p)
        nbytes = copies.count * copies.runs * copies.run_bytes
        if nbytes > published * _MOST_BYTES_PER_CYCLE[op]:
            return (
                f"{nbytes} bytes in {published:g} cycles are {nbytes / published:.0f} a cycle; "
                f"no figure for this path is above {_MOST_BYTES_PER_CYCLE[op]:.0f}"
            )
    elif op != "TMATMUL" and not _by_scalar_code(line):
        rows, cols = _extents(p)
        repeats = -(-rows * cols * DataType.from_string(_dtypes(p)[0]).get_byte() // _REPEAT_BYTES)
        if published < repeats:
            return f"{repeats} repeats in {published:g} cycles; the unit finishes one a cycle at most"
    return ""


def _by_scalar_code(line: dict[str, str]) -> bool:
    """Scalar code does the work and the profile counts the vector pipe (hardware notes 6.5)."""
    return line["op"] == "TDIVS" and _parameters(line).get("T") == "int32_t"


@dataclass(frozen=True)
class _Copies:
    """``count`` copies of a profile, each of ``runs`` runs of ``run_bytes`` contiguous bytes without gaps between."""

    count: int
    runs: int
    run_bytes: int


def _copies_of(line: dict[str, str], p: dict[str, str]) -> _Copies:
    """A tile per leading index, its rows (or columns, for DN) as the language's loads report them; or a feature map."""
    if line["op"] == "TLOADCONV":
        block_bytes = 32
        return _Copies(1, 1, int(p.get("N", 1)) * int(p["C1"]) * int(p["H"]) * int(p["W"]) * block_bytes)
    size = DataType.from_string(_DTYPES[p["T"]]).get_byte()
    rows, cols = int(p["shape3"]), int(p["shape4"])
    count = int(p["gShape0"]) * int(p["gShape1"]) * int(p["gShape2"])
    if line["call"] == "runTLoadDN":
        return _Copies(count, cols, rows * size)
    return _Copies(count, rows, cols * size)


def _extents(p: dict[str, str]) -> tuple[int, int]:
    """Valid rows and columns."""
    rows, cols = int(p.get("rows") or p["row"]), int(p.get("cols") or p["col"])
    return int(p.get("valid_rows") or p.get("validRow") or rows), int(p.get("valid_cols") or p.get("validCol") or cols)


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
        return _copy_cycles(line, p, target)
    rows, cols = int(p.get("rows") or p["row"]), int(p.get("cols") or p["col"])
    valid = _extents(p)
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
    if _by_scalar_code(line):
        return _pipe_cycles(kernel, "V", target)
    costs = program_costs(kernel.program(), target)
    return float(cycles(costs[0], *valid, 0, 0, 0))


def _copy_cycles(line: dict[str, str], p: dict[str, str], target: Chip) -> float:
    """Time of the copies on their pipe, from L2: profiles repeat a kernel whose data fits the cache."""
    copies, to_ub = _copies_of(line, p), line["op"] == "TLOAD"
    kernel = Kernel("copies", AIV if to_ub else AIC)
    tile = kernel.tile(copies.runs, copies.run_bytes, "int8", "vec" if to_ub else "mat")
    for i in range(copies.count):
        kernel.load(tile, i * copies.runs * copies.run_bytes, pitch=copies.run_bytes)
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

"""B6: operator baselines. Products with the tiling of the tuned library; attention by heads is not described."""

from __future__ import annotations

import json
from math import ceil

from .gemm import Gemm, gemm
from .programs import launched
from .rows import Row
from .tables import table

_PART = "910B2"
_CLUSTERS = 24
_BLOCKED = "one query per head: how heads and keys are dealt out to the cores is not described"


def _grid(m: int, n: int, base: tuple[int, int, int]) -> tuple[int, int]:
    """Rows and columns of cores: as many base blocks as there are, at most the chip, the squarest load."""
    rows = -(-m // base[0])
    cols = -(-n // base[1])
    options = [(r, c) for r in range(1, rows + 1) for c in range(1, cols + 1) if r * c <= _CLUSTERS]
    return min(options, key=lambda o: (-(-rows // o[0]) * -(-cols // o[1]), o[0] * cols + o[1] * rows))


def product_us(m: int, k: int, n: int) -> float:
    """Task duration of a product of 16-bit floats."""
    base = (128 if m > 64 else 64 if m > 16 else 16, 256 if n >= 256 else 64, 64)
    depth = max(1, min(4, k // base[2]))
    rows, cols = _grid(m, n, base)
    share = ceil(ceil(n / base[1]) / cols) * base[1]  # whole base blocks, so that rows begin at a line
    shape = Gemm(m, n, k, (rows, cols), base, depth, depth, turned=False, n_core=share)
    return launched(gemm(shape), _PART).task_us


def rows() -> list[Row]:
    """B6."""
    found = []
    for line in table("B6"):
        shapes = json.loads(line["input_shapes"])
        us = product_us(shapes[0][0], shapes[0][1], shapes[1][1]) if line["op"] == "gemm" else None
        case = f"{line['op']} {line['case']} {line['input_shapes']} {line['dtype']}"
        found.append(Row("B6", case, "us", float(line["baseline_us"]), us, reason="" if us else _BLOCKED))
    return found

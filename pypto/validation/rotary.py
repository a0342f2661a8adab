"""V13: rotary embedding of heads, halves or neighbours turned, and streams over all vector cores.

The rows of a token's heads are cut into blocks of one token, the smallest power of two that gives every core at most
one block. Angles come as a row of cosines and one of sines per token, in the type of the heads.
"""

# Annotations in here are tensor types of the language, not of Python.
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import pypto.language as pl

from .programs import launched, recorded, tensor
from .rows import Row
from .tables import Line, table

_PART, _CORES = "910B1", 48
_STREAMING, _STREAMING_CORES = "950PR", 64
_TYPES = {"fp16": (pl.FP16, "float16"), "bf16": (pl.BF16, "bfloat16")}
_REASONS = {
    "cross": "how a row of 131072 is divided among the cores is not described",
    "mhc_pre": "the mix of the streams before the norm is named and not described",
    "mhc_res": "the operator is named and not described",
    "mhc_post": "the operator is named and not described",
    "hc_post": "the operator is named and its extents are not given",
}


@dataclass(frozen=True)
class Rotary:
    """``tokens`` of ``heads`` rows of ``depth``; ``neighbours``: columns 2i and 2i + 1 turn together, else i and
    i + depth / 2."""

    tokens: int
    heads: int
    depth: int
    dtype: str = "fp16"
    neighbours: bool = False
    cores: int = _CORES

    @property
    def block(self) -> int:
        """Rows of a block."""
        size = 1
        while size < self.heads and self.tokens * self.heads > size * self.cores:
            size *= 2
        return size


def rotary(r: Rotary) -> Any:
    """``y = x * cos + turned(x) * sin`` with x, y [tokens * heads, depth] and angles [tokens, depth]."""
    rows, depth, half, block, heads = r.tokens * r.heads, r.depth, r.depth // 2, r.block, r.heads
    kind, neighbours = _TYPES[r.dtype][0], r.neighbours
    blocks = rows // block
    cores = min(r.cores, blocks)

    @pl.jit
    def turn(
        x: pl.Tensor[[rows, depth], kind],
        cosines: pl.Tensor[[r.tokens, depth], kind],
        sines: pl.Tensor[[r.tokens, depth], kind],
        y: pl.Out[pl.Tensor[[rows, depth], kind]],
    ):
        for core in pl.spmd(cores, name_hint="turn"):
            for at in pl.range(core, blocks, cores):
                row = at * block
                token = row // heads
                if neighbours:
                    v = pl.cast(pl.load(x, [row, 0], [block, depth]), pl.FP32)
                    c = pl.cast(pl.load(cosines, [token, 0], [1, depth]), pl.FP32)
                    s = pl.cast(pl.load(sines, [token, 0], [1, depth]), pl.FP32)
                    even, odd = pl.tile.gather_mask(v, 1), pl.tile.gather_mask(v, 2)
                    c_even, c_odd = pl.tile.gather_mask(c, 1), pl.tile.gather_mask(c, 2)
                    s_even, s_odd = pl.tile.gather_mask(s, 1), pl.tile.gather_mask(s, 2)
                    first = pl.sub(pl.col_expand_mul(even, c_even), pl.col_expand_mul(odd, s_even))
                    second = pl.add(pl.col_expand_mul(odd, c_odd), pl.col_expand_mul(even, s_odd))
                    left = pl.tile.scatter_mask(pl.tile.full([block, depth], dtype=pl.FP32, value=0.0), first, 1)
                    right = pl.tile.scatter_mask(pl.tile.full([block, depth], dtype=pl.FP32, value=0.0), second, 2)
                    y = pl.store(pl.cast(pl.add(left, right), kind, mode="rint"), [row, 0], y)
                else:
                    low = pl.cast(pl.load(x, [row, 0], [block, half]), pl.FP32)
                    high = pl.cast(pl.load(x, [row, half], [block, half]), pl.FP32)
                    c_low = pl.cast(pl.load(cosines, [token, 0], [1, half]), pl.FP32)
                    c_high = pl.cast(pl.load(cosines, [token, half], [1, half]), pl.FP32)
                    s_low = pl.cast(pl.load(sines, [token, 0], [1, half]), pl.FP32)
                    s_high = pl.cast(pl.load(sines, [token, half], [1, half]), pl.FP32)
                    start = pl.sub(pl.col_expand_mul(low, c_low), pl.col_expand_mul(high, s_low))
                    end = pl.add(pl.col_expand_mul(high, c_high), pl.col_expand_mul(low, s_high))
                    y = pl.store(pl.cast(start, kind, mode="rint"), [row, 0], y)
                    y = pl.store(pl.cast(end, kind, mode="rint"), [row, half], y)
        return y

    return turn


def _rotary_us(line: Line) -> float:
    *outer, heads, depth = map(int, line["shape"].split(" ")[0].split("x"))
    r = Rotary(prod(outer), heads, depth, line["dtype"], "interleaved" in line["workload"])
    kind = _TYPES[r.dtype][1]
    matrix, angles = (r.tokens * r.heads, r.depth), (r.tokens, r.depth)
    arguments = (tensor(*shape, dtype=kind) for shape in (matrix, angles, angles, matrix))
    return launched(recorded(rotary(r), *arguments), _PART).task_us


def stream(elements: int, cores: int, tile: int = 16384) -> Any:
    """Every element of a vector read, added to and written, in two buffers."""
    share = -(-elements // cores)

    @pl.jit
    def add_one(x: pl.Tensor[[1, elements], pl.FP16], y: pl.Out[pl.Tensor[[1, elements], pl.FP16]]):
        for core in pl.spmd(cores, name_hint="stream"):
            end = pl.min(core * share + share, elements)
            for at in pl.pipeline(core * share, end, tile, stage=2):
                y = pl.store(pl.add(pl.load(x, [0, at], [1, tile], [1, pl.min(tile, end - at)]), 1.0), [0, at], y)
        return y

    return add_one


def _streaming_us(megabytes: int) -> float:
    elements = megabytes * 1_000_000 // 4  # two bytes read and two written
    vectors = (tensor(1, elements) for _ in range(2))
    return launched(recorded(stream(elements, _STREAMING_CORES), *vectors, platform="a5"), _STREAMING).task_us


def rows() -> list[Row]:
    """V13: task duration beside the time of the named language, or of the only kernel given."""
    found = []
    for line in table("V13"):
        workload, us, reason = line["workload"], None, ""
        if workload.startswith("rope"):
            us = _rotary_us(line)
        elif "streaming" in workload:
            us = _streaming_us(int(line["shape"].split(" ")[0]))
        else:
            reason = next(text for name, text in _REASONS.items() if workload.startswith(name))
        published = float((line["tilelang_us"] or line["ascendc_or_torch_us"]).split(" ")[0])
        found.append(Row("V13", f"{workload}, {line['shape']}", "us", published, us, reason=reason))
    return found

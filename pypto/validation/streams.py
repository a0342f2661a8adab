"""Copies (V1), vector adds (V2) and bank tests (V3), written in the language."""

# Annotations in here are tensor types of the language, not of Python.
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pypto.language as pl
from pypto.sim.recording import Recording

from .programs import recorded, tensor
from .writer import Kernel, one

Order = Literal["own", "same", "rotated"]


@dataclass(frozen=True)
class Copies:
    """Reads of a half matrix ``height`` x ``width`` in tiles of ``rows`` x ``cols`` by ``cores`` (asc-devkit DMA test).

    ``length``: true row length, when rows are not whole lines. ``passes``: how often it is read, ``sliced``: each
    quarter before the next. ``order``: every core its ``own`` tiles, as the sample walks the matrix (neighbours go to
    neighbouring cores), or all of them the whole matrix in the ``same`` or a ``rotated`` order. ``cube``: to L1.
    """

    cores: int
    rows: int
    cols: int
    height: int = 12288
    width: int = 12288
    length: int = 0
    passes: int = 1
    sliced: bool = False
    order: Order = "own"
    cube: bool = False


def copies(c: Copies, platform: str = "a2a3") -> Recording:
    """The launch: one block per core."""
    return recorded(_reader(c), tensor(c.height, c.length or c.width), tensor(16, 16), platform=platform)


def _reader(c: Copies) -> Any:
    height, length = c.height, c.length or c.width
    rows, cols, cores, passes = c.rows, c.cols, c.cores, c.passes
    space = pl.Mem.Mat if c.cube else pl.Mem.Vec
    across = -(-length // cols)
    tiles = height // rows * across
    parts = 4 if c.sliced else 1
    share = -(-tiles // parts)
    own, by_row = c.order == "own" and rows > 1, rows == 1
    turn = tiles // cores if c.order == "rotated" else 0

    @pl.jit
    def read(x: pl.Tensor[[height, length], pl.FP16], y: pl.Out[pl.Tensor[[16, 16], pl.FP16]]):
        for core in pl.spmd(cores, name_hint="read"):
            if own:
                for part in pl.range(parts):
                    for _ in pl.range(passes):
                        for t in pl.range(part * share + core, pl.min(part * share + share, tiles), cores):
                            col = t % across * cols
                            pl.load(
                                x,
                                [t // across * rows, col],
                                [rows, cols],
                                [rows, pl.min(cols, length - col)],
                                target_memory=space,
                            )
            elif by_row:
                for row in pl.range(core, height, cores):
                    for col in pl.range(0, length, cols):
                        pl.load(x, [row, col], [1, cols], target_memory=space)
            else:
                for step in pl.range(tiles):
                    t = (step + core * turn) % tiles
                    pl.load(x, [t // across * rows, t % across * cols], [rows, cols], target_memory=space)
        return y

    return read


def vector_add(cores: int, elements: int, tile: int, buffers: int, platform: str = "a2a3") -> Recording:
    """``elements`` halves added in copies of ``tile`` elements (asc-devkit vector add)."""
    vectors = (tensor(1, elements) for _ in range(3))
    return recorded(_adder(cores, elements, tile, buffers), *vectors, platform=platform)


def _adder(cores: int, elements: int, tile: int, buffers: int) -> Any:
    share = -(-elements // cores)

    @pl.jit
    def add(
        x: pl.Tensor[[1, elements], pl.FP16],
        y: pl.Tensor[[1, elements], pl.FP16],
        z: pl.Out[pl.Tensor[[1, elements], pl.FP16]],
    ):
        for core in pl.spmd(cores, name_hint="add"):
            end = pl.min(core * share + share, elements)
            for at in pl.pipeline(core * share, end, tile, stage=buffers):
                n = pl.min(tile, end - at)
                a = pl.load(x, [0, at], [1, tile], [1, n])
                b = pl.load(y, [0, at], [1, tile], [1, n])
                z = pl.store(pl.add(a, b), [0, at], z)
        return z

    return add


def bank_test(first: int, second: int, result: int, count: int = 1000) -> Recording:
    """``count`` fp32 adds of 4096 elements with operands at given offsets of the unified buffer.

    Written as a recording: the language leaves addresses to the memory plan.
    """
    kernel = Kernel("banks")
    a, b, d = (kernel.tile(64, 64, "fp32", at=at) for at in (first, second, result))
    for _ in range(count):
        kernel.do("tadd", [d], [a, b])
    return one(kernel)

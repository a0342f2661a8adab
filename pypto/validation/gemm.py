"""Tiled matrix multiplies with two levels of buffers, written by hand: blocks of L1 hold several base blocks of K."""

# Annotations in here are tensor types of the language, not of Python.
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pypto.language as pl
from pypto.sim.recording import Recording

from .programs import recorded, tensor


@dataclass(frozen=True)
class Gemm:
    """``[m, k] x [k, n]`` split over a ``grid`` of cores; B is stored ``[n, k]`` (K-contiguous) or ``[k, n]``.

    ``base``: m, n, k of one MMAD. ``depth_a``, ``depth_b``: base blocks of K per load from memory, ``depth_a`` a
    multiple of ``depth_b``. ``buffers``: of L1 per operand; ``l0``: of Left and Right. ``out``: dtype of the result.
    ``n_core``: columns of a core, when they are not an equal share. ``bands``: parts of a core's rows that are finished
    one after the other, so that B is read again while in L2. ``turned``: B is stored ``[n, k]``.
    """

    m: int
    n: int
    k: int
    grid: tuple[int, int]
    base: tuple[int, int, int]
    depth_a: int = 1
    depth_b: int = 1
    buffers: int = 2
    l0: int = 2
    out: str = "float16"
    bands: int = 1
    turned: bool = True
    n_core: int = 0


def gemm(g: Gemm, platform: str = "a2a3") -> Recording:
    """The launch: one block per core of the grid."""
    stored = (g.n, g.k) if g.turned else (g.k, g.n)
    operands = tensor(g.m, g.k), tensor(*stored), tensor(g.m, g.n, dtype=g.out)
    return recorded(_kernel(g), *operands, platform=platform)


def padded_gemm(g: Gemm, width: int) -> Recording:
    """B (``[k, n]``, odd rows) copied by the vector cores into rows of ``width`` columns, then multiplied."""
    m, n, k, result = g.m, g.n, g.k, _TYPES[g.out]
    product = _product(g, width)
    cores = 48
    band = 2

    @pl.jit
    def convert_and_multiply(
        a: pl.Tensor[[m, k], pl.FP16], b: pl.Tensor[[k, n], pl.FP16], c: pl.Out[pl.Tensor[[m, width], result]]
    ):
        even = pl.create_tensor([k, width], dtype=pl.FP16)
        for core in pl.spmd(cores, name_hint="convert"):
            for row in pl.range(core * band, k, cores * band):
                even = pl.store(pl.load(b, [row, 0], [band, width], [band, n]), [row, 0], even)
        c = product(a, even, c)
        return c

    operands = tensor(g.m, g.k), tensor(g.k, g.n), tensor(g.m, width, dtype=g.out)
    return recorded(convert_and_multiply, *operands)


def resident_gemm(g: Gemm) -> Recording:
    """B of a column of base blocks is loaded once and stays in L1 while the core walks down."""
    m, n, k, result = g.m, g.n, g.k, _TYPES[g.out]
    rows, cols = g.grid
    m_core, n_core = m // rows, n // cols
    bm, bn, bk = g.base
    l0 = g.l0

    @pl.jit
    def multiply(a: pl.Tensor[[m, k], pl.FP16], b: pl.Tensor[[k, n], pl.FP16], c: pl.Out[pl.Tensor[[m, n], result]]):
        for core in pl.spmd(rows * cols, name_hint="multiply"):
            m_begin, n_begin = core // cols * m_core, core % cols * n_core
            for j in pl.range(0, n_core, bn):
                lb = pl.load(b, [0, n_begin + j], [k, bn], target_memory=pl.Mem.Mat)
                for i in pl.pipeline(0, m_core, bm, stage=2):
                    la = pl.load(a, [m_begin + i, 0], [bm, k], target_memory=pl.Mem.Mat)
                    acc = pl.create_tile([bm, bn], dtype=pl.FP32, target_memory=pl.Mem.Acc)
                    for k0 in pl.pipeline(0, k, bk, stage=l0):
                        left = pl.tile.extract(la, 0, k0, [bm, bk], target_memory=pl.Mem.Left)
                        right = pl.tile.extract(lb, k0, 0, [bk, bn], target_memory=pl.Mem.Right)
                        if k0 == 0:
                            acc = pl.matmul(left, right)
                        else:
                            acc = pl.matmul_acc(acc, left, right)
                    c = pl.store(acc, [m_begin + i, n_begin + j], c)
        return c

    return recorded(multiply, tensor(m, k), tensor(k, n), tensor(m, n, dtype=g.out))


def split_k_gemm(m: int, n: int, k: int, cores: int) -> Recording:
    """One tile of result: every core multiplies its share of K and adds its part in memory."""
    share, step = k // cores, 256

    @pl.jit
    def multiply(a: pl.Tensor[[m, k], pl.FP16], b: pl.Tensor[[k, n], pl.FP16], c: pl.InOut[pl.Tensor[[m, n], pl.FP32]]):
        for core in pl.spmd(cores, name_hint="multiply"):
            acc = pl.create_tile([m, n], dtype=pl.FP32, target_memory=pl.Mem.Acc)
            for k0 in pl.pipeline(0, share, step, stage=2):
                la = pl.load(a, [0, core * share + k0], [m, step], target_memory=pl.Mem.Mat)
                lb = pl.load(b, [core * share + k0, 0], [step, n], target_memory=pl.Mem.Mat)
                left, right = pl.move(la, target_memory=pl.Mem.Left), pl.move(lb, target_memory=pl.Mem.Right)
                if k0 == 0:
                    acc = pl.matmul(left, right)
                else:
                    acc = pl.matmul_acc(acc, left, right)
            c = pl.store(acc, [0, 0], c, atomic=pl.AtomicType.Add)
        return c

    return recorded(multiply, tensor(m, k), tensor(k, n), tensor(m, n, dtype="float32"))


_TYPES = {"float16": pl.FP16, "bfloat16": pl.BF16, "float32": pl.FP32}


def _product(g: Gemm, width: int) -> Any:
    """The tiled product as an inline function; rows of B and of the result are ``width`` long."""
    m, n, k = g.m, width, g.k
    rows, cols = g.grid
    m_core, n_core = -(-m // rows), g.n_core or -(-n // cols)
    m_band = -(-m_core // g.bands)
    bm, bn, bk = g.base
    step_a, step_b = bk * g.depth_a, bk * g.depth_b
    buffers, l0 = g.buffers, g.l0

    @pl.inline
    def product(a, right_side, c):
        for core in pl.spmd(rows * cols, name_hint="multiply"):
            m_begin = core // cols * m_core
            n_begin = core % cols * n_core
            m_end = pl.min(m_begin + m_core, m)
            n_end = pl.min(n_begin + n_core, n)
            for band in pl.range(m_begin, m_end, m_band):
                for j in pl.range(n_begin, n_end, bn):
                    wide = pl.min(n_end - j, bn)
                    for i in pl.range(band, pl.min(band + m_band, m_end), bm):
                        high = pl.min(m_end - i, bm)
                        acc = pl.create_tile([bm, bn], dtype=pl.FP32, target_memory=pl.Mem.Acc)
                        for ka in pl.pipeline(0, k, step_a, stage=buffers):
                            la = pl.load(a, [i, ka], [bm, step_a], [high, step_a], target_memory=pl.Mem.Mat)
                            for kb in pl.pipeline(0, step_a, step_b, stage=buffers):
                                lb = pl.load(
                                    right_side, [ka + kb, j], [step_b, bn], [step_b, wide], target_memory=pl.Mem.Mat
                                )
                                for k0 in pl.pipeline(0, step_b, bk, stage=l0):
                                    left = pl.tile.extract(la, 0, kb + k0, [bm, bk], target_memory=pl.Mem.Left)
                                    right = pl.tile.extract(lb, k0, 0, [bk, bn], target_memory=pl.Mem.Right)
                                    if ka + kb + k0 == 0:
                                        acc = pl.matmul(left, right)
                                    else:
                                        acc = pl.matmul_acc(acc, left, right)
                        c = pl.store(acc, [i, j], c)
        return c

    return product


def _kernel(g: Gemm) -> Any:
    m, n, k, result = g.m, g.n, g.k, _TYPES[g.out]
    product = _product(g, n)

    @pl.jit
    def multiply(a: pl.Tensor[[m, k], pl.FP16], b: pl.Tensor[[k, n], pl.FP16], c: pl.Out[pl.Tensor[[m, n], result]]):
        c = product(a, b, c)
        return c

    @pl.jit
    def multiply_turned(
        a: pl.Tensor[[m, k], pl.FP16], b: pl.Tensor[[n, k], pl.FP16], c: pl.Out[pl.Tensor[[m, n], result]]
    ):
        c = product(a, pl.transpose(b, 0, 1), c)
        return c

    return multiply_turned if g.turned else multiply

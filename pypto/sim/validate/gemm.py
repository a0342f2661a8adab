"""Tiled matrix multiplies as hand-written kernels write them: multi-block L1 loads, double-buffered L1 and L0."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.dtype import DataType
from pypto.sim.recording import AIC, Recording

from .writer import Kernel, Launch

_BYTES = {"fp16": 2, "bfloat16": 2, "int8": 1, "fp32": 4}


@dataclass(frozen=True)
class Gemm:
    """``[m, k] x [n, k]^T`` (both K-contiguous) split over a ``grid`` of cores.

    ``base``: m, n, k of one MMAD; ``depth_a``, ``depth_b``: base K blocks per load of A and B; ``buffers``: of L1, per
    operand; L0 has two. ``out``: dtype of the result; ``scalars``: scalar instructions per tile instruction.
    """

    m: int
    n: int
    k: int
    grid: tuple[int, int]
    base: tuple[int, int, int]
    depth_a: int = 1
    depth_b: int = 1
    buffers: int = 2
    out: str = "fp16"
    dtype: str = "fp16"
    scalars: int = 10


def gemm(shape: Gemm) -> Recording:
    """The launch: one task per core of the grid, all in one SPMD task."""
    rows, cols = shape.grid
    m_core, n_core = -(-shape.m // rows), -(-shape.n // cols)
    launch = Launch("gemm")
    blocks = [
        _core(shape, (i * m_core, min((i + 1) * m_core, shape.m)), (j * n_core, min((j + 1) * n_core, shape.n)))
        for i in range(rows) for j in range(cols)
    ]
    launch.submit(blocks)
    size = _BYTES[shape.dtype]
    memory = (shape.m + shape.n) * shape.k * size + shape.m * shape.n * _BYTES[shape.out]
    return launch.recording(memory=memory)


def _core(g: Gemm, rows: tuple[int, int], cols: tuple[int, int]) -> Kernel:
    kernel = Kernel(f"gemm_{rows[0]}_{cols[0]}", AIC)
    bm, bn, bk = g.base
    l1_a = [kernel.tile(bm, bk * g.depth_a, g.dtype, "mat") for _ in range(g.buffers)]
    l1_b = [kernel.tile(bn, bk * g.depth_b, g.dtype, "mat") for _ in range(g.buffers)]
    left = [kernel.tile(bm, bk, g.dtype, "left") for _ in range(2)]
    right = [kernel.tile(bk, bn, g.dtype, "right") for _ in range(2)]
    acc = kernel.tile(bm, bn, "fp32", "acc")
    size, b_base = _BYTES[g.dtype], g.m * g.k * _BYTES[g.dtype]
    c_base = b_base + g.n * g.k * size
    out = DataType.from_string(g.out)
    step = loads_a = loads_b = 0
    for n in range(cols[0], cols[1], bn):
        for m in range(rows[0], rows[1], bm):
            tm, tn = min(bm, rows[1] - m), min(bn, cols[1] - n)
            for block in range(-(-g.k // bk)):
                k = block * bk
                if block % g.depth_a == 0:
                    width = min(bk * g.depth_a, g.k - k)
                    kernel.load(l1_a[loads_a % g.buffers], (m * g.k + k) * size, rows=tm, cols=width, pitch=g.k * size,
                                scalars=g.scalars)
                    loads_a += 1
                if block % g.depth_b == 0:
                    width = min(bk * g.depth_b, g.k - k)
                    kernel.load(l1_b[loads_b % g.buffers], b_base + (n * g.k + k) * size, rows=tn, cols=width,
                                pitch=g.k * size, scalars=g.scalars)
                    loads_b += 1
                a, b = left[step % 2], right[step % 2]
                tk = min(bk, g.k - k)
                kernel.do("tmov", [a], [l1_a[(loads_a - 1) % g.buffers]], valid=(tm, tk), scalars=g.scalars)
                kernel.do("tmov", [b], [l1_b[(loads_b - 1) % g.buffers]], valid=(tk, tn), scalars=g.scalars)
                kernel.do("tmatmul" if block == 0 else "tmatmul_acc", [acc], ([] if block == 0 else [acc]) + [a, b],
                          valid=(tm, tn), report=(0, tm, tk, tn), scalars=g.scalars)
                step += 1
            width = tn * _BYTES[g.out]
            kernel.do("tstore", [], [acc], valid=(tm, tn), dtype_out=out, pipe="FIX", scalars=g.scalars,
                      report=(c_base + (m * g.n + n) * _BYTES[g.out], tm, width, g.n * _BYTES[g.out]))
    return kernel

"""Programs of every family with inputs and the answer of torch."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import pypto.language as pl

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "kernels"
ROWS, COLS = 96, 160
M, K, N = 128, 512, 192


@dataclass(frozen=True)
class Example:
    """A kernel whose outputs come last, its inputs, and what torch says."""

    kernel: Any
    inputs: tuple[Any, ...]
    expected: tuple[torch.Tensor, ...]
    rtol: float = 1e-5


PROGRAMS: dict[str, Callable[[], Example]] = {}


def program(make: Callable[[], Example]) -> Callable[[], Example]:
    PROGRAMS[make.__name__] = make
    return make


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def whole(*shape: int, low: int, high: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


# --- vector ----------------------------------------------------------------------------------------------------------


@pl.jit
def transcendental(x: pl.Tensor, y: pl.Tensor, z: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, 96, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = x[r : r + 16, :]
            b = pl.exp(pl.neg(pl.abs(a)))
            c = pl.div(pl.sin(a), pl.add(pl.sqrt(pl.mul(y[r : r + 16, :], y[r : r + 16, :])), 1.0))
            z[r : r + 16, :] = pl.add(pl.mul(b, c), pl.log(pl.add(pl.rsqrt(pl.add(b, 1.0)), 0.5)))
    return z


@program
def element_wise() -> Example:
    x, y = normal(ROWS, COLS), normal(ROWS, COLS, seed=1)
    b = torch.exp(-x.abs())
    want = b * (x.sin() / (y.abs() + 1)) + torch.log(torch.rsqrt(b + 1) + 0.5)
    return Example(transcendental, (x, y), (want,), 1e-5)


@pl.jit
def row_softmax(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    for b in pl.spmd(12):
        with_max = pl.row_expand_sub(x[b * 8 : b * 8 + 8, :], pl.row_max(x[b * 8 : b * 8 + 8, :]))
        e = pl.exp(with_max)
        y[b * 8 : b * 8 + 8, :] = pl.row_expand_div(e, pl.row_sum(e))
    return y


@program
def softmax_over_blocks() -> Example:
    x = normal(ROWS, COLS) * 4
    return Example(row_softmax, (x,), (torch.softmax(x, -1),))


@pl.jit
def low_precision(x: pl.Tensor, h: pl.Out[pl.Tensor], b: pl.Out[pl.Tensor], q: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        h[:] = pl.exp(pl.cast(x, pl.FP16, mode="rint"))
        b[:] = pl.cast(pl.mul(x, 3.0), pl.BF16, mode="rint")
        q[:] = pl.cast(pl.cast(pl.mul(x, 20.0), pl.FP16, mode="rint"), pl.INT8, mode="rint")
    return h, b, q


@program
def narrow_types() -> Example:
    x = normal(ROWS, COLS)
    quantised = (x * 20).half().round().clamp(-128, 127).to(torch.int8)
    return Example(low_precision, (x,), (x.half().exp(), (x * 3).bfloat16(), quantised), 2e-3)


@pl.jit
def bit_mixing(x: pl.Tensor, y: pl.Tensor, z: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        z[:] = pl.xor(pl.shls(pl.mul(x, y), 3), pl.shrs(pl.and_(x, 4095), 2))
    return z


@program
def integers_that_wrap() -> Example:
    x = whole(ROWS, COLS, low=-(2**31), high=2**31, dtype=torch.int32)
    y = whole(ROWS, COLS, low=-(2**31), high=2**31, dtype=torch.int32, seed=1)
    return Example(bit_mixing, (x, y), (((x * y) << 3) ^ ((x & 4095) >> 2),))


@pl.jit
def reductions(x: pl.Tensor, s: pl.Out[pl.Tensor], c: pl.Out[pl.Tensor], top: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        s[:] = pl.row_sum(x)
        c[:] = pl.col_sum(x)
        top[:] = pl.row_argmax(x)
    return s, c, top


@program
def reductions_of_odd_extents() -> Example:
    x = normal(37, 83)
    best = x.argmax(1, keepdim=True).int()
    return Example(reductions, (x,), (x.sum(1, keepdim=True), x.sum(0, keepdim=True), best), 1e-4)


@pl.jit
def pick_and_sort(x: pl.Tensor, at: pl.Tensor, g: pl.Out[pl.Tensor], s: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        g[:] = pl.gather(x, dim=-1, index=at)
        for r in pl.range(8):
            ranked = pl.sort32(x[r : r + 1, :], pl.arange(0, [1, 32], dtype=pl.UINT32))
            s[r : r + 1, :] = pl.gather(ranked, mask_pattern=pl.tile.MaskPattern.P0101)
    return g, s


@program
def gather_and_sort() -> Example:
    x = normal(8, 32)
    at = whole(8, 32, low=0, high=32, dtype=torch.int32)
    return Example(pick_and_sort, (x, at), (x.gather(1, at.long()), x.sort(1, descending=True).values))


@pl.jit
def add_up(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.full([8, 160], dtype=pl.FP32, value=0.0)
    for b in pl.spmd(12):
        y = pl.assemble(y, x[b * 8 : b * 8 + 8, :], [0, 0], atomic=pl.AtomicType.Add)
    return y


@program
def atomic_sum_over_blocks() -> Example:
    x = normal(ROWS, COLS)
    return Example(add_up, (x,), (x.view(12, 8, COLS).sum(0),), 1e-5)


@pl.jit
def running(x: pl.Tensor, length: pl.Tensor, y: pl.Out[pl.Tensor]):
    for r in pl.range(6):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = pl.cast(pl.read(length, [r]), pl.INDEX)
            part = pl.slice(x, [16, 160], [r * 16, 0], valid_shape=[16, n])
            filled = pl.fillpad(part, pad_value=pl.PadValue.zero)
            y[r * 16 : r * 16 + 16, :] = pl.row_expand_mul(filled, pl.row_sum(filled))
    return y


@program
def valid_regions_of_run_time_extent() -> Example:
    x, length = normal(ROWS, COLS), torch.tensor([1, 7, 33, 96, 159, 160], dtype=torch.int32)
    kept = torch.where(torch.arange(COLS) < length.repeat_interleave(16)[:, None], x, torch.zeros(()))
    return Example(running, (x, length), (kept * kept.sum(1, keepdim=True),), 1e-4)


# --- matrix ----------------------------------------------------------------------------------------------------------


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    for n in pl.parallel(0, 192, 96):
        with pl.at(level=pl.Level.CORE_GROUP):
            c[:, n : n + 96] = pl.matmul(a, b[:, n : n + 96], out_dtype=pl.FP32)
    return c


def _product_of(dtype: torch.dtype) -> Example:
    a, b = (normal(M, K) / 8).to(dtype), (normal(K, N, seed=1) / 8).to(dtype)
    return Example(product, (a, b), ((a.double() @ b.double()).float(),), 1e-4)


@program
def matmul_bf16() -> Example:
    return _product_of(torch.bfloat16)


@program
def matmul_fp16() -> Example:
    return _product_of(torch.float16)


@program
def matmul_fp32() -> Example:
    return _product_of(torch.float32)


@pl.jit
def integer_product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:] = pl.matmul(a, b, out_dtype=pl.INT32)
    return c


@program
def matmul_int8() -> Example:
    a, b = (whole(*s, low=-128, high=128, dtype=torch.int8) for s in ((M, K), (K, N)))
    return Example(integer_product, (a, b), (a.int() @ b.int(),))


@pl.jit
def large_product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:] = pl.matmul(a, b, out_dtype=pl.FP32)
    return c


@program
def product_larger_than_the_smaller_accumulator() -> Example:
    a, b = normal(192, K).bfloat16(), normal(K, 256, seed=1).bfloat16()
    return Example(large_product, (a, b), ((a.double() @ b.double()).float(),), 1e-4)


@pl.jit
def gated(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
        score = pl.matmul(a, b, out_dtype=pl.FP32)
        c[:] = pl.div(score, pl.add(pl.exp(pl.neg(score)), 1.0))
    return c


@program
def cube_and_vector_on_two_lanes() -> Example:
    a, b = normal(64, 128).bfloat16() / 4, normal(128, 128, seed=1).bfloat16() / 4
    return Example(gated, (a, b), (torch.nn.functional.silu(a.float() @ b.float()),), 1e-4)


# --- the tour --------------------------------------------------------------------------------------------------------


def _of_tour(
    module: str, kernel: str, inputs: tuple[Any, ...], expected: tuple[torch.Tensor, ...], rtol: float
) -> Example:
    return Example(getattr(_tour(module), kernel), inputs, expected, rtol)


def _tour(module: str) -> Any:
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    return __import__(module)


@program
def attention_with_online_softmax() -> Example:
    q, k, v = (normal(n, 64, seed=n).half() for n in (64, 512, 512))
    want = torch.softmax(q.float() @ k.float().T / math.sqrt(64), -1) @ v.float()
    return _of_tour("flash_attention", "flash_attention", (q, k, v), (want,), 2e-3)


@program
def paged_attention() -> Example:
    tour = _tour("paged_attention")
    q = normal(tour.BATCH * tour.HEADS, tour.D).bfloat16()
    k, v = (normal(tour.PAGES * tour.PAGE, tour.D, seed=s).bfloat16() for s in (1, 2))
    table = torch.arange(tour.BATCH * tour.MAX_PAGES, dtype=torch.int32).flip(0).reshape(tour.BATCH, -1)
    inputs = (q, k, v, table, torch.tensor([[17, 64, 100, 160]], dtype=torch.int32))
    return Example(tour.paged_attention, inputs, (tour.reference(*inputs),), 2e-2)


@program
def decoder_layer() -> Example:
    tour = _tour("decoder_layer")
    *inputs, _ = tour.arguments()
    return Example(tour.decoder_layer, tuple(inputs), (tour.reference(*inputs),), 5e-2)

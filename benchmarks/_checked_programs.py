"""Programs of different kinds whose launches through the runtime are timed with and without checks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import pypto.language as pl

BLOCKS, SMALL, STAGES = 48, 512, 200


@pl.jit
def softmax_in_blocks(x: pl.Tensor[[3072, 128], pl.FP32], y: pl.Out[pl.Tensor[[3072, 128], pl.FP32]]):
    for b in pl.spmd(BLOCKS, name_hint="strip"):
        t = x[b * 64 : b * 64 + 64, :]
        e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
        y[b * 64 : b * 64 + 64, :] = pl.row_expand_div(e, pl.row_sum(e))
    return y


@pl.jit
def masked_softmax(
    x: pl.Tensor[[512, 128], pl.FP32],
    mask: pl.Tensor[[512, 128], pl.FP32],
    y: pl.Out[pl.Tensor[[512, 128], pl.FP32]],
):
    for r in pl.parallel(0, 512, 64):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="masked"):
            t = pl.add(x[r : r + 64, :], mask[r : r + 64, :])
            e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
            y[r : r + 64, :] = pl.row_expand_div(e, pl.row_sum(e))
    return y


@pl.jit
def long_pipeline(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    a = pl.create_tensor([64, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="start"):
        a[:, :] = pl.add(x[:, :], 0.0)
    for _ in pl.range(STAGES):
        b = pl.create_tensor([64, 64], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="there"):
            b[:, :] = pl.add(a[:, :], 1.0)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="back"):
            a[:, :] = pl.mul(b[:, :], 0.5)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="end"):
        y[:, :] = pl.add(a[:, :], 0.0)
    return y


@pl.jit
def small_tasks(x: pl.Tensor[[4096, 32], pl.FP32], y: pl.Out[pl.Tensor[[4096, 32], pl.FP32]]):
    for i in pl.parallel(SMALL):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="small"):
            y[i * 8 : i * 8 + 8, :] = pl.add(x[i * 8 : i * 8 + 8, :], 1.0)
    return y


@pl.jit
def gather_rows(
    rows: pl.Tensor[[1024, 64], pl.FP32],
    index: pl.Tensor[[1, 512], pl.INT32],
    y: pl.Out[pl.Tensor[[512, 64], pl.FP32]],
):
    for b in pl.parallel(8):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="embed"):
            pl.store(pl.mgather(rows, pl.load(index, [0, b * 64], [1, 64])), [b * 64, 0], y)
    return y


@pl.jit
def gather_elements(
    x: pl.Tensor[[256, 64], pl.FP32],
    index: pl.Tensor[[256, 64], pl.INT32],
    y: pl.Out[pl.Tensor[[256, 64], pl.FP32]],
):
    for b in pl.parallel(8):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="shuffle"):
            t, i = pl.load(x, [b * 32, 0], [32, 64]), pl.load(index, [b * 32, 0], [32, 64])
            room = pl.create_tile([32, 64], dtype=pl.INT32, target_memory=pl.Mem.Vec)
            pl.store(pl.tile.gather(t, i, room), [b * 32, 0], y)
    return y


@pl.jit
def softmax_in_half(x: pl.Tensor[[3072, 128], pl.FP16], y: pl.Out[pl.Tensor[[3072, 128], pl.FP16]]):
    for b in pl.spmd(BLOCKS, name_hint="strip"):
        t = x[b * 64 : b * 64 + 64, :]
        e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
        y[b * 64 : b * 64 + 64, :] = pl.row_expand_div(e, pl.row_sum(e))
    return y


@pl.jit
def half_undefined(x: pl.Tensor[[512, 128], pl.FP32], y: pl.Out[pl.Tensor[[512, 64], pl.FP32]]):
    a = pl.create_tensor([512, 128], dtype=pl.FP32)
    c = pl.create_tensor([512, 128], dtype=pl.FP32)
    for b in pl.spmd(8, name_hint="left"):
        pl.store(pl.mul(pl.load(x, [b * 64, 0], [64, 64]), 2.0), [b * 64, 0], a)
    for b in pl.spmd(8, name_hint="all"):
        t = pl.load(a, [b * 64, 0], [64, 128])
        pl.store(pl.add(pl.mul(pl.maximum(t, 0.5), 0.5), pl.abs(t)), [b * 64, 0], c)
    for b in pl.spmd(8, name_hint="take"):
        pl.store(pl.load(c, [b * 64, 0], [64, 64]), [b * 64, 0], y)
    return y


@pl.jit
def scatter_rows(
    rows: pl.Tensor[[512, 64], pl.BF16],
    index: pl.Tensor[[1, 512], pl.INT32],
    y: pl.InOut[pl.Tensor[[1024, 64], pl.BF16]],
):
    for b in pl.range(8):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="keep"):
            for i in pl.range(64):
                row = pl.cast(pl.read(index, [0, b * 64 + i]), pl.INDEX)
                pl.store(pl.load(rows, [b * 64 + i, 0], [1, 64]), [row, 0], y)
    return y


@pl.jit
def scatter_elements(
    x: pl.Tensor[[256, 64], pl.FP32],
    index: pl.Tensor[[256, 64], pl.INT32],
    y: pl.InOut[pl.Tensor[[256, 64], pl.FP32]],
):
    for b in pl.range(8):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="spread"):
            pl.mscatter(pl.load(x, [b * 32, 0], [32, 64]), pl.load(index, [b * 32, 0], [32, 64]), y)
    return y


@pl.jit
def gather_written(
    x: pl.Tensor[[256, 64], pl.FP32],
    index: pl.Tensor[[256, 64], pl.INT32],
    y: pl.Out[pl.Tensor[[256, 64], pl.FP32]],
):
    mid = pl.create_tensor([256, 64], dtype=pl.FP32)
    for b in pl.parallel(8):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill"):
            pl.store(pl.load(x, [b * 32, 0], [32, 64]), [b * 32, 0], mid)
    for b in pl.parallel(8):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="pick"):
            pl.store(pl.mgather(mid, pl.load(index, [b * 32, 0], [32, 64]), coalesce="elem"), [b * 32, 0], y)
    return y


@pl.jit
def running_sum(
    steps: pl.Tensor[[1, 2048], pl.INT32],
    total: pl.InOut[pl.Tensor[[1, 2048], pl.INT32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="walk"):
        for i in pl.range(2000):
            pl.write(total, [0, i], pl.read(total, [0, i]) + pl.read(steps, [0, i]))
    return total


def example(name: str) -> Any:
    """The module of an example kernel; ``ImportError`` outside a checkout."""
    folder = str(Path(__file__).parent.parent / "examples" / "kernels")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def programs() -> Iterator[tuple[str, Any, list[torch.Tensor]]]:
    """(what it is, kernel, arguments)."""
    g = torch.Generator().manual_seed(0)

    def floats(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g)

    def indices(limit: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, limit, shape, dtype=torch.int32, generator=g)

    def zeros(*shape: int) -> torch.Tensor:
        return torch.zeros(*shape)

    late = torch.arange(128)[None] > torch.arange(512)[:, None] % 128
    yield f"softmax in {BLOCKS} blocks", softmax_in_blocks, [floats(3072, 128), zeros(3072, 128)]
    mask = zeros(512, 128).masked_fill(late, float("-inf"))
    yield "softmax, half of it -inf", masked_softmax, [floats(512, 128), mask, zeros(512, 128)]
    yield f"pipeline of {2 * STAGES} tasks", long_pipeline, [floats(64, 64), zeros(64, 64)]
    yield f"{SMALL} small tasks", small_tasks, [floats(4096, 32), zeros(4096, 32)]
    yield "gather of 512 rows", gather_rows, [floats(1024, 64), indices(1024, 1, 512), zeros(512, 64)]
    yield "gather of 16384 elements", gather_elements, [floats(256, 64), indices(2048, 256, 64), zeros(256, 64)]
    yield "6000 scalar accesses", running_sum, [indices(9, 1, 2048), torch.zeros(1, 2048, dtype=torch.int32)]
    yield "softmax in FP16", softmax_in_half, [floats(3072, 128).half(), zeros(3072, 128).half()]
    yield "buffers half undefined", half_undefined, [floats(512, 128), zeros(512, 64)]
    places = torch.randperm(1024, generator=g)[:512].int()[None]
    yield "512 rows to any place", scatter_rows, [floats(512, 64).bfloat16(), places, zeros(1024, 64).bfloat16()]
    cells = torch.randperm(256 * 64, generator=g).int().reshape(256, 64)
    yield "scatter of 16384 elements", scatter_elements, [floats(256, 64), cells, zeros(256, 64)]
    yield "gather of 16384 that tasks wrote", gather_written, [floats(256, 64), cells, zeros(256, 64)]
    layer, attention = example("decoder_layer"), example("flash_attention")
    yield "decoder layer", layer.decoder_layer, layer.arguments()
    q, k, v = (floats(n, attention.D).half() for n in (attention.Q, attention.S, attention.S))
    yield "flash attention", attention.flash_attention, [q, k, v, zeros(attention.Q, attention.D)]

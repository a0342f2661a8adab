"""Programs of further shapes whose launches are timed with and without checks: tasks, views, blocks and accesses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

import pypto.language as pl


@pl.jit
def tiny_tasks(x: pl.Tensor[[8, 16000], pl.FP32], y: pl.Out[pl.Tensor[[8, 16000], pl.FP32]]):
    for i in pl.parallel(2000):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="tiny"):
            y[:, i * 8 : i * 8 + 8] = pl.add(x[:, i * 8 : i * 8 + 8], 1.0)
    return y


@pl.jit
def views_of_views(x: pl.Tensor[[512, 512], pl.FP32], y: pl.Out[pl.Tensor[[512, 512], pl.FP32]]):
    for i in pl.parallel(8):
        a = x[i * 64 : i * 64 + 64, :]
        o = y[i * 64 : i * 64 + 64, :]
        for j in pl.parallel(8):
            b = a[:, j * 64 : j * 64 + 64]
            p = o[:, j * 64 : j * 64 + 64]
            for k in pl.parallel(4):
                c = b[k * 16 : k * 16 + 16, :]
                q = p[k * 16 : k * 16 + 16, :]
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="deep"):
                    pl.store(pl.mul(pl.load(c, [0, 0], [16, 64]), 2.0), [0, 0], q)
    return y


@pl.jit
def long_blocks(x: pl.Tensor[[6144, 64], pl.FP32], y: pl.Out[pl.Tensor[[6144, 64], pl.FP32]]):
    for b in pl.spmd(24, name_hint="walk"):
        for i in pl.range(32):
            pl.store(pl.exp(pl.load(x, [b * 256 + i * 8, 0], [8, 64])), [b * 256 + i * 8, 0], y)
    return y


@pl.jit
def hand_overs(
    a: pl.Tensor[[512, 64], pl.FP16], b: pl.Tensor[[64, 64], pl.FP16], y: pl.Out[pl.Tensor[[512, 64], pl.FP32]]
):
    for i in pl.parallel(2):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="mix"):
            for k in pl.range(16):
                r = i * 256 + k * 16
                t = pl.matmul(a[r : r + 16, :], b[:, :], out_dtype=pl.FP32)
                y[r : r + 16, :] = pl.mul(t, 0.5)
    return y


@pl.jit
def columns_of_rows(x: pl.Tensor[[1024, 256], pl.FP32], y: pl.Out[pl.Tensor[[1024, 256], pl.FP32]]):
    for i in pl.parallel(32):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="col"):
            for k in pl.range(4):
                t = pl.load(x, [k * 256, i * 8], [256, 8])
                pl.store(pl.add(t, 1.0), [k * 256, i * 8], y)
    return y


@pl.jit
def pages_by_table(
    cache: pl.Tensor[[256, 1024], pl.FP32],
    table: pl.Tensor[[16, 32], pl.INT32],
    y: pl.Out[pl.Tensor[[16, 1024], pl.FP32]],
):
    for b in pl.parallel(16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="page"):
            acc = pl.tile.full([1, 1024], dtype=pl.FP32, value=0.0)
            for k in pl.range(32):
                page = pl.cast(pl.read(table, [b, k]), pl.INDEX)
                acc = pl.add(acc, pl.load(cache, [page, 0], [1, 1024]))
            pl.store(acc, [b, 0], y)
    return y


@pl.jit
def narrow_product(
    a: pl.Tensor[[512, 256], pl.INT8], b: pl.Tensor[[256, 64], pl.INT8], y: pl.Out[pl.Tensor[[512, 64], pl.INT32]]
):
    for i in pl.parallel(8):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="q"):
            y[i * 64 : i * 64 + 64, :] = pl.matmul(a[i * 64 : i * 64 + 64, :], b[:, :], out_dtype=pl.INT32)
    return y


@pl.jit
def atomic_additions(x: pl.Tensor[[2048, 64], pl.FP32], y: pl.InOut[pl.Tensor[[16, 64], pl.FP32]]):
    for i in pl.parallel(128):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="add"):
            pl.store(pl.load(x, [i * 16, 0], [16, 64]), [0, 0], y, atomic=pl.AtomicType.Add)
    return y


@pl.jit
def many_readers(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[8192, 64], pl.FP32]]):
    mid = pl.create_tensor([16, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill"):
        mid[:, :] = pl.add(x[:, :], 0.0)
    for i in pl.parallel(512):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="read"):
            y[i * 16 : i * 16 + 16, :] = pl.add(mid[:, :], 1.0)
    return y


@pl.jit
def large_copy(x: pl.Tensor[[4096, 512], pl.FP32], y: pl.Out[pl.Tensor[[4096, 512], pl.FP32]]):
    for i in pl.spmd(32, name_hint="copy"):
        for k in pl.range(4):
            pl.store(pl.load(x, [i * 128 + k * 32, 0], [32, 512]), [i * 128 + k * 32, 0], y)
    return y


def programs() -> Iterator[tuple[str, Any, list[torch.Tensor]]]:
    """(what it is, kernel, arguments)."""
    g = torch.Generator().manual_seed(0)

    def floats(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g)

    def bytes_of(*shape: int) -> torch.Tensor:
        return torch.randint(-8, 8, shape, dtype=torch.int8, generator=g)

    zeros = torch.zeros
    pages = torch.randint(0, 256, (16, 32), dtype=torch.int32, generator=g)
    yield "2000 tiny tasks", tiny_tasks, [floats(8, 16000), zeros(8, 16000)]
    yield "views of views", views_of_views, [floats(512, 512), zeros(512, 512)]
    yield "24 blocks of 32 trips", long_blocks, [floats(6144, 64), zeros(6144, 64)]
    yield "mixed kernel, 32 hand-overs", hand_overs, [floats(512, 64).half(), floats(64, 64).half(), zeros(512, 64)]
    yield "columns of a wide tensor", columns_of_rows, [floats(1024, 256), zeros(1024, 256)]
    yield "512 pages by a table", pages_by_table, [floats(256, 1024), pages, zeros(16, 1024)]
    yield "int8 product", narrow_product, [bytes_of(512, 256), bytes_of(256, 64), zeros(512, 64, dtype=torch.int32)]
    yield "128 atomic additions", atomic_additions, [floats(2048, 64), zeros(16, 64)]
    yield "512 readers of one tensor", many_readers, [floats(16, 64), zeros(8192, 64)]
    yield "copy of 8 MB", large_copy, [floats(4096, 512), zeros(4096, 512)]

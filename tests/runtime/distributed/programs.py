"""Programs over several ranks that the tests of this folder run."""

from __future__ import annotations

from typing import Any

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig


def config(ranks: int, platform: str = "a2a3sim", **options: Any) -> RunConfig:
    return RunConfig(platform=platform, distributed_config=DistributedConfig(list(range(ranks)), **options))


def row_program(
    ranks: int, size: int, dtype: Any, signal_shape: list[int], body: Any, out_size: int | None = None
) -> Any:
    """Every rank: its row of ``x`` -> ``body(inp, out, data, signal)`` -> its row of ``y``; ``data`` is [1, size]."""
    width = size if out_size is None else out_size

    @pl.jit.incore
    def kernel(
        inp: pl.Tensor[[1, size], dtype],
        out: pl.Out[pl.Tensor[[1, width], dtype]],
        data: pl.InOut[pld.DistributedTensor[[1, size], dtype]],
        signal: pl.InOut[pld.DistributedTensor[signal_shape, pl.INT32]],
    ):
        body(inp, out, data, signal)
        return out

    @pl.jit
    def chip(
        inp: pl.Tensor[[1, size], dtype],
        out: pl.Out[pl.Tensor[[1, width], dtype]],
        data: pl.InOut[pld.DistributedTensor[[1, size], dtype]],
        signal: pl.InOut[pld.DistributedTensor[signal_shape, pl.INT32]],
    ):
        return kernel(inp, out, data, signal)

    @pl.jit.host
    def host(x: pl.Tensor[[ranks, 1, size], dtype], y: pl.Out[pl.Tensor[[ranks, 1, width], dtype]]):
        data_buf = pld.alloc_window_buffer([1, size], dtype=dtype)
        signal_buf = pld.alloc_window_buffer(signal_shape, dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, size], dtype=dtype)
            signal = pld.window(signal_buf, signal_shape, dtype=pl.INT32)
            chip(x[r], y[r], data, signal, device=r)

    return host


def matrix_program(
    ranks: int, size: int, body: Any, *, in_rows: int, data_rows: int, out_rows: int, dtype: Any = pl.FP32
) -> Any:
    """Like :func:`row_program` with matrices of ``size`` columns and a mesh signal."""

    @pl.jit.incore
    def kernel(
        inp: pl.Tensor[[in_rows, size], dtype],
        out: pl.Out[pl.Tensor[[out_rows, size], dtype]],
        data: pl.InOut[pld.DistributedTensor[[data_rows, size], dtype]],
        signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
    ):
        body(inp, out, data, signal)
        return out

    @pl.jit
    def chip(
        inp: pl.Tensor[[in_rows, size], dtype],
        out: pl.Out[pl.Tensor[[out_rows, size], dtype]],
        data: pl.InOut[pld.DistributedTensor[[data_rows, size], dtype]],
        signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
    ):
        return kernel(inp, out, data, signal)

    @pl.jit.host
    def host(x: pl.Tensor[[ranks, in_rows, size], dtype], y: pl.Out[pl.Tensor[[ranks, out_rows, size], dtype]]):
        data_buf = pld.alloc_window_buffer([data_rows, size], dtype=dtype)
        signal_buf = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [data_rows, size], dtype=dtype)
            signal = pld.window(signal_buf, [ranks, 1], dtype=pl.INT32)
            chip(x[r], y[r], data, signal, device=r)

    return host

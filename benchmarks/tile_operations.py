"""Tile kernels beside the same torch operation: one thread each, interleaved in one run, best of many.

Both sides write into an existing result. The kernels are called through their address from Python, so their times
include the call (about 0.3 us), as those of torch include its dispatch.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pypto.ir.dtype import BF16, FP16, FP32, INT32, DataType
from pypto.sim.kernels.catalogue import addresses

SHAPES = ((64, 64), (128, 128), (32, 1024))
MATMULS = (64, 128, 256)
ROUNDS, CALLS = 40, 25
_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_ALIGNMENT = 64


class _Tile:
    """Aligned storage with its descriptor, seen by torch as ``tensor``."""

    def __init__(self, rows: int, cols: int, dtype: DataType) -> None:
        import torch

        kind = {FP32: torch.float32, FP16: torch.float16, BF16: torch.bfloat16, INT32: torch.int32}[dtype]
        size = rows * cols * dtype.get_byte()
        raw = np.zeros(size + _ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % _ALIGNMENT
        self.words = raw[start : start + size]
        self.tensor = torch.from_numpy(self.words).view(kind).view(rows, cols)
        self.tensor.copy_(torch.randn(rows, cols))
        self.dtype = dtype
        self.descriptor = np.array([self.words.ctypes.data, rows, cols, cols, rows, cols, dtype.code(), 1], np.int64)


def _call(mnemonic: str, tiles: list[_Tile], attributes: tuple[int, ...] = ()) -> Callable[[], Any]:
    block = np.array([0, 0, 0, 0, *(t.descriptor.ctypes.data for t in tiles), *attributes], np.int64)
    run, place = _KERNEL(addresses([(mnemonic, [t.dtype for t in tiles])])[0]), block.ctypes.data

    def call(keep: Any = (block, tiles)) -> int:
        return run(place)

    return call


def _pair(name: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> dict[str, Any]:
    """Best time per call of both, in microseconds; the two alternate, so that a busy machine disturbs both."""
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for side, run in enumerate((ours, theirs)):
            start = time.perf_counter()
            for _ in range(CALLS):
                run()
            best[side] = min(best[side], (time.perf_counter() - start) / CALLS * 1e6)
    return {"name": name, "ours": best[0], "theirs": best[1], "ratio": best[0] / best[1]}


def _elementwise(rows: int, cols: int, dtype: DataType) -> list[dict[str, Any]]:
    import torch

    a, b, out = (_Tile(rows, cols, dtype) for _ in range(3))
    column = _Tile(rows, 1, dtype)
    label = f"{dtype.to_string()} {rows}x{cols}"
    return [
        _pair(f"add {label}", _call("tadd", [out, a, b]), lambda: torch.add(a.tensor, b.tensor, out=out.tensor)),
        _pair(f"mul {label}", _call("tmul", [out, a, b]), lambda: torch.mul(a.tensor, b.tensor, out=out.tensor)),
        _pair(f"exp {label}", _call("texp", [out, a]), lambda: torch.exp(a.tensor, out=out.tensor)),
        _pair(
            f"row_sum {label}",
            _call("trowsum", [column, a]),
            lambda: torch.sum(a.tensor, 1, keepdim=True, out=column.tensor),
        ),
    ]


def _casts(rows: int, cols: int) -> list[dict[str, Any]]:
    rint = 1
    pairs = ((FP32, FP16), (FP32, BF16), (FP16, FP32), (BF16, FP32), (INT32, FP32))
    rows_out = []
    for source, target in pairs:
        a, out = _Tile(rows, cols, source), _Tile(rows, cols, target)
        name = f"cast {source.to_string()} to {target.to_string()} {rows}x{cols}"
        rows_out.append(_pair(name, _call("tcvt", [out, a], (rint,)), lambda a=a, out=out: out.tensor.copy_(a.tensor)))
    a, out = _Tile(rows, cols, FP32), _Tile(rows, cols, INT32)
    rows_out.append(
        _pair(
            f"cast fp32 to int32 {rows}x{cols}",
            _call("tcvt", [out, a], (rint,)),
            lambda: out.tensor.copy_(torch_round(a.tensor)),
        )
    )
    return rows_out


def torch_round(tensor: Any) -> Any:
    """torch truncates when it converts to integers; the kernel rounds as its mode says."""
    return tensor.round()


def _products(size: int, dtype: DataType) -> dict[str, Any]:
    import torch

    a, b, acc, out = (_Tile(size, size, d) for d in (dtype, dtype, FP32, dtype))
    return _pair(
        f"matmul {dtype.to_string()} {size}x{size}x{size}",
        _call("tmatmul", [acc, a, b], (0, 0)),
        lambda: torch.mm(a.tensor, b.tensor, out=out.tensor),
    )


def measure() -> list[dict[str, Any]]:
    """Rows ``name``, ``ours`` and ``theirs`` (microseconds per call), ``ratio``."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = [row for shape in SHAPES for dtype in (FP32, FP16, BF16) for row in _elementwise(*shape, dtype)]
        rows += [row for shape in SHAPES for row in _casts(*shape)]
        rows += [_products(size, dtype) for size in MATMULS for dtype in (FP32, FP16, BF16)]
    finally:
        torch.set_num_threads(threads)
    return rows


if __name__ == "__main__":
    for row in measure():
        print(f"{row['name']:34} {row['ours']:9.2f} us {row['theirs']:9.2f} us {row['ratio']:6.2f}")

"""What the checks cost: the same launch without, with the cheap ones and with all, and a graph of 10,000 tasks."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._programs import STRIP, best_s, load, strips_orchestration

REPEATS = 7
TASKS = 10_000
ROWS, COLS = 512, 128

_SOFTMAX = f"""kernel @softmax aiv {{
  param %x : tensor<{ROWS}x{COLS}xfp32> in
  param %y : tensor<{ROWS}x{COLS}xfp32> out
  tile %t : vec<64x{COLS}xfp32> at 0
  tile %m : vec<64x1xfp32> at 32768
  tile %e : vec<64x{COLS}xfp32> at 40960
  for %i = 0 to {ROWS} step 64 {{
    tload %t, %x, [%i, 0], [64, {COLS}], [64, {COLS}]
    trowmax %m, %t
    trowexpandsub %e, %t, %m
    texp %e, %e
    trowsum %m, %e
    trowexpanddiv %e, %e, %m
    tstore %y, %e, [%i, 0], [64, {COLS}], [64, {COLS}]
  }}
}}
"""
_SOFTMAX_MAIN = f"""orchestration @main {{
  param %x : tensor<{ROWS}x{COLS}xfp32> in
  param %y : tensor<{ROWS}x{COLS}xfp32> out
  submit %t, @softmax, [%x, %y], [], [1, 3]
}}
"""
_GEMM = """kernel @gemm aic {
  param %a : tensor<128x512xfp16> in
  param %b : tensor<512x128xfp16> in
  param %c : tensor<128x128xfp32> out
  tile %am : mat<128x128xfp16> at 0
  tile %bm : mat<128x128xfp16> at 32768
  tile %al : left<128x128xfp16> at 0
  tile %br : right<128x128xfp16> at 0
  tile %acc : acc<128x128xfp32> at 0
  for %k = 0 to 512 step 128 {
    tload %am, %a, [0, %k], [128, 128], [128, 128]
    tload %bm, %b, [%k, 0], [128, 128], [128, 128]
    tmov %al, %am
    tmov %br, %bm
    seq.index %first, %k, 0
    if %first {
      tmatmul %acc, %al, %br
    } else {
      tmatmul_acc %acc, %al, %br
    }
  }
  tstore %c, %acc, [0, 0], [128, 128], [128, 128]
}
"""
_GEMM_MAIN = """orchestration @main {
  param %a : tensor<128x512xfp16> in
  param %b : tensor<512x128xfp16> in
  param %c : tensor<128x128xfp32> out
  submit %t, @gemm, [%a, %b, %c], [], [1, 1, 3]
}
"""


def _arguments(arrays: dict[str, tuple[np.ndarray, str]]) -> list[Any]:
    from pypto.ir.dtype import DataType
    from pypto.sim.program import TensorArgument

    return [
        TensorArgument(name, array.ctypes.data, array.shape, DataType.from_string(dtype))
        for name, (array, dtype) in arrays.items()
    ]


def _cases() -> list[tuple[str, str, str, str, str, dict[str, tuple[np.ndarray, str]]]]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, COLS)).astype(np.float32)
    a = rng.standard_normal((128, 512)).astype(np.float16).view(np.uint16)
    b = rng.standard_normal((512, 128)).astype(np.float16).view(np.uint16)
    strips = np.zeros((8 * TASKS, 64), np.float32)
    return [
        ("softmax 512 x 128", "softmax", "aiv", _SOFTMAX, _SOFTMAX_MAIN, {"x": (x, "fp32"), "y": (x.copy(), "fp32")}),
        (
            "matmul 128 x 512 x 128", "gemm", "aic", _GEMM, _GEMM_MAIN,
            {"a": (a, "fp16"), "b": (b, "fp16"), "c": (np.zeros((128, 128), np.float32), "fp32")},
        ),
        (f"{TASKS} tasks on strips", "strip", "aiv", STRIP, strips_orchestration(TASKS), {"x": (strips, "fp32")}),
    ]  # fmt: skip


def measure() -> list[dict[str, Any]]:
    """Milliseconds per launch on one host thread, and how many times as long as without checks."""
    from pypto.sim.checks.selection import Checks

    rows: list[dict[str, Any]] = []
    for title, name, core, kernel, main, arrays in _cases():
        with tempfile.TemporaryDirectory() as folder:
            program, arguments = load(Path(folder), name, core, kernel, main), _arguments(arrays)
        plain = 0.0
        for asked in ("none", "cheap", "all"):
            checks = Checks.of(asked)

            run = partial(program.execute, arguments, record=True, threads=1, platform="a2a3", checks=checks)
            run()
            took = best_s(run, 2 if TASKS > 1000 and name == "strip" else REPEATS)
            plain = plain or took
            rows.append({"launch": title, "checks": asked, "ms": 1e3 * took, "times": took / plain})
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)

"""What the checks cost: the same launch without, with the cheap ones and with all.

On the machine alone (one host thread, nothing but the launch), and through the runtime for programs of other kinds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._programs import STRIP, load, strips_orchestration

SECONDS = 3.0  # of launches per program
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


def _on_the_chip(array: np.ndarray, beside: int = 0) -> np.ndarray:
    """A copy that starts where the chip's allocator would put it, or ``beside`` so many bytes."""
    raw = np.zeros(array.nbytes + 1024, np.uint8)
    start = -raw.ctypes.data % 512 + beside
    placed = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    placed[...] = array
    return placed


def _arguments(arrays: dict[str, tuple[np.ndarray, str]]) -> list[Any]:
    from pypto.ir.dtype import DataType
    from pypto.sim.program import TensorArgument

    return [
        TensorArgument(name, array.ctypes.data, array.shape, DataType.from_string(dtype))
        for name, (array, dtype) in arrays.items()
    ]


def _cases() -> list[tuple[str, str, str, str, str, dict[str, tuple[np.ndarray, str]], int]]:
    """(what it is, kernel, core, program texts, arrays, bytes that they start off a boundary)."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, COLS)).astype(np.float32)
    a = rng.standard_normal((128, 512)).astype(np.float16).view(np.uint16)
    b = rng.standard_normal((512, 128)).astype(np.float16).view(np.uint16)
    strips = np.zeros((8 * TASKS, 64), np.float32)
    soft = "softmax", "aiv", _SOFTMAX, _SOFTMAX_MAIN, {"x": (x, "fp32"), "y": (x.copy(), "fp32")}
    return [
        ("softmax 512 x 128", *soft, 0),
        ("softmax, 4 bytes off a boundary", *soft, 4),
        (
            "matmul 128 x 512 x 128", "gemm", "aic", _GEMM, _GEMM_MAIN,
            {"a": (a, "fp16"), "b": (b, "fp16"), "c": (np.zeros((128, 128), np.float32), "fp32")}, 0,
        ),
        ("one task, 8 x 64", "strip", "aiv", STRIP, strips_orchestration(1), {"x": (strips[:8], "fp32")}, 0),
        (f"{TASKS} tasks on strips", "strip", "aiv", STRIP, strips_orchestration(TASKS), {"x": (strips, "fp32")}, 0),
    ]  # fmt: skip


def measure() -> list[dict[str, Any]]:
    """Milliseconds of processor time per launch, and how many times as long as without checks."""
    return [*_on_the_machine(), *_through_the_runtime(), *_of_ranks()]


_ASKED = ("none", "cheap", "all")


def _rows(
    place: str, title: str, runs: dict[str, Callable[[], Any]], clock: Callable[[], float]
) -> list[dict[str, Any]]:
    """Shortest of several launches each, taken in turn: what else the processor does falls on all alike."""
    best = dict.fromkeys(runs, float("inf"))
    for run in runs.values():
        run()
    started = time.perf_counter()
    while time.perf_counter() - started < SECONDS:
        for asked, run in runs.items():
            begin = clock()
            run()
            best[asked] = min(best[asked], clock() - begin)
    return _compared(place, title, best)


def _compared(place: str, title: str, best: dict[str, float]) -> list[dict[str, Any]]:
    return [
        {"launch": title, "on": place, "checks": asked, "ms": 1e3 * took, "times": took / best["none"]}
        for asked, took in best.items()
    ]


def _on_the_machine() -> Iterator[dict[str, Any]]:
    from pypto.sim.checks.selection import Checks

    for title, name, core, kernel, main, arrays, beside in _cases():
        with tempfile.TemporaryDirectory() as folder:
            program = load(Path(folder), name, core, kernel, main)
        placed = {key: (_on_the_chip(array, beside), dtype) for key, (array, dtype) in arrays.items()}
        arguments = _arguments(placed)
        launch = partial(program.execute, arguments, record=True, threads=1, platform="a2a3")
        runs = {asked: partial(launch, checks=Checks.of(asked)) for asked in _ASKED}
        yield from _rows("the machine", title, runs, time.process_time)


def _through_the_runtime() -> Iterator[dict[str, Any]]:
    from benchmarks import _checked_programs, _checked_shapes
    from pypto.runtime import RunConfig, configure_log

    configure_log("error")
    for title, kernel, arguments in (*_checked_programs.programs(), *_checked_shapes.programs()):
        runs = {}
        for asked in _ASKED:
            config = RunConfig(platform="a2a3", checks=asked)
            runs[asked] = partial(kernel.compile(*arguments, config=config), *arguments, config=config)
        yield from _rows("the runtime", title, runs, time.process_time)


def _of_ranks() -> Iterator[dict[str, Any]]:
    """Processor time of all processes: the ranks are processes of their own, which take some while they wait, too.

    So there is one worker at a time.
    """
    from benchmarks._checked_ranks import processor_seconds, programs
    from pypto.ir.distributed_compiled_program import DistributedConfig
    from pypto.runtime import RunConfig

    for title, program, ranks, arguments in programs():
        distributed = DistributedConfig(list(range(ranks)))
        best = {}
        for asked in _ASKED:
            config = RunConfig(platform="a2a3", checks=asked, distributed_config=distributed)
            with program.compile(*arguments, config=config).prepare() as worker:
                (row,) = _rows("", "", {"none": partial(worker, *arguments)}, processor_seconds)
                best[asked] = row["ms"] / 1e3
        yield from _compared(f"{ranks} ranks", title, best)


if __name__ == "__main__":
    for row in measure():
        print(row)

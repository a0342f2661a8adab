"""The machine beside its kernels: a no-op tile instruction, a one-kernel launch, an orchestration of small tasks."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._programs import STRIP, best_s, load, strips_orchestration

INSTRUCTIONS = 200_000
TASKS = 1_000
LAUNCHES = 100

_ADD = """kernel @add aiv {
  param %a : tensor<128x128xfp32> in
  param %b : tensor<128x128xfp32> in
  param %c : tensor<128x128xfp32> out
  tile %t0 : vec<128x128xfp32> at 0
  tile %t1 : vec<128x128xfp32> at 65536
  tload %t0, %a, [0, 0], [128, 128], [128, 128]
  tload %t1, %b, [0, 0], [128, 128], [128, 128]
  tadd %t0, %t0, %t1
  tstore %c, %t0, [0, 0], [128, 128], [128, 128]
}
"""
_ADD_MAIN = """orchestration @main {
  param %a : tensor<128x128xfp32> in
  param %b : tensor<128x128xfp32> in
  param %c : tensor<128x128xfp32> out
  scope
  submit %t, @add, [%a, %b, %c], [], [1, 1, 3]
  endscope
}
"""


def _arguments(*arrays: np.ndarray) -> list[Any]:
    from pypto.ir.dtype import FP32
    from pypto.sim.program import TensorArgument

    return [TensorArgument(f"a{i}", a.ctypes.data, a.shape, FP32) for i, a in enumerate(arrays)]


def _dispatch_ns(record: bool) -> float:
    """Time per tile instruction whose kernel does nothing, in a loop of ten of them with three operands each."""
    from numba import cfunc, types

    from pypto.sim import layout
    from pypto.sim import opcodes as op
    from pypto.sim.machine import interpreter

    no_op: Any = cfunc(types.int64(types.CPointer(types.int64)))(_no_op)
    frame = np.zeros(op.DESCRIPTORS + 64, np.int64)
    tile, index, bound, step = (op.DESCRIPTORS + offset for offset in (0, 8, 9, 10))
    frame[bound], frame[step], frame[op.FUEL], frame[op.RECORD] = INSTRUCTIONS // 10, 1, 1 << 40, record
    call = [op.CALL, 10, 0, no_op.address, tile, 0, 3, -tile, -tile, -tile]
    code = [
        op.LOOP_TEST,
        index,
        bound,
        step,
        6 + 10 * len(call) + 4,
        0,
        *call * 10,
        op.LOOP_NEXT,
        index,
        step,
        0,
        op.RETURN,
    ]
    words, trace = np.array(code, np.int64), np.zeros((INSTRUCTIONS + 1, layout.TRACE_WORDS), np.int64)
    deltas, run = np.zeros(1, np.int64), interpreter()

    def once() -> None:
        block = frame.copy()
        addresses = [words.ctypes.data, block.ctypes.data, trace.ctypes.data, len(trace), deltas.ctypes.data]
        request = np.array(addresses, np.int64)
        run(request.ctypes.data)

    return best_s(once, 7) / INSTRUCTIONS * 1e9


def _no_op(words: Any) -> int:
    return 0


def _kernels_us(directory: Path) -> float:
    """The kernels of the add program alone: the machine's call, a hundred blocks in a row, divided by them."""
    from pypto.sim.frames import Core, Trace
    from pypto.sim.launch import tensor_descriptor
    from pypto.sim.memory import Allocations
    from pypto.sim.tasks import parameter_words

    program = load(directory, "add", "aiv", _ADD, _ADD_MAIN)
    arrays = [np.ones((128, 128), np.float32) for _ in range(3)]
    words = [w for a in _arguments(*arrays) for w in tensor_descriptor(a.address, a.shape, a.dtype, 0, a.nbytes)]
    kernel = program.kernels["add"]
    frame, allocations, trace = Core().frame(kernel), Allocations(), Trace()
    allocations.add(arrays[0].ctypes.data, arrays[0].nbytes)
    places, values = parameter_words(kernel.bindings), np.array(words, np.int64)
    times = []
    for _ in range(LAUNCHES):
        frame.start(places, values, 0, 1, 1, record=False)
        start = time.perf_counter()
        frame.finish(trace, allocations)
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def measure() -> list[dict[str, Any]]:
    """Rows ``{"name", "value", "unit", "limit"}``; ``limit`` is what the project asks for."""
    rows = []
    for record in (False, True):
        label = "with" if record else "without"
        rows.append(_row(f"tile instruction with a no-op kernel, {label} recording", _dispatch_ns(record), "ns", 50))
    with tempfile.TemporaryDirectory() as folder:
        kernels_us = _kernels_us(Path(folder))
        program = load(Path(folder), "add", "aiv", _ADD, _ADD_MAIN)
        arrays = [np.ones((128, 128), np.float32) for _ in range(3)]
        arguments = _arguments(*arrays)
        for record in (False, True):
            label = "with" if record else "without"

            def launches(record: bool = record) -> None:
                for _ in range(LAUNCHES):
                    program.execute(arguments, record=record)

            cost_us = best_s(launches, 7) / LAUNCHES * 1e6 - kernels_us
            rows.append(_row(f"launch of one kernel beside its kernels, {label} recording", cost_us, "us", 60))
    with tempfile.TemporaryDirectory() as folder:
        tiny = load(Path(folder), "strip", "aiv", STRIP, strips_orchestration(TASKS))
        tensors = np.zeros((8 * TASKS, 64), np.float32)
        tasks_ms = best_s(lambda: tiny.execute(_arguments(tensors), record=True), 7) * 1e3
        rows.append(_row(f"orchestration of {TASKS} tiny tasks, with recording", tasks_ms, "ms", 30))
    return rows


def _row(name: str, value: float, unit: str, limit: float) -> dict[str, Any]:
    return {"name": name, "value": round(value, 1), "unit": unit, "limit": limit}


if __name__ == "__main__":
    for row in measure():
        print(f"{row['name']:<60} {row['value']:>8} {row['unit']} (at most {row['limit']})")

"""What the benchmarks of the machine share: programs given as text, and the shortest of several runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STRIP = """kernel @strip aiv {
  param %x : tensor<8x64xfp32> inout
  tile %t : vec<8x64xfp32> at 0
  tload %t, %x, [0, 0], [8, 64], [8, 64]
  tadds %t, %t, 1.0
  tstore %x, %t, [0, 0], [8, 64], [8, 64]
}
"""


def strips_orchestration(tasks: int) -> str:
    """One task of the kernel ``STRIP`` for every strip of an fp32 tensor of shape ``(8 * tasks, 64)``."""
    return f"""orchestration @main {{
  param %x : tensor<{8 * tasks}x64xfp32> inout
  tensor %v : 2 x fp32
  scope
  for %i = 0 to {tasks} {{
    smul.index %row, %i, 8
    view %v, %x, [%row, 0], [8, 64], []
    submit %t, @strip, [%v], [], [4]
  }}
  endscope
}}
"""


def best_s(run: Callable[[], Any], repeats: int) -> float:
    """Shortest of ``repeats`` runs in seconds: what the code costs when nothing else wants the processor."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def load(folder: Path, name: str, core: str, kernel: str, main: str) -> Any:
    """The program of one kernel ``name`` for ``core`` and its orchestration, assembled in the empty ``folder``."""
    from pypto.sim.program import load_program

    (folder / "main.orch").write_text(main)
    (folder / f"{name}.pto").write_text(kernel)
    (folder / "kernel_config.py").write_text(
        'RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 0}\n'
        'ORCHESTRATION = {"source": "main.orch", "function_name": "aicpu_orchestration_entry"}\n'
        f'KERNELS = [{{"func_id": 0, "name": "{name}", "source": "{name}.pto", "core_type": "{core}"}}]\n'
    )
    return load_program(folder)

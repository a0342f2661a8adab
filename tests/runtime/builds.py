"""Build directories written by hand, and a compiled program around one: what the runtime needs of a compile."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pypto.ir.dtype import FP32, INT32, DataType
from pypto.runtime.callable import ChipCallable, assemble
from pypto.runtime.dispatch import dispatch

ROWS, COLS = 32, 256

KERNEL = """// pypto text 1
kernel @{name}_0 aiv {{
  file 0 "add.py"
  param %a : tensor<{rows}x256xfp32> in
  param %b : tensor<{rows}x256xfp32> in
  param %out : tensor<{rows}x256xfp32> {direction}
  tile %t0 : vec<32x256xfp32> at 0
  tile %t1 : vec<32x256xfp32> at 32768
  for %r = 0 to {summed} step 32 {{  @0:3
    sadd.index %q, %r, {row}  @0:3
    tload %t0, %a, [%q, 0], [32, 256], [32, 256]  @0:4
    tload %t1, %b, [%r, 0], [32, 256], [32, 256]  @0:5
    {operation} %t0, %t0, %t1  @0:6
    tstore %out, %t0, [%r, 0], [32, 256], [32, 256]  @0:6
  }}
  ret
}}
"""

ORCHESTRATION = """// pypto text 1
orchestration @{name} {{
  file 0 "add.py"
  param %a : tensor<{rows}x256xfp32> in
  param %b : tensor<{rows}x256xfp32> in
  param %out : tensor<{rows}x256xfp32> {direction}
  submit %t, @{name}_0, [%a, %b, %out], [], [1, 1, {code}]  @0:2
  ret
}}
"""


MANIFEST = """RUNTIME_CONFIG = {{"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 0}}
ORCHESTRATION = {{"source": "orchestration/{name}.orch", "function_name": "aicpu_orchestration_entry"}}
KERNELS = [{{"func_id": 0, "name": "{name}_0", "source": "kernels/aiv/{name}_0.pto", "core_type": "aiv"}}]
"""


@dataclass(frozen=True)
class Parameter:
    name: str
    direction: str
    kind: str
    shape: tuple[int, ...] | None
    dtype: DataType


@dataclass
class Compiled:
    """A compiled program of one chip over a directory of texts."""

    output_dir: Path
    platform: str
    param_infos: list[Parameter]
    has_return: bool = True
    program: object = field(default=None)

    @property
    def param_names(self) -> list[str]:
        return [p.name for p in self.param_infos]

    @property
    def output_indices(self) -> list[int]:
        return [i for i, p in enumerate(self.param_infos) if p.direction == "Out"]

    @cached_property
    def chip_callable(self) -> ChipCallable:
        return assemble(self.output_dir, self.platform)

    def __call__(self, *args, config=None):
        return dispatch(self, args, config)


def write_add(folder: Path, *, name="add", operation="tadd", row=0, rows=ROWS, summed=ROWS, direction="out") -> Path:
    """``out[:summed] = a[row : row + summed] OPERATION b[:summed]``, all of ``rows`` x 256 fp32."""
    words = {"name": name, "operation": operation, "row": row, "rows": rows, "summed": summed, "direction": direction}
    words["code"] = {"out": 3, "inout": 4}[direction]
    kernels, orchestration = folder / "kernels" / "aiv", folder / "orchestration"
    kernels.mkdir(parents=True, exist_ok=True)
    orchestration.mkdir(exist_ok=True)
    (kernels / f"{name}_0.pto").write_text(KERNEL.format(**words))
    (orchestration / f"{name}.orch").write_text(ORCHESTRATION.format(**words))
    (folder / "kernel_config.py").write_text(MANIFEST.format(**words))
    return folder


def add_program(folder: Path, platform: str = "a2a3sim", **options) -> Compiled:
    """The addition as a compiled program."""
    write_add(folder, **options)
    shape = (options.get("rows", ROWS), COLS)
    direction = {"out": "Out", "inout": "InOut"}[options.get("direction", "out")]
    tensors = [Parameter(n, d, "tensor", shape, FP32) for n, d in (("a", "In"), ("b", "In"), ("out", direction))]
    return Compiled(folder, platform, tensors)


SCALAR = Parameter("n", "In", "scalar", None, INT32)

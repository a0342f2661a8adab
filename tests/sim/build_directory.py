"""Build directories written by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pypto.ir.dtype import BF16, FP16, FP32, INT8, INT32, INT64, UINT8, DataType
from pypto.sim.program import TensorArgument

DTYPES: dict[str, DataType] = {
    "float32": FP32,
    "float16": FP16,
    "uint16": BF16,
    "int32": INT32,
    "int64": INT64,
    "int8": INT8,
    "uint8": UINT8,
}


def write_build(directory: Path, orchestration: str, *kernels: str, groups: Sequence[dict[str, Any]] = ()) -> Path:
    """Write texts and manifest; a kernel's name and core come from its first line."""
    (directory / "orchestration").mkdir(parents=True, exist_ok=True)
    (directory / "orchestration" / "main.orch").write_text(orchestration)
    entries: list[dict[str, Any]] = []
    for number, text in enumerate(kernels):
        name, core = re.search(r"kernel @(\w+) (\w+)", text).groups()  # type: ignore[union-attr]
        path = directory / "kernels" / core / f"{name}.pto"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        source = str(path.relative_to(directory))
        entries.append({"func_id": number, "name": name, "source": source, "core_type": core})
    config = {
        "RUNTIME_CONFIG": {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 0},
        "ORCHESTRATION": {"source": "orchestration/main.orch", "function_name": "aicpu_orchestration_entry"},
        "KERNELS": [*entries, *groups],
    }
    (directory / "kernel_config.py").write_text("\n".join(f"{name} = {value!r}" for name, value in config.items()))
    return directory


class Arguments(list[TensorArgument | int | float]):
    """Arguments of a launch, with the arrays whose memory they name."""

    def __init__(self, values: Sequence[NDArray[Any] | int | float]):
        self.owners = values
        super().__init__(map(self._argument, values))

    @staticmethod
    def _argument(value: NDArray[Any] | int | float) -> TensorArgument | int | float:
        if not isinstance(value, np.ndarray):
            return value
        return TensorArgument("", value.ctypes.data, value.shape, DTYPES[str(value.dtype)])


def arguments(*values: NDArray[Any] | int | float) -> Arguments:
    """NumPy arrays as tensor arguments (``uint16`` stands for bfloat16); numbers stay."""
    return Arguments(values)

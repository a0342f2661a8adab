"""Names of element types in diagnostics (spec profiling 5.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pypto.ir.dtype import DataType

_NAMES: Final = {
    "fp32": "FLOAT32",
    "fp16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "index": "INT64",
    "task_id": "UINT64",
    "fp8e4m3fn": "FP8E4M3FN",
    "fp8e8m0": "FP8E8M0",
    "fp4": "FP4E2M1",
}


def dtype_name(dtype: DataType) -> str:
    """Upper-case name, ``FLOAT32`` for ``fp32``."""
    name = dtype.to_string()
    return _NAMES.get(name, name.upper())

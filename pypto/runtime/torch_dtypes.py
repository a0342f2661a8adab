"""Element types of the IR and of torch (spec runtime 4.3)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from pypto.ir import dtype as ir_dtype
from pypto.ir.dtype import DataType

if TYPE_CHECKING:
    import torch

_TORCH_NAMES: Final[dict[DataType, tuple[str, ...]]] = {
    ir_dtype.BOOL: ("bool",),
    ir_dtype.INT8: ("int8",),
    ir_dtype.INT16: ("int16",),
    ir_dtype.INT32: ("int32",),
    ir_dtype.INT64: ("int64",),
    ir_dtype.INDEX: ("int64",),
    # Signed tensors of the same width stand for unsigned ones: torch computes little in the unsigned types.
    ir_dtype.UINT8: ("uint8", "int8"),
    ir_dtype.UINT16: ("uint16", "int16"),
    ir_dtype.UINT32: ("uint32", "int32"),
    ir_dtype.UINT64: ("uint64", "int64"),
    ir_dtype.FP8E4M3FN: ("float8_e4m3fn",),
    ir_dtype.FP8E5M2: ("float8_e5m2",),
    ir_dtype.FP8E8M0: ("float8_e8m0fnu",),
    ir_dtype.FP16: ("float16",),
    ir_dtype.BF16: ("bfloat16",),
    ir_dtype.FP32: ("float32",),
    ir_dtype.TASK_ID: ("int64",),
    # Types torch has no arithmetic for travel in a carrier; 4-bit types hold two values per carrier element.
    ir_dtype.FP4: ("float4_e2m1fn_x2", "uint8"),
    ir_dtype.INT4: ("int8", "uint8"),
    ir_dtype.UINT4: ("uint8",),
    ir_dtype.HF4: ("uint8",),
    ir_dtype.HF8: ("uint8",),
}


@functools.cache
def accepted_torch_dtypes(dtype: DataType) -> tuple[torch.dtype, ...]:
    """The torch types whose tensors may fill a slot of ``dtype``, the natural one first."""
    import torch

    return tuple(getattr(torch, name) for name in _TORCH_NAMES[dtype] if hasattr(torch, name))


def to_torch_dtype(dtype: DataType) -> torch.dtype | None:
    """The torch type of the same values, ``None`` when there is none."""
    if dtype.get_bit() < 8 and dtype not in (ir_dtype.BOOL, ir_dtype.FP4) or dtype in (ir_dtype.HF8, ir_dtype.TASK_ID):
        return None
    return accepted_torch_dtypes(dtype)[0]


def elements_per_carrier(dtype: DataType) -> int:
    """Values held by one element of the torch tensor: 2 for the 4-bit types."""
    return 2 if dtype.get_bit() == 4 else 1


def to_runtime_shape(shape: tuple[int, ...], dtype: DataType) -> tuple[int, ...]:
    """Shape of the torch tensor that carries ``shape`` elements of ``dtype`` (last axis halved for 4-bit types)."""
    packed = elements_per_carrier(dtype)
    if packed == 1 or not shape or shape[-1] < 0:
        return tuple(shape)
    if shape[-1] % packed:
        raise ValueError(f"the last extent of a {dtype} tensor must be even, got shape {tuple(shape)}")
    return (*shape[:-1], shape[-1] // packed)

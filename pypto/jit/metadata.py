"""What a specialisation needs to know of an argument: shape, dtype, layout; never its contents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pypto.ir import dtype as dt
from pypto.ir.dtype import DataType

TORCH_DTYPES: dict[str, DataType] = {
    "torch.float16": dt.FP16,
    "torch.float32": dt.FP32,
    "torch.bfloat16": dt.BF16,
    "torch.int8": dt.INT8,
    "torch.int16": dt.INT16,
    "torch.int32": dt.INT32,
    "torch.int64": dt.INT64,
    "torch.uint8": dt.UINT8,
    "torch.bool": dt.BOOL,
    "torch.float8_e4m3fn": dt.FP8E4M3FN,
    "torch.float8_e5m2": dt.FP8E5M2,
    "torch.float8_e8m0fnu": dt.FP8E8M0,
    "torch.float4_e2m1fn_x2": dt.FP4,
}
"""Argument dtypes a kernel can be specialised to (spec language 2.1)."""


@dataclass(frozen=True)
class TensorMeta:
    """Shape (element counts) and dtype of one tensor argument."""

    shape: tuple[int, ...]
    dtype: DataType


_TENSOR_TYPES: set[type] = set()


def is_tensor(value: Any) -> bool:
    """True for torch tensors, without importing torch."""
    kind = type(value)
    if kind in _TENSOR_TYPES:
        return True
    found = (
        hasattr(value, "data_ptr")
        and str(getattr(value, "dtype", "")).startswith("torch.")
        and hasattr(value, "is_contiguous")
    )
    if found:
        _TENSOR_TYPES.add(kind)
    return found


_KNOWN: dict[Any, dt.DataType] = {}
"""Dtypes seen so far, by the tensor library's own object."""


def tensor_meta(name: str, function: str, value: Any) -> TensorMeta:
    """The metadata of a tensor argument.

    Raises ``ValueError`` when ``value`` is not a host tensor, ``TypeError`` for a dtype the language lacks.
    """
    if not is_tensor(value):
        raise ValueError(
            f"@pl.jit function {function!r}: parameter {name!r}: missing inferred tensor metadata; "
            f"a torch.Tensor is needed, got {type(value).__name__}"
        )
    dtype = _KNOWN.get(value.dtype) or TORCH_DTYPES.get(str(value.dtype))
    if dtype is None:
        known = ", ".join(sorted(k.removeprefix("torch.") for k in TORCH_DTYPES))
        raise TypeError(
            f"@pl.jit function {function!r}: parameter {name!r} has dtype {value.dtype}; supported: {known}"
        )
    _KNOWN[value.dtype] = dtype
    shape = tuple(value.shape)
    if dtype == dt.FP4:
        if not shape or shape[-1] <= 0:
            raise TypeError(
                f"parameter {name!r}: a packed 4-bit tensor needs a positive runtime x2 carrier last dimension"
            )
        shape = (*shape[:-1], shape[-1] * 2)
    return TensorMeta(shape, dtype)

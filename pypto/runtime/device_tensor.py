"""Tensors that live on a chip (spec runtime 10.8)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def checked_shape(shape: Any) -> tuple[int, ...]:
    """``shape`` as a tuple of positive ints; ``TypeError`` or ``ValueError`` names the offending entry."""
    if not isinstance(shape, Iterable):
        raise TypeError(f"the shape of a device tensor is a sequence of ints, got {type(shape).__name__} {shape!r}")
    entries = tuple(shape)
    if not entries:
        raise ValueError("the shape of a device tensor must be non-empty, got ()")
    for entry in entries:
        if not isinstance(entry, int) or isinstance(entry, bool):
            raise TypeError(f"the shape of a device tensor must contain ints, got {entry!r} in {entries}")
    if min(entries) <= 0:
        raise ValueError(f"the extents of a device tensor must be all positive, got {entries}")
    return entries


def check_dtype(dtype: object) -> None:
    """``TypeError`` unless ``dtype`` is a ``torch.dtype``."""
    import torch

    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"dtype must be a torch.dtype, got {type(dtype).__name__} {dtype!r}")


@dataclass(frozen=True)
class DeviceTensor:
    """A handle of device memory that may stand for a ``torch.Tensor`` in a launch.

    ``data_ptr`` is the device address, ``shape`` a tuple of extents, ``dtype`` a ``torch.dtype``, ``buffer`` the
    allocation it came from (``None`` for a handle made by hand, which can be inspected but not launched). It is never
    copied by itself: read it with ``worker.copy_from(host.data_ptr(), t.data_ptr, t.nbytes)``.
    """

    data_ptr: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    buffer: Any = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.data_ptr, int) or isinstance(self.data_ptr, bool) or self.data_ptr <= 0:
            raise ValueError(f"data_ptr must be a positive int, got {self.data_ptr!r}")
        object.__setattr__(self, "shape", checked_shape(self.shape))
        check_dtype(self.dtype)
        if self.buffer is not None:
            self._check_buffer()

    def _check_buffer(self) -> None:
        base = getattr(self.buffer, "base", None)
        if not isinstance(base, int):
            raise TypeError(f"buffer must be an allocation with an int base, got {type(self.buffer).__name__}")
        if base != self.data_ptr:
            raise ValueError(f"buffer at {base:#x} does not match data_ptr {self.data_ptr:#x}")

    @property
    def nbytes(self) -> int:
        """Elements times bytes per element."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"DeviceTensor(data_ptr={self.data_ptr:#x}, shape={self.shape}, dtype={self.dtype})"

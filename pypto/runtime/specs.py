"""Descriptions of inputs and outputs for test harnesses (spec runtime 9.3)."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    import torch

_CTYPES: Final[dict[str, Any]] = {
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "uint64": ctypes.c_uint64,
    "uint32": ctypes.c_uint32,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}
# Factories that are called with the shape; any other callable is called without arguments.
_SHAPED_FACTORIES: Final = ("randn", "rand", "zeros", "ones")


@dataclass
class TensorSpec:
    """A tensor argument. ``init_value``: ``None`` (zeros), a number, a tensor, ``torch.randn/rand/zeros/ones`` or a
    function without arguments; an output with an ``init_value`` is read as well as written."""

    __test__: ClassVar[bool] = False

    name: str
    shape: list[int] | tuple[int, ...]
    dtype: torch.dtype
    init_value: Any = None
    is_output: bool = False

    def create_tensor(self) -> torch.Tensor:
        """The tensor at the start of a run; ``TypeError`` for an ``init_value`` of another kind."""
        import torch

        shape, value = tuple(self.shape), self.init_value
        if value is None:
            return torch.zeros(shape, dtype=self.dtype)
        if isinstance(value, (int, float)):
            return torch.full(shape, value, dtype=self.dtype)
        if isinstance(value, torch.Tensor):
            return value.to(self.dtype)
        if any(value is getattr(torch, name) for name in _SHAPED_FACTORIES):
            return value(shape, dtype=self.dtype)
        if callable(value):
            return torch.as_tensor(value()).to(self.dtype)
        raise TypeError(
            f"Unsupported init_value type {type(value).__name__} of tensor {self.name!r}: "
            "give None, a number, a tensor or a callable"
        )


@dataclass
class ScalarSpec:
    """A scalar argument; ``ctype`` is one of ``int64 int32 uint64 uint32 float double``."""

    __test__: ClassVar[bool] = False

    name: str
    value: Any
    ctype: str = "int64"

    def __post_init__(self) -> None:
        if self.ctype not in _CTYPES:
            raise ValueError(f"Unsupported ctype {self.ctype!r} of scalar {self.name!r}; known: {', '.join(_CTYPES)}")

    def to_ctypes(self) -> Any:
        """The value as a ctypes instance."""
        return _CTYPES[self.ctype](self.value)

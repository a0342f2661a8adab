"""Checks of a call's arguments against a program's signature, before anything runs (spec runtime 4.2, 4.3).

Count first, then the kind of every slot, then shape, dtype and layout. Nothing is allocated, copied or executed until
all of it holds, so a refused call leaves every tensor untouched.
"""

from __future__ import annotations

import ctypes
import math
import operator
import reprlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from pypto.ir import dtype as ir_dtype
from pypto.ir.dtype import DataType
from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.torch_dtypes import accepted_torch_dtypes, elements_per_carrier, to_torch_dtype

if TYPE_CHECKING:
    import torch

Direction = Literal["In", "Out", "InOut"]
Number: TypeAlias = int | float
Argument: TypeAlias = "torch.Tensor | DeviceTensor | Number"

_SCALAR_CTYPES: Final[dict[DataType, type[ctypes._SimpleCData[Any]]]] = {
    ir_dtype.BOOL: ctypes.c_bool,
    ir_dtype.INT8: ctypes.c_int8,
    ir_dtype.INT16: ctypes.c_int16,
    ir_dtype.INT32: ctypes.c_int32,
    ir_dtype.INT64: ctypes.c_int64,
    ir_dtype.INDEX: ctypes.c_int64,
    ir_dtype.UINT8: ctypes.c_uint8,
    ir_dtype.UINT16: ctypes.c_uint16,
    ir_dtype.UINT32: ctypes.c_uint32,
    ir_dtype.UINT64: ctypes.c_uint64,
    ir_dtype.FP16: ctypes.c_float,
    ir_dtype.BF16: ctypes.c_float,
    ir_dtype.FP32: ctypes.c_float,
}


class Parameter(Protocol):
    """What a signature says of one parameter; ``shape`` has -1 where the extent is known at the call only."""

    @property
    def name(self) -> str: ...
    @property
    def direction(self) -> Any: ...
    @property
    def kind(self) -> str: ...
    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> DataType: ...


class Signed(Protocol):
    """A program with a signature."""

    @property
    def param_infos(self) -> Sequence[Parameter]: ...
    @property
    def has_return(self) -> bool: ...
    @property
    def output_indices(self) -> Sequence[int]: ...


def direction_of(parameter: Parameter) -> Direction:
    """``In``, ``Out`` or ``InOut``, given as text or as an enumeration member."""
    return getattr(parameter.direction, "name", parameter.direction)


@dataclass(frozen=True)
class Slot:
    """One parameter, with everything its check needs worked out once."""

    position: int
    name: str
    is_tensor: bool
    direction: Direction
    shape: tuple[int, ...] | None
    dtype: DataType
    torch_dtypes: tuple[torch.dtype, ...]
    is_changed: bool = False  # written by a task although declared In: the launch works on a copy

    @property
    def place(self) -> str:
        return f"argument {self.position} '{self.name}'"

    def checked(self, value: Any) -> Argument:
        """``value`` as this slot takes it; ``TypeError`` or ``ValueError`` says what was expected and given."""
        if not self.is_tensor:
            return self._scalar(value)
        if not isinstance(value, DeviceTensor):
            self._check_host_tensor(value)
        self._check_type(value)
        return value

    def check_kind(self, value: Any) -> None:
        """A tensor where a tensor belongs, a number where a scalar belongs."""
        if self.is_tensor and not isinstance(value, DeviceTensor) and not _is_torch_tensor(value):
            raise TypeError(
                f"{self.place} is a tensor: expects a torch.Tensor or a DeviceTensor, got {_describe(value)}"
            )
        if not self.is_tensor and (isinstance(value, DeviceTensor) or _is_torch_tensor(value)):
            raise TypeError(f"{self.place} is a scalar of {self.dtype}: expects a number, got {_describe(value)}")

    def _check_host_tensor(self, value: torch.Tensor) -> None:
        if value.device.type != "cpu":
            raise ValueError(f"{self.place} expects a tensor on the CPU, got one on {value.device}; use .cpu()")
        if not value.is_contiguous():
            raise ValueError(
                f"{self.place} is not contiguous: shape {tuple(value.shape)}, strides {value.stride()}; "
                "use .contiguous()"
            )
        if value.is_neg() or value.is_conj():
            raise ValueError(
                f"{self.place} is a lazily negated or conjugated view, whose memory holds other values; "
                "use .resolve_neg() or .resolve_conj()"
            )

    def _check_type(self, value: torch.Tensor | DeviceTensor) -> None:
        given = tuple(value.shape)
        if self.shape is not None:
            if len(given) != len(self.shape):
                raise TypeError(
                    f"{self.place} expects rank {len(self.shape)} {_shape_text(self.shape)}, got shape {given}"
                )
            if any(want not in (-1, have) for want, have in zip(self.shape, given)):
                raise TypeError(f"{self.place} expects shape {_shape_text(self.shape)}, got {given}")
        if value.dtype not in self.torch_dtypes:
            raise TypeError(f"{self.place} expects dtype {self.torch_dtypes[0]} ({self.dtype}), got {value.dtype}")

    def _scalar(self, value: Any) -> Number:
        ctype = _SCALAR_CTYPES.get(self.dtype)
        if ctype is None:
            raise TypeError(f"{self.place}: a scalar of {self.dtype} cannot be passed from the host")
        if isinstance(value, ctypes._SimpleCData):
            return self._from_ctypes(value, ctype)
        if type(value).__module__ == "numpy" and hasattr(value, "item"):
            value = value.item()
        try:
            number = float(value) if ctype is ctypes.c_float and not isinstance(value, str) else operator.index(value)
        except TypeError:
            kind = "a number" if ctype is ctypes.c_float else "an integer"
            given = _describe(value)
            raise TypeError(f"{self.place} is a scalar of {self.dtype}: expects {kind}, got {given}") from None
        return ctype(number).value

    def _from_ctypes(self, value: ctypes._SimpleCData[Any], ctype: type[ctypes._SimpleCData[Any]]) -> Number:
        if not isinstance(value, ctype):
            raise TypeError(
                f"{self.place} is a scalar of {self.dtype}: expects {ctype.__name__}, got {type(value).__name__}"
            )
        return value.value


class Signature:
    """The parameters of one program, ready for checking calls."""

    def __init__(self, program: Signed, owner: str = "", written: Collection[str] = ()):
        self.slots = tuple(make_slot(i, p, written) for i, p in enumerate(program.param_infos))
        self.outputs = tuple(program.output_indices)
        self.has_return = program.has_return
        written_slots = tuple(s.position for s in self.slots if s.is_tensor and s.direction != "In")
        self._written = written_slots if len(written_slots) > 1 else ()
        extents: dict[str, list[tuple[int, int]]] = getattr(program, "dynamic_extents", {})
        self._shared_extents = {name: places for name, places in extents.items() if len(places) > 1}
        self._prefix = f"{owner}: " if owner else ""

    def bind(self, arguments: Sequence[Any]) -> BoundCall:
        """Check ``arguments`` and complete them: a return-style call gets its outputs allocated, filled with zeros."""
        returns = self._is_return_style(len(arguments))
        given = self._with_holes(arguments) if returns else list(arguments)
        slots = self.slots
        for slot, value in zip(slots, given):
            if value is not _TO_ALLOCATE:
                slot.check_kind(value)
        checked: list[Any] = [v if v is _TO_ALLOCATE else slot.checked(v) for slot, v in zip(slots, given)]
        for i in self.outputs if returns else ():
            checked[i] = _allocate_output(slots[i])
        for name, places in self._shared_extents.items():
            self._check_extent(name, places, checked)
        if self._written:
            self._check_apart(checked)
        return BoundCall(tuple(checked), self.outputs if returns else None)

    def _check_apart(self, values: Sequence[Any]) -> None:
        """Two outputs in one piece of memory: which of them is left would depend on timing."""
        starts: dict[int, int] = {}
        for position in self._written:
            value = values[position]
            start = value.data_ptr if isinstance(value, DeviceTensor) else value.data_ptr()
            other = starts.setdefault(start, position)
            if other != position and start and math.prod(value.shape):
                places = f"{self.slots[other].place} and {self.slots[position].place}"
                raise ValueError(
                    f"{self._prefix}{places} are both written and get the same memory; "
                    "pass a tensor of its own for each"
                )

    def _check_extent(self, name: str, places: Sequence[tuple[int, int]], values: Sequence[Any]) -> None:
        """One name is one extent, wherever it occurs (spec language 2.7)."""
        (first, first_axis), *others = places
        expected = values[first].shape[first_axis]
        for position, axis in others:
            if values[position].shape[axis] != expected:
                raise TypeError(
                    f"{self._prefix}{name} is {expected} in {self.slots[first].place} (axis {first_axis}) "
                    f"but {values[position].shape[axis]} in {self.slots[position].place} (axis {axis})"
                )

    def _is_return_style(self, count: int) -> bool:
        total, outputs = len(self.slots), len(self.outputs)
        if count == total:
            return False
        if self.has_return and count == total - outputs:
            return True
        either = f" or {total - outputs}" if self.has_return and outputs else ""
        names = ", ".join(f"{s.name} ({s.direction})" for s in self.slots)
        hint = ""
        if not self.has_return and outputs and count == total - outputs:
            hint = "; outputs can be left out when the source declares its results with ->"
        raise TypeError(f"{self._prefix}expects {total}{either} arguments, got {count}; parameters: {names}{hint}")

    def _with_holes(self, arguments: Sequence[Any]) -> list[Any]:
        given = iter(arguments)
        return [_TO_ALLOCATE if s.position in self.outputs else next(given) for s in self.slots]


@dataclass(frozen=True)
class BoundCall:
    """Checked arguments in parameter order; ``returned`` are the positions a return-style call gives back."""

    arguments: tuple[Argument, ...]
    returned: tuple[int, ...] | None

    def result(self) -> Any:
        """What the call returns: nothing in place, one tensor, or a tuple in parameter order."""
        if self.returned is None:
            return None
        tensors = tuple(self.arguments[i] for i in self.returned)
        return tensors[0] if len(tensors) == 1 else tensors


def make_slot(position: int, parameter: Parameter, written: Collection[str] = ()) -> Slot:
    """The slot of ``parameter``; ``written`` are the names of those that tasks change."""
    is_tensor = parameter.kind == "tensor"
    return Slot(
        position=position,
        name=parameter.name,
        is_tensor=is_tensor,
        direction=direction_of(parameter),
        shape=None if parameter.shape is None else tuple(parameter.shape),
        dtype=parameter.dtype,
        torch_dtypes=accepted_torch_dtypes(parameter.dtype) if is_tensor else (),
        is_changed=is_tensor and direction_of(parameter) == "In" and parameter.name in written,
    )


_TO_ALLOCATE: Final = object()


def _allocate_output(slot: Slot) -> torch.Tensor:
    import torch

    if slot.shape is None or -1 in slot.shape:
        raise ValueError(
            f"{slot.place} has dynamic dimensions {_shape_text(slot.shape)}: its size is not known, pass all tensors"
        )
    dtype = to_torch_dtype(slot.dtype)
    if dtype is None:
        raise ValueError(f"{slot.place} has dtype {slot.dtype}, which torch does not have: pass all tensors")
    return torch.zeros(slot.shape, dtype=dtype)


def logical_shape(shape: tuple[int, ...], dtype: DataType) -> tuple[int, ...]:
    """Extents in elements of a host tensor of carrier shape ``shape`` (last axis doubled for 4-bit types)."""
    packed = elements_per_carrier(dtype)
    return shape if packed == 1 or not shape else (*shape[:-1], shape[-1] * packed)


def _is_torch_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _shape_text(shape: tuple[int, ...] | None) -> str:
    if shape is None:
        return "(unknown)"
    entries = ", ".join("?" if e == -1 else str(e) for e in shape)
    return f"({entries},)" if len(shape) == 1 else f"({entries})"


def _describe(value: Any) -> str:
    if _is_torch_tensor(value) or isinstance(value, DeviceTensor):
        return f"a {type(value).__name__} of shape {tuple(value.shape)} and dtype {value.dtype}"
    return f"{type(value).__name__} {reprlib.repr(value)}"

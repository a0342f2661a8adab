"""From checked arguments to what the machine works on, and back (the data half of a launch).

A host tensor that is only read is used where it lies. One that is written goes through a staging buffer and is copied
back after the launch succeeded, so that a failed launch leaves the caller's tensors as they were. Reading and writing
one piece of host memory through two arguments means two device buffers, as on hardware.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pypto.runtime.arguments import Argument, Slot, logical_shape
from pypto.runtime.device_memory import Allocation, allocate
from pypto.runtime.device_tensor import DeviceTensor

if TYPE_CHECKING:
    import torch

    from pypto.sim.program import TensorArgument


@dataclass(frozen=True)
class StagedTensor:
    """A device buffer that stands for a host tensor during one launch."""

    tensor: torch.Tensor
    buffer: Allocation
    is_written: bool


@dataclass
class Operands:
    """The arguments of one launch as the machine takes them, with the transfers they cause.

    ``uploads`` and ``downloads`` are bytes per copied tensor; ``allocations`` counts the device buffers of the launch.
    """

    arguments: list[Any] = field(default_factory=list)
    uploads: list[int] = field(default_factory=list)
    downloads: list[int] = field(default_factory=list)
    allocations: int = 0
    staged: list[StagedTensor] = field(default_factory=list)

    def copy_back(self) -> None:
        """Give the results to the caller's tensors."""
        for each in self.staged:
            if each.is_written:
                ctypes.memmove(each.tensor.data_ptr(), each.buffer.base, each.buffer.nbytes)


def stage(slots: Sequence[Slot], arguments: Sequence[Argument]) -> Operands:
    """Prepare ``arguments``, which were checked against ``slots`` before."""
    operands = Operands()
    written = [_extent(v) for s, v in zip(slots, arguments) if s.is_tensor and s.direction != "In"]
    for slot, value in zip(slots, arguments):
        if not slot.is_tensor:
            operands.arguments.append(value)
        elif isinstance(value, DeviceTensor):
            operands.arguments.append(_tensor_argument(slot, value.data_ptr, value, resident=True))
        else:
            address = _stage_host_tensor(operands, slot, value, written)
            operands.arguments.append(_tensor_argument(slot, address, value, resident=False))
    return operands


def pack(slots: Sequence[Slot], arguments: Sequence[Argument]) -> list[Any]:
    """``arguments`` as the machine takes them, every tensor where it lies."""
    packed: list[Any] = []
    for slot, value in zip(slots, arguments):
        if slot.is_tensor:
            packed.append(_tensor_argument(slot, _extent(value)[0], value, resident=isinstance(value, DeviceTensor)))
        else:
            packed.append(value)
    return packed


def _stage_host_tensor(operands: Operands, slot: Slot, tensor: Any, written: list[tuple[int, int]]) -> int:
    """Note the transfers of ``tensor`` and return the address the launch works on."""
    nbytes: int = tensor.nbytes
    operands.allocations += 1
    if slot.direction != "Out":
        operands.uploads.append(nbytes)
    if slot.direction != "In":
        operands.downloads.append(nbytes)
    start, stop = _extent(tensor)
    overlaps = any(start < high and low < stop for low, high in written)
    if slot.direction == "In" and not (overlaps or slot.is_changed) or nbytes == 0:
        return start
    buffer = allocate(nbytes)
    ctypes.memmove(buffer.base, start, nbytes)
    operands.staged.append(StagedTensor(tensor, buffer, slot.direction != "In"))
    return buffer.base


def _extent(tensor: Any) -> tuple[int, int]:
    """First address and end of a tensor on the host or on the device."""
    if isinstance(tensor, DeviceTensor):
        return tensor.data_ptr, tensor.data_ptr + tensor.nbytes
    address = tensor.data_ptr()
    return address, address + tensor.nbytes


def _tensor_argument(slot: Slot, address: int, tensor: Any, *, resident: bool) -> TensorArgument:
    from pypto.sim.program import TensorArgument

    buffer = tensor.buffer if isinstance(tensor, DeviceTensor) else None
    device = buffer.device + address - buffer.base if isinstance(buffer, Allocation) and buffer.device else 0
    shape = logical_shape(tuple(tensor.shape), slot.dtype)
    return TensorArgument(slot.name, address, shape, slot.dtype, resident, device=device)

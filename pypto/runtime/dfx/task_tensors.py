"""The tensors of a launch as ``deps.json`` names them, and which argument an edge comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

from pypto.runtime.dfx.dtype_names import dtype_name

if TYPE_CHECKING:
    from pypto.sim.task_log import TaskLog, TensorValue

_FNV_BASIS: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_VERSION: Final = 0
_TYPES: Final = ("", "INPUT", "OUTPUT", "OUTPUT_EXISTING", "INOUT")  # by direction code; a scalar has none


def tensor_number(address: int, version: int) -> int:
    """FNV-1a-64 over the address (8 bytes) and the version (4 bytes), little-endian (spec profiling 5.7)."""
    digest = _FNV_BASIS
    for byte in address.to_bytes(8, "little") + version.to_bytes(4, "little"):
        digest = (digest ^ byte) * _FNV_PRIME % 2**64
    return digest


def overlap(one: TensorValue, other: TensorValue) -> Literal["none", "some", "covered"]:
    """How ``one`` meets ``other`` of the same allocation; ``covered``: it holds all of ``other``.

    Windows of one grid are compared axis by axis, others by the bytes between their first and last elements.
    """
    (low, high), (other_low, other_high) = one.reach(), other.reach()
    if high <= other_low or other_high <= low:
        return "none"
    if one.strides == other.strides and one.dtype == other.dtype and one.buffer == other.buffer:
        spans = list(zip(_spans(one), _spans(other)))
        if any(a.stop <= b.start or b.stop <= a.start for a, b in spans):
            return "none"
        if all(a.start <= b.start and b.stop <= a.stop for a, b in spans):
            return "covered"
    return "covered" if one.is_contiguous and low <= other_low and other_high <= high else "some"


def _spans(tensor: TensorValue) -> Iterator[range]:
    """Indices along every axis of the grid that the strides describe."""
    rest = tensor.start
    for extent, stride in zip(tensor.shape, tensor.strides):
        at, rest = divmod(rest, stride) if stride else (0, rest)
        yield range(at, at + extent)


class TaskTensors:
    """Arguments of the tasks of a log; without one no task has any."""

    def __init__(self, log: TaskLog | None):
        self._log = log
        self._of_task = [] if log is None else [log.tensors(task) for task in range(log.tasks)]
        self._known: dict[str, dict[str, Any]] = {}

    def arguments(self, task: int) -> list[dict[str, Any]]:
        """``args`` of a task; a tensor that the runtime allocates for an output has no id yet."""
        return [self._argument(tensor) for tensor in self._tensors(task)]

    def rows(self) -> list[dict[str, Any]]:
        """``tensors``: every buffer once, in order of first use."""
        for tensors in self._of_task:
            for tensor in tensors:
                self.tensor_id(tensor)
        return list(self._known.values())

    def tensor_id(self, tensor: TensorValue) -> str:
        """Id of the buffer a tensor lies in, as a decimal string."""
        allocations = self._allocations
        address = tensor.buffer + int(allocations.deltas[tensor.allocation])
        number = str(tensor_number(address, _VERSION))
        if number not in self._known:
            from pypto.sim.task_log import elements_in

            first, size = allocations.ranges[tensor.allocation]
            self._known[number] = {
                "tensor_id": number,
                "buffer_addr": str(address),
                "version": _VERSION,
                "dtype": dtype_name(tensor.dtype),
                "buffer_numel": str(elements_in(first + size - tensor.buffer, tensor.dtype)),
            }
        return number

    def shared(self, producer: int, consumer: int, *, created: bool) -> tuple[TensorValue, TensorValue] | None:
        """(what the producer wrote, the first argument of the consumer that waits for it)."""
        from pypto.sim.dependencies import OUTPUT

        for read in self._tensors(consumer):
            for written in self._tensors(producer):
                if written.allocation != read.allocation:
                    continue
                if written.direction == OUTPUT if created else written.modified and self._waits(read, written):
                    return written, read
        return None

    @staticmethod
    def _waits(read: TensorValue, written: TensorValue) -> bool:
        from pypto.sim.dependencies import INOUT, INPUT

        return read.tracked and read.direction in (INPUT, INOUT) and overlap(read, written) != "none"

    @property
    def _allocations(self) -> Any:
        if self._log is None:
            raise RuntimeError("the launch has no log")
        return self._log.allocations

    def _tensors(self, task: int) -> list[TensorValue]:
        return self._of_task[task] if self._of_task else []

    def _argument(self, tensor: TensorValue) -> dict[str, Any]:
        argument: dict[str, Any] = {"idx": tensor.index, "type": _TYPES[tensor.direction]}
        if argument["type"] == "OUTPUT":
            return argument
        return {
            **argument,
            "tensor_id": self.tensor_id(tensor),
            "dtype": dtype_name(tensor.dtype),
            "shape": list(tensor.shape),
            "start_offset": str(tensor.start),
            "strides": list(tensor.strides),
        }

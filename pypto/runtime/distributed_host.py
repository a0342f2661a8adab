"""What a host orchestration works with: tensors, windows, and the dispatches it records (spec distributed 1.5).

The orchestration runs first and records every dispatch with what it depends on; then the run executes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pypto.ir.dtype import DataType
from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.placement import placement_error
from pypto.runtime.stacked_device_tensor import StackedDeviceTensor
from pypto.runtime.torch_dtypes import accepted_torch_dtypes

if TYPE_CHECKING:
    from pypto.runtime.distributed_programs import ChipTask, HostProgram
    from pypto.runtime.distributed_windows import Domain, Windows

CHIP: Final = "chip"
SUB: Final = "sub"


@dataclass(frozen=True)
class HostTensor:
    """A piece of memory as the orchestration sees it; ``worker``: the rank it is resident on, ``None`` on the host.

    ``buffer`` identifies the allocation, on which dependencies are derived.
    """

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DataType
    buffer: Any
    worker: int | None = None

    def part(self, offsets: Sequence[int], shape: Sequence[int], dropped: Sequence[int]) -> HostTensor:
        """The window at ``offsets``; the axes in ``dropped`` go."""
        if self.worker is not None:
            raise TypeError(
                f"'{self.name}' is a DeviceTensor on worker {self.worker} and is not subscriptable; "
                f"pass a StackedDeviceTensor"
            )
        self._check(offsets, shape)
        address = self.address + sum(o * s for o, s in zip(offsets, self.strides)) * self.dtype.get_byte()
        kept = [a for a in range(len(shape)) if a not in dropped]
        return HostTensor(
            self.name,
            address,
            tuple(shape[a] for a in kept),
            tuple(self.strides[a] for a in kept),
            self.dtype,
            self.buffer,
        )

    def _check(self, offsets: Sequence[int], shape: Sequence[int]) -> None:
        for axis, (offset, size, extent) in enumerate(zip(offsets, shape, self.shape)):
            if offset < 0 or offset + size > extent:
                raise IndexError(
                    f"'{self.name}'[{offset}:{offset + size}] is outside its extent {extent} (axis {axis})"
                )

    def reshape(self, shape: Sequence[int]) -> HostTensor:
        """The same elements under another shape."""
        self.need_contiguous("a reshape")
        if math.prod(shape) != math.prod(self.shape):
            raise ValueError(f"'{self.name}' of shape {self.shape} has not the elements of {tuple(shape)}")
        return HostTensor(self.name, self.address, tuple(shape), row_major(shape), self.dtype, self.buffer, self.worker)

    def need_contiguous(self, what: str) -> None:
        """``ValueError`` unless the elements follow each other."""
        expected = row_major(self.shape)
        if any(e != s for e, s, n in zip(expected, self.strides, self.shape) if n != 1):
            raise ValueError(
                f"{what} takes a contiguous tensor; this part of '{self.name}' "
                f"has shape {self.shape} and strides {self.strides}"
            )


@dataclass(frozen=True)
class HostStack:
    """A stacked tensor: only its rows can be dispatched."""

    name: str
    stack: StackedDeviceTensor
    dtype: DataType

    @property
    def shape(self) -> tuple[int, ...]:
        return self.stack.full_shape

    def part(self, offsets: Sequence[int], shape: Sequence[int], dropped: Sequence[int]) -> HostTensor:
        """Row ``offsets[0]``, whole."""
        rest = tuple(shape[1:]) != self.shape[1:] or any(offsets[1:])
        if shape[0] != 1 or rest:
            raise ValueError(
                f"only whole shards of '{self.name}' can be taken, "
                f"got offsets {tuple(offsets)} and shape {tuple(shape)}"
            )
        index = int(offsets[0])
        shard = self.stack[index]
        extents = tuple(e for axis, e in enumerate(shape) if axis not in dropped)
        return HostTensor(
            f"{self.name}[{index}]",
            shard.data_ptr,
            extents,
            row_major(extents),
            self.dtype,
            ("device", shard.data_ptr),
            self.stack.worker_ids[index],
        )


@dataclass(frozen=True)
class HostWindow:
    """A typed view of a window buffer."""

    buffer: str
    domain: Domain
    shape: tuple[int, ...]
    dtype: DataType


@dataclass
class Task:
    """One recorded dispatch or sub-worker call. ``after``: numbers of the tasks it waits for."""

    number: int
    kind: str
    target: int
    name: str
    arguments: list[Any]
    after: set[int]
    place: str = ""
    program: ChipTask | None = None


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of a contiguous tensor."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


@dataclass
class HostRun:
    """One run of a host orchestration: ``host`` in the generated driver."""

    program: HostProgram
    windows: Windows
    world_size: int
    allocate: Any
    tasks: list[Task] = field(default_factory=list)
    domains: dict[str, Domain] = field(default_factory=dict)
    round_robin: bool = True
    _writers: dict[Any, set[int]] = field(default_factory=dict)
    _placed: int = 0
    _created: int = 0

    # --- names the driver uses ----------------------------------------------------------------------------------------

    def domain(self, name: str, members: Sequence[int] | None, buffers: Mapping[str, int]) -> None:
        """Open a communication domain: its windows are zero on every member."""
        ranks = tuple(range(self.world_size)) if members is None else tuple(members)
        outside = [r for r in ranks if r >= self.world_size]
        if outside:
            raise ValueError(f"{name} needs rank {outside[0]}; device_ids has {self.world_size} devices")
        self.domains[name] = self.windows.open(self.program.index, name, ranks, buffers)

    def members(self, name: str) -> tuple[int, ...]:
        """World ranks of a domain."""
        return self.domains[name].ranks

    def window(self, buffer: str, shape: Sequence[int], dtype: str) -> HostWindow:
        """A view of a window buffer."""
        kind = DataType.from_string(dtype)
        domain = next(d for d in self.domains.values() if buffer in d.offsets)
        needed, have = math.prod(shape) * kind.get_byte(), domain.sizes[buffer]
        if needed > have:
            raise ValueError(
                f"a window of shape {tuple(shape)} needs {needed} bytes per rank; buffer '{buffer}' has {have}"
            )
        return HostWindow(buffer, domain, tuple(shape), kind)

    def context(self, window: HostWindow) -> HostWindow:
        """The communication context of a window, to pass on; every rank gets its own."""
        return window

    def create(self, shape: Sequence[int], dtype: str) -> HostTensor:
        """A zero-filled tensor of the run."""
        kind = DataType.from_string(dtype)
        nbytes = math.prod(shape) * kind.get_byte()
        self._created += 1
        address = self.allocate(self.program.index, self._created, nbytes)
        return HostTensor(f"tensor{self._created}", address, tuple(shape), row_major(shape), kind, ("host", address))

    @staticmethod
    def divide(left: int, right: int) -> int:
        """Integer division towards zero."""
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient

    def dispatch(self, name: str, arguments: list[Any], device: Any, place: str) -> list[Any]:
        """Record a chip program on a rank; returns its arguments, which its results are."""
        task = self.program.chip_task(name)
        rank = self._rank(device, name, place)
        checked = [self._argument(task, slot, value, rank, place) for slot, value in zip(task.slots, arguments)]
        after: set[int] = set()
        number = len(self.tasks)
        for slot, value in zip(task.slots, arguments):
            if isinstance(value, HostTensor):
                self._order(number, value.buffer, slot.direction, after)
        for domain in dict.fromkeys(v.domain.name for v in arguments if isinstance(v, HostWindow)):
            self._order(number, ("token", domain, rank), "InOut", after)
        self.tasks.append(Task(number, CHIP, rank, task.name, checked, after, place, task))
        return arguments

    def sub_worker(self, name: str, arguments: list[Any]) -> list[Any]:
        """Record a call of a Python sub-worker."""
        directions = self.program.sub_directions(name)
        after: set[int] = set()
        number = len(self.tasks)
        for direction, value in zip(directions, arguments):
            if isinstance(value, HostTensor):
                value.need_contiguous(f"sub-worker {name}")
                if value.worker is not None:
                    raise TypeError(
                        f"sub-worker {name} cannot read '{value.name}', which is resident on worker {value.worker}"
                    )
                self._order(number, value.buffer, direction, after)
        self.tasks.append(Task(number, SUB, -1, name, list(arguments), after))
        return arguments

    # --- checks -------------------------------------------------------------------------------------------------------

    def _rank(self, device: Any, name: str, place: str) -> int:
        if device is None:
            self._placed += 1
            return (self._placed - 1) % self.world_size if self.round_robin else 0
        if not 0 <= device < self.world_size:
            raise ValueError(
                f"{name} is dispatched to device={device}; ranks are 0 to {self.world_size - 1}\nat {place}"
            )
        return int(device)

    def _argument(self, task: ChipTask, slot: Any, value: Any, rank: int, place: str) -> Any:
        what = f"{task.name}: '{slot.name}'"
        if isinstance(value, HostStack):
            raise TypeError(f"{what} is given the whole stack '{value.name}'; index it by rank\nat {place}")
        if not isinstance(value, (HostTensor, HostWindow)):
            return value
        if isinstance(value, HostWindow):
            if rank not in value.domain.ranks:
                raise placement_error(
                    f"{what} is a window of {value.domain.name}, whose ranks are {list(value.domain.ranks)}; "
                    f"it goes to rank {rank}",
                    slot.name,
                    f"dispatch to a rank of {value.domain.name}, or give rank {rank} a window of its own domain",
                    task=task.name,
                    place=place,
                )
            return value
        if value.worker is not None and value.worker != rank:
            raise placement_error(
                f"{what} is '{value.name}', resident on worker {value.worker}, but the dispatch runs on rank {rank}",
                slot.name,
                f"place the shard with worker_ids= or dispatch with device={value.worker}",
                task=task.name,
                place=place,
            )
        value.need_contiguous(what)
        if slot.shape is not None and (
            len(slot.shape) != len(value.shape) or any(w not in (-1, h) for w, h in zip(slot.shape, value.shape))
        ):
            raise TypeError(f"{what} expects shape {slot.shape}, got {value.shape}\nat {place}")
        return value

    def _order(self, number: int, buffer: Any, direction: str, after: set[int]) -> None:
        """Edges of one argument; writers that declare ``Out`` do not wait for each other (spec distributed 1.8).

        Such writers fill parts of one buffer side by side, so a reader waits for all of them and not for the last one
        alone (spec distributed, scenario A2).
        """
        writers = self._writers.setdefault(buffer, set())
        if direction in ("In", "InOut"):
            after |= writers - {number}
        if direction == "InOut":
            writers.clear()
        if direction != "In":
            writers.add(number)


def host_argument(name: str, value: Any, dtype: DataType, worker_of: Any) -> Any:
    """A caller's argument as the orchestration sees it."""
    if isinstance(value, StackedDeviceTensor):
        return HostStack(name, value, dtype)
    if isinstance(value, DeviceTensor):
        shape = tuple(value.shape)
        return HostTensor(
            name, value.data_ptr, shape, row_major(shape), dtype, ("device", value.data_ptr), worker_of(value)
        )
    if hasattr(value, "data_ptr"):
        shape = tuple(value.shape)
        storage = value.untyped_storage().data_ptr()
        return HostTensor(name, value.data_ptr(), shape, row_major(shape), dtype, ("host", storage))
    return value


def fits(dtype: DataType, value: Any) -> bool:
    """Whether a tensor's torch dtype is one that ``dtype`` takes."""
    return value.dtype in accepted_torch_dtypes(dtype)


__all__ = ["CHIP", "SUB", "HostRun", "HostStack", "HostTensor", "HostWindow", "Task", "fits", "host_argument"]

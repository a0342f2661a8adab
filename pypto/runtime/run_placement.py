"""What a run on several chips does with the memory of its caller: buffers of runs in flight, ranks left out.

Spec distributed 3.3 (mutable buffers of concurrent runs must be distinct), 5.2 D12 and D13.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.distributed_host import CHIP, SUB, HostStack, HostTensor
from pypto.sim.checks.findings import Finding, Location

if TYPE_CHECKING:
    from pypto.runtime.arguments import Slot
    from pypto.runtime.distributed_host import Task
    from pypto.runtime.distributed_programs import HostProgram

Extent = tuple[int, int]


def shared_in_flight(
    slots: Sequence[Slot],
    bound: Sequence[Any],
    others: Sequence[tuple[Sequence[Slot], Sequence[Any]]],
    caller: Location,
) -> Iterator[Finding]:
    """Memory that this run or one in flight writes, and that both use; ``others`` are (slots, arguments) in flight."""
    for other_slots, other_bound in others:
        for slot, value in _tensors(slots, bound):
            for other, held in _tensors(other_slots, other_bound):
                if slot.direction == other.direction == "In" or not _overlap(value, held):
                    continue
                acts = f"'{slot.name}' ({slot.direction}) of this run is '{other.name}' ({other.direction})"
                message = f"{acts} of a run that is still in flight: the two runs are not ordered on this memory"
                repair = f"wait for the earlier run first (handle.result()), or give this run another '{slot.name}'"
                yield Finding("placement", message, slot.name, (), (caller,), None, (), repair)


def _tensors(slots: Sequence[Slot], bound: Sequence[Any]) -> Iterator[tuple[Slot, Any]]:
    return ((slot, value) for slot, value in zip(slots, bound) if isinstance(value, (HostTensor, HostStack)))


def _extents(value: HostTensor | HostStack) -> list[tuple[int | None, int, int]]:
    """(worker or ``None`` for the host, first byte, end) of every piece of memory."""
    if isinstance(value, HostStack):
        shards: Sequence[DeviceTensor] = value.stack.shards
        return [(w, s.data_ptr, s.data_ptr + s.nbytes) for w, s in zip(value.stack.worker_ids, shards)]
    return [(value.worker, value.address, value.address + _span(value))]


def _span(tensor: HostTensor) -> int:
    if 0 in tensor.shape:
        return 0
    return (sum((e - 1) * s for e, s in zip(tensor.shape, tensor.strides)) + 1) * tensor.dtype.get_byte()


def _overlap(a: HostTensor | HostStack, b: HostTensor | HostStack) -> bool:
    return any(
        worker == other and low < end and start < high
        for worker, low, high in _extents(a)
        for other, start, end in _extents(b)
    )


def undispatched(
    program: HostProgram, bound: Sequence[Any], tasks: Sequence[Task], world_size: int
) -> Iterator[Finding]:
    """Outputs of the host of which no dispatch writes a part, while ranks have nothing to do."""
    busy = {task.target for task in tasks if task.kind == CHIP}
    idle = sorted(set(range(world_size)) - busy)
    if not busy or not idle:
        return
    for slot, value in zip(program.slots, bound):
        if slot.direction != "Out" or not isinstance(value, HostTensor) or value.worker is not None:
            continue
        if _taken_by_sub_worker(value, tasks):
            continue
        missing = np.flatnonzero(~_given_out(value, tasks))
        if len(missing):
            yield _left_out(slot.name, value, missing, idle, world_size, tasks)


def _taken_by_sub_worker(tensor: HostTensor, tasks: Sequence[Task]) -> bool:
    return any(
        isinstance(argument, HostTensor) and argument.buffer == tensor.buffer
        for task in tasks
        if task.kind == SUB
        for argument in task.arguments
    )


def _given_out(tensor: HostTensor, tasks: Sequence[Task]) -> Any:
    """Which bytes of a contiguous tensor some dispatch takes to write."""
    given = np.zeros(max(_span(tensor), 1), bool)
    for task in tasks:
        slots = task.program.slots if task.program is not None else ()
        for slot, argument in zip(slots, task.arguments):
            if slot.direction == "In" or not isinstance(argument, HostTensor) or argument.buffer != tensor.buffer:
                continue
            start = max(argument.address - tensor.address, 0)
            given[start : max(argument.address - tensor.address + _span(argument), 0)] = True
    return given


def _left_out(
    name: str, tensor: HostTensor, missing: Any, idle: Sequence[int], world_size: int, tasks: Sequence[Task]
) -> Finding:
    low, high = int(missing[0]), int(missing[-1]) + 1
    row = _span(tensor) // max(tensor.shape[0], 1)
    ranges = ((low // row, -(-high // row)), *((0, extent) for extent in tensor.shape[1:]))
    ranks = ", ".join(map(str, idle))
    message = (
        f"undispatched ranks: {ranks} of {world_size} get no dispatch, and [{ranges[0][0]}..{ranges[0][1]}] of the "
        f"output '{name}' {list(tensor.shape)} is given to none"
    )
    places = tuple(dict.fromkeys(_location(task) for task in tasks if task.kind == CHIP and task.place))[:4]
    names = tuple(dict.fromkeys(task.name for task in tasks if task.kind == CHIP))
    repair = "dispatch to every rank: for r in pl.range(pld.world_size()), with device=r"
    return Finding("placement", message, name, names, places, (low, high), ranges, repair)


def _location(task: Task) -> Location:
    file, _, line = task.place.rpartition(":")
    return Location(file, int(line) if line.isdigit() else 0, f"dispatch of '{task.name}'")

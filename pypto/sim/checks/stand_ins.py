"""What Python stand-ins of C++ kernels leave behind: nobody sees their stores, so all of their outputs is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from pypto.ir.dtype import DataType
from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.dependencies import INPUT
from pypto.sim.recording import Words

if TYPE_CHECKING:
    from pypto.sim.checks.watch import LaunchWatch
    from pypto.sim.tasks import TaskPlan


def follow_stand_in(watch: LaunchWatch, frame: Words, plan: TaskPlan) -> None:
    """The stand-in of a task has ended: the tensors that it does not only read are defined."""
    for number, address, size in written_runs(frame, plan):
        shadow = watch.shadows[number]
        if shadow is not None:
            shadow.fill(address - shadow.address, address - shadow.address + size, w.DEFINED)


def written_runs(frame: Words, plan: TaskPlan) -> Iterator[tuple[int, int, int]]:
    """(allocation, address, bytes) of all that the stand-in of a task may have written."""
    for direction, offset in plan.tensors.tolist():
        if direction != INPUT:
            descriptor = frame[offset : offset + layout.TENSOR_WORDS]
            for address, size in runs_of(descriptor):
                yield int(descriptor[layout.TENSOR_ALLOCATION]), address, size


def runs_of(descriptor: Words) -> Iterator[tuple[int, int]]:
    """(address, bytes) of the stretches of memory that the tensor of a descriptor covers."""
    rank, address = int(descriptor[layout.TENSOR_RANK]), int(descriptor[layout.TENSOR_ADDRESS])
    extents = descriptor[layout.TENSOR_EXTENTS : layout.TENSOR_EXTENTS + rank].tolist()
    strides = descriptor[layout.TENSOR_STRIDES : layout.TENSOR_STRIDES + rank].tolist()
    bits = DataType.from_code(int(descriptor[layout.TENSOR_DTYPE])).get_bit()
    bits = 8 if bits == 1 else bits  # a truth value takes a byte
    run = 1
    while extents and (extents[-1] == 1 or strides[-1] == run):
        run *= extents.pop()
        strides.pop()
    for index in np.ndindex(*extents):
        first = sum(at * stride for at, stride in zip(index, strides)) * bits
        yield address + first // 8, (first + run * bits + 7) // 8 - first // 8

"""What Python stand-ins of C++ kernels do to memory: nobody sees their loads and stores, so their parameters say it.

All of an input is read and all of an output written, as its old contents are dead. Of a tensor that goes in and out, or
whose direction the launch leaves open (``no_dep``), the part counts whose bytes are others afterwards: a stand-in may
work on a strip of it. When none are, it counts as read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from pypto.ir.dtype import DataType
from pypto.sim import layout
from pypto.sim.checks import words as w
from pypto.sim.checks.boxes import BOX_WORDS, DIMENSIONS
from pypto.sim.checks.order import seat_of
from pypto.sim.dependencies import INOUT, INPUT, NO_DEP
from pypto.sim.memory import memory_view
from pypto.sim.recording import Words

if TYPE_CHECKING:
    from pypto.sim.checks.watch import LaunchWatch
    from pypto.sim.tasks import TaskPlan

_OPEN: Final = (INOUT, NO_DEP)
"""Directions that do not say what is read and what is written."""


class StandInTask:
    """One task whose work a Python function does; made before it begins."""

    def __init__(self, watch: LaunchWatch, frame: Words, plan: TaskPlan) -> None:
        self._watch, self._plan = watch, plan
        self._tensors = tensors_of(frame, plan)
        self._before = {
            number: [memory_view(address, size).copy() for address, size in runs_of(tensor)]
            for number, (direction, tensor) in enumerate(self._tensors)
            if watch.orders and direction in _OPEN
        }

    def end(self) -> None:
        """The function has returned."""
        watch = self._watch
        if watch.asked & w.UNDEFINED:
            for number, address, size in written_runs(self._tensors):
                shadow = watch.shadows[number]
                if shadow is not None:
                    shadow.fill(address - shadow.address, address - shadow.address + size, w.DEFINED)
        if watch.orders:
            records = list(self._accesses())
            if records:
                node = watch.running_node
                program, _ = watch.program(watch.orchestration)
                watch.compare(np.array(records, np.int64), seat_of(node, -2 - node, program))

    def _accesses(self) -> Iterator[Words]:
        for number, (direction, tensor) in enumerate(self._tensors):
            allocation, runs, writes = int(tensor[layout.TENSOR_ALLOCATION]), list(runs_of(tensor)), direction != INPUT
            if not self._watch.allocations[allocation, w.GM_TRACKED]:
                continue
            if direction in _OPEN:
                changed = list(_changed(runs, self._before[number], _element_bytes(tensor)))
                runs, writes = changed or runs, bool(changed)
            kinds = (0, w.WRITES) if writes and direction == INOUT else (w.WRITES if writes else 0,)
            for box in boxes(runs):
                box[0] -= int(self._watch.allocations[allocation, w.GM_BASE])
                for kind in kinds:
                    yield self._record(allocation, kind, box)

    def _record(self, allocation: int, kind: int, box: Words) -> Words:
        record = np.zeros(w.ACCESS_WORDS, np.int64)
        record[[w.ACCESS_KIND, w.ACCESS_ALLOCATION, w.ACCESS_INSTRUCTION]] = kind, allocation, self._plan.index
        record[[w.ACCESS_SNAPSHOT, w.ACCESS_ROOT]] = -1
        record[w.ACCESS_BOX :] = box
        return record


def tensors_of(frame: Words, plan: TaskPlan) -> list[tuple[int, Words]]:
    """(direction, descriptor) of the tensors of a task."""
    return [
        (direction, frame[offset : offset + layout.TENSOR_WORDS].copy()) for direction, offset in plan.tensors.tolist()
    ]


def written_runs(tensors: list[tuple[int, Words]]) -> Iterator[tuple[int, int, int]]:
    """(allocation, address, bytes) of all that a stand-in may have written."""
    for direction, descriptor in tensors:
        if direction != INPUT:
            for address, size in runs_of(descriptor):
                yield int(descriptor[layout.TENSOR_ALLOCATION]), address, size


def _changed(runs: list[tuple[int, int]], before: list[NDArray[np.uint8]], element: int) -> Iterator[tuple[int, int]]:
    """From the first to the last element of every run that is another one now."""
    for (address, size), old in zip(runs, before):
        differ = np.flatnonzero(memory_view(address, size) != old)
        if len(differ):
            first, last = int(differ[0]) // element * element, (int(differ[-1]) // element + 1) * element
            yield address + first, min(last, size) - first


def boxes(runs: list[tuple[int, int]]) -> Iterator[Words]:
    """``runs`` (address, bytes) as few boxes (boxes.py): equal ones at equal distances are one."""
    items: list[_Repeated] = [(address, size, ()) for address, size in runs]
    for _ in range(DIMENSIONS):
        items = list(_joined(items))
    for address, size, pairs in items:
        box = np.zeros(BOX_WORDS, np.int64)
        filled = ((1, 0),) * (DIMENSIONS - len(pairs)) + pairs
        box[:2] = address, size
        box[2:] = [word for pair in filled for word in pair]
        yield box


_Repeated = tuple[int, int, tuple[tuple[int, int], ...]]
"""Address, bytes of a run, and (count, pitch) from the largest pitch to the smallest."""


def _joined(items: list[_Repeated]) -> Iterator[_Repeated]:
    """Neighbours of one shape at one distance, as one."""
    at = 0
    while at < len(items):
        address, size, pairs = items[at]
        end, pitch = at + 1, 0
        while end < len(items) and items[end][1:] == (size, pairs):
            distance = items[end][0] - items[end - 1][0]
            if distance <= 0 or pitch and distance != pitch:
                break
            end, pitch = end + 1, distance
        yield (address, size, ((end - at, pitch), *pairs)) if end - at > 1 else items[at]
        at = end


def _element_bytes(tensor: Words) -> int:
    return max(DataType.from_code(int(tensor[layout.TENSOR_DTYPE])).get_bit() // 8, 1)


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

"""One launch: the orchestration runs on the machine, and every task at the moment it is submitted.

Tasks run in program order, so everything a task could wait for is done before it starts; what the waits would have
been on the chip is recorded for the timing engine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pypto.ir.dtype import DataType
from pypto.sim import layout
from pypto.sim import opcodes as op
from pypto.sim.crew import Channels, run_crew
from pypto.sim.dependencies import MANUAL_TENSOR, TensorMap
from pypto.sim.distributed_tasks import Exchange, PendingTasks
from pypto.sim.external import StandIn, call_stand_in
from pypto.sim.faults import ExecutionError, OutOfBoundsError, OversubscribedError, where
from pypto.sim.frames import Core, Frame, Trace
from pypto.sim.memory import Allocations, Heap, memory_view
from pypto.sim.parallel import WORTHWHILE_S, Blocks, Span, independent, run_parts
from pypto.sim.recorder import Recorder
from pypto.sim.recording import (
    ALLOC,
    DUMMY,
    PREDICATE_FALSE,
    READ_WAIT,
    SCALAR,
    SCOPE_BEGIN,
    SCOPE_END,
    SUBMIT,
    SYNC_START,
    Words,
)
from pypto.sim.tasks import TaskPlan
from pypto.sim.tile_program import Access, Allocate, Dependency, Dummy, Predicate, Scope, Submit, TileProgram

if TYPE_CHECKING:
    from pypto.sim.checks.index_watch import IndexWatch
    from pypto.sim.checks.watch import LaunchWatch
    from pypto.sim.crew import LeftBehind
    from pypto.sim.task_log import TaskLog

_PROCESSORS = os.cpu_count() or 1
_RINGS = 4  # rings of the orchestration's heap; the ring of a scope is min(depth, 3) (spec distributed 6.2)
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": int.__eq__,
    "ne": int.__ne__,
    "lt": int.__lt__,
    "le": int.__le__,
    "gt": int.__gt__,
    "ge": int.__ge__,
}


@dataclass
class Workspace:
    """Memory that launches reuse: cores with their frames, the heap, trace rows. One launch at a time owns it."""

    orchestrator: Core = field(default_factory=Core)
    cores: list[Core] = field(default_factory=lambda: [Core()])
    heap: Heap = field(default_factory=Heap)
    trace: Trace = field(default_factory=Trace)
    orchestrator_trace: Trace = field(default_factory=Trace)  # stays empty
    tensor_map: TensorMap = field(default_factory=TensorMap)
    _channels: dict[tuple[TaskPlan, int], Channels] = field(default_factory=dict)

    def reset(self) -> None:
        self.heap.reset()
        self.trace.used = 0
        self.tensor_map.reset()

    def channels_of(self, plan: TaskPlan, together: int) -> Channels:
        """Cross-core state for ``together`` clusters of a task."""
        key = plan, together
        if key not in self._channels:
            self._channels[key] = Channels.of(plan, together)
        return self._channels[key]

    def at_least(self, count: int) -> list[Core]:
        while len(self.cores) < count:
            self.cores.append(self.new_core())
        return self.cores

    def observe(self, watch: LaunchWatch | IndexWatch | None) -> None:
        """Let ``watch`` look at every block of the launch that begins."""
        self._watch = watch
        for core in (self.orchestrator, *self.cores):
            core.observe(watch.new_core() if watch is not None else None)

    def new_core(self) -> Core:
        core = Core()
        core.observe(self._watch.new_core() if self._watch is not None else None)
        return core


class Launch:
    """The state of one launch."""

    def __init__(
        self,
        orchestration: TileProgram,
        plans: Mapping[int, TaskPlan],
        workspace: Workspace,
        allocations: Allocations,
        *,
        record: bool,
        clusters: int,
        threads: int | None = None,
        stand_ins: Mapping[str, StandIn] | None = None,
        exchange: Exchange | None = None,
        watch: LaunchWatch | None = None,
        indices: IndexWatch | None = None,
        log: TaskLog | None = None,
    ):
        self.watch, self.indices, self.log = watch, indices, log
        workspace.observe(watch or indices)
        self.orchestration, self.plans, self.workspace = orchestration, plans, workspace
        self.record, self.clusters = record, clusters
        self.threads = 1 if watch is not None else _PROCESSORS if threads is None else threads
        self.stand_ins = stand_ins or {}
        self.allocations = allocations
        for number, (address, _) in enumerate(allocations.ranges):
            workspace.tensor_map.add_allocation(number, address)
        self.recorder = Recorder()
        self.frame: Frame = workspace.orchestrator.frame(orchestration)
        self.tasks = 0
        self.left_behind: list[tuple[TaskPlan, LeftBehind]] = []
        self.pending = PendingTasks(self, exchange)
        self._scopes: list[tuple[bool, tuple[int, int]]] = []  # manual, heap mark
        if watch is not None:
            watch.awaitable = self._awaitable

    def run(self, places: Words, values: Words) -> None:
        """Run the orchestration with its parameters ``values`` at the frame words ``places``."""
        self.frame.start(places, values, 0, 1, 0, record=False)
        unused = self.workspace.orchestrator_trace
        words = self.frame.words
        while True:
            status = self.frame.resume(unused, self.allocations)
            if status == op.DONE:
                self._scalars(words)
                self.pending.drain()
                if self.log is not None:
                    self.log.finish(self.allocations, self.workspace.tensor_map)
                return
            if status == op.REQUEST:
                self._scalars(words)
                self._answer(self.orchestration.requests[int(words[op.SITE])], int(words[op.SITE]))

    def leave(self) -> None:
        """The launch has ended and nobody asks about its tasks: it and what watched it go without the collector."""
        del self.pending
        if self.watch is not None:
            self.watch = None
            self.workspace.observe(None)

    def _scalars(self, words: Words) -> None:
        count = int(words[op.SCALARS])
        if count:
            self.recorder.events.append((SCALAR, count, 0, 0))
            words[op.SCALARS] = 0

    def _answer(self, request: object, site: int) -> None:
        if isinstance(request, Submit):
            self._submit(self.plans[site])
        elif isinstance(request, Allocate):
            self._allocate(request)
        elif isinstance(request, Access):
            self._access(request)
        elif isinstance(request, Scope):
            self._scope(request)
        elif isinstance(request, Dummy):
            self._dummy(request)

    # memory

    def _allocate(self, request: Allocate) -> None:
        words = self.frame.words
        shape = [int(words[offset]) for offset in request.extents]
        if min(shape, default=0) < 0:
            raise ExecutionError(f"a tensor with the shape {shape} cannot be allocated\nin {self.orchestration.name}")
        dtype = DataType.from_code(request.dtype)
        size = (
            (int(np.prod(shape, dtype=np.int64)) * dtype.get_bit() + 7) // 8
            if dtype.get_bit() != 1
            else int(np.prod(shape))
        )
        address = self.workspace.heap.allocate(size)
        number = self.allocations.add(address, size)
        self.workspace.tensor_map.add_allocation(number, address)
        flags = MANUAL_TENSOR if request.manual else 0
        descriptor = tensor_descriptor(address, shape, dtype, number, size, flags)
        words[request.target : request.target + layout.TENSOR_NAME] = descriptor
        if request.initial is not None:
            fill(address, size, dtype, request.initial)
        if self.watch is not None:
            name = self.orchestration.author(self.orchestration.names.get(request.target, "?"))
            defined, site = request.initial is not None, request.index
            self.watch.allocated(number, name, shape, dtype, address, size, defined=defined, site=site)
        self.recorder.events.append((ALLOC, size, min(len(self._scopes), _RINGS - 1), number))
        self.recorder.allocated += size

    def _scope(self, request: Scope) -> None:
        events = self.recorder.events
        if request.opens:
            self._scopes.append((request.manual, self.workspace.heap.mark()))
            events.append((SCOPE_BEGIN, len(self._scopes), int(request.manual), 0))
            if self.watch is not None:
                self.watch.scope_opened(request.index)
            if self.log is not None:
                self.log.scope(self.orchestration, request.index, self.workspace.tensor_map)
            return
        if not self._scopes:
            raise ExecutionError(f"'endscope' without a scope\nin {self.orchestration.name}")
        events.append((SCOPE_END, len(self._scopes), 0, 0))
        if self.watch is not None:
            self.watch.scope_ended(quiet=not self.pending.tasks)
        if self.log is not None:
            self.log.scope(self.orchestration, request.index, self.workspace.tensor_map)
        self.workspace.heap.release(self._scopes.pop()[1])

    def _access(self, request: Access) -> None:
        """The orchestration waits for the tasks that made what it is about to read or write."""
        producers = self.workspace.tensor_map.producers(self.tasks, self.frame.address, request.tensor)
        if self.watch is not None:
            self.watch.access(self.frame.watch, producers, -1)  # type: ignore[arg-type]
            self.watch.touches(int(self.frame.words[request.tensor + layout.TENSOR_ALLOCATION]), request.index)
        self.pending.wait_for(producers)
        for producer in producers or [-1]:
            self.recorder.events.append((READ_WAIT, producer, int(request.writes), 0))

    # tasks

    def _explicit(self, dependencies: Sequence[Dependency]) -> list[int]:
        words = self.frame.words
        if all(d.count == 1 for d in dependencies):
            return [int(words[d.offset]) for d in dependencies]
        return [int(task) for d in dependencies for task in words[d.offset : d.offset + d.count]]

    def _awaitable(self, allocations: NDArray[np.bool_]) -> tuple[set[int], Iterable[int]]:
        """(tasks that a later one may wait for, tasks that have not ended); ``allocations``: those that may be named.

        Every word of the orchestration may be the number of a task.
        """
        words = self.frame.words
        found = words[(words >= 0) & (words < self.tasks)]
        modified = self.workspace.tensor_map.awaitable(allocations)
        return set(np.union1d(found, modified).tolist()), self.pending.tasks

    def _in_manual_scope(self) -> bool:
        return any(manual for manual, _ in self._scopes)

    def _dummy(self, request: Dummy) -> None:
        task = self.tasks
        producers, kinds, lookups = self.workspace.tensor_map.derive(
            task, self.frame.address, _NO_TENSORS, self._explicit(request.dependencies), manual=True
        )
        if self.watch is not None:
            self.watch.task(task, "dummy", -1, producers)
        if self.log is not None:
            self.log.submitted(None, _NO_WORDS)
        self.recorder.task("dummy", DUMMY, 0, 0, 0, 0, lookups, len(self._scopes), producers, kinds)
        self.recorder.events.append((SUBMIT, task, 0, 0))
        self.recorder.end_task()
        self.frame.words[request.target] = task
        self.tasks += 1

    def _submit(self, plan: TaskPlan) -> None:
        words, request, task = self.frame.words, plan.request, self.tasks
        plan.check_extents(self.orchestration, words)
        blocks = int(words[request.blocks])
        if blocks < 1:
            raise ExecutionError(
                f"{request.kernel} is submitted with {blocks} blocks; a task has at least one\n"
                f"in {self.orchestration.name}{where(self.orchestration, plan.index)}"
            )
        self._check_fits(plan, blocks)
        producers, kinds, lookups = self.workspace.tensor_map.derive(
            task, self.frame.address, plan.tensors, self._explicit(request.dependencies), manual=self._in_manual_scope()
        )
        if self.watch is not None:
            self.watch.task(task, request.kernel, plan.index, producers)
            self.watch.passes(self.frame, plan)
        if request.predicate is not None:
            self.pending.wait_for(producers)
        if self.log is not None:
            self.log.submitted(plan, words[plan.sources])
        runs = request.predicate is None or self._holds(request.predicate, plan.index)
        self.recorder.task(
            request.kernel,
            plan.kind if plan.members else DUMMY,  # a stand-in takes no time on any core
            blocks,
            request.flags if runs else request.flags | PREDICATE_FALSE,
            len(plan.tensors),
            plan.scalars,
            lookups,
            len(self._scopes),
            producers,
            kinds,
        )
        self.recorder.events.append((SUBMIT, task, len(plan.tensors), plan.scalars))
        if runs:
            self.pending.start(task, plan, words[plan.sources], blocks, producers)
        self.recorder.end_task()
        words[request.target] = task
        self.tasks += 1

    def _holds(self, predicate: Predicate, index: int) -> bool:
        """Evaluate a predicate on the element as it is now: every earlier task has run."""
        words, tensor = self.frame.words, predicate.tensor
        offset = 0
        for axis, place in enumerate(predicate.indices):
            at, extent = int(words[place]), int(words[tensor + layout.TENSOR_EXTENTS + axis])
            if not 0 <= at < extent:
                name = self.orchestration.author(self.orchestration.names.get(tensor, "?"))
                raise OutOfBoundsError(
                    f"the predicate reads '{name}' at index {at}, outside its extent {extent} (axis {axis})\n"
                    f"in {self.orchestration.name}{where(self.orchestration, index)}"
                )
            offset += at * int(words[tensor + layout.TENSOR_STRIDES + axis])
        dtype = DataType.from_code(int(words[tensor + layout.TENSOR_DTYPE]))
        if self.watch is not None:
            at = int(words[tensor]) + offset * dtype.get_byte()
            self.watch.predicate(int(words[tensor + layout.TENSOR_ALLOCATION]), at, dtype.get_byte(), index)
        element = memory_view(int(words[tensor]) + offset * dtype.get_byte(), dtype.get_byte()).view(dtype.storage)[0]
        return _COMPARE[predicate.operator](int(element), predicate.value)

    def run_late(self, task: int, plan: TaskPlan, values: Words, blocks: int) -> None:
        """Run a task whose producers have ended only now."""
        first = len(self.recorder.subtasks)
        self.run_task(plan, values, blocks)
        self.recorder.place(task, self.recorder.subtasks[first:])
        del self.recorder.subtasks[first:]

    def run_task(self, plan: TaskPlan, values: Words, blocks: int) -> None:
        """Run a task whose producers are done to its end."""
        if self.indices is not None:
            self.indices.begin(plan.request.kernel)
        programs = [member.program for member in plan.members]
        if not programs:
            self._run_stand_in(plan, values)
        elif any(program.spans_blocks for program in programs):
            for first in range(0, blocks, self._capacity(plan)):
                self._run_together(plan, values, range(first, min(first + self._capacity(plan), blocks)), blocks)
        elif any(program.waits for program in programs):
            for block in range(blocks):
                self._run_together(plan, values, (block,), blocks)
        else:
            self._run_apart(plan, values, blocks)

    def _run_stand_in(self, plan: TaskPlan, values: Words) -> None:
        name = plan.request.kernel
        if name not in self.stand_ins:
            raise ExecutionError(
                f"'{name}' is a C++ kernel and cannot run on the simulated chip; attach a Python stand-in with "
                f"program.bind_external('{name}', function)\n"
                f"in {self.orchestration.name}{where(self.orchestration, plan.index)}"
            )
        words = self.frame.words.copy()  # the orchestration may have gone on since it submitted the task
        words[plan.sources] = values
        ended = None if self.watch is None else self.watch.stand_in(words, plan)
        call_stand_in(self.stand_ins[name], plan.request, words)
        if ended is not None:
            ended()

    def _check_fits(self, plan: TaskPlan, blocks: int) -> None:
        """Blocks that start together must fit the chip (spec distributed 6.6)."""
        if plan.request.flags & SYNC_START and plan.members and blocks > self._capacity(plan):
            error = OversubscribedError(
                f"{plan.request.kernel} has sync_start and {blocks} blocks; the chip runs {self._capacity(plan)} of "
                f"them at once\nin {self.orchestration.name}{where(self.orchestration, plan.index)}"
            )
            error.task, error.blocks, error.chip = plan.request.kernel, blocks, self._capacity(plan)
            error.site = self.orchestration, plan.index
            raise error

    def _capacity(self, plan: TaskPlan) -> int:
        """Blocks of the task that the chip runs at once: a cluster has one cube core and two vector cores."""
        vector_only = all(core > 0 for member in plan.members for core in member.cores)
        lanes = sum(len(member.cores) for member in plan.members)
        return self.clusters * 2 // lanes if vector_only else self.clusters

    def _run_apart(self, plan: TaskPlan, values: Words, count: int) -> None:
        """Blocks that wait for nobody, one after the other."""
        trace, number = self.workspace.trace, self.recorder.program
        frames = self.workspace.cores[0].frames([member.program for member in plan.members])
        seats = [
            (Blocks(member.places, values, count, core, self.record), frame, number(member.program))
            for member, frame in zip(plan.members, frames)
            for core in member.cores
        ]
        if len(seats) == 1 and count > 2 and self.threads > 1 and frames[0].program.listable:
            self._run_blocks(*seats[0])
            return
        for block in range(count):
            for blocks, frame, program in seats:
                self._note(program, blocks, blocks.run(frame, trace, self.allocations, block, block + 1), 0)

    def _run_blocks(self, blocks: Blocks, frame: Frame, program: int) -> None:
        """Blocks of one program: the first, then the others on several threads if that pays and changes nothing."""
        trace = self.workspace.trace
        start_s = time.perf_counter()
        self._note(program, blocks, blocks.run(frame, trace, self.allocations, 0, 1), 0)
        left_s = (time.perf_counter() - start_s) * (blocks.count - 1)
        if left_s < WORTHWHILE_S or not independent(blocks, frame, self.workspace.tensor_map.bases):
            self._note(program, blocks, blocks.run(frame, trace, self.allocations, 1, blocks.count), 0)
            return
        cores = self.workspace.at_least(min(self.threads, blocks.count - 1))
        frames = [core.frame(frame.program) for core in cores[: min(self.threads, blocks.count - 1)]]
        for part, spans in run_parts(blocks, frames, self.allocations, 1):
            offset = trace.used
            trace.append(part)
            self._note(program, blocks, spans, offset)

    def _note(self, program: int, blocks: Blocks, spans: list[Span], offset: int) -> None:
        """Record subtasks whose trace rows start at ``offset``."""
        lane, subtasks = max(blocks.core - 1, 0), self.recorder.subtasks
        for block, first, stop in spans:
            subtasks.append((program, block, lane, offset + first, offset + stop))

    def _run_together(self, plan: TaskPlan, values: Words, chosen: Sequence[int], blocks: int) -> None:
        members = sum(len(member.cores) for member in plan.members)
        cores = self.workspace.at_least(1 + members * len(chosen))[1:]
        trace, recorder = self.workspace.trace, self.recorder
        channels = self.workspace.channels_of(plan, len(chosen))
        for seat in run_crew(plan, values, chosen, blocks, cores, self.allocations, channels, record=self.record):
            first = trace.used
            trace.append(seat.trace)
            recorder.subtasks.append(
                (recorder.program(seat.frame.program), seat.block, max(seat.core - 1, 0), first, trace.used)
            )
        for queue in channels.left_behind():
            self.left_behind.append((plan, queue))


_NO_TENSORS = np.zeros((0, 2), np.int64)
_NO_WORDS = np.zeros(0, np.int64)


def fill(address: int, size: int, dtype: DataType, word: int) -> None:
    """Set every element of a tensor to the register word ``word``."""
    from pypto.sim.emitter import stored_element

    if size:
        pattern = stored_element(word, dtype)
        memory_view(address, size).view(f"V{len(pattern)}")[:] = np.frombuffer(pattern, f"V{len(pattern)}")[0]


def tensor_descriptor(
    address: int, shape: Sequence[int], dtype: DataType, allocation: int, size: int, flags: int = 0
) -> list[int]:
    """Descriptor words of a C-contiguous tensor, up to (and without) the name."""
    strides, stride = [], 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    unused = [0] * (layout.MAX_RANK - len(shape))
    head = [address, len(shape), dtype.code(), allocation, address, address + size]
    return [*head, *shape, *unused, *reversed(strides), *unused, flags]

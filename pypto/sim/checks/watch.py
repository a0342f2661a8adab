"""Follows one launch: prepares the observer of every core, keeps the order graph, gathers what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pypto.sim import layout
from pypto.sim.checks import conflicts as c
from pypto.sim.checks import words as w
from pypto.sim.checks.access_log import AccessLog
from pypto.sim.checks.buffers import give_back, take_buffers
from pypto.sim.checks.coherence import MixedStores
from pypto.sim.checks.core_watch import CoreWatch
from pypto.sim.checks.crews import Crew
from pypto.sim.checks.facts import Facts, instruction_facts
from pypto.sim.checks.lifetimes import Lifetimes
from pypto.sim.checks.nodes import Node, Nodes
from pypto.sim.checks.observer import observer
from pypto.sim.checks.order import Write, seat_of
from pypto.sim.checks.places import pitches
from pypto.sim.checks.queue_shadows import QueueShadows
from pypto.sim.checks.rank_accesses import RankAccesses
from pypto.sim.checks.retired import RetiredTensors
from pypto.sim.checks.rules.table import handlers_of
from pypto.sim.checks.selection import Checks
from pypto.sim.checks.shadow_memory import ShadowMemory
from pypto.sim.checks.stand_ins import StandInTask
from pypto.sim.dependencies import INPUT
from pypto.sim.memory import memory_view
from pypto.sim.recording import Words
from pypto.sim.tile_program import TileProgram

if TYPE_CHECKING:
    from pypto.ir.dtype import DataType
    from pypto.sim.frames import Frame
    from pypto.sim.tasks import TaskPlan

ORCHESTRATION: Final = -1
_CREWS_WAITING: Final = 4  # crews whose clocks are kept until their accesses are compared


@dataclass(frozen=True)
class Memory:
    """An allocation as reports name it: ``shape`` and ``bits`` per element of the tensor it was made for."""

    name: str
    shape: tuple[int, ...]
    bits: int
    address: int
    size: int
    direction: str = ""  # of an argument: in, out, inout; empty for a tensor of the orchestration
    index: int = -1  # instruction of the orchestration that made it


class SharedCodes(NamedTuple):
    """The map (shadow.py) of a window, and the bytes from the window of one rank to that of the next."""

    codes: int
    flags: int
    stride: int


class LaunchWatch:
    """Everything that is followed during one launch."""

    def __init__(self, checks: Checks, orchestration: TileProgram) -> None:
        self.checks, self.orchestration = checks, orchestration
        self.asked = checks.asked
        self.orders = bool(self.asked & w.ORDER)
        self.programs: list[TileProgram] = []
        self.memories: list[list[Memory]] = []
        self.shadows: list[ShadowMemory | None] = []
        self.undefined_predicates: list[tuple[int, int, int]] = []
        """(allocation, byte, node) of predicates that nobody has written."""
        self.takers: dict[int, int] = {}
        """Allocation of an argument: the first node that takes it as its output."""
        self.awaitable: Callable[[NDArray[np.bool_]], tuple[Iterable[int], Iterable[int]]] | None = None
        """Given which allocations matter: tasks that later ones may wait for, and tasks that have not ended."""
        self.running_node, self.lanes = -1, 1  # of the task whose blocks run
        self.seats = 0
        self.on_program: Callable[[TileProgram, int], None] | None = None
        self.observer: int = observer().address
        self._written: dict[TaskPlan, Words] = {}
        self._facts: dict[TileProgram, tuple[int, Facts]] = {}
        self._last_access = -1
        self._windows: set[int] = set()
        self._crews: list[Crew] = []
        self._crew_count = 0
        self._buffers = buffers = take_buffers()
        self.words, self.handlers = buffers.words, buffers.handlers
        self.origins, self.events, self.allocations = buffers.origins, buffers.events, buffers.allocations
        self.graph, self.table = buffers.graph, buffers.table
        self.nodes = Nodes(buffers.graph)
        self.log = AccessLog(buffers, self._compare)
        self._cores = iter(buffers.cores)
        self.retired, self.lifetimes = RetiredTensors(), Lifetimes(orchestration)
        self.mixed, self.rank_accesses, self.queues = MixedStores(), RankAccesses(), QueueShadows()

    @property
    def writers(self) -> dict[int, dict[int, Write]]:
        """Allocation: node that wrote it: its first write. The first nodes are enough."""
        return self.table.writers

    @property
    def mixed_stores(self) -> list[tuple[int, int, Words, Words]]:
        """(program, node, bulk store, scalar store) of one block that share a cache line."""
        return self.mixed.found

    # memory

    def add_memory(
        self, number: int, memories: Sequence[Memory], defined: bool, tracked: bool, shared: SharedCodes | None = None
    ) -> None:
        """Allocation ``number`` of the launch; its bytes are ``defined`` (or undefined, and poisoned).

        ``shared``: the codes of a window, which all ranks use.
        """
        first = min(memory.address for memory in memories)
        last = max(memory.address + memory.size for memory in memories)
        while number >= len(self.allocations):
            self.allocations = self._buffers.grow_allocations()
        self.table.add_allocation(number, last - first)
        shadow: ShadowMemory | None = None
        window = any(memory.direction == "window" for memory in memories)
        if window:
            self._windows.add(number)
        if tracked and not window and self.asked & w.UNDEFINED:
            lost = [m for m in memories if m.direction == "out" or m.direction == "" and not defined]
            alone = len(memories) == len(lost) == 1
            shadow = ShadowMemory(first, last - first, w.UNWRITTEN if alone else w.DEFINED)
            for memory in lost:
                if not alone:
                    shadow.fill(memory.address - first, memory.address - first + memory.size, w.UNWRITTEN)
                self._poison(memory)
            for memory in memories:
                if lost and memory.direction in ("in", "inout"):
                    shadow.fill(memory.address - first, memory.address - first + memory.size, w.DEFINED)
        self.allocations[number] = (
            first, last - first, int(tracked), int(shadow is not None), *((0, 0) if shadow is None else shadow.map), 0,
            *pitches(memories[0].shape, memories[0].bits),
        )  # fmt: skip
        if shared is not None and self.asked & w.UNDEFINED:
            self.allocations[number, w.GM_FOLLOWED], self.allocations[number, w.GM_STRIDE] = 1, shared.stride
            self.allocations[number, w.GM_MAP : w.GM_MAP + 2] = shared.codes, shared.flags
        self.memories.append(list(memories))
        self.shadows.append(shadow)

    def scope_opened(self, site: int) -> None:
        """Instruction ``site`` of the orchestration opens a runtime scope."""
        self.retired.opened()
        self.lifetimes.opened(site)

    def scope_ended(self, quiet: bool) -> None:
        """A runtime scope has ended; ``quiet``: no task waits. Bytes of tensors to forget count as defined."""
        self.lifetimes.closed()
        numbers = self.retired.closed(quiet)
        if not numbers:
            return
        self.log.flush()
        self.table.forget(numbers)
        self.allocations[numbers, w.GM_FOLLOWED] = 0
        for number in numbers:
            self.shadows[number] = None

    def _poison(self, memory: Memory) -> None:
        """A tensor that nobody has written yet."""
        if memory.size:
            memory_view(memory.address, memory.size)[:] = self.checks.poison_byte

    def allocated(
        self, number: int, name: str, shape: Sequence[int], dtype: DataType, address: int, size: int, *,
        defined: bool, site: int,
    ) -> None:  # fmt: skip
        """Instruction ``site`` of the orchestration has made a tensor."""
        memory = Memory(name, tuple(shape), dtype.get_bit(), address, size, index=site)
        self.add_memory(number, [memory], defined, tracked=True)
        self.retired.allocated(number, size)
        self.lifetimes.allocated(number)

    def passes(self, frame: Frame, plan: TaskPlan) -> None:
        """The tensors of a task: those it may write are followed."""
        if self.lifetimes.ended:
            taken = frame.words[plan.tensors[:, 1] + layout.TENSOR_ALLOCATION]
            self.lifetimes.used(taken.tolist(), self.nodes.last, plan.index)
        if not self.orders:
            return
        if plan not in self._written:
            written = plan.tensors[plan.tensors[:, 0] != INPUT, 1]
            self._written[plan] = written + layout.TENSOR_ALLOCATION
        numbers = frame.words[self._written[plan]]
        self.allocations[numbers, w.GM_TRACKED] = 1
        for number in numbers.tolist():
            if number not in self.takers and self.memories[number][0].direction:
                self.takers[number] = self.nodes.last

    def predicate(self, allocation: int, address: int, size: int, site: int) -> None:
        """The task submitted last takes a predicate from ``size`` bytes at ``address``."""
        low = address - int(self.allocations[allocation, w.GM_BASE])
        node = self.nodes.last
        if self.orders and self.allocations[allocation, w.GM_TRACKED]:
            record = np.zeros((1, w.ACCESS_WORDS), np.int64)
            record[0, w.ACCESS_ALLOCATION], record[0, w.ACCESS_INSTRUCTION] = allocation, site
            record[0, w.ACCESS_SNAPSHOT] = record[0, w.ACCESS_ROOT] = -1
            record[0, w.ACCESS_BOX : w.ACCESS_BOX + 2] = low, size
            record[0, w.ACCESS_BOX + 2 :: 2] = 1
            number, _ = self.program(self.orchestration)
            self.table.take(record, seat_of(node, -2 - node, number))
        if not self.defines(allocation, low, low + size):
            self.undefined_predicates.append((allocation, low, node))

    # order

    def _compare(self, records: Words, seats: Words) -> None:
        """Rows of the access log go to the table, and to those who look for other things in them."""
        if self._windows:
            records = self.rank_accesses.without_signals(records, seats, self.allocations, self._windows)
        if self.words[w.SCALAR_STORES]:
            self.mixed.take(records, seats, [int(core.state[w.SEAT]) for core in self.log.running])
        self.table.take(records, seats)
        if self._crews:
            running = {core.crew for core in self.log.running}
            self._crews = [crew for crew in self._crews if crew in running]
            for crew in self._crews:
                if crew.is_full:
                    self._forget_snapshots(crew)

    def _forget_snapshots(self, crew: Crew) -> None:
        """Keep the clocks that accesses in the table name, and no others."""
        named = self.table.snapshots(crew.number)
        self.table.rename_snapshots(crew.number, named, crew.keep(named))
        for core in self.log.running:
            core.state[w.TICK] = 1

    def begin(self, task: int, plan: TaskPlan) -> None:
        """Blocks of ``task`` are about to start."""
        self.running_node = self.nodes.of_task.get(task, -1)
        self.lanes = max((len(member.cores) for member in plan.members), default=1)
        if len(self._crews) > _CREWS_WAITING:
            self.log.flush()

    def task(self, task: int, name: str, site: int, producers: Iterable[int]) -> None:
        """A task (or an empty one) was submitted and waits for ``producers``."""
        self._node(producers, Node(name, task, site))

    def access(self, core: CoreWatch, producers: Iterable[int], site: int) -> None:
        """The orchestration, on ``core``, is about to touch an element and has waited for ``producers``."""
        self._last_access = self._node(producers, Node("", ORCHESTRATION, site))
        if self.orders:
            core.follow(self._last_access)

    def touches(self, allocation: int, site: int) -> None:
        """Instruction ``site`` of the orchestration reads or writes an element of an allocation."""
        if self.lifetimes.ended:
            self.lifetimes.used((allocation,), self._last_access, site)

    def stand_in(self, frame: Words, plan: TaskPlan) -> Callable[[], None]:
        """A Python function is about to do the work of a task with the tensors in ``frame``; call what is returned
        when it has."""
        return StandInTask(self, frame, plan).end

    def compare(self, records: Words, seat: Words) -> None:
        """Accesses that no observer has logged, all of one ``seat``."""
        self.log.flush()
        if self._windows:
            records = self.rank_accesses.without_signals(records, seat, self.allocations, self._windows)
        self.table.take(records, seat)

    def _node(self, producers: Iterable[int], node: Node) -> int:
        if self.nodes.are_many:
            self._forget_nodes()
        return self.nodes.add(producers if self.orders else (), node, self._last_access)

    def _forget_nodes(self) -> None:
        """Keep the nodes whose accesses matter, what orders those to come behind them, and those that reports name."""
        if self.awaitable is None:
            return
        self.log.flush()
        named, running = self.awaitable(self.table.live(len(self.memories)))
        asked = {*self.table.nodes().tolist(), *self.rank_accesses.nodes(), self._last_access}
        asked |= {int(core.state[w.NODE]) for core in self.log.running}
        if 2 * len(asked) > len(self.nodes):
            self.nodes.postpone()
            return
        self.nodes.keep(asked, named, running, self._reported())
        self.table.reindex()

    def _reported(self) -> set[int]:
        """Nodes that findings may name."""
        found = set(self.table.findings[:, [2 + c.E_NODE, 2 + c.ENTRY_WORDS + c.E_NODE]].ravel().tolist())
        found |= self.table.writing_nodes
        found |= set(self.origins[: int(self.words[w.ORIGIN_COUNT]), w.OR_NODE].tolist())
        found |= set(self.events[: int(self.words[w.EVENT_COUNT]), w.OR_NODE].tolist())
        found |= {node for _, _, node in self.undefined_predicates}
        found |= {node for _, node, _, _ in self.mixed_stores}
        found |= {use.node for use in self.lifetimes.uses.values()}
        return found.union(self.takers.values())

    def new_crew(self, size: int, clusters: int, channels: Words) -> Crew:
        """``size`` cores that wait for each other; ``channels``: the words of one of their clusters."""
        self._crew_count += 1
        crew = Crew(self._crew_count, size, clusters, channels)
        self._crews.append(crew)
        return crew

    def finish(self) -> None:
        """Nothing runs any more: compare what is left."""
        self.log.flush()

    def close(self) -> None:
        """Everything has been reported: what is large goes now, whoever still refers to this watch."""
        self.awaitable = None
        self.shadows.clear()
        for core in self._buffers.cores:
            core.leave()
        self.log.close()
        give_back(self._buffers)

    # programs and cores

    def program(self, program: TileProgram) -> tuple[int, Facts]:
        """(number, facts) of a program."""
        if program not in self._facts:
            number, facts = len(self.programs), instruction_facts(program)
            self.programs.append(program)
            self._facts[program] = number, facts
            np.maximum(self.handlers, handlers_of(facts.rules, self.asked), out=self.handlers)
            if self.on_program is not None:
                self.on_program(program, number)
        return self._facts[program]

    def new_core(self) -> CoreWatch:
        """A watch for one core."""
        watch = next(self._cores, None)
        if watch is None:
            watch = CoreWatch(self._buffers)
            self._buffers.cores.append(watch)
            self._cores = iter(())
        watch.begin(self)
        return watch

    def defines(self, allocation: int, low: int, high: int) -> bool:
        """Whether bytes [low, high) of an allocation hold defined values."""
        shadow = self.shadows[allocation]
        return shadow is None or shadow.is_defined(low, high)

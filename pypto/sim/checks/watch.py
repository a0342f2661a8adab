"""Follows one launch: prepares the observer of every core, keeps the order graph, gathers what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pypto.sim import layout
from pypto.sim import opcodes as op
from pypto.sim.checks import words as w
from pypto.sim.checks.clocks import CLUSTER_PLACES, GLOBAL_PLACES
from pypto.sim.checks.facts import instruction_facts
from pypto.sim.checks.observer import observer
from pypto.sim.checks.order import AccessTable, OrderGraph
from pypto.sim.checks.rules.table import fill_handlers, new_handlers
from pypto.sim.checks.selection import Checks
from pypto.sim.checks.shadow_memory import ShadowMemory
from pypto.sim.dependencies import INPUT
from pypto.sim.memory import memory_view
from pypto.sim.recording import Words
from pypto.sim.tile_program import TileProgram

if TYPE_CHECKING:
    from pypto.ir.dtype import DataType
    from pypto.sim.crew import Seat
    from pypto.sim.frames import Frame
    from pypto.sim.tasks import TaskPlan

ORCHESTRATION: Final = -1


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


@dataclass(frozen=True)
class Node:
    """A node of the order graph: a task, or an access of the orchestration (``name`` empty)."""

    name: str
    task: int
    site: int  # instruction of the orchestration


@dataclass
class LaunchWatch:
    """Everything that is followed during one launch."""

    checks: Checks
    orchestration: TileProgram
    graph: OrderGraph = field(default_factory=OrderGraph)
    programs: list[TileProgram] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    memories: list[list[Memory]] = field(default_factory=list)
    shadows: list[ShadowMemory | None] = field(default_factory=list)
    writers: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    """Allocation: node that wrote it: (program, instruction) of its first write."""
    blocks: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """(block, lane, core) of a seat that appears in a finding."""
    undefined_predicates: list[tuple[int, int, int]] = field(default_factory=list)
    """(allocation, byte, node) of predicates that nobody has written."""
    mixed_stores: list[tuple[int, int, Words, Words]] = field(default_factory=list)
    """(program, node, bulk store, scalar store) of one block that share a cache line."""

    def __post_init__(self) -> None:
        self.table = AccessTable(self.graph)
        self.allocations = np.zeros((64, w.ALLOCATION_WORDS), np.int64)
        self.origins = np.zeros((w.ORIGIN_CAPACITY, w.ORIGIN_WORDS), np.int64)
        self.events = np.zeros((w.EVENT_CAPACITY, w.ORIGIN_WORDS), np.int64)
        self.words = np.zeros(w.LAUNCH_WORDS, np.int64)
        self.words[w.ORIGINS], self.words[w.EVENTS] = self.origins.ctypes.data, self.events.ctypes.data
        self.words[w.ALLOCATIONS] = self.allocations.ctypes.data
        self.facts: dict[TileProgram, tuple[int, Words]] = {}
        self.handlers = new_handlers()
        self.scratch = np.empty(w.SCRATCH_BYTES, np.uint8)
        self.seats = 0
        self.rank_events: list[Words] = []
        self._windows: set[int] = set()
        self.node_of_task: dict[int, int] = {}
        self.running = ORCHESTRATION
        self.lanes = 1
        self._last_access = -1
        self._crews = 0
        self.on_program: Callable[[TileProgram, int], None] | None = None

    # memory

    def add_memory(self, number: int, memories: Sequence[Memory], defined: bool, tracked: bool) -> None:
        """Allocation ``number`` of the launch; its bytes are ``defined`` (or undefined, and poisoned)."""
        first = min(memory.address for memory in memories)
        last = max(memory.address + memory.size for memory in memories)
        while number >= len(self.allocations):
            self.allocations = np.concatenate((self.allocations, np.zeros_like(self.allocations)))
            self.words[w.ALLOCATIONS] = self.allocations.ctypes.data
        self.table.add_allocation(number)
        shadow: ShadowMemory | None = None
        window = any(memory.direction == "window" for memory in memories)
        if window:
            self._windows.add(number)
        if tracked and not window and self.checks.asked & w.UNDEFINED:
            shadow = ShadowMemory(first, last - first, w.DEFINED)
            for memory in memories:
                if memory.direction == "out" or memory.direction == "" and not defined:
                    self._forget(shadow, memory, memory.address - first)
            for memory in memories:
                if memory.direction in ("in", "inout"):
                    shadow.fill(memory.address - first, memory.address - first + memory.size, w.DEFINED)
        self.allocations[number] = (
            first, last - first, int(tracked), int(shadow is not None), *((0, 0) if shadow is None else shadow.map),
        )  # fmt: skip
        self.memories.append(list(memories))
        self.shadows.append(shadow)

    def _forget(self, shadow: ShadowMemory, memory: Memory, at: int) -> None:
        """The bytes of a tensor that nobody has written yet."""
        shadow.fill(at, at + memory.size, w.UNWRITTEN)
        if memory.size:
            memory_view(memory.address, memory.size)[:] = self.checks.poison_byte

    def allocated(
        self, number: int, name: str, shape: Sequence[int], dtype: DataType, address: int, size: int, *, defined: bool
    ) -> None:
        """The orchestration has made a tensor."""
        memory = Memory(name, tuple(shape), dtype.get_bit(), address, size)
        self.add_memory(number, [memory], defined, tracked=True)

    def passes(self, frame: Frame, plan: TaskPlan) -> None:
        """The tensors of a task: those it may write are followed."""
        for direction, offset in plan.tensors:
            if direction != INPUT:
                self.will_write(int(frame.words[offset + layout.TENSOR_ALLOCATION]))

    def predicate(self, allocation: int, address: int, size: int, site: int) -> None:
        """The task submitted last takes a predicate from ``size`` bytes at ``address``."""
        low = address - int(self.allocations[allocation, w.GM_BASE])
        node = len(self.nodes) - 1
        if self.allocations[allocation, w.GM_TRACKED]:
            record = np.zeros((1, w.ACCESS_WORDS), np.int64)
            record[0, w.ACCESS_ALLOCATION], record[0, w.ACCESS_INSTRUCTION] = allocation, site
            record[0, w.ACCESS_SNAPSHOT] = record[0, w.ACCESS_ROOT] = -1
            record[0, w.ACCESS_BOX : w.ACCESS_BOX + 2] = low, size
            record[0, w.ACCESS_BOX + 2 :: 2] = 1
            number, _ = self.program(self.orchestration)
            self.table.take(record, node=node, seat=-2 - node, program=number)
        if not self.defines(allocation, low, low + size):
            self.undefined_predicates.append((allocation, low, node))

    def will_write(self, number: int) -> None:
        """A task takes allocation ``number`` to write: its accesses are followed from now on."""
        self.allocations[number, w.GM_TRACKED] = 1

    # order

    def without_signals(self, records: Words, node: int, seat: int, program: int) -> Words:
        """Keep what concerns windows and signals for the comparison of the ranks; returns the memory accesses."""
        kinds = records[:, w.ACCESS_KIND]
        signals = kinds >= w.NOTIFIES
        if not signals.any() and not self._windows:
            return records
        chosen = signals | np.isin(records[:, w.ACCESS_ALLOCATION], list(self._windows))
        events = np.zeros((int(chosen.sum()), 5 + w.ACCESS_WORDS - w.ACCESS_BOX), np.int64)
        taken = records[chosen]
        events[:, 0], events[:, 1], events[:, 2], events[:, 3] = taken[:, w.ACCESS_KIND], node, seat, program
        events[:, 4], events[:, 5:] = taken[:, w.ACCESS_INSTRUCTION], taken[:, w.ACCESS_BOX :]
        plain = taken[:, w.ACCESS_KIND] < w.NOTIFIES
        events[plain, 5] += self.allocations[taken[plain, w.ACCESS_ALLOCATION], w.GM_BASE]
        self.rank_events.append(events)
        return records[~signals]

    def begin(self, task: int, plan: TaskPlan) -> None:
        """Blocks of ``task`` are about to start."""
        self.running = task
        self.lanes = max((len(member.cores) for member in plan.members), default=1)

    def task(self, task: int, name: str, site: int, producers: Iterable[int]) -> None:
        """A task (or an empty one) was submitted and waits for ``producers``."""
        before = [self.node_of_task[p] for p in producers]
        if self._last_access >= 0:
            before.append(self._last_access)
        self.node_of_task[task] = self.graph.add(before)
        self.nodes.append(Node(name, task, site))

    def access(self, producers: Iterable[int], site: int) -> None:
        """The orchestration is about to touch an element and has waited for ``producers``."""
        before = [self.node_of_task[p] for p in producers]
        if self._last_access >= 0:
            before.append(self._last_access)
        self._last_access = self.graph.add(before)
        self.nodes.append(Node("", ORCHESTRATION, site))

    @property
    def last_access(self) -> int:
        return self._last_access

    # programs and cores

    def program(self, program: TileProgram) -> tuple[int, Words]:
        """(number, facts) of a program."""
        if program not in self.facts:
            number = len(self.programs)
            self.programs.append(program)
            facts = instruction_facts(program)
            self.facts[program] = number, facts
            fill_handlers(self.handlers, set(facts[:, w.FACT_RULE].tolist()), self.checks.asked)
            if self.on_program is not None:
                self.on_program(program, number)
        return self.facts[program]

    def new_core(self) -> CoreWatch:
        """A watch for one core."""
        return CoreWatch(self)

    def next_crew(self) -> int:
        self._crews += 1
        return self._crews

    def defines(self, allocation: int, low: int, high: int) -> bool:
        """Whether bytes [low, high) of an allocation hold defined values."""
        shadow = self.shadows[allocation]
        return shadow is None or shadow.is_defined(low, high)


@dataclass
class Crew:
    """Cores that wait for each other: their clocks, and the snapshots that logged accesses name."""

    number: int
    size: int
    clocks: Words
    shared: Words
    snapshots: Words

    @classmethod
    def of(cls, number: int, size: int, clusters: int) -> Crew:
        places = GLOBAL_PLACES + clusters * CLUSTER_PLACES
        return cls(
            number,
            size,
            np.eye(size, dtype=np.int64),
            np.zeros((places, size), np.int64),
            np.zeros((0, size), np.int64),
        )


class CoreWatch:
    """Watches the blocks that run on one core after each other."""

    def __init__(self, launch: LaunchWatch) -> None:
        self.launch = launch
        self.state = np.zeros(w.STATE_WORDS, np.int64)
        self.log = np.empty((w.LOG_ROWS, w.ACCESS_WORDS), np.int64)
        self.snapshots = np.empty((w.SNAPSHOT_CAPACITY, 1), np.int64)
        self.spaces = np.zeros((16, 2), np.int64)
        self.crew: Crew | None = None
        self._shadows: dict[int, ShadowMemory] = {}
        self._mixed: list[Words] = []
        state = self.state
        state[w.LOG], state[w.LOG_CAPACITY] = self.log.ctypes.data, len(self.log)
        state[w.SPACES], state[w.LAUNCH] = self.spaces.ctypes.data, launch.words.ctypes.data
        state[w.HANDLERS], state[w.SCRATCH] = launch.handlers.ctypes.data, launch.scratch.ctypes.data
        state[w.ASKED], state[w.POISON] = launch.checks.asked, launch.checks.poison_byte

    def start(self, frame: Frame) -> None:
        """A block begins: its place in the order, the facts of its program, on-chip memory that holds nothing."""
        launch, state, words = self.launch, self.state, frame.words
        if not launch.checks.deep and not watches_gathers(frame.program):
            return
        number, facts = launch.program(frame.program)
        state[w.PROGRAM], state[w.FACTS], state[w.CODE] = number, facts.ctypes.data, frame.program.code.ctypes.data
        state[w.TASK] = launch.running
        state[w.NODE] = launch.node_of_task.get(launch.running, -1)
        state[w.SEAT] = launch.seats
        launch.seats += 1
        state[w.CREW_INDEX], state[w.CREW_SIZE], state[w.FENCES], state[w.LOG_USED] = -1, 1, 0, 0
        state[w.LANES] = launch.lanes
        state[w.SNAPSHOT] = -1
        self.crew = None
        words[op.OBSERVER], words[op.WATCH], words[op.SELF] = (
            observer().address, self.state.ctypes.data, frame.address,
        )  # fmt: skip
        state[w.FRAME] = frame.address
        if launch.checks.asked & w.UNDEFINED:
            self._forget_tiles(frame)

    def _forget_tiles(self, frame: Frame) -> None:
        for space, size in frame.program.space_bytes:
            base = int(frame.memory.bases[space])
            shadow = self._shadows.get(space)
            if shadow is None or shadow.size < size or shadow.address != base:
                shadow = self._shadows[space] = ShadowMemory(base, size, w.UNWRITTEN)
                self.spaces[space] = shadow.map
            if frame.program.clears:
                shadow.fill(0, size, w.UNWRITTEN)
                memory_view(base, size)[:] = self.launch.checks.poison_byte

    def join(self, crew: Crew, index: int, cluster: int) -> None:
        """The block that has just started waits for others."""
        state = self.state
        self.crew = crew
        state[w.CREW_INDEX], state[w.CREW_SIZE], state[w.CLUSTER] = index, crew.size, cluster
        state[w.CLOCK] = crew.clocks[index].ctypes.data
        state[w.SHARED_CLOCKS] = crew.shared.ctypes.data
        if self.snapshots.shape[1] != crew.size:
            self.snapshots = np.empty((w.SNAPSHOT_CAPACITY, crew.size), np.int64)
        state[w.SNAPSHOTS], state[w.SNAPSHOT], state[w.TICK] = self.snapshots.ctypes.data, -1, 1

    def together(self, seats: Sequence[Seat]) -> None:
        """The blocks of ``seats``, this one among them, have begun and wait for each other."""
        if not self.launch.checks.deep:
            return
        clusters = {block: number for number, block in enumerate(dict.fromkeys(seat.block for seat in seats))}
        crew = Crew.of(self.launch.next_crew(), len(seats), len(clusters))
        for index, seat in enumerate(seats):
            watch: Any = seat.frame.watch
            watch.join(crew, index, clusters[seat.block])

    def empty(self, frame: Frame) -> None:
        """Hand the logged accesses to the order check."""
        state, launch = self.state, self.launch
        used = int(state[w.LOG_USED])
        node = int(state[w.NODE]) if state[w.TASK] >= 0 else launch.last_access
        if used and node >= 0:
            self._take(frame, self.log[:used], node)
        state[w.LOG_USED] = 0
        if self.crew is not None:
            state[w.SNAPSHOT], state[w.TICK] = -1, 1

    def _take(self, frame: Frame, records: Words, node: int) -> None:
        state, launch = self.state, self.launch
        clocks, crew_number = None, -1
        if self.crew is not None:
            taken = self.snapshots[: int(state[w.SNAPSHOT]) + 1]
            records[records[:, w.ACCESS_SNAPSHOT] >= 0, w.ACCESS_SNAPSHOT] += len(self.crew.snapshots)
            self.crew.snapshots = np.concatenate((self.crew.snapshots, taken))
            clocks, crew_number = self.crew.snapshots, self.crew.number
        records = launch.without_signals(records, node, int(state[w.SEAT]), int(state[w.PROGRAM]))
        for record in records[records[:, w.ACCESS_KIND] & w.WRITES != 0]:
            place = int(state[w.PROGRAM]), int(record[w.ACCESS_INSTRUCTION])
            launch.writers.setdefault(int(record[w.ACCESS_ALLOCATION]), {}).setdefault(node, place)
        seat, words = int(state[w.SEAT]), frame.words
        launch.table.take(
            records,
            node=node,
            seat=seat,
            program=int(state[w.PROGRAM]),
            lane=int(words[op.LANE]),
            crew=crew_number,
            crew_index=int(state[w.CREW_INDEX]),
            clocks=clocks,
        )
        if len(records) and np.any(records[:, w.ACCESS_KIND] & w.BY_SCALAR) or self._mixed:
            self._mixed.append(records[records[:, w.ACCESS_KIND] & w.WRITES != 0].copy())
        launch.blocks[seat] = int(words[op.BLOCK]), int(words[op.LANE]), int(words[op.CORE])

    def end(self, frame: Frame) -> None:
        """The block has ended."""
        if self.state[w.LOG_USED] or self._mixed:
            self.empty(frame)
        if self._mixed:
            self._note_mixed_stores()

    def _note_mixed_stores(self) -> None:
        """Stores of this block that reach one cache line through the scalar path and in bulk, with no fence between."""
        from pypto.sim.checks.boxes import overlaps
        from pypto.sim.checks.conflicts import LINE_BYTES

        records = np.concatenate(self._mixed)
        self._mixed = []
        scalar = records[records[:, w.ACCESS_KIND] & w.BY_SCALAR != 0]
        bulk = records[records[:, w.ACCESS_KIND] & w.BY_SCALAR == 0]
        for one in scalar:
            near = bulk[
                (bulk[:, w.ACCESS_ALLOCATION] == one[w.ACCESS_ALLOCATION])
                & (bulk[:, w.ACCESS_FENCES] == one[w.ACCESS_FENCES])
            ]
            line = one[w.ACCESS_BOX :].copy()
            line[0], line[1] = line[0] // LINE_BYTES * LINE_BYTES, LINE_BYTES
            hits: Any = overlaps(near[:, w.ACCESS_BOX :], np.repeat(line[None], len(near), 0)) if len(near) else []
            for other in near[np.flatnonzero(hits)]:
                self.launch.mixed_stores.append((int(self.state[w.PROGRAM]), int(self.state[w.NODE]), other, one))
                return


def watches_gathers(program: TileProgram) -> bool:
    """Whether a program gathers from tiles: the observer checks its indices."""
    return any(call.row.kernel == "gather.flat" for call in program.calls)

"""Watches the blocks that run on one core after each other, and prepares the observer for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from pypto.sim import crosscore
from pypto.sim import opcodes as op
from pypto.sim.checks import conflicts as c
from pypto.sim.checks import words as w
from pypto.sim.checks.buffers import LaunchBuffers
from pypto.sim.checks.crews import Crew
from pypto.sim.checks.observer import look_again
from pypto.sim.checks.shadow_memory import ShadowMemory
from pypto.sim.memory import OnChipMemory, memory_view
from pypto.sim.recording import Words

if TYPE_CHECKING:
    from pypto.sim.checks.watch import LaunchWatch
    from pypto.sim.crew import Seat
    from pypto.sim.frames import Frame

_SHADOWS: Final[WeakKeyDictionary[OnChipMemory, dict[int, ShadowMemory]]] = WeakKeyDictionary()
"""Shadows of on-chip memory, kept from launch to launch as the memory is."""


class CoreWatch:
    """One core; it stays with its buffers and watches for one launch after the other."""

    launch: LaunchWatch

    def __init__(self, buffers: LaunchBuffers) -> None:
        self.state = np.zeros(w.STATE_WORDS, np.int64)
        self._address: int = self.state.ctypes.data
        self._spaces, self._before = np.zeros((16, 2), np.int64), np.zeros(16, np.int64)
        state = self.state
        state[w.SPACES], state[w.LAUNCH] = self._spaces.ctypes.data, buffers.words.ctypes.data
        state[w.BEFORE] = self._before.ctypes.data
        state[w.HANDLERS], state[w.SCRATCH] = buffers.handlers.ctypes.data, buffers.scratch.ctypes.data

    def begin(self, launch: LaunchWatch) -> None:
        """``launch`` is watched from now on."""
        self.launch = launch
        self.crew: Crew | None = None
        self._frame: Frame | None = None
        self._known: set[int] = set()
        self._place = (0, 0, 0)
        self.state[w.ASKED], self.state[w.POISON] = launch.asked, launch.checks.poison_byte

    def leave(self) -> None:
        """The launch is over."""
        self.crew = self._frame = None
        if hasattr(self, "launch"):
            del self.launch

    def start(self, frame: Frame) -> None:
        """A block begins: its place in the order, the facts of its program, on-chip memory that holds nothing."""
        launch = self.launch
        words = frame.words
        if frame is not self._frame and not self._change(frame):
            return
        self._place = int(words[op.BLOCK]), int(words[op.LANE]), int(words[op.CORE])
        self.crew = None
        self.state[: w.START_WORDS] = launch.running_node, launch.seats, 0, -1, 1, 0, -1, launch.lanes
        launch.seats += 1
        words[op.OBSERVER], words[op.WATCH], words[op.SELF] = launch.observer, self._address, frame.address
        if launch.orders:
            launch.log.begin(self)
        if launch.asked & w.UNDEFINED and (frame.program.clears or frame is not self._frame):
            self._forget_tiles(frame)
        self._frame = frame

    def _change(self, frame: Frame) -> bool:
        """The next blocks run in ``frame``; False when there is nothing to look at in its program."""
        number, facts = self.launch.program(frame.program)
        state = self.state
        state[w.PROGRAM], state[w.FACTS], state[w.CODE] = number, facts.address, facts.code_address
        state[w.FRAME] = frame.address
        return facts.observed

    def seat(self, row: Words) -> None:
        """The block that runs, for the accesses that name it."""
        state, crew = self.state, self.crew
        row[: c.S_INDEX] = (
            state[w.NODE], state[w.SEAT], state[w.PROGRAM], -1 if crew is None else crew.number, state[w.CREW_INDEX],
            *self._place,
        )  # fmt: skip
        row[c.S_CREW_WORDS], row[c.S_CREW_SIZE] = state[w.CREW], state[w.CREW_SIZE]

    def follow(self, node: int) -> None:
        """What the block does from now on belongs to ``node`` of the order graph."""
        self.state[w.NODE] = node
        self.launch.log.begin(self)

    def _forget_tiles(self, frame: Frame) -> None:
        shadows = _SHADOWS.setdefault(frame.memory, {})
        for space, size in frame.program.space_bytes:
            base = int(frame.memory.bases[space])
            shadow = shadows.get(space)
            if shadow is None or shadow.size < size or shadow.address != base:
                shadow = shadows[space] = ShadowMemory(base, size, w.UNWRITTEN)
            if space not in self._known:
                self._known.add(space)
                shadow.fill(0, shadow.size, w.UNWRITTEN)
            self._spaces[space] = shadow.map
            if self.launch.asked & w.WRAP:
                self._before[space] = shadow.before()
            if frame.program.clears:
                shadow.fill(0, size, w.UNWRITTEN)
                memory_view(base, size)[:] = self.launch.checks.poison_byte

    def join(self, crew: Crew, index: int, cluster: int) -> None:
        """The block that has just started waits for others."""
        state = self.state
        self.crew = crew
        state[w.CREW_INDEX], state[w.CREW_SIZE], state[w.CLUSTER] = index, crew.size, cluster
        state[w.CLOCK] = crew.clocks[index].ctypes.data
        state[w.SHARED_CLOCKS], state[w.CREW] = crew.shared.ctypes.data, crew.words.ctypes.data
        state[w.SNAPSHOT], state[w.TICK] = -1, 1
        self.launch.log.begin(self)

    def together(self, seats: Sequence[Seat]) -> None:
        """The blocks of ``seats``, this one among them, have begun and wait for each other."""
        if self.launch.asked & w.UNDEFINED:
            for address in {int(seat.frame.words[op.CHANNELS]) for seat in seats}:
                self.launch.queues.follow(memory_view(address, 8 * crosscore.CLUSTER_WORDS).view(np.int64))
        if not self.launch.orders:
            return
        clusters = {block: number for number, block in enumerate(dict.fromkeys(seat.block for seat in seats))}
        channels = memory_view(int(seats[0].frame.words[op.CHANNELS]), 8 * crosscore.CLUSTER_WORDS).view(np.int64)
        crew = self.launch.new_crew(len(seats), len(clusters), channels)
        for index, seat in enumerate(seats):
            watch: Any = seat.frame.watch
            watch.join(crew, index, clusters[seat.block])

    def empty(self, frame: Frame) -> None:
        """The observer has no more room, perhaps in the middle of an instruction."""
        self.launch.log.flush()
        words, following = frame.words, int(frame.words[op.PC])
        while self.state[w.RESUME]:
            words[op.PC] = self.state[w.INSTRUCTION_PC]
            look_again(frame.address)
            self.launch.log.flush()
        words[op.PC] = following

    def end(self, frame: Frame) -> None:
        """The block has ended."""
        self.launch.log.end(self)


def on_chip_code(address: int) -> int:
    """Code (words.py) of the byte of on-chip memory at ``address``; 0 for memory that is not followed."""
    for shadows in _SHADOWS.values():
        for shadow in shadows.values():
            if shadow.address <= address < shadow.address + shadow.size:
                at = address - shadow.address
                return int(shadow.read(at, at + 1)[0])
    return 0

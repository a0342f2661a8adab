"""Frames and the cores they run on: from an assembled program to a block that can be resumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from pypto.sim import opcodes as op
from pypto.sim.faults import fault
from pypto.sim.layout import TRACE_WORDS
from pypto.sim.machine import interpreter
from pypto.sim.memory import Allocations, OnChipMemory
from pypto.sim.recording import Words
from pypto.sim.tile_program import TileProgram

if TYPE_CHECKING:
    from pypto.sim.crew import Seat

FUEL: Final = 1 << 20
"""Backward jumps between two looks at the outside world (signals, other blocks): some milliseconds."""
_FIRST_ROWS: Final = 256


class Watch(Protocol):
    """Who looks at the blocks of a core while they run (:mod:`pypto.sim.checks`)."""

    def start(self, frame: Frame) -> None:
        """A block begins; its parameters are in the frame."""

    def empty(self, frame: Frame) -> None:
        """The observer has asked for room."""

    def end(self, frame: Frame) -> None:
        """The block has ended."""

    def together(self, seats: Sequence[Seat]) -> None:
        """The blocks of ``seats`` have begun and wait for each other."""


class Trace:
    """Rows written by one or several blocks after each other."""

    def __init__(self) -> None:
        self.rows = np.empty((_FIRST_ROWS, TRACE_WORDS), np.int64)
        self.address = self.rows.ctypes.data
        self.used = 0

    def append(self, other: Trace) -> None:
        """Add the rows of ``other``."""
        while self.used + other.used > len(self.rows):
            self.grow()
        self.rows[self.used : self.used + other.used] = other.rows[: other.used]
        self.used += other.used

    def grow(self) -> None:
        """Make room for as many rows again."""
        rows = np.empty((2 * len(self.rows), TRACE_WORDS), np.int64)
        rows[: len(self.rows)] = self.rows
        self.rows, self.address = rows, rows.ctypes.data


class Core:
    """One core: its on-chip memory and a frame per program that has run on it."""

    def __init__(self) -> None:
        self.memory = OnChipMemory()
        self.watch: Watch | None = None
        self._frames: dict[TileProgram, Frame] = {}

    def observe(self, watch: Watch | None) -> None:
        """Let ``watch`` look at every block from now on."""
        self.watch = watch
        for frame in self._frames.values():
            frame.watch = watch

    def frame(self, program: TileProgram) -> Frame:
        """The frame of ``program`` on this core, with tile addresses in this core's memory."""
        return self.frames((program,))[0]

    def frames(self, programs: Sequence[TileProgram]) -> list[Frame]:
        """Frames of programs that take turns on this core; frames handed out earlier end here if memory has to grow."""
        found = [self._frames[program] for program in programs if program in self._frames]
        if len(found) == len(programs):
            return found
        grown = [self.memory.reserve(program.space_bytes) for program in programs]
        if any(grown):
            self._frames.clear()
        for program in programs:
            if program not in self._frames:
                self._frames[program] = Frame(program, self.memory)
            self._frames[program].watch = self.watch
        return [self._frames[program] for program in programs]


class Frame:
    """The state of one block; reused by the blocks that run on the same core after each other."""

    def __init__(self, program: TileProgram, memory: OnChipMemory):
        self.program, self.memory = program, memory
        self.watch: Watch | None = None
        self.template = program.template.copy()
        self.template[program.relocated] += memory.bases[program.relocated_space]
        self.template[op.FUEL] = FUEL
        self.words = self.template.copy()
        self.address = self.words.ctypes.data
        self._request = np.array([program.code.ctypes.data, self.address, 0, 0, 0], np.int64)
        self._request_address = self._request.ctypes.data
        self._run: Any = interpreter()

    def start(self, places: Words, values: Words, block: int, blocks: int, core: int, *, record: bool) -> None:
        """Begin a block: ``values`` are its parameters and go to the words ``places``; ``core`` 0 AIC, 1 + lane AIV."""
        words = self.words
        np.copyto(words, self.template)
        words[places] = values
        words[op.BLOCK], words[op.BLOCKS], words[op.CORE], words[op.LANE] = block, blocks, core, max(core - 1, 0)
        words[op.RECORD] = record
        if self.program.clears:
            self.memory.clear(self.program.space_bytes)
        if self.watch is not None:
            self.watch.start(self)

    def resume(self, trace: Trace, allocations: Allocations) -> int:
        """Run until the block is done, blocked, out of fuel or asks something; a fault raises ``ExecutionError``."""
        words, request = self.words, self._request
        request[4] = allocations.deltas_address
        while True:
            request[2] = trace.address
            request[3] = len(trace.rows)
            words[op.ROWS] = trace.used
            status: int = self._run(self._request_address)
            trace.used = int(words[op.ROWS])
            if status == op.TRACE_FULL:
                trace.grow()
            elif status == op.PAUSED:
                self.watch.empty(self)  # type: ignore[union-attr]
            elif status == op.FAULTED:
                raise fault(self.program, words, self.address)
            else:
                if status == op.OUT_OF_FUEL:
                    words[op.FUEL] = FUEL
                if status == op.DONE and self.watch is not None:
                    self.watch.end(self)
                return status

    def list_accesses(self, rows: Words, used: int) -> int:
        """Run in mode LIST: accesses go to ``rows`` (footprint.py), of which ``used`` are taken; returns the status."""
        words, request = self.words, self._request
        request[2], request[3], request[4] = rows.ctypes.data, len(rows), 0
        words[op.ROWS] = used
        status: int = self._run(self._request_address)
        return status

    def finish(self, trace: Trace, allocations: Allocations) -> None:
        """Run a block that waits for nobody to its end."""
        while self.resume(trace, allocations) == op.OUT_OF_FUEL:
            pass

"""Errors of queues between cores: what does not fit together, with the place of the other side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pypto.ir.dtype import DataType
from pypto.sim import layout, tile_queues
from pypto.sim import opcodes as op
from pypto.sim.faults import ExecutionError, source_place
from pypto.sim.memory import memory_view
from pypto.sim.syntax import Instruction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pypto.sim.crew import Seat
    from pypto.sim.recording import Words
    from pypto.sim.tile_program import TileProgram

CODES: Final = (
    op.FIFO_SHAPE, op.FREE_WITHOUT_POP, op.FIFO_SPLIT, op.FREE_TWICE, op.FREE_ELSEWHERE, op.FREE_SPLIT, op.NO_PARTNER,
)  # fmt: skip
_SPLITS: Final = {0: "whole", 1: "rows", 2: "columns", 3: "odd rows", 4: "odd columns"}
_COUNT: Final = "free every popped tile once, after its last use: one tfree per tpop, with the same id"
_REPAIRS: Final = {
    op.FIFO_SHAPE: "pop tiles in the order in which they are pushed, with the shape and dtype that arrive",
    op.FIFO_SPLIT: "give push, pop and free of a queue the same split (and lane_stride)",
    op.FREE_SPLIT: "give push, pop and free of a queue the same split, or leave it out of the free",
    op.FREE_ELSEWHERE: "free a tile with the id it was popped with",
    op.NO_PARTNER: "put the AIC and the AIV function into one pl.FunctionType.Group, or leave the transfer out",
}


class QueueError(ExecutionError):
    """A queue between cores used against its rules.

    ``others`` are (program, instruction, what happens there) of the places that do not fit; ``repair`` says what would.
    """

    others: tuple[tuple[TileProgram, int, str], ...] = ()
    repair: str = _COUNT
    sender: tuple[int, int] | None = None
    """(core, instruction) of the push; its program is known to those who run the cores."""

    def complete(self, failed: Seat, seats: Sequence[Seat]) -> None:
        """Name the place of the push: ``seats`` are the cores that run together with the one that ``failed``."""
        if self.sender is None:
            return
        core, index = self.sender
        for seat in seats:
            if seat.block == failed.block and seat.core == core:
                program = seat.frame.program
                self.others += ((program, index, f"'{program.name}' pushes"),)
                first, *rest = str(self).split("\n", 1)
                self.args = (f"{first}, pushed at {source_place(program, index)}", *rest)
                self.args = ("\n".join(self.args),)
                return


def queue_error(program: TileProgram, frame: Words, index: int, where: str) -> QueueError:
    """The error for a fault with one of ``CODES``; ``where`` names the block and the line."""
    fault = _QueueFault(program, frame, index)
    error = QueueError(f"{fault.message()}\n{where}")
    error.site, error.subject = (program, index), fault.tile
    error.index_ranges = ((fault.number, fault.number + 1),)
    error.repair, error.others, error.sender = _REPAIRS.get(fault.code, _COUNT), fault.earlier(), fault.push()
    return error


class _QueueFault:
    def __init__(self, program: TileProgram, frame: Words, index: int):
        self.program, self.frame, self.index = program, frame, index
        self.code, self.lane = int(frame[op.FAULT]), int(frame[op.DETAIL + 1])
        statement = program.statements[index]
        assert isinstance(statement, Instruction)
        self.statement, self.name = statement, statement.mnemonic
        self.register: str = getattr(statement.operands[0], "name", "")
        self.tile, self.channel = program.author(self.register), int(str(statement.attributes.get("id", 0)))
        slot, self.number = int(frame[op.DETAIL]), int(frame[op.DETAIL + 2])
        self.slot = memory_view(slot, tile_queues.SLOT_HEADER).view(np.int64) if slot else None

    def message(self) -> str:
        messages = {
            op.FIFO_SHAPE: self._shapes, op.FIFO_SPLIT: self._splits, op.FREE_SPLIT: self._freed_split,
            op.FREE_TWICE: self._freed_twice, op.FREE_ELSEWHERE: self._freed_elsewhere, op.NO_PARTNER: self._alone,
        }  # fmt: skip
        message = messages.get(self.code)
        return message() if message is not None else "a slot is freed that was not popped"

    def earlier(self) -> tuple[tuple[TileProgram, int, str], ...]:
        """Places on this side that do not fit the one at fault."""
        places = []
        if self.code in (op.FREE_TWICE, op.FREE_SPLIT, op.FREE_ELSEWHERE):
            places.append((self.program, self._word(tile_queues.SLOT_POP), f"'{self.program.name}' pops"))
        if self.code == op.FREE_TWICE:
            first = self._word(tile_queues.SLOT_FREE)
            places.append((self.program, first, f"'{self.program.name}' frees it first"))
        return tuple(places)

    def push(self) -> tuple[int, int] | None:
        """(core, instruction) of the push that does not fit."""
        if self.code not in (op.FIFO_SHAPE, op.FIFO_SPLIT):
            return None
        sender = 0 if self.name.endswith("_aic") else 1 + self.lane
        return sender, self._word(tile_queues.SLOT_PUSH)

    def _word(self, word: int) -> int:
        return int(self.slot[word]) if self.slot is not None else 0

    def _shapes(self) -> str:
        rows, cols, dtype = (
            self._word(word) for word in (tile_queues.SLOT_ROWS, tile_queues.SLOT_COLS, tile_queues.SLOT_DTYPE)
        )
        at = self.program.offsets[self.register]
        tile = self.frame[at : at + layout.TILE_WORDS]
        parts = " from each lane" if self.name == "tpop_from_aiv" and self._word(tile_queues.SLOT_SPLIT) else ""
        return (
            f"the tile pushed by the other core is {rows} x {cols} {DataType.from_code(dtype)}{parts} and does not fit "
            f"'{self.tile}', which is {int(tile[layout.TILE_ROWS])} x {int(tile[layout.TILE_COLS])} "
            f"{DataType.from_code(int(tile[layout.TILE_DTYPE]))}"
        )

    def _splits(self) -> str:
        pushed, popped = self._word(tile_queues.SLOT_SPLIT), int(str(self.statement.attributes.get("split", 0)))
        if pushed == popped:
            stride = int(str(self.statement.attributes.get("lane_stride", 0)))
            return (
                f"'{self.tile}' is popped from queue {self.channel} with lane_stride {stride}, and what lies there was "
                f"pushed with {self._word(tile_queues.SLOT_STRIDE) or 'none'}"
            )
        return (
            f"'{self.tile}' is popped from queue {self.channel} with {_split(popped)}, and what lies there was pushed "
            f"with {_split(pushed)}"
        )

    def _freed_split(self) -> str:
        freed, popped = int(str(self.statement.attributes.get("split", 0))), self._word(tile_queues.SLOT_SPLIT)
        return f"'{self.tile}' is freed with {_split(freed)} and was popped with {_split(popped)}"

    def _freed_twice(self) -> str:
        first = source_place(self.program, self._word(tile_queues.SLOT_FREE))
        return f"the slot of '{self.tile}' is freed a second time, first at {first}"

    def _freed_elsewhere(self) -> str:
        pop = self._word(tile_queues.SLOT_POP)
        attributes = getattr(self.program.statements[pop], "attributes", {})
        return (
            f"'{self.tile}' is freed in queue {self.channel} and was popped from queue {attributes.get('id', 0)} at "
            f"{source_place(self.program, pop)}"
        )

    def _alone(self) -> str:
        side = "cube" if self.name.endswith("_aic") else "vector lane"
        acts = {"tpush": "pushes to", "tpop_": "pops from", "tfree": "frees a slot of"}
        return f"'{self.program.name}' {acts[self.name[:5]]} a {side}, and its task has none (queue {self.channel})"


def _split(code: int) -> str:
    return f"split {code} ({_SPLITS.get(code, '?')})"

"""What a launch has told other ranks so far, for the report of a deadlock (spec distributed 5.2 D1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pypto.sim import opcodes as op
from pypto.sim.faults import source_place
from pypto.sim.syntax import Instruction, Register

if TYPE_CHECKING:
    from pypto.sim.crew import Seat
    from pypto.sim.tile_program import TileProgram


@dataclass(frozen=True)
class Told:
    """Notifies of one line: ``cell`` names domain and byte, ``rank`` is the world rank that owns it.

    ``value`` is what the first of ``count`` has added or set, ``last`` what the last one has.
    """

    cell: int
    rank: int
    value: int
    sets: bool
    signal: str
    index: str
    kernel: str
    place: str
    last: int
    count: int = 1


class ToldSignals:
    """The notifies of one launch; ``ahead``: (signal, place) of notifies that its blocks have not come to."""

    def __init__(self) -> None:
        self._sent: dict[tuple[int, ...], tuple[int, int]] = {}  # how many, and the last value
        self._first: dict[tuple[int, ...], Told] = {}
        self.ahead: tuple[tuple[str, str], ...] = ()

    def note(self, seat: Seat) -> None:
        """The block has just notified."""
        words = seat.frame.words
        name, rank, value, sets = (int(word) for word in words[op.ARGUMENTS : op.ARGUMENTS + 4])
        key = id(seat.frame.program), int(words[op.DETAIL + 1]), name, rank, sets
        self._sent[key] = self._sent[key][0] + 1 if key in self._sent else 1, value
        if key not in self._first:
            program, at = seat.frame.program, key[1]
            signal, index = cell_operand(seat, at)
            self._first[key] = Told(
                name, rank, value, bool(sets), signal, index, program.name, source_place(program, at), value
            )

    def rows(self) -> tuple[Told, ...]:
        """What was told, by line and cell, in the order of first notifies."""
        sent = ((told, *self._sent[key]) for key, told in self._first.items())
        return tuple(replace(told, count=count, last=last) for told, count, last in sent)

    def note_ahead(self, waiting: Iterable[Seat], later: Iterable[TileProgram]) -> None:
        """The launch is given up: ``waiting`` blocks stand where they are, those of ``later`` have not begun."""
        places = [place for seat in waiting for place in notifies(seat.frame.program, int(seat.frame.words[op.SITE]))]
        places += [place for program in later for place in notifies(program)]
        self.ahead = tuple(dict.fromkeys(places))


def notifies(program: TileProgram, behind: int = -1) -> Iterator[tuple[str, str]]:
    """(signal, place) of the notifies of a program that stand behind an instruction."""
    for index, statement in enumerate(program.statements):
        if index > behind and isinstance(statement, Instruction) and statement.mnemonic == "notify":
            yield str(getattr(statement.operands[0], "name", "")), source_place(program, index)


def cell_operand(seat: Seat, index: int) -> tuple[str, str]:
    """(tensor, indices) of the cell that a notify or a wait names."""
    program = seat.frame.program
    statement = program.statements[index]
    assert isinstance(statement, Instruction)
    tensor, *rest = statement.operands
    indices = next(item for item in rest if isinstance(item, (list, tuple)))
    words, offsets = seat.frame.words, program.offsets
    values = [int(words[offsets[item.name]]) if isinstance(item, Register) else item for item in indices]
    return str(getattr(tensor, "name", tensor)), ", ".join(map(str, values))

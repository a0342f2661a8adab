"""Gathers from tiles that took zero for an index outside, told by the interpreter: no block is observed for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pypto.ir.instructions import INSTRUCTIONS
from pypto.sim import layout
from pypto.sim import opcodes as op
from pypto.sim.checks.findings import Finding
from pypto.sim.checks.places import cell, location, operation
from pypto.sim.syntax import Instruction

if TYPE_CHECKING:
    from pypto.sim.crew import Seat
    from pypto.sim.frames import Frame
    from pypto.sim.tile_program import TileProgram


class OutsideIndex(NamedTuple):
    """Element (``row``, ``col``) of an index tile is ``value``; legal are 0..``limit`` - 1."""

    value: int
    limit: int
    row: int
    col: int


class _Seen(NamedTuple):
    """The first one of an instruction, in the order of tasks and of blocks within a task."""

    task: int
    block: int
    name: str
    outside: OutsideIndex


class IndexWatch:
    """The watch (:class:`pypto.sim.frames.Watch`) of every core of one launch, on several host threads too."""

    def __init__(self) -> None:
        self._task, self._name = 0, ""
        self._seen: dict[tuple[TileProgram, int], _Seen] = {}

    def new_core(self) -> IndexWatch:
        """The watch for one core."""
        return self

    def begin(self, name: str) -> None:
        """Blocks of the task ``name`` are about to start."""
        self._task, self._name = self._task + 1, name

    def start(self, frame: Frame) -> None:
        """A block begins."""
        frame.words[op.TELLS] = 1

    def empty(self, frame: Frame) -> None:
        """An instruction took zero."""
        words, program = frame.words, frame.program
        number = int(program.code[int(words[op.CODE]) + 2])
        statement = program.statements[number]
        assert isinstance(statement, Instruction)
        position, value, limit = (int(word) for word in words[op.DETAIL : op.DETAIL + 3])
        target = program.offsets[_operand(statement, "dst")]
        row, col = divmod(position, int(words[target + layout.TILE_VALID_COLS]))
        seen = _Seen(self._task, int(words[op.BLOCK]), self._name, OutsideIndex(value, limit, row, col))
        known = self._seen.get((program, number))
        if known is None or seen[:2] < known[:2]:
            self._seen[program, number] = seen

    def end(self, frame: Frame) -> None:
        """The block has ended."""

    def together(self, seats: Sequence[Seat]) -> None:
        """The blocks of ``seats`` have begun and wait for each other."""

    def findings(self) -> Iterator[Finding]:
        """One per instruction, the earliest task first."""
        for (program, number), seen in sorted(self._seen.items(), key=lambda item: item[1][:2]):
            statement = program.statements[number]
            assert isinstance(statement, Instruction)
            yield outside_finding(program, number, seen.name, _operand(statement, "index"), seen.outside)


def _operand(statement: Instruction, name: str) -> str:
    return getattr(statement.operands[INSTRUCTIONS[statement.mnemonic].index[name]], "name", "?")


def outside_finding(program: TileProgram, number: int, task: str, register: str, index: OutsideIndex) -> Finding:
    """Instruction ``number`` of ``program`` takes ``index`` from the tile in ``register`` and reads zero."""
    name, what = operation(program, number), program.author(register)
    message = (
        f"'{name}' in '{task}' takes index {index.value} from '{what}' at [{index.row}, {index.col}]: it is outside "
        f"its extent {index.limit}, legal are 0..{index.limit - 1}"
    )
    bound = "pl.maximum(index, 0)" if index.value < 0 else f"pl.minimum(index, {index.limit - 1})"
    repair = f"bring the index into bounds first, as with {bound}"
    return Finding(
        "bounds", message, what, (task,), (location(program, number, f"'{name}' in '{task}'"),),
        *cell(program, register, index.row, index.col), repair,
    )  # fmt: skip

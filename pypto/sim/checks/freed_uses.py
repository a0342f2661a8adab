"""Which programs use a tile that a free has given back on every way that leads there, read off their text alone.

Most uses after a free are seen without running anything. A launch of such a program is followed by the observer,
whatever was asked for, and its report is the same; all other launches pay nothing. What is freed on some ways only is
left to the observer (docs/checks/fifo.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from pypto.ir.dtype import DataType
from pypto.ir.instructions import INSTRUCTIONS
from pypto.sim.syntax import For, If, Instruction, Register, Statement, Tile, While, walk

if TYPE_CHECKING:
    from pypto.sim.program import LoadedProgram
    from pypto.sim.tile_program import TileProgram


class _Bytes(NamedTuple):
    """Bytes [``low``, ``high``) of an on-chip memory."""

    space: str
    low: int
    high: int


_Queue = tuple[str, object]


class _Slots(NamedTuple):
    """What holds whatever way was taken.

    ``freed``: registers whose slot is given back, and where they lie. ``held``: registers popped from a queue and not
    given back, the oldest first.
    """

    freed: Mapping[str, _Bytes]
    held: Mapping[_Queue, tuple[str, ...]]


_KNOWN: Final[WeakKeyDictionary[LoadedProgram, bool]] = WeakKeyDictionary()


def may_use_freed(program: LoadedProgram) -> bool:
    """Whether a kernel of ``program`` uses a tile after its slot was freed, if it comes there at all."""
    if program not in _KNOWN:
        _KNOWN[program] = any(_uses_freed(kernel) for kernel in program.kernels.values())
    return _KNOWN[program]


def _uses_freed(kernel: TileProgram) -> bool:
    return any(map(_gives_back, walk(kernel.body))) and _Walk(kernel).finds_use()


def _gives_back(statement: Statement) -> bool:
    is_free = isinstance(statement, Instruction) and statement.mnemonic.startswith("tfree")
    return is_free and not statement.attributes.get("copied")  # type: ignore[union-attr]


class _Walk:
    """All ways through the text of a kernel; where ways meet, what holds on both is kept."""

    def __init__(self, kernel: TileProgram) -> None:
        self._kernel, self._found = kernel, False
        self._computed = set(_computed(kernel))

    def finds_use(self) -> bool:
        self._statements(self._kernel.body, _Slots({}, {}))
        return self._found

    def _statements(self, statements: tuple[Statement, ...], slots: _Slots) -> _Slots:
        for statement in statements:
            slots = self._statement(statement, slots)
        return slots

    def _statement(self, statement: Statement, slots: _Slots) -> _Slots:
        if isinstance(statement, Instruction):
            return self._instruction(statement, slots)
        if isinstance(statement, If):
            return _both(self._statements(statement.then, slots), self._statements(statement.orelse, slots))
        if isinstance(statement, While):
            tested = self._statements(statement.test, slots)
            return self._trips((*statement.body, *statement.test), tested)
        assert isinstance(statement, For)
        return self._trips(statement.body, slots)

    def _trips(self, body: tuple[Statement, ...], slots: _Slots) -> _Slots:
        """No trip, the first, or one that follows another."""
        once = self._statements(body, slots)
        return _both(slots, _both(once, self._statements(body, once)))

    def _instruction(self, statement: Instruction, slots: _Slots) -> _Slots:
        if _gives_back(statement):
            return self._free(statement, slots)
        freed, held = slots
        read, written = _operands(statement)
        if freed:
            uses = [place for _, place in self._places(statement, read)]
            self._found |= any(_meet(use, gone) for use in uses for gone in freed.values())
            fresh = [place for _, place in self._places(statement, written)]
            freed = {name: at for name, at in freed.items() if not any(_meet(place, at) for place in fresh)}
        if statement.mnemonic.startswith("tpop"):
            popped = tuple(name for name, _ in self._places(statement, written))
            held = {**held, _queue(statement): (*held.get(_queue(statement), ()), *popped)}
        return _Slots(freed, held)

    def _free(self, statement: Instruction, slots: _Slots) -> _Slots:
        """The tile that is named may not be used any more, nor the oldest one, whose slot it is that goes."""
        queue, freed = _queue(statement), dict(slots.freed)
        named, held = [name for name, _ in self._places(statement, (0,))], slots.held.get(queue, ())
        by_name = not self._computed.intersection(named)
        oldest = [name for name in held[:1] if by_name and name not in held[1:]]
        for name in (*named, *oldest):
            place = _lies_at(self._kernel.symbols.get(name))
            if place is not None:
                freed.setdefault(name, place)
        return _Slots(freed, {**slots.held, queue: held[1:]})

    def _places(self, statement: Instruction, positions: tuple[int, ...]) -> Iterator[tuple[str, _Bytes | None]]:
        for position in positions:
            operand = statement.operands[position] if position < len(statement.operands) else None
            if isinstance(operand, Register):
                yield operand.name, _lies_at(self._kernel.symbols.get(operand.name))


def _computed(kernel: TileProgram) -> Iterator[str]:
    """Registers that something else than a pop writes: a free of one does not tell which tile it means."""
    for statement in walk(kernel.body):
        if isinstance(statement, Instruction) and not statement.mnemonic.startswith("tpop"):
            for position in _operands(statement)[1]:
                operand = statement.operands[position]
                if isinstance(operand, Register):
                    yield operand.name


def _queue(statement: Instruction) -> _Queue:
    """The queue that a pop or a free is about: the side it comes from, and its id."""
    return statement.mnemonic[-3:], statement.attributes.get("id", 0)


def _operands(statement: Instruction) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Positions of what an instruction reads and of what it writes; scalar code has no row and reads a tile only."""
    row = INSTRUCTIONS.get(statement.mnemonic)
    return (row.sources(), row.destinations()) if row is not None else (tuple(range(len(statement.operands))), ())


def _lies_at(symbol: object) -> _Bytes | None:
    if not isinstance(symbol, Tile):
        return None
    pitch = symbol.stride if symbol.stride is not None else symbol.cols
    size = (symbol.rows * pitch * DataType.from_string(symbol.dtype).get_bit() + 7) // 8
    if symbol.slots is not None:
        size += (symbol.slots.count - 1) * symbol.slots.pitch
    return _Bytes(symbol.space, symbol.offset, symbol.offset + size)


def _meet(a: _Bytes | None, b: _Bytes) -> bool:
    return a is not None and a.space == b.space and a.low < b.high and b.low < a.high


def _both(a: _Slots, b: _Slots) -> _Slots:
    return _Slots(
        {name: place for name, place in a.freed.items() if name in b.freed},
        {queue: held for queue, held in a.held.items() if b.held.get(queue) == held},
    )

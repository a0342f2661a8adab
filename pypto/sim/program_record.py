"""Static facts of an assembled program for the timing engine, one row per instruction index."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pypto.ir.dtype import DataType
from pypto.ir.instructions import INSTRUCTIONS, pipe_of
from pypto.ir.instructions.table import Instruction as Row
from pypto.sim.call_code import attribute_words
from pypto.sim.emitter import Emitter, tile_bytes
from pypto.sim.layout import PIPES, SPACES
from pypto.sim.recording import AIC, AIV, ProgramRecord, Words
from pypto.sim.syntax import Array, For, If, Instruction, Register, ScalarParameter, Statement, Tile
from pypto.sim.text import LAYOUTS

_STRUCTURED = {For: "for", If: "if"}


def program_record(emitter: Emitter) -> ProgramRecord:
    """The record of the program that ``emitter`` holds."""
    names = [_name(statement) for statement in emitter.statements]
    mnemonics = sorted(set(names))
    number = {name: index for index, name in enumerate(mnemonics)}
    facts = [_Facts(emitter, statement) for statement in emitter.statements]
    reads_start, reads = _flatten(f.reads for f in facts)
    writes_start, writes = _flatten(f.writes for f in facts)
    return ProgramRecord(
        name=emitter.unit.name,
        core=AIC if emitter.unit.core == "aic" else AIV,
        mnemonics=mnemonics,
        mnemonic=_words(number[name] for name in names),
        pipe=_words(f.pipe for f in facts),
        dtype=_words(f.dtype for f in facts),
        dtype_out=_words(f.dtype_out for f in facts),
        line=_words(statement.place.line if statement.place else 0 for statement in emitter.statements),
        reads_start=reads_start,
        reads=reads,
        writes_start=writes_start,
        writes=writes,
        tiles=np.array([_tile_row(tile) for tile in emitter.unit.tiles], np.int64).reshape(-1, 10),
        attributes=[f.attributes for f in facts],
    )


def _name(statement: Statement) -> str:
    return statement.mnemonic if isinstance(statement, Instruction) else _STRUCTURED.get(type(statement), "while")


def _words(items: Iterable[int]) -> Words:
    return np.fromiter(items, np.int64)


def _flatten(lists: Iterable[list[int]]) -> tuple[Words, Words]:
    rows = list(lists)
    return np.cumsum([0, *map(len, rows)], dtype=np.int64), _words(item for row in rows for item in row)


def _tile_row(tile: Tile) -> tuple[int, ...]:
    """See ``ProgramRecord.tiles``."""
    return (
        SPACES[tile.space],
        tile.offset,
        tile_bytes(tile),
        tile.rows,
        tile.cols,
        tile.stride or tile.cols,
        DataType.from_string(tile.dtype).code(),
        LAYOUTS.index(tile.layout) if tile.layout else 0,
        tile.slots.count if tile.slots else 1,
        tile.slots.pitch if tile.slots else 0,
    )


class _Facts:
    """Pipe, dtypes, tiles and attributes of one instruction."""

    def __init__(self, emitter: Emitter, statement: Statement):
        self.pipe, self.dtype, self.dtype_out = PIPES["S"], -1, -1
        self.reads: list[int] = []
        self.writes: list[int] = []
        self.attributes: dict[str, int] = {}
        if not isinstance(statement, Instruction):
            return
        row = INSTRUCTIONS.get(statement.mnemonic)
        if row is not None:
            self._tile_instruction(emitter, statement, row)
        elif statement.mnemonic in ("sload", "sstore"):
            self._element_access(emitter, statement)

    def _tile_instruction(self, emitter: Emitter, instruction: Instruction, row: Row) -> None:
        self.attributes = attribute_words(emitter, instruction, row)
        for index in row.sources():
            self._touch(emitter, instruction, index, self.reads)
        for index in row.destinations():
            self._touch(emitter, instruction, index, self.writes)
        if row.work >= 0:
            self.dtype = _dtype(emitter, instruction, row.work)
        outputs = row.destinations()
        self.dtype_out = _dtype(emitter, instruction, outputs[0]) if outputs else self.dtype
        if row.pipe == "attribute":
            self.pipe = self.attributes["pipe"]
        else:
            source, target = (
                _space(emitter, instruction, row, _inputs(row)),
                _space(emitter, instruction, row, outputs),
            )
            self.pipe = PIPES[pipe_of(row, source, target)]

    def _touch(self, emitter: Emitter, instruction: Instruction, index: int, tiles: list[int]) -> None:
        operand = instruction.operands[index]
        if isinstance(operand, Register) and operand.name in emitter.tile_index:
            tiles.append(emitter.tile_index[operand.name])

    def _element_access(self, emitter: Emitter, instruction: Instruction) -> None:
        loads = instruction.mnemonic == "sload"
        subject = 1 if loads else 0
        self._touch(emitter, instruction, subject, self.reads if loads else self.writes)
        self.dtype = self.dtype_out = _dtype(emitter, instruction, subject)


def _inputs(row: Row) -> tuple[int, ...]:
    """Operands the data comes from: those only read, else all that are read (a store reads its tensor to add to it)."""
    pure = tuple(index for index in row.sources() if row.operands[index].access == "in")
    return pure or row.sources()


def _symbol(emitter: Emitter, instruction: Instruction, index: int) -> object:
    operand = instruction.operands[index]
    return emitter.symbols.get(operand.name) if isinstance(operand, Register) else None


def _dtype(emitter: Emitter, instruction: Instruction, index: int) -> int:
    symbol = _symbol(emitter, instruction, index)
    if symbol is None or isinstance(symbol, (Array, ScalarParameter)):
        return -1
    return DataType.from_string(symbol.dtype).code()  # type: ignore[attr-defined]


def _space(emitter: Emitter, instruction: Instruction, row: Row, operands: tuple[int, ...]) -> str:
    """Memory space of the first tile or tensor among ``operands``."""
    for index in operands:
        if row.operands[index].kind == "tensor":
            return "ddr"
        symbol = _symbol(emitter, instruction, index)
        if isinstance(symbol, Tile):
            return symbol.space
    return "ddr"

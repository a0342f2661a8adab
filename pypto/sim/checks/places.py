"""Names for what a finding is about: source lines, operands, tensors, index ranges."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from pypto.ir.dtype import DataType
from pypto.ir.instructions import INSTRUCTIONS
from pypto.sim.checks import words as w
from pypto.sim.checks.facts import argument_positions, root_names
from pypto.sim.checks.findings import Location
from pypto.sim.recording import Words
from pypto.sim.syntax import Array, For, Instruction, Register, Tile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pypto.sim.checks.watch import Memory
    from pypto.sim.tile_program import TileProgram


def location(program: TileProgram, index: int, what: str = "") -> Location:
    """Source line of an instruction, or its line in the kernel text."""
    place = program.place(index)
    if place is not None:
        return Location(program.files.get(place.file, f"file {place.file}"), place.line, what)
    known = 0 <= index < len(program.statements)
    return Location(program.text_file, program.statements[index].position.line if known else 0, what)


_SPELLED: Final = {
    "sload": "read", "sstore": "write", "tcvt": "cast", "signal_wait": "wait", "signal_defer": "defer_wait",
    "ttrans": "transpose", "tmov": "move", "aget": "read of an array", "aset": "write to an array",
    "sfloordiv": "//", "smod": "%", "sdiv": "/", "peerview": "remote access",
}  # fmt: skip
_ALONG_AN_AXIS: Final = re.compile(r"(row|col)(expand(?=.))?")


def operation(program: TileProgram, index: int) -> str:
    """Name of an operation as the language spells it: the mnemonic without the ``t`` of tile instructions."""
    statement = program.statements[index] if 0 <= index < len(program.statements) else None
    if not isinstance(statement, Instruction):
        return "range" if isinstance(statement, For) else "?"
    mnemonic = statement.mnemonic.split(".")[0]
    if mnemonic in _SPELLED:
        return _SPELLED[mnemonic]
    keeps = mnemonic.startswith(("tpush", "tpop", "tfree"))
    if mnemonic not in INSTRUCTIONS or not mnemonic.startswith("t") or keeps:
        return mnemonic
    along = _ALONG_AN_AXIS.match(mnemonic, 1)
    if along is None:
        return mnemonic[1:]
    return "_".join((*(part for part in along.groups() if part), mnemonic[along.end() :]))


def made_by_exponential(program: TileProgram, index: int, register: str) -> bool:
    """Whether what ``register`` holds at an instruction went through an exponential since its tile was filled up."""
    made = {register}
    for statement in reversed(program.statements[:index]):
        if not isinstance(statement, Instruction) or statement.mnemonic not in INSTRUCTIONS:
            continue
        row = INSTRUCTIONS[statement.mnemonic]
        names = [o.name if isinstance(o, Register) else "" for o in statement.operands]
        if not made.intersection(names[i] for i in row.destinations()) or statement.mnemonic.startswith("tfillpad"):
            continue
        if statement.mnemonic == "texp" or statement.mnemonic.endswith("expdif"):
            return True
        made.update(names[i] for i in row.sources() if row.operands[i].kind == "tile")
    return False


def operand_at(program: TileProgram, index: int, position: int) -> str:
    """Register of the operand that starts at word ``position`` of the argument block."""
    statement = program.statements[index]
    row = INSTRUCTIONS.get(getattr(statement, "mnemonic", ""))
    if row is None or not isinstance(statement, Instruction):
        return "?"
    positions, _ = argument_positions(row, statement)
    if position not in positions:
        return "?"
    operand = statement.operands[positions.index(position)]
    return operand.name if isinstance(operand, Register) else "?"


def result_register(program: TileProgram, index: int) -> str:
    """Register of the first result of an instruction."""
    statement = program.statements[index]
    operand = statement.operands[0] if isinstance(statement, Instruction) and statement.operands else None
    return operand.name if isinstance(operand, Register) else ""


Ranges = tuple[tuple[int, int], ...]
Span = tuple[int, int]


def cells(program: TileProgram, register: str, rows: Span, cols: Span | None = None) -> tuple[Span | None, Ranges]:
    """(bytes from the start of the tile, index ranges) of a box of a tile register; of array elements ``rows``."""
    symbol = program.symbols.get(register)
    if isinstance(symbol, Array):
        size = DataType.from_string(symbol.dtype).get_byte()
        return (rows[0] * size, rows[1] * size), (rows,)
    ranges = (rows,) if cols is None else (rows, cols)
    if not isinstance(symbol, Tile) or cols is None:
        return None, ranges
    pitch, bits = symbol.stride or symbol.cols, DataType.from_string(symbol.dtype).get_bit()
    first, last = rows[0] * pitch + cols[0], (rows[1] - 1) * pitch + cols[1]
    return (first * bits // 8, -(-last * bits // 8)), ranges


def cell(program: TileProgram, register: str, row: int, col: int) -> tuple[Span | None, Ranges]:
    """(bytes, index ranges) of one element of a tile."""
    return cells(program, register, (row, row + 1), (col, col + 1))


def tile_shape(program: TileProgram, name: str) -> tuple[int, int] | None:
    """Rows and columns of a tile register."""
    tile = program.symbols.get(name)
    return (tile.rows, tile.cols) if isinstance(tile, Tile) else None


def element_register(program: TileProgram, index: int) -> str:
    """Register that a scalar read or write, or the memory access of an instruction, goes through."""
    statement = program.statements[index]
    if not isinstance(statement, Instruction):
        return "?"
    row, at = INSTRUCTIONS.get(statement.mnemonic), 1 if statement.mnemonic == "sload" else 0
    if row is not None:
        tensors = [i for i, operand in enumerate(row.operands) if operand.kind == "tensor"]
        at = tensors[0] if tensors else 0
    operand = statement.operands[at] if at < len(statement.operands) else None
    return operand.name if isinstance(operand, Register) else "?"


def tensor_operand(program: TileProgram, index: int) -> str:
    """Parameter or tensor that the memory access of an instruction goes through."""
    name = element_register(program, index)
    return program.author(root_names(program).get(name, name))


def memory_at(memories: Sequence[Memory], offset: int) -> Memory:
    """The tensor of an allocation that holds byte ``offset`` of it."""
    base = min(memory.address for memory in memories)
    inside = [m for m in memories if m.address - base <= offset < m.address - base + m.size]
    return min(inside, key=lambda m: m.size) if inside else memories[0]


def first_byte(memory: Memory, memories: Sequence[Memory]) -> int:
    """Where a tensor begins in its allocation, which holds ``memories``."""
    return memory.address - min(m.address for m in memories)


def index_ranges(memory: Memory, ranges: Words) -> tuple[tuple[int, int], ...]:
    """Smallest box of indices that holds the byte ranges ``int64[n, 2]`` of a tensor, one (low, high) per axis."""
    if not memory.shape or 0 in memory.shape or not len(ranges):
        return ()
    first, last = ranges[:, 0] * 8 // memory.bits, (ranges[:, 1] * 8 - 1) // memory.bits
    limit = int(np.prod(memory.shape)) - 1
    first, last = np.minimum(first, limit), np.minimum(last, limit)
    result, inner = [], 1
    for extent in reversed(memory.shape):
        low, high = first // inner % extent, last // inner % extent
        wraps = first // (inner * extent) != last // (inner * extent)
        low, high = np.where(wraps, 0, low), np.where(wraps, extent - 1, high)
        result.append((int(low.min()), int(high.max()) + 1))
        inner *= extent
    return tuple(reversed(result))


def ranges_text(memory: Memory, ranges: tuple[tuple[int, int], ...]) -> str:
    """``rows 48..64, columns 0..32`` of a matrix, ``[48..64, 0..32, …]`` of another tensor."""
    if len(memory.shape) == 2 and len(ranges) == 2:
        return f"rows {ranges[0][0]}..{ranges[0][1]}, columns {ranges[1][0]}..{ranges[1][1]}"
    return "[" + ", ".join(f"{low}..{high}" for low, high in ranges) + "]"


def pitches(shape: Sequence[int], bits: int) -> list[int]:
    """Words GM_PITCHES (words.py) of a tensor: of more axes than they hold the first are left out."""
    found, pitch = [], bits
    for axis in range(len(shape) - 1, 0, -1):
        pitch *= shape[axis]
        if shape[axis - 1] > 1 and pitch >= 8:
            found.append(pitch // 8)
    found = found[: w.GM_AXES][::-1]
    return found + [0] * (w.GM_AXES - len(found))


def noted_runs(words: Words, allocation: Words) -> Words:
    """Byte ranges of the ``allocation`` that an origin or event is about, ``int64[n, 2]``: its box, run by run."""
    firsts, low, high = np.zeros(1, np.int64), int(words[w.OR_LOW]), int(words[w.OR_HIGH])
    if not words[w.OR_COLS]:
        return np.array([[low, high]], np.int64)
    for axis, pitch in enumerate(allocation[w.GM_PITCHES :].tolist()):
        if pitch:
            first, end = words[w.OR_BOX + 2 * axis : w.OR_BOX + 2 * axis + 2].tolist()
            firsts = np.add.outer(firsts, np.arange(first, end, dtype=np.int64) * pitch).ravel()
    runs = np.stack((firsts + int(words[w.OR_COL]), firsts + int(words[w.OR_COLS])), 1)
    runs = np.clip(runs, low, high)
    return runs[runs[:, 0] < runs[:, 1]]


def byte_runs(mask: np.ndarray) -> Words:
    """Ranges [low, high) where a mask is set, ``int64[n, 2]``."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    return edges.reshape(-1, 2).astype(np.int64)

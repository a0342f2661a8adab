"""What the assembler writes into: the code, the frame's layout, the names, and errors that point into the text."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import SequenceMatcher, get_close_matches
from os.path import commonprefix
from typing import NoReturn

from pypto.ir.dtype import BF16, FP16, FP32, DataType
from pypto.sim import layout
from pypto.sim import opcodes as op
from pypto.sim.syntax import (
    Array,
    Instruction,
    Operand,
    Position,
    Register,
    ScalarParameter,
    Statement,
    TensorParameter,
    TensorRegister,
    Tile,
    Unit,
)
from pypto.sim.text import TextError
from pypto.sim.tile_program import Call, Request, Transfer

Symbol = Tile | TensorRegister | TensorParameter | Array


def word_float(word: int) -> float:
    """Inverse of :func:`float_word`."""
    value: float = struct.unpack("<d", struct.pack("<q", word))[0]
    return value


# significand bits after the point, smallest normal exponent, largest finite value
_FORMATS = {FP32: (23, -126, 3.4028234663852886e38), FP16: (10, -14, 65504.0), BF16: (7, -126, 3.3895313892515355e38)}


def float_word(value: float) -> int:
    """The bits of ``value`` as a float64, the machine's form of every float."""
    word: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return word


def round_literal(value: float, dtype: DataType) -> float:
    """``value`` rounded to ``dtype``."""
    if dtype not in _FORMATS or value == 0 or not math.isfinite(value):
        return float(value)
    fraction, lowest, largest = _FORMATS[dtype]
    ulp = max(math.frexp(value)[1] - 1, lowest) - fraction
    rounded = math.ldexp(round(math.ldexp(value, -ulp)), ulp)
    return rounded if abs(rounded) <= largest else math.copysign(math.inf, value)


def stored_element(word: int, dtype: DataType) -> bytes:
    """The bytes in memory of the register word ``word``; one byte with both nibbles for a 4-bit dtype."""
    if dtype == FP32:
        return struct.pack("<f", word_float(word))
    if dtype == FP16:
        return struct.pack("<e", word_float(word))
    if dtype == BF16:
        return struct.pack("<f", word_float(word))[2:]
    if dtype.get_bit() == 4:
        return bytes([(word & 0xF) * 0x11])
    return (word & ((1 << 8 * dtype.get_byte()) - 1)).to_bytes(dtype.get_byte(), "little")


def tile_bytes(tile: Tile) -> int:
    """Bytes from the first to the last element of one slot of ``tile``."""
    stride = tile.stride or tile.cols
    return ((tile.rows - 1) * stride + tile.cols) * DataType.from_string(tile.dtype).get_byte()


@dataclass
class Emitter:
    """Code and frame under construction. Offsets are frame words; see opcodes.py for the layout."""

    unit: Unit
    text: str
    file: str
    code: list[int] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    symbols: dict[str, Symbol] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    is_float: dict[str, bool] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    read: dict[str, Position] = field(default_factory=dict)
    words: list[int] = field(default_factory=lambda: [0] * op.DESCRIPTORS)
    relocated: list[tuple[int, int]] = field(default_factory=list)
    tile_index: dict[str, int] = field(default_factory=dict)
    facts: set[str] = field(default_factory=set)
    _constants: dict[int, int] = field(default_factory=dict)
    _slot_bases: dict[str, int] = field(default_factory=dict)

    # errors

    def complain(self, message: str, position: Position) -> NoReturn:
        raise TextError(message, self.file, self.text, position)

    def nearest(self, name: str, known: Iterable[str]) -> str:
        """`: nearest is 'x'`, or nothing when there is no candidate at all."""
        near = get_close_matches(name, list(known), n=8, cutoff=0.0)
        if not near:
            return ""
        # equally similar names: the one with the longer common beginning
        best = max(near, key=lambda other: (SequenceMatcher(a=name, b=other).ratio(), len(commonprefix((name, other)))))
        return f": nearest is '{best}'"

    # frame

    def declare(self, symbol: Symbol, words: list[int]) -> None:
        self.symbols[symbol.name] = symbol
        self.offsets[symbol.name] = len(self.words)
        self.words.extend(words)

    def declare_tile(self, tile: Tile) -> None:
        rows, cols = tile.valid or (tile.rows, tile.cols)
        if rows > tile.rows or cols > tile.cols:
            self.complain(
                f"valid {rows} {cols} is larger than tile %{tile.name}, {tile.rows} x {tile.cols}", tile.position
            )
        stride = tile.stride or tile.cols
        if stride < tile.cols:
            self.complain(
                f"stride {stride} is smaller than the {tile.cols} columns of tile %{tile.name}", tile.position
            )
        space = layout.SPACES[tile.space]
        self.tile_index[tile.name] = len(self.tile_index)
        self.relocated.append((len(self.words), space))
        self.declare(
            tile,
            [tile.offset, tile.rows, tile.cols, stride, rows, cols, DataType.from_string(tile.dtype).code(), space],
        )

    def declare_tensor(self, tensor: TensorRegister | TensorParameter) -> None:
        words = [0] * layout.TENSOR_WORDS
        shape = tensor.shape if isinstance(tensor, TensorParameter) else (0,) * tensor.rank
        words[layout.TENSOR_RANK] = len(shape)
        words[layout.TENSOR_DTYPE] = DataType.from_string(tensor.dtype).code()
        words[layout.TENSOR_NAME] = len(self.offsets)
        self.declare(tensor, words)

    def declare_scalar(self, name: str, is_float: bool, position: Position) -> None:
        """A scalar register written somewhere in the unit."""
        if name in self.symbols:
            self.complain(
                f"%{name} is declared as {kind_of(self.symbols[name])} and cannot be written as a scalar", position
            )
        if self.is_float.setdefault(name, is_float) != is_float:
            self.complain(
                f"%{name} is written as an integer here and as a float elsewhere"
                if not is_float
                else f"%{name} is written as a float here and as an integer elsewhere",
                position,
            )
        if name not in self.offsets:
            self.offsets[name] = len(self.words)
            self.words.append(0)
        self.written.add(name)

    def constant(self, word: int) -> int:
        """Offset of a frame word that holds ``word``."""
        word = ((word + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)
        if word not in self._constants:
            self._constants[word] = len(self.words)
            self.words.append(word)
        return self._constants[word]

    def slot_base(self, tile: Tile) -> int:
        """Offset of a word that holds the address of slot 0 of ``tile``."""
        if tile.name not in self._slot_bases:
            self._slot_bases[tile.name] = len(self.words)
            self.relocated.append((len(self.words), layout.SPACES[tile.space]))
            self.words.append(tile.offset)
        return self._slot_bases[tile.name]

    # operands

    def count(self, instruction: Instruction, form: str, least: int, most: int | None = None) -> None:
        """Complain unless the instruction has between ``least`` and ``most`` operands; ``form`` shows a legal one."""
        found = len(instruction.operands)
        if least <= found <= (least if most is None else most):
            return
        expected = str(least) if most is None or most == least else f"{least} to {most}"
        self.complain(
            f"'{instruction.mnemonic}' takes {expected} operands ({form}), found {found}", instruction.position
        )

    def symbol(self, instruction: Instruction, index: int, kinds: type | tuple[type, ...], what: str) -> Symbol:
        """The declared tile, tensor or array that operand ``index`` names."""
        operand, position = instruction.operands[index], instruction.operand_position(index)
        if not isinstance(operand, Register):
            self.complain(f"'{instruction.mnemonic}' needs {what} here, found '{show(operand)}'", position)
        found = self.symbols.get(operand.name)
        if found is None:
            known = [name for name, symbol in self.symbols.items() if isinstance(symbol, kinds)]
            self.complain(
                f"{what[2:] if what[:2] == 'a ' else what} {operand} is not declared"
                f"{self.nearest(operand.name, known)}",
                position,
            )
        if not isinstance(found, kinds):
            self.complain(f"'{instruction.mnemonic}' needs {what} here; {operand} is {kind_of(found)}", position)
        return found

    def integer(self, instruction: Instruction, operand: Operand, position: Position) -> int:
        """Offset of an integer operand: a register or a literal."""
        if isinstance(operand, (bool, float)):
            self.complain(f"'{instruction.mnemonic}' needs an integer here, found {operand}", position)
        if isinstance(operand, int):
            return self.constant(operand)
        return self.scalar_register(instruction, operand, position, wants_float=False)

    def real(self, instruction: Instruction, operand: Operand, position: Position, dtype: DataType) -> int:
        """Offset of a float operand: a register, or a literal rounded to ``dtype``."""
        if isinstance(operand, (int, float)):
            return self.constant(float_word(round_literal(operand, dtype)))
        return self.scalar_register(instruction, operand, position, wants_float=True)

    def number(self, instruction: Instruction, operand: Operand, position: Position, dtype: DataType) -> int:
        """Offset of a scalar operand encoded as ``dtype`` wants it."""
        if dtype.is_float():
            return self.real(instruction, operand, position, dtype)
        return self.integer(instruction, operand, position)

    def scalar_register(
        self, instruction: Instruction, operand: Operand, position: Position, *, wants_float: bool
    ) -> int:
        if not isinstance(operand, Register):
            self.complain(
                f"'{instruction.mnemonic}' needs a scalar register or a number here, found '{show(operand)}'", position
            )
        if operand.name in self.symbols:
            self.complain(
                f"'{instruction.mnemonic}' needs a scalar register or a number here; {operand} is "
                f"{kind_of(self.symbols[operand.name])}",
                position,
            )
        if operand.name not in self.offsets:
            self.complain(
                f"scalar register {operand} is never written{self.nearest(operand.name, self.is_float)}", position
            )
        if self.is_float[operand.name] != wants_float:
            holds, needs = ("an integer", "a float") if wants_float else ("a float", "an integer")
            self.complain(
                f"'{instruction.mnemonic}' needs {needs} here; {operand} holds {holds} (convert it with scvt)", position
            )
        return self.offsets[operand.name]

    def items(self, instruction: Instruction, index: int, what: str) -> tuple[int, ...]:
        """Offsets of the integers in the list operand ``index``."""
        operand, position = instruction.operands[index], instruction.operand_position(index)
        if not isinstance(operand, tuple):
            self.complain(
                f"'{instruction.mnemonic}' needs {what}, a list in brackets, found '{show(operand)}'", position
            )
        return tuple(self.integer(instruction, item, position) for item in operand)

    def literal(self, instruction: Instruction, index: int, what: str) -> int:
        """The integer literal in operand ``index``."""
        operand = instruction.operands[index]
        if not isinstance(operand, int):
            self.complain(
                f"'{instruction.mnemonic}' needs {what}, an integer literal, found '{show(operand)}'",
                instruction.operand_position(index),
            )
        return operand

    def target(self, instruction: Instruction) -> int:
        """Offset of the scalar destination, operand 0 (declared by the scan that ran before)."""
        operand = instruction.operands[0] if instruction.operands else None
        if not isinstance(operand, Register) or operand.name not in self.is_float:
            self.complain(f"'{instruction.mnemonic}' writes a scalar register, its first operand", instruction.position)
        return self.offsets[operand.name]

    # code

    def emit(self, *words: int) -> int:
        """Append an instruction; returns where it starts."""
        start = len(self.code)
        self.code.extend(words)
        return start

    def index_of(self, statement: Statement) -> int:
        """Register ``statement`` under the next instruction index."""
        self.statements.append(statement)
        return len(self.statements) - 1


def kind_of(symbol: Symbol | ScalarParameter) -> str:
    """A short noun for messages."""
    if isinstance(symbol, Tile):
        return f"a tile ({symbol.space}, {symbol.dtype})"
    if isinstance(symbol, Array):
        return f"an array of {symbol.length} {symbol.dtype}"
    return f"a tensor of {symbol.dtype}"


def show(operand: Operand) -> str:
    """``operand`` as it stands in the text."""
    return "[" + ", ".join(map(show, operand)) + "]" if isinstance(operand, tuple) else str(operand)

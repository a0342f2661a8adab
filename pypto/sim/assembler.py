"""From syntax objects to machine code: blocks become jumps, names become frame words, operands are checked.

The text is all that decides what is assembled; nothing is cached between loads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from pypto.ir.dtype import DataType
from pypto.ir.instructions import INSTRUCTIONS
from pypto.sim import layout
from pypto.sim import opcodes as op
from pypto.sim.call_code import emit_tile_instruction
from pypto.sim.distributed_code import RANK_INSTRUCTIONS
from pypto.sim.emitter import Emitter, Symbol, tile_bytes
from pypto.sim.initialised import writes_before_reads
from pypto.sim.program_record import program_record
from pypto.sim.request_code import REQUEST_INSTRUCTIONS
from pypto.sim.scalar_code import SCALAR_INSTRUCTIONS, result_class
from pypto.sim.syntax import (
    For,
    If,
    Instruction,
    Register,
    ScalarParameter,
    Statement,
    TensorParameter,
    Unit,
    While,
    walk,
)
from pypto.sim.tile_program import Binding, Call, TileProgram


@dataclass(frozen=True)
class _Loop:
    """Code offsets to patch once a loop is complete."""

    breaks: list[int]
    continues: list[int]


CUBE_ONLY: Final = ("left", "right", "acc", "bias", "leftscale", "rightscale")
"""Memory spaces that no transfer of a vector core reaches (spec language 7.2)."""


class _Assembler:
    def __init__(self, unit: Unit, text: str, file: str):
        self.unit = unit
        self.emitter = Emitter(unit, text, file)
        self.loops: list[_Loop] = []
        self.bindings: list[Binding] = []

    def assemble(self) -> Emitter:
        self._declare()
        self._declare_scalars()
        self._check_slots()
        self._block(self.unit.body)
        self.emitter.emit(op.RETURN)
        return self.emitter

    # declarations

    def _declare(self) -> None:
        emitter = self.emitter
        for tile in self.unit.tiles:
            if self.unit.core == "aiv" and tile.space in CUBE_ONLY:
                emitter.complain(
                    f"tile %{tile.name} is in '{tile.space}', a memory of the cube core; "
                    "an aiv kernel has 'vec' and 'mat'",
                    tile.position,
                )
            emitter.declare_tile(tile)
        for parameter in self.unit.parameters:
            if isinstance(parameter, TensorParameter):
                emitter.declare_tensor(parameter)
        for tensor in self.unit.tensors:
            emitter.declare_tensor(tensor)
        for array in self.unit.arrays:
            dtype = DataType.from_string(array.dtype)
            if dtype.is_float() or array.length < 1:
                emitter.complain(
                    f"array %{array.name}: one or more integers, booleans or task ids, not {array.length} x "
                    f"{array.dtype}",
                    array.position,
                )
            # task ids start invalid
            emitter.declare(array, [-1 if dtype.category == "task" else 0] * array.length)
        for parameter in self.unit.parameters:
            if isinstance(parameter, ScalarParameter):
                is_float = DataType.from_string(parameter.dtype).is_float()
                emitter.declare_scalar(parameter.name, is_float, parameter.position)
            self.bindings.append(
                Binding(parameter, emitter.offsets[parameter.name], isinstance(parameter, TensorParameter))
            )

    def _declare_scalars(self) -> None:
        """Registers written anywhere, before any is read; ``sselect`` last, its class may follow from the others."""
        late: list[Instruction] = []
        for statement in walk(self.unit.body):
            if isinstance(statement, For):
                self.emitter.declare_scalar(statement.index.name, False, statement.position)
            elif isinstance(statement, Instruction):
                if statement.mnemonic == "sselect":
                    late.append(statement)
                else:
                    self._declare_result(statement)
        for statement in late:
            self._declare_result(statement)

    def _declare_result(self, instruction: Instruction) -> None:
        is_float = result_class(self.emitter, instruction)
        if is_float is None or not instruction.operands:
            return
        target = instruction.operands[0]
        if not isinstance(target, Register):
            self.emitter.complain(
                f"'{instruction.mnemonic}' writes a scalar register, found '{target}'", instruction.operand_position(0)
            )
        self.emitter.declare_scalar(target.name, is_float, instruction.operand_position(0))

    def _check_slots(self) -> None:
        for tile in self.unit.tiles:
            if tile.slots is not None and tile.slots.by.name not in self.emitter.is_float:
                self.emitter.complain(
                    f"the slot register {tile.slots.by} of tile %{tile.name} is never written"
                    f"{self.emitter.nearest(tile.slots.by.name, self.emitter.is_float)}",
                    tile.position,
                )

    # statements

    def _block(self, statements: tuple[Statement, ...]) -> None:
        for statement in statements:
            if isinstance(statement, Instruction):
                self._instruction(statement)
            elif isinstance(statement, For):
                self._for(statement)
            elif isinstance(statement, If):
                self._if(statement)
            else:
                self._while(statement)

    def _instruction(self, instruction: Instruction) -> None:
        name = instruction.mnemonic
        base = name.partition(".")[0]
        if base in SCALAR_INSTRUCTIONS:
            SCALAR_INSTRUCTIONS[base](self.emitter, instruction)
        elif base in RANK_INSTRUCTIONS:
            self.emitter.facts.add("ranks")
            RANK_INSTRUCTIONS[base](self.emitter, instruction)
        elif name in INSTRUCTIONS:
            if self.unit.core is None:
                self.emitter.complain(
                    f"'{name}' is a tile instruction; an orchestration submits kernels instead", instruction.position
                )
            emit_tile_instruction(self.emitter, instruction, INSTRUCTIONS[name])
        elif name in REQUEST_INSTRUCTIONS:
            if self.unit.core is not None:
                self.emitter.complain(f"'{name}' is legal in an orchestration only", instruction.position)
            REQUEST_INSTRUCTIONS[name](self.emitter, instruction)
        else:
            self._control(instruction)

    def _control(self, instruction: Instruction) -> None:
        name, emitter = instruction.mnemonic, self.emitter
        if name not in ("break", "continue", "ret"):
            known = (
                *INSTRUCTIONS,
                *SCALAR_INSTRUCTIONS,
                *RANK_INSTRUCTIONS,
                *REQUEST_INSTRUCTIONS,
                "break",
                "continue",
                "ret",
                "for",
                "if",
                "while",
            )
            emitter.complain(f"unknown instruction '{name}'{emitter.nearest(name, known)}", instruction.position)
        emitter.count(instruction, name, 0)
        emitter.index_of(instruction)
        if name == "ret":
            emitter.emit(op.RETURN)
            return
        if not self.loops:
            emitter.complain(f"'{name}' outside a loop", instruction.position)
        at = emitter.emit(op.JUMP, 0)
        (self.loops[-1].breaks if name == "break" else self.loops[-1].continues).append(at + 1)

    def _patch(self, places: Iterable[int]) -> None:
        for place in places:
            self.emitter.code[place] = len(self.emitter.code)

    def _bound(self, statement: For, value: Register | int) -> int:
        as_instruction = Instruction("for", (), place=statement.place, position=statement.position)
        return self.emitter.integer(as_instruction, value, statement.position)

    def _for(self, statement: For) -> None:
        """The bound and the step are read once, as Python's ``range`` does."""
        emitter = self.emitter
        index = emitter.offsets[statement.index.name]
        number = emitter.index_of(statement)
        low, high, step = (self._bound(statement, v) for v in (statement.low, statement.high, statement.step))
        counter = self._copy_if_written(statement, statement.index, 0)
        high = self._copy_if_written(statement, statement.high, high)
        step = self._copy_if_written(statement, statement.step, step)
        emitter.emit(op.MOVE, counter or index, low)
        head = emitter.emit(op.LOOP_TEST, counter or index, high, step, 0, number)
        if counter:
            emitter.emit(op.MOVE, index, counter)
        self.loops.append(_Loop([head + 4], []))
        self._block(statement.body)
        loop = self.loops.pop()
        self._patch(loop.continues)
        emitter.emit(op.LOOP_NEXT, counter or index, step, head)
        self._patch(loop.breaks)

    def _copy_if_written(self, statement: For, value: Register | int, offset: int) -> int:
        """A private copy of a loop control that the body writes; ``offset`` when it does not."""
        if isinstance(value, int):
            return offset
        clobbered = offset != 0 and value == statement.index
        if not clobbered and not _writes(statement.body, value.name):
            return offset
        copy = len(self.emitter.words)
        self.emitter.words.append(0)
        if offset != 0:
            self.emitter.emit(op.MOVE, copy, offset)
        return copy

    def _if(self, statement: If) -> None:
        emitter = self.emitter
        emitter.index_of(statement)
        condition = self._condition("if", statement.condition, statement)
        branch = emitter.emit(op.BRANCH_ZERO, condition, 0)
        self._block(statement.then)
        if not statement.orelse:
            self._patch([branch + 2])
            return
        skip = emitter.emit(op.JUMP, 0)
        self._patch([branch + 2])
        self._block(statement.orelse)
        self._patch([skip + 1])

    def _condition(self, name: str, register: Register, statement: If | While) -> int:
        as_instruction = Instruction(name, (register,), position=statement.position)
        return self.emitter.scalar_register(as_instruction, register, statement.position, wants_float=False)

    def _while(self, statement: While) -> None:
        emitter = self.emitter
        emitter.index_of(statement)
        head = len(emitter.code)
        self.loops.append(_Loop([], []))
        self._block(statement.test)
        condition = self._condition("while", statement.condition, statement)
        leave = emitter.emit(op.BRANCH_ZERO, condition, 0)
        self._block(statement.body)
        loop = self.loops.pop()
        for place in loop.continues:
            emitter.code[place] = head
        emitter.emit(op.JUMP, head)
        self._patch([leave + 2, *loop.breaks])


def _writes(statements: tuple[Statement, ...], name: str) -> bool:
    """Whether the scalar ``name`` may be written in ``statements`` (a read in first place counts as a write)."""
    for statement in walk(statements):
        target = statement.index if isinstance(statement, For) else None
        if isinstance(statement, Instruction) and statement.operands:
            target = statement.operands[0]  # type: ignore[assignment]
        if isinstance(target, Register) and target.name == name:
            return True
    return False


def assemble(unit: Unit, text: str = "", file: str = "<text>") -> TileProgram:
    """Assemble ``unit``; ``text`` and ``file`` are shown in errors (``TextError``).

    The kernel addresses of the result are missing until :func:`link` fills them in.
    """
    assembler = _Assembler(unit, text, file)
    emitter = assembler.assemble()
    relocated = np.array(emitter.relocated, np.int64).reshape(-1, 2)
    symbols: dict[str, Symbol] = emitter.symbols
    return TileProgram(
        name=unit.name,
        core=unit.core,
        body=unit.body,
        code=np.array(emitter.code, np.int64),
        template=np.array(emitter.words, np.int64),
        relocated=relocated[:, 0].copy(),
        relocated_space=relocated[:, 1].copy(),
        space_bytes=_space_bytes(unit),
        bindings=tuple(assembler.bindings),
        record=program_record(emitter),
        statements=tuple(emitter.statements),
        requests=tuple(emitter.requests),
        files=dict(unit.files),
        text_file=file,
        symbols={**symbols, **{p.name: p for p in unit.parameters}},
        offsets=emitter.offsets,
        transfers=tuple(emitter.transfers),
        waits="waits" in emitter.facts,
        spans_blocks="spans_blocks" in emitter.facts,
        signals="signals" in emitter.facts,
        listable=not emitter.facts & {"reads_memory", "unlisted", "waits", "atomic", "ranks", "signals"},
        reads_memory="reads_memory" in emitter.facts,
        calls=tuple(emitter.calls),
        clears=not writes_before_reads(unit),
        names={emitter.offsets[name]: name for name in symbols},
        authors=dict(unit.names),
    )


def _space_bytes(unit: Unit) -> tuple[tuple[int, int], ...]:
    """(space code, bytes) of the spaces in use."""
    used: dict[int, int] = {}
    for tile in unit.tiles:
        slots = tile.slots.pitch * (tile.slots.count - 1) if tile.slots else 0
        space = layout.SPACES[tile.space]
        used[space] = max(used.get(space, 0), tile.offset + tile_bytes(tile) + slots)
    return tuple(sorted(used.items()))


def link(programs: Iterable[TileProgram]) -> None:
    """Fill in the kernel addresses of ``programs``; kernels not in the cache are compiled, in one batch."""
    from pypto.sim.kernels.catalogue import addresses

    wanted: dict[tuple[str, tuple[DataType | None, ...]], list[tuple[TileProgram, Call]]] = {}
    for program in programs:
        for call in program.calls:
            wanted.setdefault((call.row.mnemonic, call.dtypes), []).append((program, call))
    found = addresses([(uses[0][1].row, uses[0][1].dtypes) for uses in wanted.values()])
    for address, uses in zip(found, wanted.values()):
        for program, call in uses:
            program.code[call.at] = address


__all__ = ["assemble", "link"]

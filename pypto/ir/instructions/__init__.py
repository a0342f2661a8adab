"""The instruction table: one row per mnemonic, read by printer, assembler, machine, timing and documentation."""

from __future__ import annotations

from typing import Final

from . import (
    bitwise,
    cast,
    compare,
    creation,
    crosscore,
    distributed,
    elementwise,
    expand,
    gather,
    matmul,
    movement,
    partial,
    reduction,
    scalar_operand,
    sort,
    transform,
    unary,
)
from .table import Attribute, Instruction, Operand, UnknownInstruction, collect, find

_FAMILIES = (
    movement,
    elementwise,
    scalar_operand,
    unary,
    compare,
    bitwise,
    partial,
    expand,
    reduction,
    cast,
    matmul,
    transform,
    gather,
    sort,
    creation,
    crosscore,
    distributed,
)

INSTRUCTIONS: Final[dict[str, Instruction]] = collect(family.ROWS for family in _FAMILIES)


def lookup(mnemonic: str) -> Instruction:
    """The row of ``mnemonic``; :class:`UnknownInstruction` (a ``KeyError``) names the nearest one."""
    return find(INSTRUCTIONS, mnemonic)


def pipe_of(instruction: Instruction, source_space: str, destination_space: str) -> str:
    """Pipe that executes ``instruction`` between two memory spaces (``"ddr"``, ``"vec"``, ``"mat"``, ...).

    Rows with a fixed pipe keep it. Otherwise (hardware 3): from global memory MTE2; from the accumulator FIX; from the
    unified buffer to itself V, elsewhere MTE3; from L1 to the operand and bias buffers MTE1, to global memory or the
    unified buffer MTE3.
    """
    if instruction.pipe != "space":
        return instruction.pipe
    if source_space == "ddr":
        return "MTE2"
    if source_space == "acc":
        return "FIX"
    if source_space == "vec":
        return "V" if destination_space == "vec" else "MTE3"
    return "MTE3" if destination_space in ("ddr", "vec") else "MTE1"


__all__ = ["INSTRUCTIONS", "Attribute", "Instruction", "Operand", "UnknownInstruction", "lookup", "pipe_of"]

"""Findings that follow from the text of a program that runs: shapes and operations the hardware treats differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pypto.ir.dtype import DataType
from pypto.sim.checks.findings import Finding
from pypto.sim.checks.places import cells, location
from pypto.sim.syntax import Instruction, Register, Tile
from pypto.sim.tile_program import TileProgram

_BLOCK_BYTES: Final = 32  # transfers and vector operands work in blocks of 32 bytes (spec language 7.3)
_TRANSFERS: Final = ("tload", "tstore")


def contract_findings(program: TileProgram, platform: str) -> Iterator[Finding]:
    """Findings of one program on ``platform``."""
    seen: set[str] = set()
    for index, statement in enumerate(program.statements):
        if not isinstance(statement, Instruction):
            continue
        if statement.mnemonic in _TRANSFERS:
            yield from _short_row(program, index, statement, seen)
        if statement.mnemonic in ("tcmp", "tcmps") and platform.startswith("a2a3"):
            yield from _integer_compare(program, index, statement)


def _short_row(program: TileProgram, index: int, instruction: Instruction, seen: set[str]) -> Iterator[Finding]:
    """Row-major tiles whose rows are no whole number of blocks."""
    operand = instruction.operands[0 if instruction.mnemonic == "tload" else 1]
    tile = program.symbols.get(operand.name) if isinstance(operand, Register) else None
    if not isinstance(tile, Tile) or tile.space != "vec" or tile.layout not in (None, "nd") or tile.name in seen:
        return
    row = tile.cols * DataType.from_string(tile.dtype).get_bit() // 8
    if row % _BLOCK_BYTES == 0 or tile.cols == 1:
        return
    seen.add(tile.name)
    wanted = -(-row // _BLOCK_BYTES) * _BLOCK_BYTES
    columns = wanted * 8 // DataType.from_string(tile.dtype).get_bit()
    name = program.author(tile.name)
    message = (
        f"a row of tile '{name}' ({tile.rows} x {tile.cols} {tile.dtype}) is {row} bytes; "
        "transfers work in blocks of "
        f"{_BLOCK_BYTES}"
    )
    repair = f"use {columns} columns ({wanted} bytes) and valid_shape=[{tile.rows}, {tile.cols}]"
    span, ranges = cells(program, tile.name, (0, 1), (0, tile.cols))
    places = (location(program, index),)
    yield Finding("shape-contract", message, name, (program.name,), places, span, ranges, repair)


def _integer_compare(program: TileProgram, index: int, instruction: Instruction) -> Iterator[Finding]:
    """INT32 comparisons, which test equality whatever their mode on A2/A3 (spec ops A4)."""
    operand, mode = instruction.operands[1], instruction.attributes.get("mode")
    tile = program.symbols.get(operand.name) if isinstance(operand, Register) else None
    if not isinstance(tile, Tile) or tile.dtype != "int32" or mode in ("eq", 0):
        return
    message = f"'cmp' of INT32 tiles in '{program.name}' ignores its mode '{mode}' on A2/A3 and tests equality"
    repair = "cast both operands to FP32 before the comparison"
    span, ranges = cells(program, tile.name, (0, tile.rows), (0, tile.cols))
    name, places = program.author(tile.name), (location(program, index),)
    yield Finding("precision", message, name, (program.name,), places, span, ranges, repair)

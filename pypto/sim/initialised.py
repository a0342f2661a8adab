"""Which programs write every tile before they read it, so that on-chip memory need not be cleared for them.

A tile is proven when its first mention in the text is an instruction that writes all of it, and every other mention
stands in the same block or deeper, where that instruction has run. All tiles must be fully valid throughout: a program
that narrows a valid shape, loads a part of a window or inserts into a tile is not proven and gets cleared memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from pypto.ir.instructions import INSTRUCTIONS
from pypto.sim.syntax import For, If, Instruction, Register, Statement, Tile, Unit, While

Path = tuple[int, ...]
_WINDOWED = ("tload",)


def writes_before_reads(unit: Unit) -> bool:
    """True when no block of ``unit`` can read on-chip memory it has not written."""
    tiles = {tile.name: tile for tile in unit.tiles}
    if any(tile.valid is not None for tile in unit.tiles):
        return False
    first: dict[str, Path] = {}
    for path, instruction in _mentions(unit.body, ()):
        if not _whole(instruction, tiles):
            return False
        for name, reads in _tiles(instruction, tiles):
            if name not in first:
                if reads:
                    return False
                first[name] = path
            elif path[: len(first[name])] != first[name]:
                return False
    return True


def _mentions(statements: tuple[Statement, ...], path: Path) -> Iterator[tuple[Path, Instruction]]:
    """Instructions in text order with the blocks around them; the two branches of an ``if`` are different blocks."""
    for number, statement in enumerate(statements):
        if isinstance(statement, Instruction):
            yield path, statement
        elif isinstance(statement, For):
            yield from _mentions(statement.body, (*path, 3 * number))
        elif isinstance(statement, If):
            yield from _mentions(statement.then, (*path, 3 * number))
            yield from _mentions(statement.orelse, (*path, 3 * number + 1))
        elif isinstance(statement, While):
            yield from _mentions(statement.test, path)
            yield from _mentions(statement.body, (*path, 3 * number + 2))


def _tiles(instruction: Instruction, tiles: dict[str, Tile]) -> list[tuple[str, bool]]:
    """(tile, is read) of every tile operand, reads first: an instruction reads before it writes."""
    row = INSTRUCTIONS.get(instruction.mnemonic)
    found = []
    for index, operand in enumerate(instruction.operands):
        if isinstance(operand, Register) and operand.name in tiles:
            reads = row.operands[index].access != "out" if row is not None else True
            found.append((operand.name, reads))
    return sorted(found, key=lambda item: not item[1])


def _whole(instruction: Instruction, tiles: dict[str, Tile]) -> bool:
    """Whether the instruction keeps every tile fully valid and writes the whole of what it writes."""
    if instruction.mnemonic == "setvalid":
        return False
    row = INSTRUCTIONS.get(instruction.mnemonic)
    if row is None:
        return True
    if instruction.mnemonic in _WINDOWED:
        target = instruction.operands[0]
        tile = tiles.get(target.name) if isinstance(target, Register) else None
        return tile is not None and all(_covers(item, tile) for item in instruction.operands[3:5])
    has_lists = any(operand.kind == "list" for operand in row.operands)
    writes_tile = any(operand.kind == "tile" and operand.access != "in" for operand in row.operands)
    return row.kernel != "" and not (has_lists and writes_tile)


def _covers(window: object, tile: Tile) -> bool:
    """Whether a literal window is as large as the tile, leading axes counted as rows."""
    if not isinstance(window, tuple) or not all(isinstance(item, int) for item in window):
        return False
    rows = 1
    for extent in window[:-1]:
        rows *= extent
    return (rows, window[-1] if window else 1) == (tile.rows, tile.cols)

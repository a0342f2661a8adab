"""Rings between the cores of a group that both sides declare unlike each other, or that are too small for their tiles.

A card takes what each side says: slots of another size or number lie elsewhere, and a tile that is larger than its slot
runs over the next one. The text of the kernels shows it (spec ops 17), so it is looked for once per program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from pypto.ir.dtype import DataType
from pypto.sim.checks.findings import Finding
from pypto.sim.checks.places import cells, location
from pypto.sim.syntax import Instruction, Register, Tile
from pypto.sim.tile_queues import SLOTS_BOTH_WAYS, SLOTS_ONE_WAY

if TYPE_CHECKING:
    from pypto.sim.program import LoadedProgram
    from pypto.sim.tile_program import TileProgram

_WAYS: Final = {1: "cube to vector", 2: "vector to cube"}
_PUSHES: Final = {"tpush_to_aiv": 1, "tpush_to_aic": 2}
_LANES: Final = 2
_KNOWN: Final[WeakKeyDictionary[LoadedProgram, tuple[Finding, ...]]] = WeakKeyDictionary()


class _Ring(NamedTuple):
    """One way of a ring as one side declares it, at instruction ``place``."""

    slot_size: int
    slots: int
    place: int


def ring_findings(program: LoadedProgram) -> tuple[Finding, ...]:
    """The findings of all groups and kernels of ``program``."""
    if program not in _KNOWN:
        _KNOWN[program] = tuple(_find(program))
    return _KNOWN[program]


def _find(program: LoadedProgram) -> Iterator[Finding]:
    declared = {name: _rings(kernel) for name, kernel in program.kernels.items()}
    for group in program.groups.values():
        if group.aic in declared and group.aiv in declared:
            cube, vector = program.kernels[group.aic], program.kernels[group.aiv]
            for ring in declared[group.aic].keys() & declared[group.aiv].keys():
                yield from _unlike(ring, cube, declared[group.aic][ring], vector, declared[group.aiv][ring])
    for name, kernel in program.kernels.items():
        yield from _too_large(kernel, declared[name])


def _rings(kernel: TileProgram) -> dict[tuple[int, int], _Ring]:
    """(id, way) -> what ``kernel`` declares."""
    found = {}
    for index, statement in enumerate(kernel.statements):
        if isinstance(statement, Instruction) and statement.mnemonic.startswith("ring_"):
            mask, size, slots, number = (_number(statement, n) for n in ("dir_mask", "slot_size", "slots", "id"))
            depth = slots or (SLOTS_BOTH_WAYS if mask == sum(_WAYS) else SLOTS_ONE_WAY)
            found.update({(number, way): _Ring(size, depth, index) for way in _WAYS if mask & way})
    return found


def _number(instruction: Instruction, name: str) -> int:
    return int(str(instruction.attributes.get(name, 0)))


def _unlike(
    ring: tuple[int, int], cube: TileProgram, of_cube: _Ring, vector: TileProgram, of_vector: _Ring
) -> Iterator[Finding]:
    if of_cube[:2] == of_vector[:2]:
        return
    number, way = ring
    message = (
        f"queue {number} ({_WAYS[way]}) is declared by '{cube.name}' with {of_cube.slots} slots of {of_cube.slot_size} "
        f"bytes and by '{vector.name}' with {of_vector.slots} slots of {of_vector.slot_size} bytes: what one side "
        "puts into it is not where the other side looks"
    )
    repair = f"give both sides the same slot_size, as slot_size={max(of_cube.slot_size, of_vector.slot_size)}"
    if of_cube.slot_size == of_vector.slot_size:
        repair = "give both sides the same dir_mask and slot_num (without it 8 slots one way, 4 each way of both)"
    places = (
        location(cube, of_cube.place, f"'{cube.name}' declares"),
        location(vector, of_vector.place, f"'{vector.name}' declares"),
    )
    yield Finding("fifo", message, f"queue {number}", (cube.name, vector.name), places, None, (), repair)


def _too_large(kernel: TileProgram, rings: dict[tuple[int, int], _Ring]) -> Iterator[Finding]:
    told: set[tuple[int, int]] = set()
    for index, statement in enumerate(kernel.statements):
        if not isinstance(statement, Instruction) or statement.mnemonic not in _PUSHES:
            continue
        way, operand = _PUSHES[statement.mnemonic], statement.operands[0]
        key = _number(statement, "id"), way
        tile = kernel.symbols.get(operand.name) if isinstance(operand, Register) else None
        if key not in rings or key in told or not isinstance(tile, Tile):
            continue
        split = _number(statement, "split") if way == 1 else 0
        rows = -(-tile.rows // _LANES) if split in (1, 3) else tile.rows
        cols = -(-tile.cols // _LANES) if split in (2, 4) else tile.cols
        size = rows * cols * DataType.from_string(tile.dtype).get_bit() // 8
        if size > rings[key].slot_size:
            told.add(key)
            extents = f"{rows} x {cols} {tile.dtype}{' for each lane' if split else ''}"
            yield _overrun(kernel, index, tile, extents, size, rings[key], key[0])


def _overrun(kernel: TileProgram, index: int, tile: Tile, extents: str, size: int, ring: _Ring, number: int) -> Finding:
    name = kernel.author(tile.name)
    message = (
        f"'{kernel.name}' pushes {size} bytes of '{name}' ({extents}) into queue {number}, whose slots hold "
        f"{ring.slot_size}: they run over the next slot"
    )
    places = (location(kernel, index, f"'{kernel.name}' pushes"), location(kernel, ring.place, "declares the queue"))
    span, ranges = cells(kernel, tile.name, (0, tile.rows), (0, tile.cols))
    repair = f"declare the queue with slot_size={size} on both sides"
    return Finding("fifo", message, name, (kernel.name,), places, span, ranges, repair)

"""How on-chip buffers are planned (spec language 7.5, runtime 3.2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pypto.ir.errors import CompileError
from pypto.ir.lowering.instructions import Tile
from pypto.ir.span import Span

InPlace = Literal["merge", "meet", "never"]
Order = Callable[[list[Tile], Mapping[Tile, set[Tile]]], list[Tile]]


def program_order(tiles: list[Tile], conflicts: Mapping[Tile, set[Tile]]) -> list[Tile]:
    """Buffers as the program defines them."""
    return tiles


def largest_first(tiles: list[Tile], conflicts: Mapping[Tile, set[Tile]]) -> list[Tile]:
    """The largest buffers first; equal ones as the program defines them."""
    return sorted(tiles, key=lambda t: -t.nbytes * t.slots)


def busiest_first(tiles: list[Tile], conflicts: Mapping[Tile, set[Tile]]) -> list[Tile]:
    """By the bytes that must lie somewhere else at the same time."""
    return sorted(tiles, key=lambda t: -(t.nbytes * t.slots + sum(o.nbytes * o.slots for o in conflicts[t])))


@dataclass(frozen=True)
class Planner:
    """One way to plan a memory space.

    ``in_place``: an operation's result and operand become one buffer before anything is placed (``merge``), may meet at
    one address when they are placed (``meet``), or never share bytes. ``orders``: in which orders buffers are placed at
    the lowest free address; the order with the lowest peak wins. ``rotate``: copies of a pipelined body always have
    slots of their own; otherwise they share bytes where a space is too small for that.
    """

    name: str
    in_place: InPlace
    orders: tuple[Order, ...]
    rotate: bool = False

    def check(self, tiles: list[Tile], span: Span) -> None:
        """``CompileError`` for a declared allocation the planner cannot keep apart."""
        for tile in tiles:
            if self.rotate and tile.allocation and tile.slots == 1:
                raise CompileError(
                    f"memory_planner={self.name} takes declared allocations of several slots only; "
                    f"{tile.allocation!r}, used by {tile.name!r}, has one",
                    span,
                    "declare it as pl.MemRef(slots=2), or compile with memory_planner=PYPTO",
                )


PLANNERS: Final = {
    planner.name: planner
    for planner in (
        Planner("PYPTO", "merge", (program_order,)),
        Planner("DSA_RP", "meet", (program_order, largest_first, busiest_first)),
        Planner("PTOAS", "never", (program_order,), rotate=True),
    )
}
DEFAULT_PLANNER: Final = PLANNERS["PYPTO"]


def planner_named(name: str) -> Planner:
    """The planner; choosing the assembler's is said once through ``logging``."""
    planner = PLANNERS[name]
    if planner.rotate:
        logging.getLogger("pypto").warning(
            "memory_planner=%s: buffers are planned by the assembler, without the compiler's reuse", name
        )
    return planner

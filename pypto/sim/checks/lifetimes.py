"""Tensors used after the runtime scope they were allocated in (spec language 5.7, 7.5): their memory may be another's.

The author's own scopes bound what is allocated in them. Those that the compiler puts around loop bodies and branches do
not count: it hands values on from trip to trip.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pypto.sim.checks.findings import Finding
from pypto.sim.checks.places import index_ranges, location
from pypto.sim.syntax import For, If, Place, Statement, While
from pypto.sim.tile_program import TileProgram

if TYPE_CHECKING:
    from pypto.sim.checks.watch import LaunchWatch


@dataclass
class LateUse:
    """The first use of an allocation behind its scope, which instruction ``scope`` opened; how often there was one."""

    allocation: int
    node: int
    scope: int
    count: int = 0


class Lifetimes:
    """Which tensors of one launch were allocated in scopes that have ended, and who used them all the same."""

    def __init__(self, orchestration: TileProgram) -> None:
        self._orchestration = orchestration
        self._implied: frozenset[Place | None] | None = None
        self._open: list[tuple[int, list[int]]] = []  # the instruction that opened a scope, what was allocated in it
        self.ended: dict[int, int] = {}
        """Allocation: the instruction that opened its scope, which has ended."""
        self.uses: dict[tuple[int, int], LateUse] = {}
        """By the instructions that open the scope and use the tensor."""

    def opened(self, site: int) -> None:
        """Instruction ``site`` opens a scope."""
        self._open.append((site, []))

    def allocated(self, number: int) -> None:
        """Allocation ``number`` was made in the innermost scope."""
        if self._open:
            self._open[-1][1].append(number)

    def closed(self) -> None:
        """The innermost scope has ended."""
        site, numbers = self._open.pop()
        if numbers and self._is_the_authors(site):
            self.ended.update(dict.fromkeys(numbers, site))
        elif self._open:
            self._open[-1][1].extend(numbers)

    def used(self, numbers: Iterable[int], node: int, site: int) -> None:
        """Node ``node``, instruction ``site`` of the orchestration, is given the allocations ``numbers``."""
        for number in self.ended.keys() & set(numbers):
            scope = self.ended[number]
            self.uses.setdefault((scope, site), LateUse(number, node, scope)).count += 1

    def _is_the_authors(self, site: int) -> bool:
        if self._implied is None:
            self._implied = frozenset(_places(self._orchestration.body))
        place = self._orchestration.place(site)
        return place is None or place not in self._implied


def _places(statements: Iterable[Statement]) -> Iterator[Place | None]:
    """Source places of loops and branches, which are those of the scopes that the compiler puts into them."""
    for statement in statements:
        if isinstance(statement, For | If | While):
            yield statement.place
            blocks = (statement.then, statement.orelse) if isinstance(statement, If) else (statement.body,)
            for block in blocks:
                yield from _places(block)


def lifetime_findings(watch: LaunchWatch) -> Iterator[Finding]:
    """One finding per scope and instruction that uses what was allocated in it."""
    for (scope, site), use in watch.lifetimes.uses.items():
        memory, node = watch.memories[use.allocation][0], watch.nodes[use.node]
        program, who = watch.orchestration, f"'{node.name}'" if node.name else f"'{watch.orchestration.name}'"
        span = 0, memory.size
        message = (
            f"{who} uses '{memory.name}' after the runtime scope that it was allocated in has ended: its memory may "
            "belong to another tensor by then"
        )
        repair = f"create '{memory.name}' in the scope that holds all its uses, or move the use into the scope"
        acts = f"{who} is submitted" if node.name else "is read or written"
        places = (
            location(program, memory.index, f"'{memory.name}' is allocated"), location(program, scope, "its scope"),
            location(program, site, acts),
        )  # fmt: skip
        tasks = (node.name,) if node.name else ()
        ranges = index_ranges(memory, np.array([span], np.int64))
        yield Finding("uninit", message, memory.name, tasks, places, span, ranges, repair, use.count)

"""Scopes that hold more than their ring: the orchestration waits for itself (spec distributed 5.2 D21, 6.2, 6.8).

A task gives its slot and its heap back in the order of its ring, and not before its scope has ended. What was submitted
to a ring since the first task of the outermost open scope is therefore held, whatever the cores do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pypto.sim.checks.findings import Finding, Location
from pypto.sim.checks.places import location
from pypto.sim.recording import ALLOC, SCOPE_BEGIN, SCOPE_END, SUBMIT
from pypto.sim.syntax import Instruction, KernelName

if TYPE_CHECKING:
    from pypto.sim.checks.selection import Rings
    from pypto.sim.recorder import Recorder
    from pypto.sim.tile_program import TileProgram


@dataclass
class _Usage:
    """Tasks and bytes given to every ring so far, and where the open scopes began to hold some."""

    tasks: list[int]
    heap: list[int]
    open: list[dict[int, tuple[int, int]]] = field(default_factory=lambda: [{}])
    """Per open scope, outermost first: ring -> (tasks, bytes) before its first one."""

    def note(self, ring: int) -> None:
        """The innermost scope is about to hold something of ``ring``."""
        self.open[-1].setdefault(ring, (self.tasks[ring], self.heap[ring]))

    def held(self, ring: int) -> tuple[int, int]:
        """Tasks and bytes of a ring that cannot come back before a scope ends."""
        starts = [scope[ring] for scope in self.open if ring in scope]
        tasks = min((start[0] for start in starts), default=self.tasks[ring])
        heap = min((start[1] for start in starts), default=self.heap[ring])
        return self.tasks[ring] - tasks, self.heap[ring] - heap


def scope_findings(recorder: Recorder, orchestration: TileProgram, rings: Rings) -> Iterator[Finding]:
    """The first submission that waits for a scope around itself."""
    if len(recorder.tasks) < min(rings.window) - 1 and recorder.allocated <= min(rings.heap):
        return
    usage, last = _Usage([0] * len(rings.window), [0] * len(rings.heap)), len(rings.window) - 1
    for kind, a, b, _ in recorder.events:
        if kind == SCOPE_BEGIN:
            usage.open.append({})
        elif kind == SCOPE_END:
            usage.open.pop()
        elif kind == ALLOC:
            usage.note(b)
            usage.heap[b] += a
        elif kind == SUBMIT:
            ring = min(len(usage.open) - 1, last)
            tasks, heap = usage.held(ring)
            if tasks >= rings.window[ring] - 1:
                yield _full(recorder, orchestration, a, ring, _slots(tasks, rings.window[ring]))
                return
            if tasks > 0 and heap > rings.heap[ring]:
                yield _full(recorder, orchestration, a, ring, _bytes(heap, rings.heap[ring]))
                return
            usage.note(ring)
            usage.tasks[ring] += 1


def _slots(held: int, size: int) -> tuple[str, str]:
    wanted = 1 << (held + 2).bit_length()
    return f"its open scopes hold {held} of the {size} slots, of which one stays free", f"ring_task_window={wanted}"


def _bytes(held: int, size: int) -> tuple[str, str]:
    wanted = 1 << (held - 1).bit_length()
    return f"its open scopes hold {held} bytes of a heap of {size}", f"ring_heap={wanted}"


def _full(recorder: Recorder, orchestration: TileProgram, task: int, ring: int, held: tuple[str, str]) -> Finding:
    name = recorder.names[task]
    message = (
        f"'{orchestration.name}' waits for ever before task {task} ('{name}'): {held[0]} (ring {ring}), and what a "
        "scope holds comes back when it ends"
    )
    repair = (
        "let fewer tasks share a scope, so that slots and buffers come back: 'with pl.scope():' around the work of one "
        f"trip, or leave auto_scope=False out; or give the rings more room, RunConfig({held[1]})"
    )
    places = (_submission(orchestration, name),)
    return Finding("scope-deadlock", message, "", (name,), places, None, (), repair)


def _submission(orchestration: TileProgram, name: str) -> Location:
    """Where a task of this name is submitted first."""
    found = (index for index, s in enumerate(orchestration.statements) if _submits(s, name))
    return location(orchestration, next(found, 0), f"'{name}' is submitted")


def _submits(statement: object, name: str) -> bool:
    if not isinstance(statement, Instruction) or statement.mnemonic not in ("submit", "dummy"):
        return False
    operands: Sequence[object] = statement.operands
    return any(isinstance(operand, KernelName) and operand.name == name for operand in operands)

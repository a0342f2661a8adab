"""How a pair of accesses that nothing orders is put in order, in terms of the author's source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pypto.sim.checks import conflicts as c
from pypto.sim.checks import words as w
from pypto.sim.checks.boxes import shared_runs
from pypto.sim.checks.findings import Location
from pypto.sim.checks.places import first_byte, index_ranges, location, memory_at, operation, tensor_operand
from pypto.sim.checks.region_edits import Side, block_edits, lane_edits
from pypto.sim.checks.source_edits import inout_edits, sequential_edits
from pypto.sim.checks.wait_edits import edits_of_files
from pypto.sim.recording import Words

if TYPE_CHECKING:
    from pypto.sim.checks.watch import LaunchWatch, Memory


@dataclass(frozen=True)
class Access:
    """One side of a conflict."""

    watch: LaunchWatch
    entry: Words

    @property
    def node(self) -> int:
        return int(self.entry[c.E_NODE])

    @property
    def seat(self) -> int:
        return int(self.entry[c.E_SEAT])

    @property
    def writes(self) -> bool:
        return bool(self.entry[w.ACCESS_KIND] & w.WRITES)

    @property
    def task(self) -> str:
        return self.watch.nodes[self.node].name or self.watch.orchestration.name

    @property
    def site(self) -> int:
        return self.watch.nodes[self.node].site

    @property
    def block(self) -> tuple[int, int, int]:
        return int(self.entry[c.E_BLOCK]), int(self.entry[c.E_LANE]), int(self.entry[c.E_CORE])

    @property
    def box(self) -> Words:
        return self.entry[w.ACCESS_BOX : w.ACCESS_WORDS]

    @property
    def program_index(self) -> tuple[int, int]:
        return int(self.entry[c.E_PROGRAM]), int(self.entry[w.ACCESS_INSTRUCTION])

    def location(self) -> Location:
        program, index = self.program_index
        verb = "writes" if self.writes else "reads"
        return location(self.watch.programs[program], index, f"'{self.task}' {verb}")

    def operation(self) -> str:
        program, index = self.program_index
        return operation(self.watch.programs[program], index)

    def through(self) -> str:
        program, index = self.program_index
        return tensor_operand(self.watch.programs[program], index)

    def who(self, other: Access) -> str:
        """The task, with its block or core when the other access is of the same task."""
        task = self.watch.nodes[self.node].task
        name = f"'{self.task}'" if task < 0 else f"'{self.task}' (task {task})"
        if self.node != other.node:
            return name
        (block, lane, core), (other_block, _, other_core) = self.block, other.block
        if block != other_block:
            return f"block {block} of {name}"
        if core and other_core:
            return f"lane {lane} of {name}"
        return f"the {'vector' if core else 'cube'} side of {name}"


def repair_between(kind: str, a: Access, b: Access, tensor: str) -> str:
    """What orders the tasks of two accesses: the edited lines of the source where they can be worked out."""
    if kind == "parallel-overlap":
        edits = _loop_in_order(a) or _second_waits(a, b)[1]
        return (
            f"iterate with pl.range, which keeps the writers of '{tensor}' in order, give every iteration a disjoint "
            f"region, or chain them with deps=[...]{edits}"
        )
    if b.watch.nodes[b.node].task < 0:
        return _orchestration_waits(kind, a, b, tensor)
    awaited, edits = _second_waits(a, b)
    wait = f"let '{b.task}' wait for '{a.task}'"
    if edits:
        wait += f" with deps=[{awaited}]:{edits}\n    "
    elif kind == "war" and (declared := _reader_declared(a)):
        return (
            f"a reader that declares its parameter pl.InOut is waited for{declared}\n    or let '{b.task}' write to a "
            "fresh tensor: the id of a kernel that is called cannot be named in deps=[...]"
        )
    else:
        wait += (
            f": bind the id with 'with pl.at(...) as first_id:' around the work of '{a.task}' (or, in a class, "
            f"'result, first_id = pl.submit(self.{a.task}, ...)') and give '{b.task}' deps=[first_id]"
        )
    if kind == "war":
        return f"{wait}, or let '{b.task}' write to a fresh tensor".replace("\n    , or", "\n    or")
    other = f"or let the order be inferred: no manual_dep, no_dep or manual scope for '{tensor}'"
    return f"{wait}, {other}".replace("\n    , or", "\n    or")


def _orchestration_waits(kind: str, a: Access, b: Access, tensor: str) -> str:
    """What orders an access of the orchestration, which has no ``deps=``, behind a task (spec distributed 6.3)."""
    verb = "writes" if b.writes else "reads"
    if kind == "war":
        return (
            f"'{b.task}' waits for readers that declare their parameter pl.InOut only: declare that of '{a.task}' "
            f"so, or write '{tensor}' in a task with deps=[...]"
        )
    return (
        f"'{b.task}' waits for the writers of '{tensor}' that are inferred: no manual_dep, no_dep or manual scope "
        f"where '{a.task}' writes it; or a task with deps=[...] {verb} it instead"
    )


def listed(edits: list[str]) -> str:
    """Edited lines, each on a line of the report."""
    return "".join(f"\n      {line}" for line in edits)


def _place(a: Access) -> tuple[str, int]:
    place = a.watch.orchestration.place(a.site) if a.site >= 0 else None
    return ("", 0) if place is None else (a.watch.orchestration.files.get(place.file, ""), place.line)


def _second_waits(a: Access, b: Access) -> tuple[str, str]:
    """What the task of ``b`` waits for, and the lines with which it waits for the task of ``a``."""
    (file, first), (other, second) = _place(a), _place(b)
    if not first or not second:
        return "", ""
    carried, orchestration = a.node < a.watch.nodes[a.node].repeated < b.node, a.watch.orchestration
    files = list(dict.fromkeys((file, other, *orchestration.files.values())))
    awaited, lines = edits_of_files(files, (file, first, a.task), (other, second, b.task), carried, orchestration.name)
    return awaited, listed(lines)


def _loop_in_order(a: Access) -> str:
    file, line = _place(a)
    return listed(sequential_edits(file, line)) if line else ""


def _reader_declared(a: Access) -> str:
    """The kernel that reads, with its parameter declared as input and output."""
    return listed(inout_edits(a.location().file, a.task, a.through()))


def repair_within(a: Access, b: Access, tensor: str) -> str:
    """What keeps the blocks, lanes or cores of one task apart."""
    (block, _, core), (other, _, other_core) = a.block, b.block
    if block == other and not (core and other_core):
        return (
            "order the two sides: sync_set after the first access and sync_wait before the second, or hand over a tile"
        )
    if not a.writes or not b.writes:
        return (
            "split the launch into two tasks (the second starts when every block of the first has ended), or put "
            "pl.system.syncall between the two accesses and launch with sync_start=True"
        )
    axis, size, unit = _apart(a, b)
    if block == other:
        return (
            f"let every lane write {unit} of its own: add the lane index times {size} to the offset of axis {axis} of "
            f"'{tensor}'{_apart_edits(a, b, axis, size)}"
        )
    stride = _stride(a, b, axis)
    smaller = f", or a region must be at most {stride}" if stride else ""
    return (
        f"give every block a region of its own: the stride from block to block must be at least {size} {unit} "
        f"(axis {axis} of '{tensor}'){smaller}{_apart_edits(a, b, axis, size)}"
    )


def _stride(a: Access, b: Access, axis: int) -> int:
    """How far apart along an axis the regions of neighbouring blocks begin; 0 when they do not go one way evenly."""
    blocks, shift = b.block[0] - a.block[0], _region(b)[1][axis][0] - _region(a)[1][axis][0]
    return max(shift // blocks, 0) if blocks and shift % blocks == 0 else 0


def _apart_edits(a: Access, b: Access, axis: int, size: int) -> str:
    """The line that stores with regions of its own for every block or lane, where both accesses are that store."""
    if a.program_index != b.program_index:
        return ""
    memory, place = _region(a)[0], a.location()
    side = Side(axis, size, _stride(a, b, axis), memory.shape[axis])
    if a.block[0] == b.block[0]:
        return listed(lane_edits((place.file, place.line), side))
    return listed(block_edits((place.file, place.line), _place(a), side))


def _apart(a: Access, b: Access) -> tuple[int, int, str]:
    """(axis, extent of a region along it, its unit): the axis along which two equal regions can be kept apart.

    That is the one along which they are shifted already, or the first one that has room for both.
    """
    memory, first, second = _region(a)[0], _region(a)[1], _region(b)[1]
    sizes = [high - low for low, high in first]
    shifted = [axis for axis, (one, other) in enumerate(zip(first, second)) if one != other]
    roomy = [axis for axis, size in enumerate(sizes) if 2 * size <= memory.shape[axis]]
    axis = (shifted or roomy or [0])[0]
    unit = ("rows", "columns")[axis] if len(memory.shape) == 2 else "elements"
    return axis, max(sizes[axis] if sizes else 1, 1), unit


def _region(a: Access) -> tuple[Memory, tuple[tuple[int, int], ...]]:
    """The tensor of an access and the indices it touches."""
    memories = a.watch.memories[int(a.entry[w.ACCESS_ALLOCATION])]
    memory = memory_at(memories, int(a.box[0]))
    runs = shared_runs(a.box, a.box) - first_byte(memory, memories)
    return memory, index_ranges(memory, runs)

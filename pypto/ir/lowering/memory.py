"""Addresses of tile buffers: lifetime-based reuse within each memory space (spec language 7.1, 7.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pypto.ir.errors import CompileError
from pypto.ir.lowering.instructions import Branch, Instruction, Kernel, Loop, Node, Tile, WhileLoop, instructions
from pypto.ir.lowering.liveness import Interference, same_loop_stages
from pypto.ir.lowering.planners import DEFAULT_PLANNER, Planner
from pypto.ir.span import Span


@dataclass(frozen=True)
class Space:
    """Capacity and allocation alignment of one memory space of the chip."""

    name: str  # as an author writes it: Vec, Mat, ...
    capacity_bytes: int
    alignment_bytes: int


def plan(kernel: Kernel, spaces: dict[str, Space], span: Span, planner: Planner = DEFAULT_PLANNER) -> None:
    """Give every tile of ``kernel`` an address; moves between registers that share one buffer vanish.

    Raises ``CompileError`` naming the space, the bytes needed and the bytes there are.
    """
    used = _used_tiles(kernel)
    found = Interference().of(kernel.body)
    groups = _Groups(found)
    for pair in found.copies:
        groups.merge(*pair)
    meeting = [pair for pair in found.shares if not _in_place(planner, groups, found, pair)]
    buffers = list(dict.fromkeys(t.buffer for t in kernel.tiles if t in used))
    planner.check(buffers, span)
    separate = same_loop_stages(buffers)
    for name in dict.fromkeys(t.space for t in buffers):
        members = [t for t in buffers if t.space == name]
        problem = _problem(members, groups, found, meeting, spaces[name])
        _place_space(kernel, problem, separate, planner, span)
    kernel.tiles = [t for t in kernel.tiles if t in used or t.buffer in buffers]
    for tile in buffers:
        if isinstance(tile.slot, int):
            tile.address += tile.slot * tile.pitch_bytes
    for tile in kernel.tiles:
        tile.address = tile.buffer.address + tile.base_offset()
    kernel.body = _without_copies(kernel.body)


def _used_tiles(kernel: Kernel) -> set[Tile]:
    used: set[Tile] = set()
    for node in instructions(kernel.body):
        for operand in node.operands:
            if isinstance(operand, Tile):
                used |= {operand, operand.buffer}
    return used


class _Groups:
    """Buffers that share one allocation (union-find over the interference graph)."""

    def __init__(self, found: Interference):
        self._found = found
        self._leader: dict[Tile, Tile] = {}
        self._members: dict[Tile, set[Tile]] = {}

    def leader(self, tile: Tile) -> Tile:
        while tile in self._leader:
            tile = self._leader[tile]
        return tile

    def members(self, leader: Tile) -> set[Tile]:
        return self._members.get(leader, {leader})

    def merge(self, a: Tile, b: Tile) -> bool:
        """Join the groups of ``a`` and ``b`` when nothing in one interferes with the other."""
        first, second = self.leader(a), self.leader(b)
        if first is second:
            return True
        if not self.may_meet(a, b):
            return False
        self._leader[second] = first
        self._members[first] = self.members(first) | self.members(second)
        return True

    def may_meet(self, a: Tile, b: Tile) -> bool:
        """Whether the groups of ``a`` and ``b`` have one geometry and nothing in one interferes with the other."""
        first, second = self.leader(a), self.leader(b)
        fits = first.space == second.space and first.nbytes == second.nbytes and first.row_stride == second.row_stride
        if not fits or first.element_bytes != second.element_bytes or first.allocation or second.allocation:
            return False
        left, right = self.members(first), self.members(second)
        return not any(self._found.edges[x] & right for x in left)


def _in_place(planner: Planner, groups: _Groups, found: Interference, pair: tuple[Tile, Tile]) -> bool:
    """Settle whether a result and its operand share bytes; False leaves it to the placement."""
    if planner.in_place == "merge" and groups.merge(*pair):
        return True
    if planner.in_place == "meet" and groups.may_meet(*pair):
        return False
    found.connect(*pair)
    return True


@dataclass
class _Problem:
    """Buffers of one space: which lie apart, and which may also meet at exactly one address."""

    space: Space
    leaders: list[Tile]
    groups: _Groups
    apart: dict[Tile, set[Tile]]
    meeting: dict[Tile, set[Tile]]


def _problem(
    members: list[Tile], groups: _Groups, found: Interference, meeting: list[tuple[Tile, Tile]], space: Space
) -> _Problem:
    leaders = list(dict.fromkeys(groups.leader(t) for t in members))
    partners: dict[Tile, set[Tile]] = {leader: set() for leader in leaders}
    for a, b in meeting:
        first, second = groups.leader(a), groups.leader(b)
        if first in partners and second in partners and first is not second:
            partners[first].add(second)
            partners[second].add(first)
    return _Problem(space, leaders, groups, _group_conflicts(leaders, groups, found), partners)


def _place_space(
    kernel: Kernel, problem: _Problem, separate: list[list[tuple[Tile, Tile]]], planner: Planner, span: Span
) -> None:
    space = problem.space
    tries = [_with_stages(problem.apart, pairs, problem.groups) for pairs in separate]
    tries = tries[:1] if planner.rotate and tries else [*tries, problem.apart]
    for apart in tries:
        peak = _lowest_peak(problem, apart, planner)
        if peak <= space.capacity_bytes:
            break
    if peak > space.capacity_bytes:
        raise CompileError(
            _overflow(kernel, space, problem.leaders, peak), span, _what_fits(space, problem.leaders, peak)
        )
    for leader in problem.leaders:
        for tile in problem.groups.members(leader):
            tile.address = leader.address
    kernel.peaks[space.name] = peak


def _lowest_peak(problem: _Problem, apart: dict[Tile, set[Tile]], planner: Planner) -> int:
    """Place the buffers in the order that needs fewest bytes."""
    orders = [order(problem.leaders, apart) for order in planner.orders]
    peaks = [_first_fit(order, apart, problem.meeting, problem.space) for order in orders]
    best = peaks.index(min(peaks))
    if best != len(peaks) - 1:
        _first_fit(orders[best], apart, problem.meeting, problem.space)
    return peaks[best]


def _with_stages(
    apart: dict[Tile, set[Tile]], pairs: list[tuple[Tile, Tile]], groups: _Groups
) -> dict[Tile, set[Tile]]:
    """``apart`` and the ``pairs`` of pipeline copies that should not share bytes either."""
    staged = {leader: set(others) for leader, others in apart.items()}
    for a, b in pairs:
        first, second = groups.leader(a), groups.leader(b)
        if first is not second and first in staged and second in staged:
            staged[first].add(second)
            staged[second].add(first)
    return staged


def _group_conflicts(leaders: list[Tile], groups: _Groups, found: Interference) -> dict[Tile, set[Tile]]:
    known = set(leaders)
    conflicts: dict[Tile, set[Tile]] = {leader: set() for leader in leaders}
    for leader in leaders:
        for tile in groups.members(leader):
            for other in found.edges[tile]:
                rival = groups.leader(other)
                if rival is not leader and rival in known:
                    conflicts[leader].add(rival)
    _declared_conflicts(leaders, conflicts)
    return conflicts


def _declared_conflicts(leaders: list[Tile], conflicts: dict[Tile, set[Tile]]) -> None:
    """A declared allocation is private: only tiles that name it may be there."""
    for a in leaders:
        for b in leaders:
            if a is not b and (a.allocation or b.allocation) and a.allocation != b.allocation:
                conflicts[a].add(b)


def _first_fit(
    leaders: list[Tile], conflicts: dict[Tile, set[Tile]], meeting: dict[Tile, set[Tile]], space: Space
) -> int:
    """Lowest address for each buffer in turn, where one it may meet lies if that is free; returns the bytes used."""
    peak = 0
    declared: dict[str, Tile] = {}
    placed: set[Tile] = set()
    sizes = _declared_sizes(leaders)

    def extent(tile: Tile) -> int:
        tile.pitch_bytes = _rounded(sizes.get(tile.allocation or "", tile.nbytes), space.alignment_bytes)
        return tile.pitch_bytes * tile.slots

    for tile in leaders:
        size = extent(tile)
        if tile.allocation in declared:
            tile.address = declared[tile.allocation].address
        else:
            tile.address = _place(tile, size, conflicts[tile] & placed, meeting[tile] & placed, extent)
            if tile.allocation:
                declared[tile.allocation] = tile
        placed.add(tile)
        peak = max(peak, tile.address + size)
    return peak


def _place(tile: Tile, size: int, apart: set[Tile], meeting: set[Tile], extent: Callable[[Tile], int]) -> int:
    taken = sorted((o.address, o.address + extent(o)) for o in apart)
    others = sorted((o.address, o.address + extent(o)) for o in meeting - apart)
    for start, stop in others:
        alone = all(start == a or start + size <= a or b <= start for a, b in others)
        if stop - start == size and alone and all(start + size <= a or b <= start for a, b in taken):
            return start
    return _gap(sorted(taken + others), size)


def _declared_sizes(leaders: list[Tile]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for tile in leaders:
        if tile.allocation:
            sizes[tile.allocation] = max(sizes.get(tile.allocation, 0), tile.nbytes)
    return sizes


def _gap(taken: list[tuple[int, int]], size: int) -> int:
    address = 0
    for start, stop in taken:
        if address + size <= start:
            break
        address = max(address, stop)
    return address


def _rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _overflow(kernel: Kernel, space: Space, leaders: list[Tile], peak: int) -> str:
    largest = sorted(leaders, key=lambda t: -t.nbytes)[:3]
    tiles = ", ".join(f"{t.name} [{t.rows}, {t.cols}] {t.dtype.constant} = {t.nbytes:,}" for t in largest)
    return (
        f"kernel {kernel.name!r} needs {peak:,} bytes of {space.name}, the chip has {space.capacity_bytes:,}; "
        f"largest tiles in bytes: {tiles}"
    )


def _what_fits(space: Space, leaders: list[Tile], peak: int) -> str | None:
    """How much smaller the tiles must be, told by the largest of them."""
    largest = max(leaders, key=lambda t: t.nbytes)
    for extent, axis in ((largest.rows, "rows"), (largest.cols, "columns")):
        fitting = extent * space.capacity_bytes // peak
        if 0 < fitting < extent:
            return f"work on about {fitting} of its {extent} {axis} at a time, in a loop or in blocks of pl.spmd"
    return None


def _without_copies(body: list[Node]) -> list[Node]:
    """Drop moves whose two registers ended up in one buffer with one shape."""
    kept: list[Node] = []
    for node in body:
        if isinstance(node, Instruction) and node.copy and _is_identity(node):
            continue
        if isinstance(node, Loop):
            node.body = _without_copies(node.body)
        elif isinstance(node, WhileLoop):
            node.head, node.body = _without_copies(node.head), _without_copies(node.body)
        elif isinstance(node, Branch):
            node.then_body, node.else_body = _without_copies(node.then_body), _without_copies(node.else_body)
        kept.append(node)
    return kept


def _is_identity(node: Instruction) -> bool:
    target, source = node.operands[0], node.operands[1]
    here = target.buffer.address + target.base_offset() == source.buffer.address + source.base_offset()
    return (
        here
        and target.space == source.space
        and (target.rows, target.cols, target.row_stride, target.dtype)
        == (source.rows, source.cols, source.row_stride, source.dtype)
    )

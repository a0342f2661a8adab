"""Addresses of tile buffers: lifetime-based reuse within each memory space (spec language 7.1, 7.5)."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.errors import CompileError
from pypto.ir.lowering.instructions import Branch, Instruction, Kernel, Loop, Node, Tile, WhileLoop, instructions
from pypto.ir.lowering.liveness import Interference, same_loop_stages
from pypto.ir.span import Span


@dataclass(frozen=True)
class Space:
    """Capacity and allocation alignment of one memory space of the chip."""

    name: str  # as an author writes it: Vec, Mat, ...
    capacity_bytes: int
    alignment_bytes: int


def plan(kernel: Kernel, spaces: dict[str, Space], span: Span) -> None:
    """Give every tile of ``kernel`` an address; moves between registers that share one buffer vanish.

    Raises ``CompileError`` naming the space, the bytes needed and the bytes there are.
    """
    used = _used_tiles(kernel)
    found = Interference().of(kernel.body)
    groups = _Groups(found)
    for pair in found.copies:
        groups.merge(*pair)
    for pair in found.shares:
        if not groups.merge(*pair):
            found.connect(*pair)
    buffers = list(dict.fromkeys(t.buffer for t in kernel.tiles if t in used))
    separate = same_loop_stages(buffers)
    for name in dict.fromkeys(t.space for t in buffers):
        members = [t for t in buffers if t.space == name]
        _place_space(kernel, name, members, groups, found, separate, spaces, span)
    kernel.tiles = [t for t in kernel.tiles if t in used or t.buffer in buffers]
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
        fits = first.space == second.space and first.nbytes == second.nbytes and first.row_stride == second.row_stride
        if not fits or first.element_bytes != second.element_bytes or first.allocation or second.allocation:
            return False
        left, right = self.members(first), self.members(second)
        if any(self._found.edges[x] & right for x in left):
            return False
        self._leader[second] = first
        self._members[first] = left | right
        return True


def _place_space(
    kernel: Kernel,
    name: str,
    members: list[Tile],
    groups: _Groups,
    found: Interference,
    separate: list[list[tuple[Tile, Tile]]],
    spaces: dict[str, Space],
    span: Span,
) -> None:
    space = spaces[name]
    leaders = list(dict.fromkeys(groups.leader(t) for t in members))
    apart = _group_conflicts(leaders, groups, found)
    for pairs in separate:
        peak = _first_fit(leaders, _with_stages(apart, pairs, groups), space)
        if peak <= space.capacity_bytes:
            break
    else:
        peak = _first_fit(leaders, apart, space)
    if peak > space.capacity_bytes:
        raise CompileError(_overflow(kernel, space, leaders, peak), span)
    for leader in leaders:
        for tile in groups.members(leader):
            tile.address = leader.address
    kernel.peaks[space.name] = peak


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


def _first_fit(leaders: list[Tile], conflicts: dict[Tile, set[Tile]], space: Space) -> int:
    """Lowest address for each buffer, in program order; returns the bytes used."""
    peak = 0
    declared: dict[str, Tile] = {}
    placed: set[Tile] = set()
    sizes = _declared_sizes(leaders)
    for tile in leaders:
        size = _rounded(sizes.get(tile.allocation or "", tile.nbytes), space.alignment_bytes) * tile.slots
        if tile.allocation in declared:
            tile.address = declared[tile.allocation].address
        else:
            taken = sorted(
                (
                    o.address,
                    o.address + _rounded(sizes.get(o.allocation or "", o.nbytes), space.alignment_bytes) * o.slots,
                )
                for o in conflicts[tile]
                if o in placed
            )
            tile.address = _gap(taken, size)
            if tile.allocation:
                declared[tile.allocation] = tile
        placed.add(tile)
        peak = max(peak, tile.address + size)
    return peak


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

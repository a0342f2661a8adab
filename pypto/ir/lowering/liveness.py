"""Which tile buffers are alive at the same time: backward liveness over structured code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

from pypto.ir.lowering.instructions import Branch, Instruction, Jump, Loop, Node, Tile, WhileLoop, instructions

Live = frozenset[Tile]


class Interference:
    """Pairs of buffers that must not share bytes; ``copies`` and ``shares`` list candidates for one common buffer."""

    def __init__(self) -> None:
        self.edges: dict[Tile, set[Tile]] = defaultdict(set)
        self.copies: list[tuple[Tile, Tile]] = []
        self.shares: list[tuple[Tile, Tile]] = []
        self._loops: list[tuple[Live, Live]] = []  # (live at continue, live at break)
        self._filled: set[Tile] = set()
        self.final = False

    def of(self, body: list[Node]) -> Interference:
        """Analyse a kernel body."""
        self.final = True
        self._filled = _filled(body)
        self._block(body, frozenset())
        return self

    def connect(self, a: Tile, b: Tile) -> None:
        if a is not b:
            self.edges[a].add(b)
            self.edges[b].add(a)

    # --- liveness ---

    def _block(self, body: list[Node], live: Live) -> Live:
        for node in reversed(body):
            live = self._node(node, live)
        return live

    def _node(self, node: Node, live: Live) -> Live:
        if isinstance(node, Instruction):
            return self._instruction(node, live)
        if isinstance(node, Branch):
            return self._block(node.then_body, live) | self._block(node.else_body, live)
        if isinstance(node, Loop):
            return self._loop([], node.body, live)
        if isinstance(node, WhileLoop):
            return self._loop(node.head, node.body, live)
        return self._jump(node, live)

    def _jump(self, node: Jump, live: Live) -> Live:
        if node.kind == "ret" or not self._loops:
            return frozenset() if node.kind == "ret" else live
        at_continue, at_break = self._loops[-1]
        return at_continue if node.kind == "continue" else at_break

    def _loop(self, head: list[Node], body: list[Node], after: Live) -> Live:
        """Iterate to the fixed point quietly, then once more to record."""
        recording, self.final = self.final, False
        entry: Live = after
        while True:
            self._loops.append((entry, after))
            found = self._block(head, self._block(body, entry) | after)
            self._loops.pop()
            if found <= entry:
                break
            entry = entry | found
        self.final = recording
        self._loops.append((entry, after))
        self._block(head, self._block(body, entry) | after)
        self._loops.pop()
        return entry

    def _instruction(self, node: Instruction, live: Live) -> Live:
        writes = [t.buffer for t in node.writes]
        reads = [t.buffer for t in node.reads]
        if self.final:
            self._record(node, writes, reads, live)
        if node.copy:  # a copy of a tile that nothing has filled keeps no bytes alive before it
            reads = [r for r in reads if r in self._filled]
        fresh = [w for w in writes if w not in reads]
        partial = [w for w in fresh if not _whole(node, w)]
        return (live - frozenset(fresh)) | frozenset(reads) | (frozenset(partial) & live)

    def _record(self, node: Instruction, writes: list[Tile], reads: list[Tile], live: Live) -> None:
        for written in writes:
            for other in live:
                if not (node.copy and other in reads and other not in writes):
                    self.connect(written, other)
            for other in writes:
                self.connect(written, other)
            for source in reads:
                if source is written:
                    continue
                if node.copy:
                    self.copies.append((written, source))
                elif node.may_share and source not in live and _same_geometry(written, source):
                    self.shares.append((written, source))
                else:
                    self.connect(written, source)


def _filled(body: list[Node]) -> set[Tile]:
    """Buffers that an instruction writes, or that are copied from one of these."""
    filled = {t.buffer for node in instructions(body) if not node.copy for t in node.writes}
    copies = [node for node in instructions(body) if node.copy]
    filled |= {t.buffer for node in copies for t in node.reads if t.buffer.allocation is not None}
    before = -1
    while before != len(filled):
        before = len(filled)
        for node in copies:
            if any(t.buffer in filled for t in node.reads):
                filled |= {t.buffer for t in node.writes}
    return filled


def _whole(node: Instruction, buffer: Tile) -> bool:
    """True when ``node`` defines all of ``buffer`` (a write through a view leaves the rest as it was)."""
    return any(t is buffer for t in node.writes)


def _same_geometry(a: Tile, b: Tile) -> bool:
    same_bytes = a.nbytes == b.nbytes and a.element_bytes == b.element_bytes and a.row_stride == b.row_stride
    return same_bytes and a.space == b.space and a.allocation is None and b.allocation is None


def same_loop_stages(tiles: Iterable[Tile]) -> list[list[tuple[Tile, Tile]]]:
    """Pairs defined in different copies of one pipeline loop: they get buffers of their own.

    The first list keeps all copies apart, the next ones only those of ever fewer loops, counted from the innermost:
    where buffers are scarce, the loops that iterate most often come first. Before all tiles of two copies may share,
    copies of one tile may: it rotates through the buffers of an inner loop and still waits for no other tile.
    """
    ordered = [t for t in tiles if t.stage]
    depth = max((len(t.stage) for t in ordered), default=0)
    found = [_different_copies(ordered, max(depth, 1))]
    for kept in range(depth - 1, 0, -1):
        found += [_copies_but_rotating(ordered, depth, kept), _different_copies(ordered, kept)]
    return found


def _different_copies(tiles: list[Tile], kept: int) -> list[tuple[Tile, Tile]]:
    """Pairs of ``tiles`` in different copies of one of the ``kept`` innermost loops around each."""
    return [(a, b) for a, b in combinations(tiles, 2) if _differ(a, b, kept)]


def _copies_but_rotating(tiles: list[Tile], depth: int, kept: int) -> list[tuple[Tile, Tile]]:
    """Pairs in different copies of any loop; copies of one tile only for the ``kept`` innermost loops."""
    return [
        (a, b)
        for a, b in combinations(tiles, 2)
        if _differ(a, b, kept if a.origin is not None and a.origin == b.origin else depth)
    ]


def _differ(a: Tile, b: Tile, kept: int) -> bool:
    stages = dict(a.stage[-kept:])
    return any(stages.get(loop, copy) != copy for loop, copy in b.stage[-kept:])

"""Random runs on several chips: dispatches of tasks of blocks that tell each other, as one legal schedule made them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from pypto.sim.checks import words as w
from pypto.sim.checks.event_rows import EventRows
from pypto.sim.checks.findings import Location
from pypto.sim.checks.rank_log import EVENT_WORDS, Place, RankLog, Window
from pypto.sim.checks.signal_cells import SET

SIZE, STRIDE = 256, 4096
OPERATIONS = ("store", "remote_load", "notify", "wait")
PLACES = tuple(
    Place("kernel", name, "signal" if n > 1 else "data", Location("k.py", n)) for n, name in enumerate(OPERATIONS)
)
Step = tuple
"""("read" | "write", owner), ("notify", to, cell, value, operation) or ("wait", cell, expected)."""


def rows_of(steps: list[tuple[int, int, Step]]) -> np.ndarray:
    """Plain rows of (block, node, step)."""
    rows = np.zeros((len(steps), EVENT_WORDS), np.int64)
    for row, (seat, node, (name, *rest)) in zip(rows, steps):
        row[1], row[2], row[6::2] = node, seat, 1
        if name in ("write", "read"):
            row[0], row[3] = (w.WRITES, 0) if name == "write" else (0, 1)
            row[4:6] = rest[0] * STRIDE, SIZE
        elif name == "notify":
            row[0], row[3], row[4:8] = w.NOTIFIES, 2, (rest[1], rest[0], rest[2], rest[3])
        else:
            row[0], row[3], row[4:8] = w.WAITED, 3, (rest[0], 0, rest[1], 1)
    return rows


@dataclass
class Block:
    """One block: its place, and its steps."""

    dispatch: int
    task: int
    seat: int
    rank: int
    steps: list[Step]
    done: int = 0

    @property
    def ended(self) -> bool:
        return self.done == len(self.steps)


@dataclass
class RandomRun:
    """``takes_back``: some additions are negative; ``sets``: cells are set."""

    seed: int
    takes_back: bool = False
    sets: bool = False
    blocks: list[Block] = field(default_factory=list)
    after: dict[int, list[int]] = field(default_factory=dict)
    before: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)
    events: defaultdict[int, list[tuple[int, int, Step]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self._make()
        self._play()

    def logs(self, together: int) -> dict[int, tuple[int, RankLog]]:
        """Logs of the dispatches with events, ``together`` of them in a chunk."""
        found = {}
        for dispatch in sorted(self.events):
            rank, rows = self.ranks[dispatch], EventRows.of(rows_of(self.events[dispatch]), together)
            window = Window("data", rank * STRIDE, SIZE, (1, 64), 32, STRIDE, rank, 2)
            found[dispatch] = rank, RankLog(rows, PLACES, tuple(self.before[dispatch]), (window,))
        return found

    def waits_for(self) -> dict[int, list[int]]:
        """The dispatches that each one waits for."""
        return {d: [other for other in self.after[d] if other in self.events] for d in self.events}

    def _make(self) -> None:
        chance, ranks = self.random, self.random.choice([2, 2, 3])
        own_cells, accesses = chance.random() < 0.5, 0.3 * chance.random()
        for dispatch in range(chance.choice([ranks, ranks, 2 * ranks, 3])):
            rank = self.ranks[dispatch] = dispatch % ranks if chance.random() < 0.8 else chance.randrange(ranks)
            self.after[dispatch] = [other for other in range(dispatch) if chance.random() < 0.15]
            tasks, seat = chance.choice([1, 1, 2, 3]), 0
            self.before[dispatch] = [(a, b) for b in range(tasks) for a in range(b) if chance.random() < 0.5]
            for task in range(tasks):
                for _ in range(chance.choice([1, 1, 2])):
                    count = chance.randint(1, 7)
                    steps = [self._step(rank, ranks, own_cells, accesses, 3 + dispatch) for _ in range(count)]
                    self.blocks.append(Block(dispatch, task, seat, rank, steps))
                    seat += 1

    def _step(self, rank: int, ranks: int, own_cells: bool, accesses: float, most: int) -> Step:
        chance = self.random
        kind = chance.random()
        if kind < accesses:
            return chance.choice(["read", "read", "write"]), chance.randrange(ranks)
        cells = [8 * other for other in range(ranks)] if own_cells else [0, 8]
        if kind < 0.6:
            amounts = [1, 1, 1, -1] if self.takes_back else [1, 1, 2]
            cell = 8 * rank if own_cells else chance.choice(cells)
            return "notify", chance.randrange(ranks), cell, chance.choice(amounts), SET if self.sets else 0
        return "wait", chance.choice(cells), chance.randint(1, most)

    def _play(self) -> None:
        """One legal schedule; waits that nothing satisfies are dropped, or passed as if a host had told them."""
        cells: Counter[tuple[int, int]] = Counter()
        while left := [block for block in self.blocks if not block.ended]:
            begun = [block for block in left if block.done or self._may_start(block)]
            able = [block for block in begun if _satisfied(block, cells)]
            block = self.random.choice(able or begun)
            step = block.steps[block.done]
            if not able and self.random.random() > 0.15 and len(block.steps) > 1:
                del block.steps[block.done]
                continue
            if step[0] == "notify":
                place = step[2], step[1]
                cells[place] = step[3] if step[4] == SET else cells[place] + step[3]
            self.events[block.dispatch].append((block.seat, block.task, step))
            block.done += 1

    def _may_start(self, block: Block) -> bool:
        own = [d for d, rank in self.ranks.items() if rank == block.rank and d < block.dispatch]
        dispatches = {*self.after[block.dispatch], *own[-1:]}
        tasks = {a for a, b in self.before[block.dispatch] if b == block.task}
        return all(
            other.ended
            for other in self.blocks
            if other.dispatch in dispatches or other.dispatch == block.dispatch and other.task in tasks
        )


def _satisfied(block: Block, cells: Counter[tuple[int, int]]) -> bool:
    step = block.steps[block.done]
    return step[0] != "wait" or cells[step[1], block.rank] >= step[2]

"""Random pushes, pops and frees against a model of what a queue is: who waits, what is wrong where, what is left."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from build_directory import arguments, write_build
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto.sim import DeadlockError
from pypto.sim.program import load_program
from pypto.sim.queue_faults import QueueError

MAIN = """orchestration @main {
  param %c : tensor<16x16xfp32> out
  submit %t, @mix, [%c], [], [3] {blocks = 1}
}
"""
GROUP = {"name": "mix", "group": {"aic": "cube", "aiv": "vector", "lanes": 1}}
TILES = 5
Operation = tuple[str, int, int]
"""(pop, tile, id) or (free, tile, id)."""


@dataclass
class Model:
    """Queues as the specification has them: a free must name a tile that was popped with this id and not freed yet.

    ``outcome``: (what, line) of a fault, (wait, sides that wait), or (done, tiles left, slots left by id).
    """

    depth: int
    pushes: list[int]
    operations: list[Operation]
    pushed: Counter[int] = field(default_factory=Counter)
    popped: Counter[int] = field(default_factory=Counter)
    freed: Counter[int] = field(default_factory=Counter)
    held: dict[int, tuple[int, int]] = field(default_factory=dict)  # tile -> (id, number) of its pop
    given_back: set[int] = field(default_factory=set)

    def run(self) -> tuple[object, ...]:
        cube = vector = 0
        while True:
            before = cube, vector
            while cube < len(self.pushes) and self._room(self.pushes[cube]):
                self.pushed[self.pushes[cube]] += 1
                cube += 1
            while vector < len(self.operations):
                what, tile, queue = self.operations[vector]
                if what == "pop" and self.pushed[queue] == self.popped[queue]:
                    break
                wrong = self._step(what, tile, queue)
                if wrong:
                    return wrong, vector + 1
                vector += 1
            if before == (cube, vector):
                break
        waiting = {"aic"} if cube < len(self.pushes) else set()
        waiting |= {"aiv"} if vector < len(self.operations) else set()
        if waiting:
            return "wait", frozenset(waiting)
        left = {q: n - self.popped[q] for q, n in self.pushed.items() if n > self.popped[q]}
        taken = {q: n - self.freed[q] for q, n in self.popped.items() if n > self.freed[q]}
        return "done", left, taken

    def _room(self, queue: int) -> bool:
        return self.pushed[queue] - self.freed[queue] < self.depth

    def _step(self, what: str, tile: int, queue: int) -> str:
        if what == "pop":
            self.held[tile] = queue, self.popped[queue]
            self.given_back.discard(tile)
            self.popped[queue] += 1
            return ""
        known = self.held.get(tile)
        if known is not None and known[1] < self.popped[known[0]] - self.depth:
            known = None  # so long ago that its slot has been popped again: only the counts tell
        if known is not None and tile not in self.given_back and known[0] != queue:
            return "elsewhere"
        if known is not None and tile in self.given_back and known[0] == queue:
            return "twice"
        if self.freed[queue] >= self.popped[queue]:
            return "without pop"
        if known is not None and known[0] == queue:
            self.given_back.add(tile)
        self.freed[queue] += 1
        return ""


def program_text(depth: int, pushes: list[int], operations: list[Operation]) -> tuple[str, str]:
    """Kernels whose source lines number the operations from 1."""
    tiles = "\n".join(f"tile %t{k} : vec<16x16xfp32> at {1024 * k}" for k in range(TILES))
    cube = "\n".join(f"tpush_to_aiv %acc {{id = {q}, slots = {depth}}}" for q in pushes)
    vector = "\n".join(
        f"{'tpop_from_aic' if what == 'pop' else 'tfree_to_aic'} %t{tile} {{id = {queue}}} @0:{line}"
        for line, (what, tile, queue) in enumerate(operations, 1)
    )
    parameters = "param %c : tensor<16x16xfp32> out"
    return (
        f'kernel @cube aic {{\n file 0 "cube.py"\n {parameters}\n tile %acc : acc<16x16xfp32> at 0\n {cube}\n }}',
        f'kernel @vector aiv {{\n file 0 "vector.py"\n {parameters}\n {tiles}\n {vector}\n }}',
    )


def outcome(folder: Path, depth: int, pushes: list[int], operations: list[Operation]) -> tuple[object, ...]:
    """What the interpreter says, in the words of the model."""
    program = load_program(write_build(folder, MAIN, *program_text(depth, pushes, operations), groups=[GROUP]))
    try:
        done = program.execute(arguments(np.zeros((16, 16), np.float32)))
    except QueueError as error:
        text = str(error)
        names = {"freed in queue": "elsewhere", "a second time": "twice", "not popped": "without pop"}
        assert error.site is not None
        place = error.site[0].place(error.site[1])
        return next(name for piece, name in names.items() if piece in text), place.line if place else 0
    except DeadlockError as error:
        return "wait", frozenset(program.core for program, _ in error.waiting)
    queues = [queue for _, left in done.left_behind for queue in left.queues]
    left = {queue.channel: queue.pushed - queue.popped for queue in queues if queue.pushed > queue.popped}
    taken = {queue.channel: queue.popped - queue.freed for queue in queues if queue.popped > queue.freed}
    return "done", left, taken


IDS = st.integers(0, 1)
OPERATIONS = st.tuples(st.sampled_from(("pop", "pop", "free", "free")), st.integers(0, TILES - 1), IDS)


def _popped_once(operations: list[Operation]) -> list[Operation]:
    """Every tile is popped at most once, as every value of a program is written once."""
    seen: set[int] = set()
    kept = []
    for what, tile, queue in operations:
        if what == "pop" and tile in seen:
            continue
        if what == "pop":
            seen.add(tile)
        kept.append((what, tile, queue))
    return kept


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 3), st.lists(IDS, max_size=8), st.lists(OPERATIONS, max_size=12).map(_popped_once))
def test_random_programs_go_as_the_model_says(depth, pushes, operations):
    with tempfile.TemporaryDirectory() as folder:
        assert outcome(Path(folder), depth, pushes, operations) == Model(depth, pushes, operations).run()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(0, 12), st.data())
def test_what_is_pushed_popped_and_freed_in_order_ends(depth, count, data):
    """Frees stay behind their pops by at most the depth, in the order of the pops: always sound."""
    behind = data.draw(st.integers(0, depth - 1))
    operations: list[Operation] = []
    for number in range(count):
        operations.append(("pop", number % TILES, 0))
        if number >= behind:
            operations.append(("free", (number - behind) % TILES, 0))
    operations += [("free", number % TILES, 0) for number in range(max(count - behind, 0), count)]
    with tempfile.TemporaryDirectory() as folder:
        assert outcome(Path(folder), depth, [0] * count, operations) == ("done", {}, {})

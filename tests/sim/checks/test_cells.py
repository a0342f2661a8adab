"""Boxes of separate cells against sets of bytes: overlap, what covers what, and what is left of a box."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from pypto.sim.checks import boxes, cells
from pypto.sim.checks import words as w
from pypto.sim.checks.boxes import BOX_WORDS, overlaps, runs_of, shared_runs
from pypto.sim.checks.cells import CELLS
from pypto.sim.checks.conflicts import ENTRY_WORDS
from pypto.sim.checks.order import AccessTable, OrderGraph, seat_of
from pypto.sim.native import as_pointer

SPAN = 3 * 8 * CELLS
SIZES = (1, 2, 4, 8)
KINDS = (0, w.WRITES)


@njit
def _add(box, at, size):
    if as_pointer(box)[1] == 0:
        cells.cells_start(as_pointer(box), cells.cells_base(at, size), size)
    cells.cells_add(as_pointer(box), at)
    return as_pointer(box)[0] == cells.cells_base(at, size)


@njit
def _bounds(box):
    return boxes.box_low(as_pointer(box)), boxes.box_end(as_pointer(box))


@njit
def _one_run(box):
    return cells.is_one_run(as_pointer(box))


@njit
def _covers(a, b):
    return boxes.box_covers(as_pointer(a), as_pointer(b))


@njit
def _times(a, b):
    return boxes.times_shared(as_pointer(a), as_pointer(b))


@njit
def _without(a, b):
    return cells.cells_without(as_pointer(a), as_pointer(b))


def is_cells(box: np.ndarray) -> bool:
    return bool(box[2] == 0)


def bounds(box: np.ndarray) -> tuple[int, int]:
    return _bounds(box.ctypes.data)


def covers(a: np.ndarray, b: np.ndarray) -> bool:
    return _covers(a.ctypes.data, b.ctypes.data)


def cells_of(elements: list[int], size: int) -> np.ndarray:
    """A box of cells of elements of one block, by first byte."""
    box = np.zeros(BOX_WORDS, np.int64)
    for at in elements:
        assert _add(box.ctypes.data, at, size)
    return box


def byte_set(box: np.ndarray) -> set[int]:
    starts, run = runs_of(box)
    return {int(start) + k for start in starts for k in range(run)}


@st.composite
def cell_boxes(draw):
    size = draw(st.sampled_from(SIZES))
    base = draw(st.integers(0, 2)) * size * CELLS + draw(st.integers(0, size - 1))
    chosen = draw(st.lists(st.integers(0, CELLS - 1) | st.integers(0, 6), min_size=1, max_size=40))
    return cells_of([base + cell * size for cell in chosen], size)


@st.composite
def strided_boxes(draw):
    box = np.array([draw(st.integers(0, SPAN)), draw(st.integers(1, 300)), 1, 0, 1, 0, 1, 0, 1, 0], np.int64)
    if draw(st.booleans()):
        box[1] = draw(st.integers(1, 9))
        box[8:] = draw(st.integers(2, 60)), draw(st.integers(9, 40))
    return box


EITHER = cell_boxes() | strided_boxes()


@given(cell_boxes(), EITHER)
@settings(max_examples=600, deadline=None, derandomize=True)
def test_cells_are_the_bytes_they_stand_for(a, b):
    left, right = byte_set(a), byte_set(b)
    assert bounds(a) == (min(left), max(left) + 1)
    assert overlaps(a[None], b[None]).tolist() == overlaps(b[None], a[None]).tolist() == [int(bool(left & right))]
    assert {at for low, high in shared_runs(a, b) for at in range(low, high)} == left & right
    starts, run = runs_of(a)
    if not is_cells(b):
        assert _times(a.ctypes.data, b.ctypes.data) == sum(
            any(s + k in right for k in range(run)) for s in starts.tolist()
        )
    for one, other, inner, outer in ((a, b, right, left), (b, a, left, right)):
        assert not covers(one, other) or inner <= outer
    if is_cells(b) and a[0] == b[0] and a[1] == b[1]:
        assert covers(a, b) == (right <= left)


@given(cell_boxes(), EITHER)
@settings(max_examples=600, deadline=None, derandomize=True)
def test_what_is_taken_out_of_cells_is_covered_and_no_more(a, b):
    before, other = byte_set(a), byte_set(b)
    empty = _without(a.ctypes.data, b.ctypes.data)
    after = byte_set(a)
    assert empty == (not after)
    assert before - after <= other and after <= before
    whole = not is_cells(b) and (b[2::2] == 1).all() or a[0] == b[0] and a[1] == b[1] and is_cells(b)
    if whole:
        starts, run = runs_of(a)
        assert not any(set(range(s, s + run)) <= other for s in starts.tolist())


@pytest.mark.parametrize("size", SIZES)
def test_cells_side_by_side_are_one_run(size):
    first = 5 * size * CELLS + size - 1
    assert _one_run(cells_of([first + size * k for k in (3, 5, 4, 3)], size).ctypes.data)
    assert _one_run(cells_of([first + size * k for k in range(CELLS)], size).ctypes.data)
    assert not _one_run(cells_of([first + size * k for k in (3, 5)], size).ctypes.data)


def in_cells(kind: int, elements: list[int], size: int, instruction: int) -> list[np.ndarray]:
    """Rows of the access log of elements, by their first bytes: a row of cells per block of memory."""
    blocks: dict[int, list[int]] = {}
    for at in elements:
        blocks.setdefault(at // size // CELLS, []).append(at)
    rows = []
    for block in blocks.values():
        row = one_by_one(kind, block[:1], size, instruction)[0]
        row[0, w.ACCESS_BOX :] = cells_of(block, size)
        rows.append(row)
    return rows


def one_by_one(kind: int, elements: list[int], size: int, instruction: int) -> list[np.ndarray]:
    """Rows of the access log of elements: one for each."""
    rows = [np.zeros((1, w.ACCESS_WORDS), np.int64) for _ in elements]
    for row, at in zip(rows, elements):
        row[0, w.ACCESS_KIND], row[0, w.ACCESS_INSTRUCTION] = kind, instruction
        row[0, w.ACCESS_SNAPSHOT] = row[0, w.ACCESS_ROOT] = -1
        row[0, w.ACCESS_BOX :] = at, size, 1, 0, 1, 0, 1, 0, 1, 0
    return rows


def conflicts(tasks, edges, rows_of) -> tuple[set[tuple[int, int]], int]:
    """(pairs of tasks that conflict, accesses kept) of tasks (kind, elements, bytes each) with four instructions."""
    graph = OrderGraph()
    table = AccessTable(graph)
    table.add_allocation(0, 1 << 14)
    for node, before in enumerate(edges):
        graph.add(before)
        for number, (kind, elements, size) in enumerate(tasks[node]):
            for row in rows_of(kind, elements, size, 4 * node + number % 4):
                table.take(row, seat_of(node, node, 0))
    first, second = 2 + w.ACCESS_INSTRUCTION, 2 + ENTRY_WORDS + w.ACCESS_INSTRUCTION
    return {(int(row[first]) // 4, int(row[second]) // 4) for row in table.findings}, table.entries


def clashes(tasks, edges) -> set[tuple[int, int]]:
    """Pairs of tasks that nothing orders and that touch a byte which one of them writes."""
    graph = OrderGraph()
    for before in edges:
        graph.add(before)
    touched = [
        [
            {at + k for kind, elements, size in task if kind == of for at in elements for k in range(size)}
            for of in KINDS
        ]
        for task in tasks
    ]
    pairs = [(a, b) for b in range(len(tasks)) for a in range(b) if not graph.reaches(a, b)]
    return {
        (a, b) for a, b in pairs if touched[a][1] & (touched[b][0] | touched[b][1]) or touched[a][0] & touched[b][1]
    }


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_cells_conflict_as_their_bytes_do(seed):
    rng = np.random.default_rng(seed)
    tasks, edges = [], []
    for node in range(6):
        edges.append([int(n) for n in range(node) if rng.random() < 0.4])
        accesses = []
        for _ in range(rng.integers(1, 4)):
            size, kind = int(rng.choice(SIZES)), int(rng.choice(KINDS, p=[0.8, 0.2]))
            span = int(rng.choice([40, 700, 2000]))
            elements = rng.choice(span, int(rng.integers(1, 30))) * size + (int(rng.integers(size)) if size > 1 else 0)
            accesses.append((kind, elements.tolist(), size))
        tasks.append(accesses)
    expected = clashes(tasks, edges)
    for rows_of in (in_cells, one_by_one):
        found, _ = conflicts(tasks, edges, rows_of)
        assert found <= expected and bool(found) == bool(expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nodes", [1, 300])
def test_scattered_accesses_one_after_the_other_keep_no_more_than_there_are_elements(kind, nodes):
    rng = np.random.default_rng(nodes)
    tasks = [[(kind, (4 * rng.choice(4096, 64)).tolist(), 4) for _ in range(300 // nodes)] for _ in range(nodes)]
    edges = [[node - 1] if node else [] for node in range(nodes)]
    found, kept = conflicts(tasks, edges, in_cells)
    assert not found and kept <= 4096
    if nodes == 1:
        assert kept <= 4 * 16  # a box for every instruction and block of memory

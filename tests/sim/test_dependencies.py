"""The tensor map against a list of byte sets."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto.ir.dtype import FP16, FP32, DataType
from pypto.sim import layout
from pypto.sim.dependencies import (
    CREATOR,
    EXPLICIT,
    INFERRED,
    INOUT,
    INPUT,
    MANUAL_TENSOR,
    NO_DEP,
    OUTPUT,
    OUTPUT_EXISTING,
    TensorMap,
)

ROWS, COLS = 6, 8
BASE = 1 << 20


@dataclass(frozen=True)
class Region:
    """A window of a ROWS x COLS tensor."""

    row: int
    col: int
    rows: int
    cols: int
    allocation: int = 0
    dtype: DataType = FP32
    flags: int = 0

    def words(self) -> list[int]:
        size = self.dtype.get_byte()
        address = BASE * (self.allocation + 1) + (self.row * COLS + self.col) * size
        words = [0] * layout.TENSOR_WORDS
        words[:6] = [address, 2, self.dtype.code(), self.allocation, 0, 0]
        words[layout.TENSOR_EXTENTS : layout.TENSOR_EXTENTS + 2] = [self.rows, self.cols]
        words[layout.TENSOR_STRIDES : layout.TENSOR_STRIDES + 2] = [COLS, 1]
        words[layout.TENSOR_FLAGS] = self.flags
        return words

    def cells(self) -> set[tuple[int, int, int]]:
        rows, cols = range(self.row, self.row + self.rows), range(self.col, self.col + self.cols)
        return {(self.allocation, r, c) for r, c in itertools.product(rows, cols)}


class Caller:
    """Submits tasks with regions as arguments."""

    def __init__(self, allocations: int = 2):
        self.map = TensorMap()
        for number in range(allocations):
            self.map.add_allocation(number, BASE * (number + 1))
        self.tasks = 0

    def submit(self, *arguments: tuple[int, Region], deps=(), manual=False) -> dict[int, int]:
        """Producers and their kinds."""
        frame = np.array([word for _, region in arguments for word in region.words()] or [0], np.int64)
        rows = [(direction, layout.TENSOR_WORDS * index) for index, (direction, _) in enumerate(arguments)]
        table = np.array(rows, np.int64).reshape(-1, 2)
        producers, kinds, self.lookups = self.map.derive(
            self.tasks, frame.ctypes.data, table, list(deps), manual=manual
        )
        self.tasks += 1
        return dict(zip(producers, kinds))


@st.composite
def regions(draw):
    row, col = draw(st.integers(0, ROWS - 1)), draw(st.integers(0, COLS - 1))
    return Region(row, col, draw(st.integers(0, ROWS - row)), draw(st.integers(0, COLS - col)), draw(st.integers(0, 1)))


DIRECTIONS = st.sampled_from((INPUT, INOUT, OUTPUT_EXISTING, NO_DEP))
TASKS = st.lists(st.lists(st.tuples(DIRECTIONS, regions()), max_size=3), max_size=12)


@settings(deadline=None, max_examples=300)
@given(TASKS)
def test_producers_are_the_modifiers_of_common_cells(tasks):
    caller = Caller()
    modified: list[tuple[int, set]] = []
    for number, arguments in enumerate(tasks):
        expected = set()
        for direction, region in arguments:
            if direction in (INPUT, INOUT):
                expected |= {task for task, cells in modified if cells & region.cells()}
                if direction == INOUT and region.cells():
                    modified = [(task, cells) for task, cells in modified if not cells <= region.cells()]
        for direction, region in arguments:
            if direction in (INOUT, OUTPUT_EXISTING) and region.cells():
                modified.append((number, region.cells()))
        found = caller.submit(*arguments)
        assert set(found) == expected
        assert set(found.values()) <= {INFERRED}
        assert caller.lookups == sum(direction in (INPUT, INOUT) for direction, _ in arguments)


def test_an_owner_is_waited_for_by_every_later_use():
    caller = Caller()
    whole = Region(0, 0, ROWS, COLS)
    assert caller.submit((OUTPUT, whole)) == {}
    for direction in (INPUT, INOUT, OUTPUT_EXISTING, NO_DEP):
        assert caller.submit((direction, Region(1, 1, 1, 1)))[0] == CREATOR
    assert caller.submit((INPUT, Region(1, 1, 1, 1)), manual=True) == {0: CREATOR}


def test_manual_scopes_and_tensors_take_no_part():
    caller = Caller()
    whole = Region(0, 0, ROWS, COLS)
    caller.submit((INOUT, whole), manual=True)
    assert caller.submit((INPUT, whole)) == {}
    caller.submit((INOUT, Region(0, 0, ROWS, COLS, flags=MANUAL_TENSOR)))
    assert caller.submit((INPUT, whole)) == {}
    caller.submit((INOUT, whole))
    assert caller.submit((INPUT, whole), manual=True) == {}
    assert caller.submit((INPUT, Region(0, 0, ROWS, COLS, flags=MANUAL_TENSOR))) == {}
    assert caller.submit((INPUT, whole)) == {4: INFERRED}


def test_explicit_dependencies_come_first_and_once():
    caller = Caller()
    whole = Region(0, 0, ROWS, COLS)
    caller.submit((INOUT, whole))
    caller.submit()
    assert caller.submit((INPUT, whole), deps=[1, -1, 0, 1, 7]) == {1: EXPLICIT, 0: EXPLICIT}


def test_readers_are_not_recorded_and_existing_outputs_do_not_look():
    caller = Caller()
    whole = Region(0, 0, ROWS, COLS)
    caller.submit((INPUT, whole))
    assert caller.submit((INOUT, whole)) == {}
    assert caller.submit((OUTPUT_EXISTING, whole)) == {}
    assert caller.submit((INPUT, whole)) == {2: INFERRED, 1: INFERRED}


@pytest.mark.parametrize(
    ("other", "waits"),
    [
        (Region(3, 0, 1, COLS, dtype=FP16), True),  # another dtype in the same bytes: in doubt, dependent
        (Region(0, 0, 1, 2, allocation=1), False),
    ],
)
def test_what_cannot_be_compared_is_dependent(other, waits):
    caller = Caller()
    caller.submit((INOUT, Region(0, 0, ROWS, 4)))
    assert (0 in caller.submit((INPUT, other))) == waits


def test_disjoint_columns_whose_byte_ranges_interleave_are_independent():
    caller = Caller()
    caller.submit((INOUT, Region(0, 0, ROWS, 4)))
    assert caller.submit((INPUT, Region(0, 4, ROWS, 4))) == {}
    assert caller.submit((INPUT, Region(0, 3, ROWS, 4))) == {0: INFERRED}


def test_the_map_grows_and_resets():
    caller = Caller(allocations=200)
    for number in range(600):
        row = number % ROWS
        found = caller.submit((INOUT, Region(row, 0, 1, COLS, allocation=number % 200)))
        assert found == ({number - 600: INFERRED} if number >= 600 else {})
    caller.map.reset()
    caller.tasks = 0
    assert caller.submit((INPUT, Region(0, 0, ROWS, COLS))) == {}

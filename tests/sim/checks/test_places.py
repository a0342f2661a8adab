"""The indices of findings about values are those of a count by hand, wherever the windows lie."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pypto.language as pl
from pypto.runtime import RunConfig
from pypto.sim.checks import words as w
from pypto.sim.checks.places import noted_runs, pitches

ROWS, COLS = 16, 64
HEIGHT, WIDTH = 8, 16
CONFIG = RunConfig(platform="a2a3", checks={"uninit", "overflow"}, checks_mode="collect")
EXAMPLES = settings(
    max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pl.jit
def part_written(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    at: pl.Tensor[[1, 8], pl.INT32],
    y: pl.Out[pl.Tensor[[HEIGHT, WIDTH], pl.FP32]],
):
    middle = pl.create_tensor([ROWS, COLS], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill"):
        rows = pl.read(at, [0, 0])
        cols = pl.read(at, [0, 1])
        pl.store(pl.load(x, [0, 0], [ROWS, COLS], valid_shape=[rows, cols]), [0, 0], middle)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="take"):
        row = pl.read(at, [0, 2])
        col = pl.read(at, [0, 3])
        pl.store(pl.load(middle, [row, col], [HEIGHT, WIDTH]), [0, 0], y)
    return y


@pl.jit
def grown(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    at: pl.Tensor[[1, 8], pl.INT32],
    y: pl.Out[pl.Tensor[[HEIGHT, WIDTH], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="grow"):
        row = pl.read(at, [0, 2])
        col = pl.read(at, [0, 3])
        window = pl.load(x, [row, col], [HEIGHT, WIDTH])
        big = pl.exp(window)
        pl.store(pl.neg(big), [0, 0], y)
    return y


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("places"))
        arguments = torch.zeros(ROWS, COLS), torch.zeros(1, 8, dtype=torch.int32), torch.zeros(HEIGHT, WIDTH)
        yield {kernel: kernel.compile(*arguments, config=CONFIG) for kernel in (part_written, grown)}


def launch(compiled, x, *numbers):
    at = torch.zeros(1, 8, dtype=torch.int32)
    at[0, : len(numbers)] = torch.tensor(numbers)
    compiled(x, at, torch.zeros(HEIGHT, WIDTH), config=CONFIG)
    return compiled.last_findings


def box(cells):
    """The smallest box of the index pairs in ``cells``, ends excluded."""
    return tuple((int(cells[:, axis].min()), int(cells[:, axis].max()) + 1) for axis in (0, 1))


@EXAMPLES
@given(st.integers(0, ROWS), st.integers(1, COLS), st.integers(0, ROWS - HEIGHT), st.integers(0, COLS - WIDTH))
def test_what_is_read_unwritten(compiled, rows, cols, row, col):
    written = torch.zeros(ROWS, COLS, dtype=torch.bool)
    written[:rows, :cols] = True
    read = torch.zeros(ROWS, COLS, dtype=torch.bool)
    read[row : row + HEIGHT, col : col + WIDTH] = True
    wanted = (read & ~written).nonzero()
    found = launch(compiled[part_written], torch.zeros(ROWS, COLS), rows, cols, row, col)
    assert len(found) == (len(wanted) > 0)
    for finding in found:
        flat = 4 * (wanted[:, 0] * COLS + wanted[:, 1])
        assert finding.tensor == "middle" and finding.tasks == ("take",)
        assert finding.index_ranges == box(wanted)
        assert finding.bytes == (int(flat.min()), int(flat.max()) + 4)


@EXAMPLES
@given(
    st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLS - 1)), max_size=6),
    st.integers(0, ROWS - HEIGHT),
    st.integers(0, COLS - WIDTH),
)
def test_what_overflows(compiled, large, row, col):
    x = torch.zeros(ROWS, COLS)
    for at in large:
        x[at] = 100.0
    wanted = x[row : row + HEIGHT, col : col + WIDTH].nonzero()
    found = launch(compiled[grown], x, 0, 0, row, col)
    assert len(found) == (len(wanted) > 0)
    for finding in found:
        first = wanted[0].tolist()
        at = 4 * (first[0] * WIDTH + first[1])
        assert finding.tensor == "big" and finding.index_ranges == tuple((i, i + 1) for i in first)
        assert finding.bytes == (at, at + 4)


def test_a_box_without_rows_is_a_range_of_bytes():
    words = torch.zeros(w.ORIGIN_WORDS, dtype=torch.int64).numpy()
    words[w.OR_LOW], words[w.OR_HIGH] = 8, 12
    assert noted_runs(words, np.zeros(w.ALLOCATION_WORDS, np.int64)).tolist() == [[8, 12]]


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    data=st.data(),
)
def test_a_noted_box_holds_its_indices_and_no_others(shape, data):
    box = [sorted(data.draw(st.lists(st.integers(0, n), min_size=2, max_size=2, unique=True))) for n in shape]
    words, allocation = np.zeros(w.ORIGIN_WORDS, np.int64), np.zeros(w.ALLOCATION_WORDS, np.int64)
    allocation[w.GM_PITCHES :] = pitches(shape, 32)
    indices = np.arange(np.prod(shape)).reshape(shape)[tuple(slice(*side) for side in box)].ravel()
    words[w.OR_LOW], words[w.OR_HIGH] = 4 * indices.min(), 4 * indices.max() + 4
    rest = 4 * indices
    for axis, pitch in enumerate(allocation[w.GM_PITCHES :].tolist()):
        if pitch:
            at, rest = np.divmod(rest, pitch)
            words[w.OR_BOX + 2 * axis : w.OR_BOX + 2 * axis + 2] = at.min(), at.max() + 1
    words[w.OR_COL], words[w.OR_COLS] = rest.min(), rest.max() + 4
    found = [byte // 4 for low, high in noted_runs(words, allocation).tolist() for byte in range(low, high, 4)]
    assert sorted(found) == indices.tolist()


@pl.jit
def planes(x: pl.Tensor[[4, 8, 64], pl.FP32], y: pl.Out[pl.Tensor[[4, 8, 64], pl.FP32]]):
    middle = pl.create_tensor([4, 8, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill"):
        for plane in pl.range(4):
            for row in pl.range(8):
                if plane == 0 or plane == 3 or row < 2 or row >= 5:
                    pl.store(pl.load(x, [plane, row, 0], [1, 1, 64]), [plane, row, 0], middle)
                else:
                    pl.store(pl.load(x, [plane, row, 0], [1, 1, 16]), [plane, row, 0], middle)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="use"):
        for plane in pl.range(4):
            pl.store(pl.load(middle, [plane, 0, 0], [1, 8, 64]), [plane, 0, 0], y)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="late"):
        for plane in pl.range(4):
            pl.store(pl.load(x, [plane, 0, 0], [1, 8, 64]), [plane, 0, 0], middle)
    return y


def test_unwritten_elements_of_three_axes_are_a_box_of_three(findings):
    """Even when something has written them since."""
    found = findings(planes, torch.zeros(4, 8, 64), torch.zeros(4, 8, 64), checks={"uninit"})
    assert [(f.tensor, f.index_ranges) for f in found] == [("middle", ((1, 3), (2, 5), (16, 64)))]


@pl.jit
def scaled(
    x: pl.Tensor[[ROWS, COLS], pl.INT32], by: pl.Tensor[[1, 8], pl.INT32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.INT32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="scale"):
        factor = pl.read(by, [0, 0])
        value = pl.load(x, [0, 0], [ROWS, COLS])
        value = pl.mul(value, factor)
        value = pl.sub(value, value)
        value = pl.add(pl.load(x, [0, 0], [ROWS, COLS]), value)
        pl.store(value, [0, 0], y)
    return y


@pytest.fixture(scope="module")
def integers(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("integers"))
        config = RunConfig(platform="a2a3", checks={"wrap"}, checks_mode="collect")
        x, by = torch.zeros(ROWS, COLS, dtype=torch.int32), torch.zeros(1, 8, dtype=torch.int32)
        yield scaled.compile(x, by, x, config=config), config


@EXAMPLES
@given(
    st.lists(
        st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLS - 1), st.integers(-(2**31), 2**31 - 1)), max_size=4
    ),
    st.integers(-(2**17), 2**17),
)
def test_what_wraps_although_the_result_takes_the_place_of_its_operand(integers, large, factor):
    compiled, config = integers
    x, by = torch.ones(ROWS, COLS, dtype=torch.int32), torch.full((1, 8), factor, dtype=torch.int32)
    for row, col, value in large:
        x[row, col] = value
    compiled(x, by, torch.zeros_like(x), config=config)
    wide = x.long() * factor
    wanted = (wide != wide.int()).nonzero()
    assert len(compiled.last_findings) == (len(wanted) > 0)
    for finding in compiled.last_findings:
        row, col = wanted[0].tolist()
        assert finding.kind == "wrap" and finding.tensor == "value"
        assert (
            finding.index_ranges == ((row, row + 1), (col, col + 1))
            and f"{int(wide[row, col])} does not" in finding.message
        )

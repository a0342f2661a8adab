"""The indices of findings about values are those of a count by hand, wherever the windows lie."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pypto.language as pl
from pypto.runtime import RunConfig
from pypto.sim.checks import words as w
from pypto.sim.checks.places import noted_runs

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
    words[w.OR_PITCH], words[w.OR_LOW], words[w.OR_HIGH] = 64, 8, 12
    assert noted_runs(words).tolist() == [[8, 12]]


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

"""An index outside the tile that is gathered from is told by the cheap checks as by all, wherever it is."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto.language as pl
from pypto.runtime import RunConfig
from pypto.sim import BoundsError, CheckError, UndefinedValueError

STRIPS, ROWS, COLS = 6, 8, 16


@pl.jit
def shuffle(
    x: pl.Tensor[[STRIPS * ROWS, COLS], pl.FP32],
    index: pl.Tensor[[STRIPS * ROWS, COLS], pl.INT32],
    y: pl.Out[pl.Tensor[[STRIPS * ROWS, COLS], pl.FP32]],
):
    for b in pl.spmd(STRIPS, name_hint="shuffle"):
        t, i = pl.load(x, [b * ROWS, 0], [ROWS, COLS]), pl.load(index, [b * ROWS, 0], [ROWS, COLS])
        room = pl.create_tile([ROWS, COLS], dtype=pl.INT32, target_memory=pl.Mem.Vec)
        pl.store(pl.tile.gather(t, i, room), [b * ROWS, 0], y)
    return y


def arguments(wrong: dict[tuple[int, int], int]) -> list[torch.Tensor]:
    x = torch.randn(STRIPS * ROWS, COLS)
    index = torch.randint(0, ROWS * COLS, (STRIPS * ROWS, COLS), dtype=torch.int32)
    for place, value in wrong.items():
        index[place] = value
    return [x, index, torch.empty_like(x)]


def expected(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    flat, taken = x.reshape(STRIPS, -1), index.reshape(STRIPS, -1).long()
    inside = (taken >= 0) & (taken < ROWS * COLS)
    return torch.where(inside, flat.gather(1, taken.clamp(0, ROWS * COLS - 1)), 0.0).reshape(x.shape)


def launch(checks, *, mode: str = "raise", wrong: dict[tuple[int, int], int]) -> tuple:
    config = RunConfig(platform="a2a3", checks=checks, checks_mode=mode)
    x, index, y = arguments(wrong)
    compiled = shuffle.compile(x, index, y, config=config)
    compiled(x, index, y, config=config)
    assert torch.equal(y, expected(x, index))
    return compiled.last_findings


@settings(max_examples=15, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, STRIPS * ROWS - 1), st.integers(0, COLS - 1)),
        st.sampled_from([-1, ROWS * COLS, -(2**31), 2**31 - 1]),
        min_size=1, max_size=4,
    )
)  # fmt: skip
@pytest.mark.parametrize("checks", ["cheap", "all", {"bounds"}], ids=str)
def test_the_first_wrong_index_is_told(checks, wrong):
    (found,) = launch(checks, mode="collect", wrong=wrong)
    (row, col), value = min(wrong.items())
    assert found.kind == "bounds" and found.locations[0].file == __file__ and found.tensor
    assert f"index {value} from '{found.tensor}' at [{row % ROWS}, {col}]" in found.message
    assert f"outside its extent {ROWS * COLS}" in found.message


def test_all_and_cheap_say_the_same():
    wrong = {(20, 3): 128, (9, 1): -5}
    cheap, deep = (launch(checks, mode="collect", wrong=wrong) for checks in ("cheap", "all"))
    assert cheap == deep


def test_right_indices_and_launches_without_checks_are_silent():
    assert not launch("cheap", wrong={})
    assert not launch("none", wrong={(3, 3): 999})
    assert not launch({"deadlock"}, wrong={(3, 3): 999})


def test_it_raises_and_the_next_launch_is_clean():
    with pytest.raises(CheckError, match="takes index 4096"):
        launch("cheap", wrong={(0, 0): 4096})
    assert not launch("cheap", wrong={})


GATHERS = """
import pypto.language as pl

@pl.jit
def kernel(
    x: pl.Tensor[[8, 32], pl.FP32], n: pl.Tensor[[8, 16], pl.INT32], s: pl.Tensor[[8, 16], pl.FP32],
    y: pl.Out[pl.Tensor[[8, {cols}], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="pick"):
        y[:, :] = {expression}
    return y
"""
PICKS = {
    # expression: (columns of the result, first illegal index, what it counts)
    "pl.gather(x[:, :], -1, n[:, :])": (16, 32, "the 32 columns of 'x' (axis 1)"),
    "pl.scatter(x[:, :], dim=-1, index=n[:, :], src=s[:, :])": (32, 32, "the 32 columns of "),
    "pl.scatter_update(x[:, :], -2, n[0:1, 0:8], pl.add(x[:, :], 1.0))": (32, 8, "the 8 rows of "),
}


def picked(tmp_path, expression: str, cols: int):
    path = tmp_path / "picks.py"
    path.write_text(GATHERS.format(cols=cols, expression=expression), "utf-8")
    spec = importlib.util.spec_from_file_location("picks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.mark.parametrize("expression", PICKS)
@pytest.mark.parametrize("past", [0, 3])
def test_an_index_outside_its_axis_is_told_with_its_place(tmp_path, monkeypatch, expression, past):
    monkeypatch.chdir(tmp_path)
    cols, limit, extent = PICKS[expression]
    index = (torch.arange(128, dtype=torch.int32) % 8).reshape(8, 16)
    index[0, 5] = limit + past
    config = RunConfig(platform="a2a3", checks="cheap")
    with pytest.raises(BoundsError) as error:
        picked(tmp_path, expression, cols)(
            torch.randn(8, 32), index, torch.randn(8, 16), torch.zeros(8, cols), config=config
        )
    (finding,) = error.value.findings
    assert f"index {limit + past} from 'n' at [0, 5] is outside {extent}" in finding.message
    assert f"legal are 0..{limit - 1}" in finding.message and "pl.minimum(index, extent - 1)" in finding.suggestion
    assert finding.tensor == "n" and finding.index_ranges == ((0, 1), (5, 6)) and finding.bytes == (20, 24)


@pl.jit
def window_at(x: pl.Tensor[[8, 64], pl.FP32], n: pl.Tensor[[1, 16], pl.INT32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="cut"):
        whole = pl.load(x, [0, 0], [8, 64])
        at = pl.cast(pl.read(n, [0, 0]), pl.INDEX)
        y = pl.store(pl.tile.slice(whole, [8, 32], [0, at]), [0, 0], y)
    return y


def test_a_window_that_leaves_its_tile_is_told_with_extent_and_axis(findings):
    x, n, y = torch.randn(8, 64), torch.full((1, 16), 32, dtype=torch.int32), torch.zeros(8, 32)
    assert findings(window_at, x, n, y) == [] and torch.equal(y, x[:, 32:])
    with pytest.raises(BoundsError) as error:
        findings(window_at, x, n + 8, y)
    (finding,) = error.value.findings
    assert "window of 'whole' columns 40..72 is outside its extent 64 (axis 1, offset 40, window 32)" in finding.message
    assert (finding.tensor, finding.index_ranges) == ("whole", ((0, 8), (40, 72)))
    assert "pl.min(offset, extent - window)" in finding.suggestion


@pl.jit
def pages_of_an_unwritten_table(x: pl.Tensor[[32, 32], pl.FP32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
    table = pl.create_tensor([1, 16], dtype=pl.INT32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy"):
        for i in pl.range(8):
            page = pl.cast(pl.read(table, [0, i]), pl.INDEX)
            y = pl.store(pl.load(x, [page, 0], [1, 32]), [i, 0], y)
    return y


def test_the_unwritten_index_comes_before_the_access_that_it_led_astray(findings):
    with pytest.raises(UndefinedValueError) as error:
        findings(pages_of_an_unwritten_table, torch.randn(32, 32), torch.zeros(8, 32))
    assert [(f.kind, f.tensor) for f in error.value.findings] == [("uninit", "table"), ("bounds", "x")]

"""An index outside the tile that is gathered from is told by the cheap checks as by all, wherever it is."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto.language as pl
from pypto.runtime import RunConfig
from pypto.sim import CheckError

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

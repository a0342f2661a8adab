"""Padding, transposition, reshape and concatenation against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_driver import Tile, ok, run
from kernel_oracles import FLOATS, Layout, assert_same, examples, floats, layouts, values

from pypto.ir.dtype import FP16, FP32, INT16, INT32, UINT8, UINT16
from pypto.sim.layout import OUTSIDE_TILE

PADS = {"zero": 0.0, "max": np.inf, "min": -np.inf}


@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("dtype", (*FLOATS, INT16, UINT8), ids=str)
@examples
@given(layouts(), st.integers(0, 3))
def test_pad_values(dtype, pad, layout, larger):
    words = values(layout.random(), layout.shape, dtype)
    rows, cols = layout.valid
    dst = Tile(dtype, layout.rows + larger, layout.cols + larger, stride=layout.cols + larger + 2)
    ok("tfillpad_expand" if larger else "tfillpad", dst, layout.tile(words, dtype), pad=pad)
    assert_same(dst.array[:rows, :cols], words[:rows, :cols], dtype)
    outside = np.ones(dst.array.shape, bool)
    outside[:rows, :cols] = False
    rest = dst.array[outside]
    if dtype.is_float():
        assert (floats(rest, dtype).numpy() == PADS[pad]).all()
    else:
        info = np.iinfo(dtype.storage)
        assert (rest == {"zero": 0, "max": info.max, "min": info.min}[pad]).all()
    assert dst.gap_is_poison()


def test_pad_in_place_keeps_the_valid_region():
    tile = Tile.of(np.ones((4, 6), np.float32), FP32, valid=(3, 2))
    ok("tfillpad", tile, tile, pad="max")
    expected = np.full((4, 6), np.inf)
    expected[:3, :2] = 1
    np.testing.assert_array_equal(tile.array, expected)


@pytest.mark.parametrize("dtype", (UINT8, FP16, FP32), ids=str)
@examples
@given(layouts())
def test_transpose(dtype, layout):
    words = values(layout.random(), layout.shape, dtype)
    rows, cols = layout.valid
    dst = Tile(dtype, layout.cols, layout.rows, (cols, rows), layout.rows + 1)
    ok("ttrans", dst, layout.tile(words, dtype))
    assert_same(dst.inside, words[:rows, :cols].T, dtype)
    assert dst.gap_is_poison()


def test_transpose_of_stacked_matrices():
    stack = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)
    dst = Tile(FP32, 15, 4)
    ok("ttrans", dst, Tile.of(stack.reshape(12, 5), FP32), batch=3)
    np.testing.assert_array_equal(dst.array.reshape(3, 5, 4), stack.transpose(0, 2, 1))


@examples
@given(st.sampled_from(((6, 8), (1, 48), (48, 1), (12, 4))), st.integers(0, 3), st.integers(0, 3))
def test_reshape_keeps_row_major_order(shape, gap, other_gap):
    words = np.arange(48, dtype=np.float32).reshape(4, 12)
    dst = Tile(FP32, *shape, stride=shape[1] + gap)
    ok("treshape", dst, Tile.of(words, FP32, 12 + other_gap))
    np.testing.assert_array_equal(dst.array, words.reshape(shape))
    assert dst.gap_is_poison()


def test_reshape_to_another_dtype_keeps_the_bytes():
    words = np.arange(24, dtype=np.int32).reshape(4, 6)
    dst = Tile(UINT16, 2, 24)
    ok("treshape", dst, Tile.of(words, INT32, stride=8))
    assert dst.array.tobytes() == words.tobytes()
    assert run("treshape", Tile(UINT16, 2, 23), Tile.of(words, INT32))[0] == OUTSIDE_TILE


@examples
@given(layouts(), st.integers(1, 9))
def test_concat_starts_after_the_valid_columns(layout, more):
    a = values(layout.random(), layout.shape, FP32)
    rows, cols = layout.valid
    b = values(layout.random(1), (layout.rows, more), FP32)
    dst = Layout(layout.rows, layout.cols + more, (rows, cols + more), layout.gap, 0).empty(FP32)
    ok("tconcat", dst, layout.tile(a, FP32), Tile.of(b, FP32, valid=(rows, more)))
    assert_same(dst.inside, np.concatenate([a[:rows, :cols], b[:rows]], axis=1), FP32)
    assert dst.gap_is_poison()

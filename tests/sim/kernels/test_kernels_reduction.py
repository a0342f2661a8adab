"""Row and column reductions against torch in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from kernel_driver import Tile, ok, run
from kernel_oracles import FLOATS, SIGNIFICAND, assert_same, examples, floats, layouts, values, words_of, wrapped

from pypto.ir.dtype import BF16, FP16, FP32, INT8, INT16, INT32, UINT8
from pypto.sim.layout import OUTSIDE_TILE

DTYPES = (*FLOATS, INT8, INT16, INT32, UINT8)


def numbers(layout, dtype):
    """Finite values: sums and products of special ones have no order-independent result."""
    if not dtype.is_float():
        return values(layout.random(), layout.shape, dtype)
    return words_of(torch.from_numpy(layout.random().normal(size=layout.shape)), dtype)


def destination(layout, axis, dtype):
    return Tile(dtype, layout.rows, 1) if axis == "row" else Tile(dtype, 1, layout.cols)


def result(dst, layout, axis):
    return dst.array[: layout.valid[0], 0] if axis == "row" else dst.array[0, : layout.valid[1]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ("sum", "prod"))
@pytest.mark.parametrize("axis", ("row", "col"))
@examples
@given(layouts())
def test_sums_and_products(axis, name, dtype, layout):
    """Error of a float sum: one rounding in the dtype, plus n roundings in fp32 relative to the sum of magnitudes."""
    words = numbers(layout, dtype)
    dst = destination(layout, axis, dtype)
    ok(f"t{axis}{name}", dst, layout.tile(words, dtype))
    rows, cols = layout.valid
    inside, along = words[:rows, :cols], 1 if axis == "row" else 0
    found = result(dst, layout, axis)
    if not dtype.is_float():
        exact = getattr(inside.astype(object), name)(axis=along)
        np.testing.assert_array_equal(found, wrapped(exact, dtype))
        return
    x = floats(inside, dtype).to(torch.float64).numpy()
    exact = getattr(x, name)(axis=along)
    scale = np.abs(x).sum(axis=along) if name == "sum" else np.abs(exact)
    bound = np.abs(exact) * 2.0 ** -SIGNIFICAND[dtype] + scale * x.shape[along] * 2.0**-24 + 2.0**-25
    assert (np.abs(floats(found, dtype).to(torch.float64).numpy() - exact) <= bound).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ("max", "min"))
@pytest.mark.parametrize("axis", ("row", "col"))
@examples
@given(layouts())
def test_extrema_and_their_first_position(axis, name, dtype, layout):
    words = values(layout.random(), layout.shape, dtype)
    rows, cols = layout.valid
    inside = words[:rows, :cols] if axis == "row" else words[:rows, :cols].T
    x = floats(inside, dtype).numpy() if dtype.is_float() else inside
    best = sequential(x, np.greater if name == "max" else np.less)
    dst, position = destination(layout, axis, dtype), destination(layout, axis, INT32)
    ok(f"t{axis}{name}", dst, layout.tile(words, dtype))
    ok(f"t{axis}arg{name}", position, layout.tile(words, dtype))
    np.testing.assert_array_equal(result(position, layout, axis), best)
    found = result(dst, layout, axis)
    expected = np.take_along_axis(inside, best[:, None], axis=1)[:, 0]
    if dtype.is_float():
        # zeros of either sign are equal
        found, expected = floats(found, dtype).numpy(), floats(expected, dtype).numpy()
    np.testing.assert_array_equal(found, expected)


def sequential(x, better):
    """Position of the extremum of each row by strict comparison from element 0 on (ops 10)."""
    position = np.zeros(len(x), np.int64)
    for j in range(1, x.shape[1]):
        with np.errstate(invalid="ignore"):
            position = np.where(better(x[:, j], x[np.arange(len(x)), position]), j, position)
    return position


@pytest.mark.parametrize("axis", ("row", "col"))
def test_nan_counts_in_position_0_only(axis):
    x = np.array([[np.nan, 5.0, 7.0], [1.0, np.nan, 3.0], [4.0, 2.0, np.nan]], np.float32)
    x = x if axis == "row" else np.ascontiguousarray(x.T)
    dst = Tile(FP32, 3, 1) if axis == "row" else Tile(FP32, 1, 3)
    for name, expected in (("max", [np.nan, 3.0, 4.0]), ("min", [np.nan, 1.0, 2.0])):
        ok(f"t{axis}{name}", dst, Tile.of(x, FP32))
        np.testing.assert_array_equal(dst.array.ravel(), expected)


@pytest.mark.parametrize("dtype", (FP16, BF16), ids=str)
@pytest.mark.parametrize("axis", ("row", "col"))
def test_16_bit_sums_accumulate_in_fp32(axis, dtype):
    """4096 ones: adding in the dtype itself would stick at 256 (bf16) or 2048 (fp16)."""
    shape = (1, 4096) if axis == "row" else (4096, 1)
    dst = Tile(dtype, 1, 1)
    ok(f"t{axis}sum", dst, Tile.of(words_of(torch.ones(shape), dtype), dtype))
    assert floats(dst.array, dtype).item() == 4096


def test_sum_does_not_depend_on_the_row_it_is_in():
    row = np.random.default_rng(0).normal(size=(1, 1000)).astype(np.float32)
    dst = Tile(FP32, 64, 1)
    ok("trowsum", dst, Tile.of(np.repeat(row, 64, axis=0), FP32, stride=1003))
    assert len(np.unique(dst.array)) == 1


def test_empty_and_small_destinations():
    a, dst = Tile(FP32, 4, 8, valid=(4, 0)), Tile(FP32, 4, 1)
    ok("trowsum", dst, a)
    assert dst.words.tobytes() == b"\x5a" * 16
    assert run("trowsum", Tile(FP32, 3, 1), Tile(FP32, 4, 8))[0] == OUTSIDE_TILE
    assert_same(dst.array, Tile(FP32, 4, 1).array, FP32)

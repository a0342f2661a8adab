"""Broadcast families against torch broadcasting."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from kernel_driver import Tile, ok, run
from kernel_oracles import (
    FLOATS,
    assert_same,
    assert_untouched_outside,
    examples,
    floats,
    layouts,
    ulp_error,
    values,
    words_of,
    wrapped,
)

from pypto.ir.dtype import FP16, FP32, INT8, INT32, UINT8, UINT16
from pypto.sim.layout import DIVISION_BY_ZERO

FORMULAS = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "max": lambda a, b: torch.where(a < b, b, a),
    "min": lambda a, b: torch.where(b < a, b, a),
}


def vector(layout, axis, dtype):
    shape = (layout.rows, 1) if axis == "row" else (1, layout.cols)
    return values(layout.random(9), shape, dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("axis", ("row", "col"))
@examples
@given(layouts())
def test_combination(axis, name, dtype, layout):
    x, v = values(layout.random(), layout.shape, dtype), vector(layout, axis, dtype)
    dst = layout.empty(dtype)
    ok(f"t{axis}expand{name}", dst, layout.tile(x, dtype), Tile.of(v, dtype, stride=v.shape[1] + 2))
    a, b = torch.broadcast_tensors(floats(x, dtype), floats(v, dtype))
    rows, cols = layout.valid
    assert_same(dst.inside, words_of(FORMULAS[name](a, b), dtype)[:rows, :cols], dtype)
    assert_untouched_outside(dst)


@pytest.mark.parametrize("dtype", (INT8, INT32), ids=str)
@pytest.mark.parametrize("axis", ("row", "col"))
@examples
@given(layouts())
def test_integer_combination(axis, dtype, layout):
    x, v = values(layout.random(), layout.shape, dtype), vector(layout, axis, dtype)
    dst = layout.empty(dtype)
    rows, cols = layout.valid
    for name, oracle in (("add", x.astype(object) + v), ("mul", x.astype(object) * v)):
        ok(f"t{axis}expand{name}", dst, layout.tile(x, dtype), Tile.of(v, dtype))
        np.testing.assert_array_equal(dst.inside, wrapped(oracle, dtype)[:rows, :cols])
    assert_untouched_outside(dst)


@pytest.mark.parametrize("axis", ("row", "col"))
def test_integer_division_by_a_vector(axis):
    x = Tile.of(np.array([[7, -7], [9, -9]], np.int32), INT32)
    v = Tile.of(np.array([[2, -4]], np.int32).reshape((2, 1) if axis == "row" else (1, 2)), INT32)
    dst = Tile(INT32, 2, 2)
    ok(f"t{axis}expanddiv", dst, x, v)
    np.testing.assert_array_equal(dst.array, [[3, -3], [-2, 2]] if axis == "row" else [[3, 1], [4, 2]])
    v.words.ravel()[1] = 0
    assert run(f"t{axis}expanddiv", dst, x, v)[0] == DIVISION_BY_ZERO


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("axis", ("row", "col"))
def test_exponential_of_the_difference(axis, dtype):
    generator = np.random.default_rng(3)
    x = words_of(torch.from_numpy(generator.normal(size=(17, 33)) * 4), dtype)
    v = words_of(torch.from_numpy(generator.normal(size=(17, 1) if axis == "row" else (1, 33))), dtype)
    dst = Tile(dtype, 17, 33)
    ok(f"t{axis}expandexpdif", dst, Tile.of(x, dtype), Tile.of(v, dtype))
    difference = (floats(x, dtype) - floats(v, dtype)).to(torch.float64)
    assert ulp_error(dst.array, torch.exp(difference).numpy(), dtype) <= (1.1 if dtype == FP32 else 0.51)


def test_row_vector_of_one_line_repeats_along_the_columns():
    """A [M, 32/sizeof] vector: column j uses entry j mod (32/sizeof)."""
    x = np.arange(4 * 20, dtype=np.float32).reshape(4, 20)
    v = np.arange(4 * 8, dtype=np.float32).reshape(4, 8)
    dst = Tile(FP32, 4, 20)
    ok("trowexpandadd", dst, Tile.of(x, FP32), Tile.of(v, FP32))
    np.testing.assert_array_equal(dst.array, x + v[:, np.arange(20) % 8])


@pytest.mark.parametrize("dtype", (FP32, FP16, UINT8), ids=str)
@examples
@given(layouts())
def test_plain_expansion_copies_bits(dtype, layout):
    dst = layout.empty(dtype)
    rows, cols = layout.valid
    for axis in ("row", "col"):
        v = vector(layout, axis, dtype)
        ok(f"t{axis}expand", dst, Tile.of(v, dtype))
        np.testing.assert_array_equal(
            dst.inside.view(dst.words.dtype).tobytes(), np.broadcast_to(v, layout.shape)[:rows, :cols].tobytes()
        )
    assert_untouched_outside(dst)


@pytest.mark.parametrize(
    ("dtype", "value", "word"),
    ((FP32, 2.5, 2.5), (FP16, 0.1, 0x2E66), (INT8, 300, 44), (INT32, -7, -7), (UINT16, 65537, 1)),
    ids=str,
)
@examples
@given(layouts())
def test_fill_converts_the_scalar(dtype, value, word, layout):
    dst = layout.empty(dtype)
    ok("texpands", dst, value)
    assert (dst.inside == word).all()
    assert_untouched_outside(dst)

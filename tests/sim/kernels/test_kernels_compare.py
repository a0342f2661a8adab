"""Predicates and selections against torch, and the partial family."""

from __future__ import annotations

import operator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kernel_driver import Tile, ok, run
from kernel_oracles import (
    FLOATS,
    Layout,
    assert_same,
    assert_untouched_outside,
    examples,
    floats,
    layouts,
    values,
    words_of,
    wrapped,
)

from pypto.ir.dtype import BF16, FP16, FP32, INT8, INT16, INT32, UINT8, UINT16, UINT32
from pypto.sim.kernels.catalogue import kernel
from pypto.sim.kernels.support import UnsupportedDtype
from pypto.sim.layout import OUTSIDE_TILE

MODES = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def packed(truth):
    """Bit j mod 8, least significant first, of byte j div 8."""
    return np.packbits(truth, axis=1, bitorder="little")


def plain(words, dtype):
    return floats(words, dtype).numpy() if dtype.is_float() else words


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", (*FLOATS, INT32, UINT8), ids=str)
@examples
@given(layouts())
def test_packed_predicates(dtype, mode, layout):
    a, b = (values(layout.random(k), layout.shape, dtype) for k in range(2))
    b = np.where(layout.random(2).random(layout.shape) < 0.3, a, b)
    rows, cols = layout.valid
    dst = Tile(UINT8, layout.rows, 32 * -(-layout.cols // 256), (rows, -(-cols // 8)))
    ok("tcmp", dst, layout.tile(a, dtype), layout.tile(b, dtype), mode=mode)
    with np.errstate(invalid="ignore"):
        truth = MODES[mode](plain(a, dtype), plain(b, dtype))[:rows, :cols]
    np.testing.assert_array_equal(dst.inside, packed(truth))
    assert_untouched_outside(dst)
    s = 1 if dtype == UINT8 else -1
    ok("tcmps", dst, layout.tile(a, dtype), s, mode=mode)
    np.testing.assert_array_equal(dst.inside, packed(MODES[mode](plain(a, dtype), np.float32(s))[:rows, :cols]))


@pytest.mark.parametrize("dtype", (FP32, FP16, INT8), ids=str)
@pytest.mark.parametrize("mask_dtype", (UINT8, UINT16, INT32), ids=str)
@examples
@given(layouts())
def test_selection(dtype, mask_dtype, layout):
    truth = layout.random(5).random(layout.shape) < 0.5
    size = mask_dtype.get_byte()
    bits = np.zeros((layout.rows, 32 * -(-layout.cols // 256)), np.uint8)
    bits[:, : -(-layout.cols // 8)] = packed(truth)
    mask = Tile.of(bits.view(mask_dtype.storage), mask_dtype, bits.shape[1] // size + 1)
    a, b = (values(layout.random(k), layout.shape, dtype) for k in range(2))
    rows, cols = layout.valid
    dst = layout.empty(dtype)
    ok("tsel", dst, mask, layout.tile(a, dtype), layout.tile(b, dtype))
    assert_same(dst.inside, np.where(truth, a, b)[:rows, :cols], dtype)
    ok("tsels", dst, mask, layout.tile(a, dtype), 3)
    three = words_of(torch.full(layout.shape, 3.0), dtype) if dtype.is_float() else np.full_like(a, 3)
    assert_same(dst.inside, np.where(truth, a, three)[:rows, :cols], dtype)
    assert_untouched_outside(dst)


def test_mask_must_cover_the_columns():
    mask, a = Tile(UINT8, 2, 4), Tile(FP32, 2, 33)
    assert run("tsel", Tile(FP32, 2, 33), mask, a, a)[0] == OUTSIDE_TILE
    with pytest.raises(UnsupportedDtype, match="predicate tile"):
        kernel("tsel", [FP32, FP32, FP32, FP32])
    with pytest.raises(UnsupportedDtype, match="predicate tile"):
        kernel("tcmp", [UINT32, FP32, FP32])


OPERATIONS = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "max": lambda a, b: np.where(a < b, b, a),
    "min": lambda a, b: np.where(b < a, b, a),
}


@st.composite
def regions(draw):
    rows, cols = draw(st.sampled_from((1, 4, 9))), draw(st.sampled_from((1, 8, 33)))
    pair = st.tuples(st.integers(0, rows), st.integers(0, cols))
    return rows, cols, draw(pair), draw(pair), draw(pair), draw(st.integers(0, 2**20))


@pytest.mark.parametrize("dtype", (FP32, BF16, INT8, INT16), ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
@examples
@given(regions())
def test_partially_valid_operands(name, dtype, case):
    rows, cols, mine, left, right, seed = case
    layout = Layout(rows, cols, mine, 1, seed)
    a, b = (values(layout.random(k), layout.shape, dtype) for k in range(2))
    dst = layout.empty(dtype)
    ok(f"tpart{name}", dst, Tile.of(a, dtype, valid=left), Tile.of(b, dtype, cols + 2, right))
    i, j = np.indices((rows, cols))
    in_a, in_b = (i < left[0]) & (j < left[1]), (i < right[0]) & (j < right[1])
    x, y = (plain(w, dtype).astype(np.float32 if dtype.is_float() else object) for w in (a, b))
    with np.errstate(all="ignore"):
        value = np.where(in_a & in_b, OPERATIONS[name](x, y), np.where(in_a, x, np.where(in_b, y, 0)))
    if dtype.is_float():
        expected = words_of(torch.from_numpy(value.astype(np.float32)), dtype)
    else:
        expected = wrapped(value, dtype)
    assert_same(dst.inside, expected[: mine[0], : mine[1]], dtype)
    assert_untouched_outside(dst)

"""Ranges, triangles and random words."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kernel_driver import Tile, ok, run
from kernel_oracles import assert_same, assert_untouched_outside, examples, layouts, words_of, wrapped

from pypto.ir.dtype import BF16, FP32, INT8, INT16, INT32, UINT16, UINT32
from pypto.sim.layout import UNSUPPORTED_DTYPE


@pytest.mark.parametrize("dtype", (INT16, UINT16, INT32, UINT32), ids=str)
@examples
@given(layouts(), st.integers(-40000, 70000), st.booleans())
def test_range_wraps_in_its_dtype(dtype, layout, start, descending):
    dst = layout.empty(dtype)
    ok("tci", dst, start, descending=int(descending))
    rows, cols = layout.valid
    k = np.broadcast_to(np.arange(cols).astype(object), (rows, cols))
    np.testing.assert_array_equal(dst.inside, wrapped(start - k if descending else start + k, dtype))
    assert_untouched_outside(dst)


@pytest.mark.parametrize("dtype", (FP32, BF16, INT8, UINT16), ids=str)
@examples
@given(layouts(), st.integers(-5, 5), st.booleans())
def test_triangle(dtype, layout, diagonal, upper):
    dst = layout.empty(dtype)
    ok("ttri", dst, diagonal, upper=int(upper))
    ones = torch.ones(layout.shape)
    # numpy's upper triangle starts at the diagonal it is given, as this one does
    expected = torch.triu(ones, diagonal) if upper else torch.tril(ones, diagonal)
    words = words_of(expected, dtype) if dtype.is_float() else expected.numpy().astype(dtype.storage)
    rows, cols = layout.valid
    assert_same(dst.inside, words[:rows, :cols], dtype)
    assert_untouched_outside(dst)


def philox(counter, key, rounds):
    """One block in Python integers (ops 2.1)."""
    mask = 0xFFFFFFFF
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(rounds):
        p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & mask, (p0 >> 32) ^ c3 ^ k1, p0 & mask
        k0, k1 = k0 + 0x9E3779B9 & mask, k1 + 0xBB67AE85 & mask
    return c0, c1, c2, c3


def random_words(rows, cols, pitch, key, counter, rounds):
    out, start = np.zeros((rows, cols), np.uint32), sum(c << 32 * i for i, c in enumerate(counter))
    for i in range(rows):
        for first in range(0, cols, 256):
            for lane in range(64):
                here = (start + lane) % 2**128
                block = philox([here >> 32 * w & 0xFFFFFFFF for w in range(4)], key, rounds)
                for r in range(4):
                    if first + 64 * r + lane < cols:
                        out[i, first + 64 * r + lane] = block[r]
            start = (start + pitch // 4) % 2**128
    return out


def test_random_words_of_the_published_example():
    dst = Tile(UINT32, 2, 64)
    ok("trandom", dst, 1, 2, 3, 4, 5, 6)
    assert dst.array[0, :3].tolist() == [2287000220, 159323540, 1176526268]
    assert dst.array[1, 0] == 3325762723


@pytest.mark.parametrize("counter", ((3, 4, 5, 6), (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 7)))
@pytest.mark.parametrize("rounds", (7, 10))
def test_random_words_against_integers(counter, rounds):
    dst = Tile(UINT32, 3, 520, valid=(3, 517))
    ok("trandom", dst, 0x80000001, 99, *counter, rounds=rounds)
    np.testing.assert_array_equal(dst.inside, random_words(3, 517, 520, (0x80000001, 99), counter, rounds))
    assert_untouched_outside(dst)


def test_other_round_counts_are_refused():
    assert run("trandom", Tile(INT32, 1, 4), 0, 0, 0, 0, 0, 0, rounds=8)[0] == UNSUPPORTED_DTYPE

"""Casts: all patterns of the 16-bit floats in every mode, all 8- and 4-bit floats, integer ranges."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from kernel_driver import Tile, ok
from kernel_oracles import assert_same, assert_untouched_outside, examples, floats, layouts, values, words_of, wrapped

from pypto.ir.dtype import (
    BF16,
    FP4,
    FP8E4M3FN,
    FP8E5M2,
    FP16,
    FP32,
    HF8,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
)
from pypto.sim.kernels.cast import WRAPPING
from pypto.sim.kernels.catalogue import kernel
from pypto.sim.kernels.formats import TABLES
from pypto.sim.kernels.support import UnsupportedDtype

EVERY = np.arange(65536, dtype=np.uint16).reshape(256, 256)


def away(x):
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def odd(x):
    t = np.trunc(x)
    return np.where((t != x) & (np.mod(t, 2) == 0), t + np.where(x > t, 1.0, -1.0), t)


MODES = {
    "none": np.trunc,
    "rint": np.rint,
    "round": away,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "odd": odd,
}


def limits(dtype):
    info = np.iinfo(dtype.storage)
    return (-8, 7) if dtype == INT4 else (int(info.min), int(info.max))


def to_integer(rounded, source, target):
    """The range rule of ops 11 in Python integers."""
    low, high = limits(INT64 if (source, target) in WRAPPING else target)

    def one(x):
        if np.isnan(x):
            return 0
        return high if x == np.inf else low if x == -np.inf else max(low, min(high, int(x)))

    return wrapped(np.vectorize(one, otypes=[object])(rounded), target)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", (FP16, BF16), ids=str)
@pytest.mark.parametrize("target", (INT4, INT8, UINT8, INT16, UINT16, INT32, INT64), ids=str)
def test_every_16_bit_pattern_to_integers(source, target, mode):
    dst = Tile(target, 256, 256)
    ok("tcvt", dst, Tile.of(EVERY, source), mode=mode)
    x = floats(EVERY, source).to(torch.float64).numpy()
    with np.errstate(invalid="ignore"):
        rounded = MODES[mode](x)
    np.testing.assert_array_equal(dst.array, to_integer(rounded, source, target))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", (INT16, INT32, INT64), ids=str)
def test_fp32_to_integers(target, mode):
    patterns = np.arange(0, 2**32, 65537, dtype=np.uint64).astype(np.uint32)[:65280].view(np.float32).copy()
    patterns[:16] = [
        0.5,
        -0.5,
        1.5,
        2.5,
        0.49999997,
        -0.49999997,
        8388609,
        2**31,
        -(2.0**31),
        2.0**63,
        32767.5,
        -32768.5,
        np.inf,
        -np.inf,
        np.nan,
        2147483520,
    ]
    x = patterns.reshape(255, 256)
    dst = Tile(target, 255, 256)
    ok("tcvt", dst, Tile.of(x, FP32), mode=mode)
    with np.errstate(invalid="ignore"):
        rounded = MODES[mode](x.astype(np.float64))
    np.testing.assert_array_equal(dst.array, to_integer(rounded, FP32, target))


def test_wrapping_and_saturating_examples():
    def cast(value, source, target):
        dst = Tile(target, 1, 1)
        ok("tcvt", dst, Tile.of(words_of(torch.tensor([[value]]), source), source), mode="rint")
        return int(dst.array[0, 0])

    assert cast(300.0, FP16, INT8) == 44
    assert cast(-1.0, FP16, UINT8) == 255
    assert cast(40000.0, FP16, INT16) == -25536
    assert cast(40000.0, BF16, INT16) == 32767
    assert cast(3e9, FP32, INT32) == 2147483647


@pytest.mark.parametrize("source", (FP16, BF16), ids=str)
def test_16_bit_floats_widen_exactly_and_narrow_to_even(source):
    target = BF16 if source == FP16 else FP16
    wide, other, back = Tile(FP32, 256, 256), Tile(target, 256, 256), Tile(source, 256, 256)
    a = Tile.of(EVERY, source)
    ok("tcvt", wide, a)
    assert_same(wide.array, floats(EVERY, source).numpy(), FP32)
    ok("tcvt", back, wide)
    assert_same(back.array, EVERY, source)
    ok("tcvt", other, a)
    assert_same(other.array, words_of(floats(EVERY, source), target), target)


@pytest.mark.parametrize("target", (FP16, BF16), ids=str)
@examples
@given(layouts())
def test_fp32_narrows_to_even(target, layout):
    generator = layout.random()
    x = generator.integers(0, 2**32, size=layout.shape, dtype=np.uint32).view(np.float32)
    dst = layout.empty(target)
    ok("tcvt", dst, layout.tile(x, FP32), mode="floor")
    rows, cols = layout.valid
    assert_same(dst.inside, words_of(torch.from_numpy(x), target)[:rows, :cols], target)
    assert_untouched_outside(dst)


SMALL = (FP8E4M3FN, FP8E5M2, HF8, FP4)


def grid_of(dtype):
    """Finite values and their codes in ascending order, one code per value (+0 for zero)."""
    codes = np.arange(16 if dtype == FP4 else 256)
    table = TABLES[dtype][codes].astype(np.float64)
    keep = np.isfinite(table) & ~((table == 0) & np.signbit(table))
    order = np.argsort(table[keep])
    return table[keep][order], codes[keep][order]


@pytest.mark.parametrize("target", SMALL, ids=str)
@pytest.mark.parametrize("source", (FP16, BF16), ids=str)
def test_every_16_bit_pattern_to_small_floats(source, target):
    """Nearest grid value, ties to the even code, saturated; checked against an exhaustive search of the grid."""
    dst = Tile(target, 256, 256)
    ok("tcvt", dst, Tile.of(EVERY, source))
    x = floats(EVERY, source).to(torch.float64).numpy().ravel()
    number = ~np.isnan(x)
    grid, codes = grid_of(target)
    clipped = np.clip(x[number], grid[0], grid[-1])
    above = np.clip(np.searchsorted(grid, clipped), 1, len(grid) - 1)
    low, high = clipped - grid[above - 1], grid[above] - clipped
    take_low = (low < high) | ((low == high) & (codes[above - 1] % 2 == 0))
    expected = np.where(take_low, grid[above - 1], grid[above])
    found = TABLES[target][dst.array.ravel()[number]].astype(np.float64)
    np.testing.assert_array_equal(found, expected)
    nan = TABLES[target][dst.array.ravel()[~number]]
    assert np.isnan(nan).all() if target != FP4 else (nan == 0).all()


@pytest.mark.parametrize(("dtype", "reference"), ((FP8E4M3FN, torch.float8_e4m3fn), (FP8E5M2, torch.float8_e5m2)))
def test_fp8_agrees_with_torch(dtype, reference):
    codes = np.arange(256, dtype=np.uint8).reshape(16, 16)
    wide, back = Tile(FP32, 16, 16), Tile(dtype, 16, 16)
    ok("tcvt", wide, Tile.of(codes, dtype))
    expected = torch.from_numpy(codes.copy()).view(reference).to(torch.float32).numpy()
    assert_same(wide.array, expected, FP32)
    ok("tcvt", back, wide)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(back.array[finite], codes[finite])


def test_hf8_landmarks():
    """Zero, one, the range of powers of two below 2**-15, the largest finite value, infinity and NaN."""
    table = TABLES[HF8]
    assert table[0] == 0 and table[0b0001_000] == 1.0 and table[0b0001_100] == 1.5
    assert table[1] == 2.0**-22 and table[7] == 2.0**-16
    assert table[0x6E] == 32768 and np.isinf(table[0x6F]) and np.isnan(table[0x80])
    finite = np.sort(table[:128][np.isfinite(table[:128])])
    assert len(np.unique(finite)) == 127 and Fraction(float(finite[-1])) == 32768


INTEGER_PAIRS = [
    (INT64, INT32),
    (INT32, INT16),
    (INT32, INT64),
    (INT16, INT32),
    (INT32, UINT16),
    (INT32, UINT8),
    (INT16, UINT8),
    (INT16, UINT32),
    (UINT32, INT16),
    (UINT32, UINT8),
    (UINT8, UINT16),
    (INT8, INT32),
    (INT8, UINT8),
    (UINT16, INT16),
    (INT8, INT4),
    (INT64, UINT8),
]


@pytest.mark.parametrize(("source", "target"), INTEGER_PAIRS, ids=str)
@examples
@given(layouts())
def test_integer_ranges(source, target, layout):
    words = values(layout.random(), layout.shape, source)
    dst = layout.empty(target)
    ok("tcvt", dst, layout.tile(words, source))
    low, high = limits(target)
    keeps_bits = (source, target) in WRAPPING or source.get_bit() == target.get_bit()
    numbers = words.astype(object) if keeps_bits else np.clip(words.astype(object), low, high)
    rows, cols = layout.valid
    np.testing.assert_array_equal(dst.inside, wrapped(numbers, target)[:rows, :cols])
    assert_untouched_outside(dst)


TO_FLOATS = [
    (INT32, FP32),
    (INT64, FP32),
    (INT32, FP16),
    (INT16, FP16),
    (INT8, FP16),
    (UINT8, FP16),
    (INT4, FP16),
    (INT16, FP32),
]


@pytest.mark.parametrize(("source", "target"), TO_FLOATS, ids=str)
def test_integers_to_floats_round_to_even(source, target):
    low, high = limits(source)
    edges = [0, 1, -1, 16777217, 16777219, -16777217, 40000, 65519, 65535, low, high, high - 1, 2049, 2051]
    numbers = np.array([[n for n in edges if low <= n <= high]], dtype=source.storage)
    dst = Tile(target, *numbers.shape)
    ok("tcvt", dst, Tile.of(numbers, source))
    with np.errstate(over="ignore"):
        exact = numbers.astype(np.float32 if target == FP32 else np.float16)
    assert_same(dst.array, exact, target)


def test_same_dtype_and_unknown_pairs_are_refused():
    with pytest.raises(UnsupportedDtype, match="two different dtypes"):
        kernel("tcvt", [FP16, FP16])

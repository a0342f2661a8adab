"""Unary operations: exact ones bit for bit, transcendental ones in ulp of the float64 result."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from kernel_driver import Tile, ok
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

from pypto.ir.dtype import BF16, FP16, FP32, INT8, INT16, INT32, INT64, UINT8, UINT16

# (float64 oracle, largest error in ulp for fp32, for the 16-bit dtypes)
FUNCTIONS = {
    "exp": (np.exp, 1.1, 0.51),
    "log": (np.log, 1.0, 0.51),
    "sqrt": (np.sqrt, 0.5, 0.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.5001, 0.5002),
    "recip": (lambda x: 1 / x, 0.5, 0.5001),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fp32_functions_over_the_whole_range(name):
    """A million patterns, every 4099th of all floats, negative ones, subnormals, infinities and NaN among them."""
    patterns = np.arange(0, 2**32, 4099, dtype=np.uint64).astype(np.uint32)[: 1024 * 1023].view(np.float32)
    a = Tile.of(patterns.reshape(1023, 1024), FP32)
    dst = Tile(FP32, 1023, 1024)
    ok(f"t{name}", dst, a)
    oracle, bound, _ = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        exact = oracle(a.array.astype(np.float64))
    assert ulp_error(dst.array, exact, FP32) <= bound


def test_exp_near_the_ends_of_its_range():
    x = np.concatenate([np.linspace(-104, -86, 50000), np.linspace(88, 89, 15536)]).astype(np.float32)
    dst = Tile(FP32, 256, 256)
    ok("texp", dst, Tile.of(x.reshape(256, 256), FP32))
    with np.errstate(over="ignore"):
        assert ulp_error(dst.array.ravel(), np.exp(x.astype(np.float64)), FP32) <= 1.1


@pytest.mark.parametrize("dtype", (FP16, BF16), ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_16_bit_functions_over_all_patterns(name, dtype):
    every = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    dst = Tile(dtype, 256, 256)
    ok(f"t{name}", dst, Tile.of(every, dtype))
    oracle, _, bound = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        exact = oracle(floats(every, dtype).to(torch.float64).numpy())
    assert ulp_error(dst.array, exact, dtype) <= bound


@pytest.mark.parametrize("name", FUNCTIONS)
@examples
@given(layouts())
def test_function_layouts(name, layout):
    words = values(layout.random(), layout.shape, FP32)
    whole, part = Tile(FP32, *layout.shape), layout.empty(FP32)
    ok(f"t{name}", whole, Tile.of(words, FP32))
    ok(f"t{name}", part, layout.tile(words, FP32))
    rows, cols = layout.valid
    assert_same(part.inside, whole.array[:rows, :cols], FP32)
    assert_untouched_outside(part)


@pytest.mark.parametrize("dtype", (*FLOATS, INT8, INT16, INT32, INT64, UINT8), ids=str)
@examples
@given(layouts())
def test_neg_abs_relu(dtype, layout):
    words = values(layout.random(), layout.shape, dtype)
    rows, cols = layout.valid
    if dtype.is_float():
        x = floats(words, dtype)
        expected = {
            "neg": words_of(-x, dtype),
            "abs": words_of(x.abs(), dtype),
            "relu": words_of(torch.where(x < 0, torch.zeros(()), x), dtype),
        }
    else:
        n = words.astype(object)
        expected = {
            "neg": wrapped(-n, dtype),
            "abs": wrapped(np.abs(n), dtype),
            "relu": wrapped(np.maximum(n, 0), dtype),
        }
    for name, result in expected.items():
        dst = layout.empty(dtype)
        ok(f"t{name}", dst, layout.tile(words, dtype))
        assert_same(dst.inside, result[:rows, :cols], dtype)
        assert_untouched_outside(dst)


@pytest.mark.parametrize("dtype", (INT16, UINT16), ids=str)
@examples
@given(layouts())
def test_complement(dtype, layout):
    words = values(layout.random(), layout.shape, dtype)
    dst = layout.empty(dtype)
    ok("tnot", dst, layout.tile(words, dtype))
    rows, cols = layout.valid
    np.testing.assert_array_equal(dst.inside, (~words)[:rows, :cols])


@pytest.mark.parametrize(("name", "oracle"), (("tsin", np.sin), ("tcos", np.cos)))
def test_sine_and_cosine(name, oracle):
    """Absolute error of the fp32 polynomial: 3e-7 within a few periods, growing with the argument."""
    for reach, bound in ((10.0, 3e-7), (1e4, 2e-6)):
        x = np.linspace(-reach, reach, 65536).astype(np.float32).reshape(256, 256)
        dst = Tile(FP32, 256, 256)
        ok(name, dst, Tile.of(x, FP32))
        assert np.abs(dst.array - oracle(x.astype(np.float64))).max() <= bound

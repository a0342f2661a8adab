"""Elementwise families against torch in the element dtype and Python integers."""

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
    torch_of,
    values,
    words_of,
    wrapped,
)

from pypto.ir.dtype import BF16, FP16, FP32, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64
from pypto.sim.layout import DIVISION_BY_ZERO, OUTSIDE_TILE

COMMON = (*FLOATS, INT8, INT16, INT32, UINT8)
WIDE = (*COMMON, INT64, UINT16, UINT32, UINT64)


def quotient(a: int, b: int) -> int:
    size = abs(a) // abs(b)
    return size if (a < 0) == (b < 0) else -size


def fmod(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Exact; torch's own vector code gives NaN for quotients beyond the float range."""
    with np.errstate(invalid="ignore"):
        return np.fmod(a, b)


def remainder(a: np.ndarray, b: np.ndarray) -> torch.Tensor:
    r = fmod(a, b)
    return torch.from_numpy(np.where((r != 0) & ((r < 0) != (b < 0)), r + b, r))


FLOAT_ORACLES = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "max": lambda a, b: torch.where(a < b, b, a),
    "min": lambda a, b: torch.where(b < a, b, a),
    "rem": lambda a, b: remainder(a.numpy(), b.numpy()),
    "fmod": lambda a, b: torch.from_numpy(fmod(a.numpy(), b.numpy())),
}
INTEGER_ORACLES = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": quotient,
    "max": max,
    "min": min,
    "rem": lambda a, b: a - a // b * b,
    "fmod": lambda a, b: a - quotient(a, b) * b,
}
CASES = [(name, dtype) for name in FLOAT_ORACLES for dtype in (WIDE if name in ("add", "div", "rem") else COMMON)]


def expected(name, a, b, dtype):
    if dtype.is_float():
        return words_of(FLOAT_ORACLES[name](floats(a, dtype), floats(b, dtype)), dtype)
    oracle = np.vectorize(lambda x, y: INTEGER_ORACLES[name](int(x), int(y)), otypes=[object])
    return wrapped(oracle(a, b), dtype)


def divisors(words, name, dtype):
    return np.where(words == 0, 3, words) if name in ("div", "rem", "fmod") and not dtype.is_float() else words


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=lambda v: str(v))
@examples
@given(layouts())
def test_two_tiles(name, dtype, layout):
    a = values(layout.random(), layout.shape, dtype)
    b = divisors(values(layout.random(1), layout.shape, dtype), name, dtype)
    dst = layout.empty(dtype)
    rows, cols = layout.valid
    ok(f"t{name}", dst, layout.tile(a, dtype), layout.tile(b, dtype))
    assert_same(dst.inside, expected(name, a, b, dtype)[:rows, :cols], dtype)
    assert_untouched_outside(dst)
    again = layout.tile(a, dtype)
    ok(f"t{name}", again, again, layout.tile(b, dtype))
    assert_same(again.inside, dst.inside, dtype)


SCALARS = {FP32: 0.3, BF16: -2.7, INT8: -3, INT32: -70001, UINT8: 5}


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n in FLOAT_ORACLES for d in SCALARS], ids=lambda v: str(v))
@examples
@given(layouts())
def test_tile_and_scalar(name, dtype, layout):
    a, s = values(layout.random(), layout.shape, dtype), SCALARS[dtype]
    b = words_of(torch.full(layout.shape, s), dtype) if dtype.is_float() else np.full(layout.shape, s)
    dst = layout.empty(dtype)
    ok(f"t{name}s", dst, layout.tile(a, dtype), s)
    rows, cols = layout.valid
    assert_same(dst.inside, expected(name, a, b, dtype)[:rows, :cols], dtype)
    assert_untouched_outside(dst)


@pytest.mark.parametrize("dtype", (FP16, FP32, INT16), ids=str)
@pytest.mark.parametrize("name", ("add", "sub"))
@examples
@given(layouts())
def test_three_operands_round_after_each_step(name, dtype, layout):
    a, b, c = (values(layout.random(k), layout.shape, dtype) for k in range(3))
    rows, cols = layout.valid
    dst = layout.empty(dtype)
    ok(f"t{name}c", dst, *(layout.tile(x, dtype) for x in (a, b, c)))
    assert_same(dst.inside, expected(name, expected(name, a, b, dtype), c, dtype)[:rows, :cols], dtype)
    ok(f"t{name}sc", dst, layout.tile(a, dtype), 3, layout.tile(c, dtype))
    three = words_of(torch.full(layout.shape, 3.0), dtype) if dtype.is_float() else np.full(layout.shape, 3)
    assert_same(dst.inside, expected(name, expected(name, a, three, dtype), c, dtype)[:rows, :cols], dtype)
    assert_untouched_outside(dst)


BITS = {
    "and": lambda a, b, w: a & b,
    "or": lambda a, b, w: a | b,
    "xor": lambda a, b, w: a ^ b,
    "shl": lambda a, b, w: a << b if 0 <= b < w else 0,
    "shr": lambda a, b, w: a >> b if 0 <= b < w else (-1 if a < 0 else 0),
}


@pytest.mark.parametrize("dtype", (INT8, UINT16, INT32, INT64, UINT64), ids=str)
@pytest.mark.parametrize("name", BITS)
@examples
@given(layouts())
def test_bits_and_shifts(name, dtype, layout):
    a, b = (values(layout.random(k), layout.shape, dtype) for k in range(2))
    width = dtype.get_bit()
    oracle = np.vectorize(lambda x, y: BITS[name](int(x), int(y), width), otypes=[object])
    rows, cols = layout.valid
    dst = layout.empty(dtype)
    ok(f"t{name}", dst, layout.tile(a, dtype), layout.tile(b, dtype))
    assert_same(dst.inside, wrapped(oracle(a, b), dtype)[:rows, :cols], dtype)
    assert_untouched_outside(dst)
    if dtype in (UINT16, INT32):
        ok(f"t{name}s", dst, layout.tile(a, dtype), 5)
        assert_same(dst.inside, wrapped(oracle(a, np.full(a.shape, 5)), dtype)[:rows, :cols], dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@examples
@given(layouts())
def test_leaky_activations(dtype, layout):
    a, slope = values(layout.random(), layout.shape, dtype), values(layout.random(1), layout.shape, dtype)
    x, y = floats(a, dtype), floats(slope, dtype)
    rows, cols = layout.valid
    dst = layout.empty(dtype)
    ok("tprelu", dst, layout.tile(a, dtype), layout.tile(slope, dtype))
    assert_same(dst.inside, words_of(torch.where(x > 0, x, x * y), dtype)[:rows, :cols], dtype)
    ok("tlrelu", dst, layout.tile(a, dtype), 0.1)
    assert_same(dst.inside, words_of(torch.where(x > 0, x, x * np.float32(0.1)), dtype)[:rows, :cols], dtype)


@pytest.mark.parametrize("dtype", (INT8, INT32, INT64, UINT64), ids=str)
def test_integer_division_by_zero_stops_before_anything_is_written(dtype):
    a, b = (Tile.of(np.full((3, 5), k, dtype.storage), dtype) for k in (7, 2))
    b.words[2, 4] = 0
    dst = Tile(dtype, 3, 5)
    for name in ("tdiv", "trem", "tfmod"):
        assert run(name, dst, a, b)[0] == DIVISION_BY_ZERO
        if dtype in (INT8, INT32):
            assert run(f"{name}s", dst, a, 0)[0] == DIVISION_BY_ZERO
    assert dst.words.tobytes() == bytes([0x5A]) * dst.words.nbytes


def test_float_division_by_zero_follows_ieee():
    a, b = Tile.of(np.array([[1.0, -1.0, 0.0]], np.float32), FP32), Tile.of(np.zeros((1, 3), np.float32), FP32)
    dst = Tile(FP32, 1, 3)
    ok("tdiv", dst, a, b)
    np.testing.assert_array_equal(dst.array, [[np.inf, -np.inf, np.nan]])


def test_operand_smaller_than_the_work_is_refused():
    dst, a, b = Tile(FP32, 4, 8), Tile(FP32, 4, 8), Tile(FP32, 4, 7)
    assert run("tadd", dst, a, b)[0] == OUTSIDE_TILE
    assert run("tadds", dst, b, 1.0)[0] == OUTSIDE_TILE


@pytest.mark.parametrize("dtype", (FP16, BF16), ids=str)
def test_half_precision_rounds_to_even_and_overflows_to_infinity(dtype):
    every = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    other = np.roll(every, 12345).copy()
    dst = Tile(dtype, 256, 256)
    for name, operation in (("tadd", torch.add), ("tmul", torch.mul)):
        ok(name, dst, Tile.of(every, dtype), Tile.of(other, dtype))
        reference = operation(torch_of(every, dtype), torch_of(other, dtype))
        assert_same(dst.array, words_of(reference.to(torch.float32), dtype), dtype)

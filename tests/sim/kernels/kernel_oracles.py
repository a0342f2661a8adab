"""Values for the kernel tests and the exact results they are held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st
from kernel_driver import Tile

from pypto.ir.dtype import BF16, FP16, FP32, DataType

FLOATS = (FP32, FP16, BF16)
TORCH = {FP32: torch.float32, FP16: torch.float16, BF16: torch.bfloat16}
SIGNIFICAND = {FP32: 24, FP16: 11, BF16: 8}
SMALLEST_EXPONENT = {FP32: -126, FP16: -14, BF16: -126}

examples = settings(max_examples=12, deadline=None, derandomize=True)


@dataclass(frozen=True)
class Layout:
    """Physical shape, valid shape, columns between rows beyond the physical ones, seed of the values."""

    rows: int
    cols: int
    valid: tuple[int, int]
    gap: int
    seed: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.cols

    def tile(self, words: Any, dtype: DataType) -> Tile:
        """A source tile with this layout."""
        return Tile.of(words, dtype, self.cols + self.gap, self.valid)

    def empty(self, dtype: DataType) -> Tile:
        """A poisoned destination with this layout."""
        return Tile(dtype, self.rows, self.cols, self.valid, self.cols + self.gap)

    def random(self, salt: int = 0) -> np.random.Generator:
        return np.random.default_rng([self.seed, salt])


@st.composite
def layouts(draw: Any, multiple: int = 1, full: bool = False) -> Layout:
    """Shapes with one row, one column, odd sizes; partially valid or whole; with and without a gap between rows."""
    rows = draw(st.sampled_from((1, 2, 7, 16)))
    cols = multiple * draw(st.sampled_from((1, 3, 8, 33, 64)))
    valid = (rows, cols) if full or draw(st.booleans()) else (draw(st.integers(1, rows)), draw(st.integers(1, cols)))
    return Layout(rows, cols, valid, draw(st.sampled_from((0, 5))), draw(st.integers(0, 2**20)))


def values(generator: np.random.Generator, shape: tuple[int, int], dtype: DataType) -> Any:
    """Storage words: random, with the special values of the dtype strewn in."""
    if dtype.is_float():
        plain = generator.normal(size=shape) * 10.0 ** generator.integers(-3, 4, size=shape)
        special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 65504.0, 1e-7, -6e-5, 3e38]
        chosen = np.where(generator.random(shape) < 0.15, generator.choice(special, size=shape), plain)
        return words_of(torch.from_numpy(chosen.astype(np.float64)).to(torch.float32), dtype)
    info = np.iinfo(dtype.storage)
    wide = generator.integers(info.min, info.max, size=shape, dtype=dtype.storage, endpoint=True)
    small = generator.integers(max(info.min, -5), 9, size=shape).astype(dtype.storage)
    edges = generator.choice(np.array([info.min, info.max, 0, 1], dtype.storage), size=shape)
    kind = generator.random(shape)
    return np.where(kind < 0.4, wide, np.where(kind < 0.85, small, edges))


def words_of(tensor: torch.Tensor, dtype: DataType) -> Any:
    """Storage words of a float tensor rounded to ``dtype``."""
    narrow = tensor.to(TORCH[dtype])
    return narrow.numpy() if dtype == FP32 else narrow.view(torch.int16).numpy().view(np.uint16)


def torch_of(words: Any, dtype: DataType) -> torch.Tensor:
    """The torch tensor whose storage is ``words``."""
    words = np.ascontiguousarray(words)
    return torch.from_numpy(words) if dtype == FP32 else torch.from_numpy(words.view(np.int16)).view(TORCH[dtype])


def floats(words: Any, dtype: DataType) -> torch.Tensor:
    """Elements as float32."""
    return torch_of(words, dtype).to(torch.float32)


def wrapped(numbers: Any, dtype: DataType) -> Any:
    """Python integers cut to the low bits of ``dtype``."""
    bits = 8 * dtype.get_byte()
    signed = dtype.is_signed_int()

    def cut(number: Any) -> int:
        low = int(number) & ((1 << bits) - 1)
        return low - (1 << bits) if signed and low >> (bits - 1) else low

    return np.vectorize(cut, otypes=[object])(np.asarray(numbers, dtype=object)).astype(dtype.storage)


def assert_same(found: Any, expected: Any, dtype: DataType) -> None:
    """Bit for bit equal, any NaN equal to any other."""
    found, expected = np.ascontiguousarray(found), np.ascontiguousarray(expected)
    if dtype.is_float():
        nan = torch.isnan(floats(expected, dtype)).numpy()
        assert np.array_equal(torch.isnan(floats(found, dtype)).numpy(), nan)
        word = np.uint32 if dtype == FP32 else np.uint16
        found, expected = np.where(nan, 0, found.view(word)), np.where(nan, 0, expected.view(word))
    np.testing.assert_array_equal(found, expected)


def assert_untouched_outside(tile: Tile) -> None:
    """Nothing but the valid region of a destination was written."""
    assert tile.gap_is_poison()
    rows, cols = int(tile.descriptor[4]), int(tile.descriptor[5])
    outside = np.ones(tile.array.shape, bool)
    outside[:rows, :cols] = False
    rest = np.ascontiguousarray(tile.array[outside])
    assert (rest.view(np.uint8) == 0x5A).all()


def ulp_error(found: Any, exact: Any, dtype: DataType) -> float:
    """Largest distance to the float64 result in units of the last place of ``dtype``; infinities and NaN must agree.

    A finite exact value beyond the largest finite one counts as infinite.
    """
    got = floats(found, dtype).to(torch.float64).numpy()
    exact = np.asarray(exact, np.float64)
    rounded = torch.from_numpy(exact).to(TORCH[dtype]).to(torch.float64).numpy()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    infinite = np.isinf(rounded)
    np.testing.assert_array_equal(got[infinite], rounded[infinite])
    finite = ~infinite & ~np.isnan(exact)
    exponent = np.floor(np.log2(np.maximum(np.abs(exact[finite]), 2.0 ** SMALLEST_EXPONENT[dtype])))
    unit = 2.0 ** (exponent - SIGNIFICAND[dtype] + 1)
    error = np.abs(got[finite] - exact[finite]) / unit
    return float(error.max()) if error.size else 0.0

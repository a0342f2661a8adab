"""Matrix products against float64 and exact integers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kernel_driver import Tile, ok, run
from kernel_oracles import FLOATS, examples, floats, words_of, wrapped

from pypto.ir.dtype import FP8E4M3FN, FP8E8M0, FP16, FP32, INT8, INT16, INT32, UINT8, UINT16
from pypto.sim.kernels.catalogue import kernel
from pypto.sim.kernels.formats import TABLES
from pypto.sim.kernels.support import UnsupportedDtype
from pypto.sim.layout import OUTSIDE_TILE

sizes = st.tuples(st.sampled_from((1, 5, 16)), st.sampled_from((1, 7, 64, 130)), st.sampled_from((1, 9, 32)))
flags = st.integers(0, 1)


def operand(generator, rows, cols, transposed, dtype):
    """(tile, logical float64 or object matrix) of a rows x cols operand, stored transposed on request."""
    shape = (cols, rows) if transposed else (rows, cols)
    if dtype.is_float():
        words = words_of(torch.from_numpy(generator.normal(size=shape)), dtype)
        matrix = floats(words, dtype).to(torch.float64).numpy()
    else:
        info = np.iinfo(dtype.storage)
        words = generator.integers(info.min, info.max, size=shape, dtype=dtype.storage, endpoint=True)
        matrix = words.astype(object)
    return Tile.of(words, dtype, stride=shape[1] + 3), matrix.T if transposed else matrix


def close(found, left, right, start=0.0):
    """fp32 accumulation: at most k + 2 roundings relative to the sum of magnitudes."""
    bound = (np.abs(left) @ np.abs(right) + np.abs(start)) * (left.shape[1] + 2) * 2.0**-24 + 1e-30
    assert (np.abs(found.astype(np.float64) - (left @ right + start)) <= bound).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@examples
@given(sizes, flags, flags, st.integers(0, 2**20))
def test_float_products(dtype, size, a_trans, b_trans, seed):
    m, k, n = size
    generator = np.random.default_rng(seed)
    a, left = operand(generator, m, k, a_trans, dtype)
    b, right = operand(generator, k, n, b_trans, dtype)
    acc = Tile(FP32, 16, 32, (m, n), 33)
    poison = acc.words.copy()
    assert ok("tmatmul", acc, a, b, a_trans=a_trans, b_trans=b_trans) == [0, m, k, n]
    close(acc.inside, left, right)
    first = acc.inside.astype(np.float64)
    ok("tmatmul_acc", acc, a, b, a_trans=a_trans, b_trans=b_trans)
    close(acc.inside, left, right, first)
    bias = generator.normal(size=(1, n)).astype(np.float32)
    ok("tmatmul_bias", acc, a, b, Tile.of(bias, FP32), a_trans=a_trans, b_trans=b_trans)
    close(acc.inside, left, right, np.broadcast_to(bias, (m, n)))
    poison[:m, :n] = acc.inside
    assert acc.words.tobytes() == poison.tobytes()


@pytest.mark.parametrize("dtype", (INT8, UINT8, INT16, UINT16), ids=str)
@examples
@given(sizes, flags, flags, st.integers(0, 2**20))
def test_integer_products_are_exact_and_wrap(dtype, size, a_trans, b_trans, seed):
    m, k, n = size
    generator = np.random.default_rng(seed)
    a, left = operand(generator, m, k, a_trans, dtype)
    b, right = operand(generator, k, n, b_trans, dtype)
    acc = Tile(INT32, m, n)
    ok("tmatmul", acc, a, b, a_trans=a_trans, b_trans=b_trans)
    np.testing.assert_array_equal(acc.array, wrapped(left @ right, INT32))
    ok("tmatmul_acc", acc, a, b, a_trans=a_trans, b_trans=b_trans)
    np.testing.assert_array_equal(acc.array, wrapped(2 * (left @ right), INT32))
    ok("tmatmul_bias", acc, a, b, Tile.of(np.full((1, n), -5, np.int32), INT32), a_trans=a_trans, b_trans=b_trans)
    np.testing.assert_array_equal(acc.array, wrapped(left @ right - 5, INT32))


@pytest.mark.parametrize(("dtype", "value"), ((INT8, -128), (UINT8, 255)), ids=str)
def test_long_integer_sums_stay_exact(dtype, value):
    """5000 products of the largest magnitude: far beyond what one fp32 sum holds exactly."""
    k = 5000
    words = np.full((1, k), value, dtype.storage)
    acc = Tile(INT32, 1, 1)
    ok("tmatmul", acc, Tile.of(words, dtype), Tile.of(words.reshape(k, 1), dtype))
    assert acc.array[0, 0] == k * value * value


def test_valid_k_of_the_left_operand_decides():
    a = Tile.of(np.ones((4, 8), np.float32), FP32, valid=(3, 5))
    b = Tile.of(np.ones((8, 6), np.float32), FP32, valid=(8, 2))
    acc = Tile(FP32, 4, 6, (3, 2))
    assert ok("tmatmul", acc, a, b) == [0, 3, 5, 2]
    assert (acc.inside == 5).all() and acc.array[3, 0] != 5 and acc.array[0, 2] != 5


def test_empty_k_gives_zeros():
    acc = Tile(FP32, 2, 2)
    ok("tmatmul", acc, Tile(FP32, 2, 8, (2, 0)), Tile(FP32, 8, 2))
    assert (acc.array == 0).all()


def test_gemv_is_a_product_with_one_row():
    generator = np.random.default_rng(4)
    a, left = operand(generator, 1, 64, False, FP16)
    b, right = operand(generator, 64, 48, False, FP16)
    acc = Tile(FP32, 16, 48, (1, 48))
    ok("tgemv", acc, a, b)
    close(acc.inside, left, right)
    ok("tgemv_acc", acc, a, b)
    close(acc.inside, left, right, left @ right)
    ok("tgemv_bias", acc, a, b, Tile.of(np.ones((1, 48), np.float32), FP32))
    close(acc.inside, left, right, np.ones((1, 48)))


def test_result_does_not_depend_on_a_repetition():
    generator = np.random.default_rng(5)
    a, _ = operand(generator, 128, 128, False, FP32)
    b, _ = operand(generator, 128, 128, False, FP32)
    first, second = Tile(FP32, 128, 128), Tile(FP32, 128, 128)
    ok("tmatmul", first, a, b)
    ok("tmatmul", second, a, b)
    np.testing.assert_array_equal(first.array, second.array)


def test_block_scaled_product():
    """C = sum over k of A 2^(sA - 127) B 2^(sB - 127), one scale per 32 elements of K."""
    generator = np.random.default_rng(6)
    m, k, n = 16, 96, 32
    a, b = (generator.integers(0, 0x70, size=shape, dtype=np.uint8) for shape in ((m, k), (k, n)))
    a_scale, b_scale = (generator.integers(120, 134, size=s, dtype=np.uint8) for s in ((m, k // 32), (k // 32, n)))
    left = TABLES[FP8E4M3FN][a].astype(np.float64) * 2.0 ** (np.repeat(a_scale, 32, axis=1).astype(int) - 127)
    right = TABLES[FP8E4M3FN][b].astype(np.float64) * 2.0 ** (np.repeat(b_scale, 32, axis=0).astype(int) - 127)
    operands = (Tile.of(a, FP8E4M3FN), Tile.of(a_scale, FP8E8M0), Tile.of(b, FP8E4M3FN), Tile.of(b_scale, FP8E8M0))
    acc = Tile(FP32, m, n)
    assert ok("tmatmul_mx", acc, *operands) == [0, m, k, n]
    close(acc.array, left, right)
    ok("tmatmul_mx_acc", acc, *operands)
    close(acc.array, left, right, left @ right)
    ok("tmatmul_mx_bias", acc, *operands, Tile.of(np.full((1, n), 0.5, np.float32), FP32))
    close(acc.array, left, right, np.full((m, n), 0.5))


def test_shapes_and_dtypes_are_checked():
    assert run("tmatmul", Tile(FP32, 2, 3), Tile(FP32, 2, 8), Tile(FP32, 7, 3))[0] == OUTSIDE_TILE
    assert run("tmatmul", Tile(FP32, 2, 2), Tile(FP32, 2, 8), Tile(FP32, 8, 3))[0] == OUTSIDE_TILE
    with pytest.raises(UnsupportedDtype, match="a: fp16, b: fp32"):
        kernel("tmatmul", [FP32, FP16, FP32])
    with pytest.raises(UnsupportedDtype, match="integers into int32"):
        kernel("tmatmul", [FP32, INT8, INT8])

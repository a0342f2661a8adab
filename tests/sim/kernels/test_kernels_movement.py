"""Loads, stores and moves: windows, bounds, bursts, conversions, packed dtypes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kernel_driver import Tensor, Tile, ok, run
from kernel_oracles import assert_same, assert_untouched_outside, examples, floats, layouts, values, words_of

from pypto.ir.dtype import BF16, FP4, FP8E8M0, FP16, FP32, INT4, INT8, INT32, INT64, UINT8
from pypto.sim.kernels.catalogue import kernel
from pypto.sim.kernels.support import UnsupportedDtype
from pypto.sim.layout import OUTSIDE_TENSOR, OUTSIDE_TILE, UNSUPPORTED_DTYPE


@st.composite
def windows(draw):
    """A tensor (rank 1 to 4, some axes permuted or strided), and a window of its trailing axes."""
    rank = draw(st.integers(1, 4))
    shape = [draw(st.integers(1, 6)) for _ in range(rank)]
    base = np.arange(1, 1 + int(np.prod(shape)) * 2, dtype=np.float32).reshape([*shape[:-1], 2 * shape[-1]])
    array = base[..., ::2] if draw(st.booleans()) else base[..., : shape[-1]]
    if draw(st.booleans()):
        array = array.transpose(draw(st.permutations(range(rank))))
    n = draw(st.integers(1, rank))
    extents = array.shape[rank - n :]
    offsets = [draw(st.integers(0, e - 1)) for e in extents]
    valid = [draw(st.integers(0, e - o)) for e, o in zip(extents, offsets)]
    window = [v + draw(st.integers(0 if v else 1, 3)) for v in valid]
    return array, offsets, window, valid


def cut(array, offsets, valid):
    leading = (0,) * (array.ndim - len(offsets))
    return array[(*leading, *(slice(o, o + v) for o, v in zip(offsets, valid)))]


def placed(block, window):
    """The tile image of a window: the valid block at the origin, zeros elsewhere, leading axes folded into rows."""
    image = np.zeros(window, np.float32)
    image[tuple(slice(0, e) for e in block.shape)] = block
    return image.reshape(-1, window[-1])


@examples
@given(windows(), st.integers(0, 3), st.integers(0, 2))
def test_load_places_the_window_and_clears_the_rest(case, gap, more_rows):
    array, offsets, window, valid = case
    rows = int(np.prod(window[:-1])) + more_rows
    dst = Tile(FP32, rows, window[-1], stride=window[-1] + gap)
    report = ok("tload", dst, Tensor(array, FP32), offsets, window, valid)
    block = cut(array, offsets, valid)
    expected = np.zeros((rows, window[-1]), np.float32)
    expected[: rows - more_rows] = placed(block, window)
    np.testing.assert_array_equal(dst.array, expected)
    assert dst.gap_is_poison()
    assert report[1] * report[2] == block.size * 4 or block.size == 0


@examples
@given(windows(), st.integers(0, 3))
def test_store_writes_the_window_only(case, gap):
    array, offsets, window, valid = case
    rows = int(np.prod(window[:-1]))
    image = -np.arange(rows * window[-1], dtype=np.float32).reshape(rows, window[-1]) - 1
    target, expected = array.copy(order="K"), array.copy(order="K")
    ok("tstore", Tensor(target, FP32), Tile.of(image, FP32, window[-1] + gap), offsets, window, valid)
    block = image.reshape(window)[tuple(slice(0, v) for v in valid)]
    cut(expected, offsets, valid)[...] = block
    np.testing.assert_array_equal(target, expected)
    ok("tstore", Tensor(target, FP32), Tile.of(image, FP32), offsets, window, valid, atomic="add")
    cut(expected, offsets, valid)[...] += block
    np.testing.assert_array_equal(target, expected)


def test_report_words_describe_the_bursts():
    array = np.zeros((8, 64), np.float32)
    tile, tensor = Tile(FP32, 4, 16), Tensor(array, FP32)
    start = array.ctypes.data + (2 * 64 + 8) * 4
    assert ok("tload", tile, tensor, [2, 8], [4, 16], [4, 16]) == [start, 4, 64, 256]
    assert ok("tstore", tensor, tile, [2, 8], [4, 16], [3, 10]) == [start, 3, 40, 256]
    transposed = Tensor(array.T, FP32)
    assert ok("tload", tile, transposed, [8, 2], [4, 5], [4, 5]) == [start, 5, 16, 256]
    strided = Tensor(array[:, ::2], FP32)
    assert ok("tload", tile, strided, [0, 0], [4, 5], [4, 5])[1:] == [20, 4, 8]


OUTSIDE = [
    ([-1, 0], [2, 2]),
    ([0, -1], [2, 2]),
    ([7, 0], [2, 2]),
    ([0, 63], [1, 2]),
    ([0, 0], [9, 1]),
    ([2**40, 0], [1, 1]),
]


@pytest.mark.parametrize(("offsets", "valid"), OUTSIDE)
def test_windows_outside_the_tensor_touch_nothing(offsets, valid):
    array = np.ones((8, 64), np.float32)
    tile, tensor = Tile(FP32, 16, 16), Tensor(array, FP32)
    assert run("tload", tile, tensor, offsets, [16, 16], valid) == (OUTSIDE_TENSOR, [0, 0, 0, 0])
    assert tile.words.tobytes() == b"\x5a" * tile.words.nbytes
    assert run("tstore", tensor, tile, offsets, [16, 16], valid)[0] == OUTSIDE_TENSOR
    assert (array == 1).all()


def test_empty_windows_are_legal_anywhere():
    array = np.ones((8, 64), np.float32)
    tile, tensor = Tile(FP32, 2, 4), Tensor(array, FP32)
    ok("tload", tile, tensor, [100, 0], [2, 4], [0, 4])
    assert (tile.array == 0).all()
    ok("tstore", tensor, tile, [100, 0], [2, 4], [0, 4])
    assert (array == 1).all()


def test_window_that_does_not_fit_the_tile():
    tensor = Tensor(np.ones((8, 64), np.float32), FP32)
    assert run("tload", Tile(FP32, 2, 4), tensor, [0, 0], [3, 4], [3, 4])[0] == OUTSIDE_TILE
    assert run("tload", Tile(FP32, 2, 4), tensor, [0, 0], [2, 5], [2, 5])[0] == OUTSIDE_TILE


@pytest.mark.parametrize("dtype", (UINT8, FP16, INT32, INT64), ids=str)
def test_widths(dtype):
    generator = np.random.default_rng(1)
    array = values(generator, (9, 20), dtype).view(np.dtype(dtype.storage))
    tile, out = Tile(dtype, 5, 7), np.zeros_like(array)
    ok("tload", tile, Tensor(array, dtype), [3, 2], [5, 7], [5, 7])
    np.testing.assert_array_equal(tile.array, array[3:8, 2:9])
    ok("tstore", Tensor(out, dtype), tile, [3, 2], [5, 7], [5, 7])
    np.testing.assert_array_equal(out[3:8, 2:9], array[3:8, 2:9])
    assert np.count_nonzero(out) <= 35


@pytest.mark.parametrize("target", (FP16, BF16), ids=str)
@examples
@given(layouts())
def test_accumulator_is_narrowed_to_even_on_the_way_out(target, layout):
    words = values(layout.random(), layout.shape, FP32)
    rows, cols = layout.valid
    out = np.zeros(layout.shape, np.uint16)
    ok("tstore", Tensor(out, target), layout.tile(words, FP32), [0, 0], list(layout.shape), list(layout.valid))
    expected = words_of(torch.from_numpy(words), target)
    assert_same(out[:rows, :cols], expected[:rows, :cols], target)
    moved = layout.empty(target)
    ok("tmov", moved, layout.tile(words, FP32))
    assert_same(moved.inside, expected[:rows, :cols], target)
    assert_untouched_outside(moved)


@pytest.mark.parametrize("dtype", (FP16, BF16, INT8), ids=str)
def test_atomic_add_rounds_in_the_dtype_of_the_tensor(dtype):
    generator = np.random.default_rng(2)
    array, words = (values(generator, (6, 10), dtype) for _ in range(2))
    out = array.copy()
    ok("tstore", Tensor(out, dtype), Tile.of(words, dtype), [0, 0], [6, 10], [6, 10], atomic="add")
    if dtype == INT8:
        np.testing.assert_array_equal(out, array + words)
    else:
        assert_same(out, words_of(floats(array, dtype) + floats(words, dtype), dtype), dtype)


def test_atomic_add_of_other_dtypes_is_refused():
    tensor, tile = Tensor(np.zeros((2, 2), np.int64), INT64), Tile(INT64, 2, 2)
    assert run("tstore", tensor, tile, [0, 0], [2, 2], [2, 2], atomic="add")[0] == UNSUPPORTED_DTYPE


@pytest.mark.parametrize("dtype", (INT4, FP4), ids=str)
def test_packed_elements_share_a_byte_in_memory(dtype):
    """Element 2k in the low half of byte k; a store keeps the neighbour's half."""
    packed = np.random.default_rng(3).integers(0, 256, size=(6, 8), dtype=np.uint8)
    nibbles = np.stack([packed & 15, packed >> 4], axis=-1).reshape(6, 16)
    expected = np.where(nibbles > 7, nibbles - 16, nibbles).astype(np.int8) if dtype == INT4 else nibbles
    tensor = Tensor(packed, dtype)
    tensor.descriptor[6:8], tensor.descriptor[14:16] = (6, 16), (16, 1)
    tile = Tile(dtype, 4, 8)
    report = ok("tload", tile, tensor, [1, 3], [4, 8], [4, 7])
    np.testing.assert_array_equal(tile.array[:, :7], expected[1:5, 3:10])
    assert (tile.array[:, 7] == 0).all() and report[1:] == [4, 4, 8]
    before = packed.copy()
    ok("tstore", tensor, tile, [1, 3], [4, 8], [4, 7])
    np.testing.assert_array_equal(packed, before)


@pytest.mark.parametrize("transposed", (0, 1))
@examples
@given(layouts())
def test_move_and_extract(transposed, layout):
    rows, cols = layout.valid
    shape = (rows + 2, cols + 3) if not transposed else (cols + 2, rows + 3)
    words = values(layout.random(), shape, FP32)
    source = Tile.of(words, FP32, stride=shape[1] + 1)
    view = words.T if transposed else words
    dst = layout.empty(FP32)
    ok("tmov", dst, source, transpose=transposed)
    assert_same(dst.inside, view[:rows, :cols], FP32)
    ok("textract", dst, source, 2, 1, transpose=transposed)
    window = words[2:, 1:].T if transposed else words[2:, 1:]
    assert_same(dst.inside, window[:rows, :cols], FP32)
    assert_untouched_outside(dst)


@examples
@given(layouts())
def test_insert_writes_the_valid_extent_of_the_source(layout):
    words = values(layout.random(), layout.shape, FP32)
    rows, cols = layout.valid
    dst = Tile(FP32, layout.rows + 2, layout.cols + 3, stride=layout.cols + 4)
    expected = dst.array.copy()
    expected[2 : 2 + rows, 3 : 3 + cols] = words[:rows, :cols]
    ok("tinsert", dst, layout.tile(words, FP32), 2, 3)
    assert_same(dst.array, expected, FP32)
    assert run("tinsert", dst, layout.tile(words, FP32), 2, layout.cols + 4 - cols)[0] == OUTSIDE_TILE


def test_extract_outside_the_source():
    source = Tile(FP32, 4, 8)
    for row, col in ((-1, 0), (0, -1), (3, 0), (0, 5)):
        assert run("textract", Tile(FP32, 2, 4), source, row, col)[0] == OUTSIDE_TILE


@pytest.mark.parametrize("transposed", (0, 1))
def test_gather_row_fills_part_of_a_tile(transposed):
    array = np.arange(60, dtype=np.float32).reshape(6, 10)
    dst = Tile(FP32, 8, 8)
    expected = dst.array.copy()
    report = ok("tgather_row", dst, Tensor(array, FP32), [1, 2], [2, 3], [3, 4], [2, 4], transpose=transposed)
    block = array[2:4, 3:7].T if transposed else array[2:4, 3:7]
    expected[1 : 1 + block.shape[0], 2 : 2 + block.shape[1]] = block
    assert_same(dst.array, expected, FP32)
    assert report[1:] == [2, 16, 40]


def test_widths_must_agree():
    with pytest.raises(UnsupportedDtype, match="dtypes of one width"):
        kernel("tload", [FP32, FP16, None, None, None])
    with pytest.raises(UnsupportedDtype, match="two number dtypes"):
        kernel("tstore", [FP32, FP8E8M0, None, None, None])


def test_stores_between_number_dtypes_convert():
    """Float to integer drops the fraction and saturates, integers keep their low bits or become floats."""

    def store(values, source, target):
        out = np.zeros((1, values.shape[1]), target.storage)
        ok("tstore", Tensor(out, target), Tile.of(values, source), [0, 0], list(out.shape), list(out.shape))
        return out[0].tolist()

    assert store(np.array([[1.9, -1.9, 3e9, np.nan]], np.float32), FP32, INT32) == [1, -1, 2147483647, 0]
    assert store(np.array([[300, -1, 127]], np.int32), INT32, INT8) == [44, -1, 127]
    assert store(np.array([[16777217, -3]], np.int32), INT32, FP32) == [16777216.0, -3.0]


def test_insert_narrows_the_accumulator_to_even():
    acc = Tile.of(np.array([[1.0, 2049.0, 65520.0]], np.float32), FP32)
    dst = Tile(FP16, 2, 4)
    ok("tinsert", dst, acc, 1, 1)
    np.testing.assert_array_equal(dst.array[1, 1:].view(np.float16), [1.0, 2048.0, np.inf])

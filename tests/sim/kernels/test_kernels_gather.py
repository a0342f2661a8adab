"""Gathers and scatters, on chip and in global memory, against NumPy indexing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_driver import Tensor, Tile, ok, run
from kernel_oracles import assert_same, assert_untouched_outside, examples, layouts, values

from pypto.ir.dtype import BF16, FP16, FP32, INT8, INT16, INT32, UINT8, UINT16, UINT32
from pypto.sim.layout import OUTSIDE_TENSOR, OUTSIDE_TILE, TOOK_ZERO

PAIRS = [(FP32, INT32), (INT32, INT32), (FP16, INT16), (FP16, INT32), (UINT8, UINT16)]


@pytest.mark.parametrize(("dtype", "index_dtype"), PAIRS, ids=str)
@examples
@given(layouts(), st.integers(0, 3))
def test_flat_gather(dtype, index_dtype, layout, gap):
    source = values(layout.random(), (6, 10), dtype)
    index = layout.random(1).integers(0, 60, size=layout.shape).astype(index_dtype.storage)
    dst = layout.empty(dtype)
    ok("tgather", dst, Tile.of(source, dtype, 10 + gap), layout.tile(index, index_dtype))
    rows, cols = layout.valid
    assert_same(dst.inside, source.ravel()[index][:rows, :cols], dtype)
    assert_untouched_outside(dst)


def test_flat_gather_outside_the_source_gives_0():
    dst, source = Tile(FP32, 2, 2), Tile.of(np.ones((2, 3), np.float32), FP32)
    status, report = run("tgather", dst, source, Tile.of(np.array([[0, 5], [6, -1]], np.int32), INT32))
    assert status == TOOK_ZERO and report[:3] == [2, 6, 6]
    np.testing.assert_array_equal(dst.array, [[1, 1], [0, 0]])


@pytest.mark.parametrize("axis", (0, 1))
@examples
@given(layouts())
def test_gather_and_scatter_along_an_axis(axis, layout):
    rows, cols = layout.shape
    shape = (rows, cols + 2) if axis else (rows + 2, cols)
    source = values(layout.random(), shape, FP32)
    index = layout.random(1).integers(0, shape[axis], size=layout.shape).astype(np.int32)
    dst = layout.empty(FP32)
    ok("tgather_axis", dst, Tile.of(source, FP32, shape[1] + 1), layout.tile(index, INT32), axis=axis)
    high, wide = layout.valid
    assert_same(dst.inside, np.take_along_axis(source, index, axis)[:high, :wide], FP32)
    assert_untouched_outside(dst)
    words, target = values(layout.random(2), layout.shape, FP32), Tile.of(source, FP32)
    expected = source.copy()
    for i in range(high):
        for j in range(wide):
            expected[(i, index[i, j]) if axis else (index[i, j], j)] = words[i, j]
    ok("tscatter_axis", target, layout.tile(words, FP32), layout.tile(index, INT32), axis=axis)
    assert_same(target.array, expected, FP32)


def selected(pattern, cols):
    start, step = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}[pattern]
    return np.arange(start, cols, step)


@pytest.mark.parametrize("pattern", range(1, 8))
@examples
@given(layouts(multiple=4))
def test_mask_patterns(pattern, layout):
    words = values(layout.random(), layout.shape, FP32)
    rows, cols = layout.valid
    columns = selected(pattern, cols)
    dst = Tile(INT32, rows, max(len(columns), 1), (rows, len(columns)), layout.cols)
    ok("tgather_mask", dst, layout.tile(words, FP32), pattern=pattern)
    np.testing.assert_array_equal(dst.inside, words[:rows, columns].view(np.int32))
    assert_untouched_outside(dst)


@pytest.mark.parametrize("others", ("zero", "keep"))
@pytest.mark.parametrize("pattern", range(1, 8))
def test_scatter_by_mask_pattern(pattern, others):
    columns = selected(pattern, 16)
    source = np.arange(3 * len(columns), dtype=np.float32).reshape(3, -1) + 1
    before = np.full((3, 16), -1, np.float32)
    dst = Tile.of(before, FP32, stride=18)
    ok("tscatter_mask", dst, Tile.of(source, FP32), pattern=pattern, others=others)
    expected = before * (others == "keep")
    expected[:, columns] = source
    np.testing.assert_array_equal(dst.array, expected)
    assert dst.gap_is_poison()


@pytest.mark.parametrize("mode", ("eq", "ne", "lt", "le", "gt", "ge"))
def test_compare_gather_lists_matching_columns(mode):
    generator = np.random.default_rng(1)
    x = generator.integers(-2, 3, size=(5, 40)).astype(np.float32)
    dst, count = Tile(INT32, 5, 12), Tile(INT32, 1, 5)
    ok("tgather_compare", dst, count, Tile.of(x, FP32, stride=41), 1.0, mode=mode, offset=100)
    truth = {"eq": x == 1, "ne": x != 1, "lt": x < 1, "le": x <= 1, "gt": x > 1, "ge": x >= 1}[mode]
    for i in range(5):
        found = np.flatnonzero(truth[i])
        listed = np.concatenate([found[:12] + 100, np.zeros(max(0, 12 - len(found)))])
        np.testing.assert_array_equal(dst.array[i], listed)
        assert count.array[0, i] == len(found)


@pytest.mark.parametrize("dtype", (INT8, BF16, FP32), ids=str)
def test_block_gather_copies_32_bytes(dtype):
    source = np.random.default_rng(2).integers(0, 256, size=(4, 128), dtype=np.uint8)
    offsets = np.array([[0, 32, 480], [100, 7, 480]], np.uint32)
    size = dtype.get_byte()
    dst = Tile(dtype, 2, 96 // size)
    ok("tgatherb", dst, Tile.of(source.view(dtype.storage), dtype, 128 // size + 2), Tile.of(offsets, UINT32))
    expected = np.stack([np.concatenate([source.ravel()[o : o + 32] for o in row]) for row in offsets])
    np.testing.assert_array_equal(np.ascontiguousarray(dst.array).view(np.uint8), expected)
    assert (
        run("tgatherb", dst, Tile.of(source.view(dtype.storage), dtype), Tile.of(offsets + 1, UINT32))[0]
        == OUTSIDE_TILE
    )


@pytest.mark.parametrize(("dtype", "index_dtype"), ((FP32, INT32), (BF16, INT16), (INT8, INT16)), ids=str)
@examples
@given(layouts(), st.integers(0, 3))
def test_flat_scatter_keeps_the_rest_and_the_last_write_wins(dtype, index_dtype, layout, gap):
    before, words = values(layout.random(), (8, 9), dtype), values(layout.random(1), layout.shape, dtype)
    index = layout.random(2).integers(0, 72, size=layout.shape).astype(index_dtype.storage)
    dst = Tile.of(before, dtype, 9 + gap)
    expected = before.copy()
    rows, cols = layout.valid
    for i in range(rows):
        for j in range(cols):
            expected.ravel()[index[i, j]] = words[i, j]
    ok("tscatter", dst, layout.tile(words, dtype), layout.tile(index, index_dtype))
    assert_same(dst.array, expected, dtype)
    assert dst.gap_is_poison()


def test_scatter_outside_the_tile_writes_nothing():
    dst = Tile(FP32, 2, 4)
    words, index = Tile.of(np.ones((1, 3), np.float32), FP32), Tile.of(np.array([[0, 1, 8]], np.int32), INT32)
    for name, limit in (("tscatter", 8), ("tscatter_axis", 4), ("tscatter_rows", 2)):
        assert run(name, dst, words, index) == (OUTSIDE_TILE, [2, 8, limit, 0])
    assert run("tgather_axis", dst, Tile(FP32, 2, 4), Tile.of(np.full((2, 4), -3, np.int32), INT32)) == (
        OUTSIDE_TILE,
        [0, -3, 4, 0],
    )
    assert dst.words.tobytes() == b"\x5a" * dst.words.nbytes


def test_scatter_of_rows():
    before = np.zeros((6, 5), np.float32)
    source = np.arange(20, dtype=np.float32).reshape(4, 5)
    index = np.array([[5, 2], [2, 0]], np.int32)
    dst, expected = Tile.of(before, FP32, stride=7), before.copy()
    ok("tscatter_rows", dst, Tile.of(source, FP32), Tile.of(index, INT32))
    for k, row in enumerate(index.ravel()):
        expected[row] = source[k]
    np.testing.assert_array_equal(dst.array, expected)


MEMORY = np.arange(3 * 4 * 8, dtype=np.float32).reshape(3, 4, 8)


def test_rows_from_memory():
    """Leading axes are merged: index q addresses row q of the [12, 8] view, whatever the strides."""
    index = np.array([[11, 0, 5]], np.int32)
    for array in (MEMORY, MEMORY.transpose(1, 0, 2)):
        dst = Tile(FP32, 3, 8, stride=9)
        report = ok("mgather", dst, Tensor(array, FP32), Tile.of(index, INT32))
        np.testing.assert_array_equal(dst.array, array.reshape(12, 8)[index[0]])
        assert report[1:] == [3, 32, 0]


def test_elements_from_memory():
    index = np.array([[95, 0], [17, 3]], np.int32)
    dst = Tile(FP32, 2, 2)
    report = ok("mgather", dst, Tensor(MEMORY.T, FP32), Tile.of(index, INT32), coalesce="elem")
    np.testing.assert_array_equal(dst.array, MEMORY.T.ravel()[index])
    assert report[1:] == [4, 4, 0]
    again = Tile(FP32, 2, 2)
    ok("mgather_gm", again, Tensor(MEMORY.T, FP32), Tensor(index, INT32), coalesce="elem")
    np.testing.assert_array_equal(again.array, dst.array)


@pytest.mark.parametrize(
    ("oob", "expected"), (("clamp", [11, 11]), ("wrap", [(2**32 - 1) % 12, 1]), ("zero", [None, None]))
)
def test_indices_beyond_the_capacity_compare_unsigned(oob, expected):
    dst = Tile(FP32, 2, 8)
    ok("mgather", dst, Tensor(MEMORY, FP32), Tile.of(np.array([[-1, 13]], np.int32), INT32), oob=oob)
    for row, source in zip(dst.array, expected):
        np.testing.assert_array_equal(row, 0 if source is None else MEMORY.reshape(12, 8)[source])


def test_undefined_index_is_an_error():
    index = Tile.of(np.array([[0, 12]], np.int32), INT32)
    dst = Tile(FP32, 2, 8)
    assert run("mgather", dst, Tensor(MEMORY, FP32), index) == (OUTSIDE_TENSOR, [1, 12, 12, 0])
    assert dst.words.tobytes() == b"\x5a" * dst.words.nbytes


@pytest.mark.parametrize("dtype", (FP32, FP16, INT16), ids=str)
def test_scatter_to_memory(dtype):
    target = np.zeros((4, 6), dtype.storage)
    words = values(np.random.default_rng(1), (2, 5), dtype)
    index = np.array([[0, 23, 7, 7, 3], [1, 2, 7, 9, 99]], np.int32)
    source, indices = Tile.of(words, dtype, valid=(2, 4)), Tile.of(index, INT32, valid=(2, 4))
    expected = target.copy()
    for i in range(2):
        for j in range(4):
            expected.ravel()[index[i, j]] = words.view(dtype.storage)[i, j]
    report = ok("mscatter", Tensor(target, dtype), source, indices)
    np.testing.assert_array_equal(target.view(np.uint8), expected.view(np.uint8))
    assert report[1:] == [8, dtype.get_byte(), 0]
    before = target.copy()
    refused = run("mscatter", Tensor(target, dtype), Tile.of(words, dtype), Tile.of(index, INT32))
    assert refused == (OUTSIDE_TENSOR, [9, 99, 24, 0])
    np.testing.assert_array_equal(target.view(np.uint8), before.view(np.uint8))


def test_dtypes_of_indices():
    from pypto.sim.kernels.catalogue import kernel
    from pypto.sim.kernels.support import UnsupportedDtype

    for names in ("tgather", "tscatter"):
        with pytest.raises(UnsupportedDtype, match="index int32, int16, uint32 or uint16"):
            kernel(names, [FP32, FP32, FP32])
    assert kernel("tgather", [FP16, FP16, UINT16]).name == "tgather.b16.uint16"

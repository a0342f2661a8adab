"""Sorting and merging of records against a stable NumPy sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_driver import Tile, ok, run
from kernel_oracles import examples

from pypto.ir.dtype import FP16, FP32, UINT32
from pypto.sim.layout import OUTSIDE_TILE


def records(values, index):
    """fp32 records (value, index bits) in columns 2k and 2k + 1."""
    out = np.empty((*values.shape[:-1], 2 * values.shape[-1]), np.float32)
    out[..., ::2], out[..., 1::2] = values, index.astype(np.uint32).view(np.float32)
    return out


def descending(values, index):
    order = np.lexsort((index, -values))
    return values[order], index[order]


@examples
@given(st.integers(1, 4), st.sampled_from((32, 64, 160)), st.integers(0, 2**20))
def test_runs_of_32_descend_and_ties_ascend_by_index(rows, cols, seed):
    generator = np.random.default_rng(seed)
    values = generator.integers(-6, 6, size=(rows, cols)).astype(np.float32)
    index = generator.permutation(rows * cols).reshape(rows, cols).astype(np.uint32)
    dst = Tile(FP32, rows, 2 * cols, stride=2 * cols + 4)
    ok("tsort32", dst, Tile.of(values, FP32, cols + 3), Tile.of(index, UINT32))
    for i in range(rows):
        for first in range(0, cols, 32):
            run_values, run_index = descending(values[i, first : first + 32], index[i, first : first + 32])
            found = dst.array[i, 2 * first : 2 * first + 64]
            np.testing.assert_array_equal(found.view(np.uint32), records(run_values, run_index).view(np.uint32))
    assert dst.gap_is_poison()


def test_fp16_records_take_four_columns():
    values = np.random.default_rng(0).permutation(32).astype(np.float16).reshape(1, 32)
    index = np.arange(70000, 70032, dtype=np.uint32).reshape(1, 32)
    dst = Tile(FP16, 1, 128)
    ok("tsort32", dst, Tile.of(values, FP16), Tile.of(index, UINT32))
    fields = dst.array.reshape(32, 4)
    np.testing.assert_array_equal(fields[:, 0].view(np.float16), np.arange(31, -1, -1))
    assert (fields[:, 1] == 0).all()
    found = fields[:, 2].astype(np.uint32) | fields[:, 3].astype(np.uint32) << 16
    np.testing.assert_array_equal(found, index[0][np.argsort(-values[0])])
    assert run("tsort32", Tile(FP16, 1, 64), Tile.of(values, FP16), Tile.of(index, UINT32))[0] == OUTSIDE_TILE


@examples
@given(st.sampled_from((128, 512, 96)), st.integers(0, 2**20))
def test_full_sort_is_stable(count, seed):
    """tsort32, then merges of groups of four runs: equal values follow their original order."""
    generator = np.random.default_rng(seed)
    values = generator.integers(-20, 20, size=(2, count)).astype(np.float32)
    index = np.tile(np.arange(count, dtype=np.uint32), (2, 1))
    current, other = Tile(FP32, 2, 2 * count), Tile(FP32, 2, 2 * count)
    ok("tsort32", current, Tile.of(values, FP32), Tile.of(index, UINT32))
    run_columns = 64
    while run_columns < 2 * count:
        ok("tmrgsort", other, current, run_columns)
        current, other, run_columns = other, current, 4 * run_columns
    for i in range(2):
        expected = records(*descending(values[i], index[i]))
        np.testing.assert_array_equal(current.array[i].view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("lists", (2, 3, 4))
@examples
@given(st.data())
def test_merge_of_lists(lists, data):
    generator = np.random.default_rng(data.draw(st.integers(0, 2**20)))
    lengths = [data.draw(st.sampled_from((1, 5, 32))) for _ in range(lists)]
    sources, merged = [], []
    for number, length in enumerate(lengths):
        values = -np.sort(-generator.integers(-4, 4, size=length)).astype(np.float32)
        index = np.arange(length, dtype=np.uint32) + 1000 * number
        sources.append(Tile.of(records(values, index)[None], FP32))
        merged += [(-v, number, i) for v, i in zip(values, index)]
    merged.sort()
    total = sum(lengths)
    expected = records(np.array([-v for v, _, _ in merged]), np.array([i for _, _, i in merged]))
    dst = Tile(FP32, 1, 2 * total)
    ok(f"tmrgsort{lists}", dst, *sources)
    np.testing.assert_array_equal(dst.array[0].view(np.uint32), expected.view(np.uint32))
    early = Tile(FP32, 1, 2 * total)
    ok(f"tmrgsort{lists}", early, *sources, exhausted=1)
    last = min(max(k for k, m in enumerate(merged) if m[1] == number) for number in range(lists))
    stop = 2 * last + 2
    np.testing.assert_array_equal(early.array[0, :stop].view(np.uint32), expected[:stop].view(np.uint32))
    assert early.array[0, stop:].tobytes() == b"\x5a" * (8 * (total - last - 1))


def test_destination_must_hold_all_records():
    source = Tile.of(np.zeros((1, 8), np.float32), FP32)
    assert run("tmrgsort2", Tile(FP32, 1, 14), source, source)[0] == OUTSIDE_TILE
    assert run("tmrgsort", Tile(FP32, 1, 8), source, 0)[0] == OUTSIDE_TILE

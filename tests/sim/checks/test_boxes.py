"""The overlap of strided boxes against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto.sim.checks.boxes import BOX_WORDS, overlaps, runs_of, shared_runs

BATCH = 500


def random_boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    boxes = np.zeros((count, BOX_WORDS), np.int64)
    boxes[:, 0] = rng.integers(0, 60, count)
    boxes[:, 1] = rng.integers(1, 9, count)
    for k in range(4):
        boxes[:, 2 + 2 * k] = np.where(rng.random(count) < 0.5, 1, rng.integers(1, 4, count))
        boxes[:, 3 + 2 * k] = rng.integers(0, 33, count)
    boxes[:, 3:10:2] = np.sort(boxes[:, 3:10:2], 1)[:, ::-1]
    return boxes


def byte_set(box: np.ndarray) -> np.ndarray:
    mask = np.zeros(512, bool)
    starts, run = runs_of(box)
    mask[(starts[:, None] + np.arange(run)).ravel()] = True
    return mask


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_overlap_agrees_with_brute_force_on_100_000_pairs(seed):
    rng = np.random.default_rng(seed)
    a, b = random_boxes(rng, BATCH), random_boxes(rng, BATCH)
    same_pitch = rng.random(BATCH) < 0.5
    b[same_pitch, 3::2] = a[same_pitch, 3::2]
    expected = [(byte_set(x) & byte_set(y)).any() for x, y in zip(a, b)]
    assert overlaps(a, b).astype(bool).tolist() == expected


def test_column_strips_interleave_without_overlap():
    left = [0, 64, 1, 0, 1, 0, 1, 0, 64, 256]
    right = [64, 64, 1, 0, 1, 0, 1, 0, 64, 256]
    assert overlaps(np.array([left]), np.array([right])).tolist() == [0]


@pytest.mark.parametrize("seed", range(20))
def test_shared_runs_are_the_intersection(seed):
    rng = np.random.default_rng(seed)
    a, b = random_boxes(rng, 1)[0], random_boxes(rng, 1)[0]
    mask = np.zeros(512, bool)
    for low, high in shared_runs(a, b):
        mask[low:high] = True
    assert (mask == (byte_set(a) & byte_set(b))).all()

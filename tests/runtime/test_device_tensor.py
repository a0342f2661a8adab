"""Handles of device memory, alone and stacked (spec runtime 10.8, 10.9)."""

import pytest
import torch

from pypto.runtime import DeviceTensor, StackedDeviceTensor
from pypto.runtime.device_memory import allocate


@pytest.mark.parametrize(
    "pointer, shape, dtype, error, words",
    [
        (0, (1,), torch.float32, ValueError, "positive int"),
        (-4, (1,), torch.float32, ValueError, "positive int"),
        (True, (1,), torch.float32, ValueError, "positive int"),
        (8, (), torch.float32, ValueError, "non-empty"),
        (8, 2, torch.float32, TypeError, "sequence of ints, got int 2"),
        (8, (2, True), torch.float32, TypeError, "must contain ints"),
        (8, (2, 1.0), torch.float32, TypeError, "must contain ints"),
        (8, (2, 0), torch.float32, ValueError, "all positive"),
        (8, (2,), "float32", TypeError, "torch.dtype"),
    ],
)
def test_refused_handles(pointer, shape, dtype, error, words):
    with pytest.raises(error, match=words):
        DeviceTensor(pointer, shape, dtype)


def test_value_semantics():
    a, b = DeviceTensor(4096, [2, 3], torch.float16), DeviceTensor(4096, (2, 3), torch.float16)
    assert a == b and hash(a) == hash(b) and a.nbytes == 12 and a != DeviceTensor(4096, (3, 2), torch.float16)
    assert repr(a) == "DeviceTensor(data_ptr=0x1000, shape=(2, 3), dtype=torch.float16)"


def test_a_buffer_must_start_where_the_tensor_starts():
    buffer = allocate(64)
    assert DeviceTensor(buffer.base, (16,), torch.float32, buffer=buffer).buffer is buffer
    with pytest.raises(ValueError, match="does not match"):
        DeviceTensor(buffer.base + 4, (8,), torch.float32, buffer=buffer)
    with pytest.raises(TypeError, match="int base"):
        DeviceTensor(buffer.base, (16,), torch.float32, buffer=object())


def shard(i, shape=(2, 3), dtype=torch.float32):
    return DeviceTensor(4096 * (i + 1), shape, dtype)


@pytest.mark.parametrize(
    "shards, shape, workers, error, words",
    [
        ([], (3,), [], ValueError, "rank >= 2"),
        ([], (0, 2, 3), [], ValueError, "at least one shard"),
        ([shard(0)], (2, 2, 3), [0, 1], ValueError, "2 shards"),
        ([shard(0), shard(1)], (2, 2, 3), [0], ValueError, "worker_ids"),
        ([shard(0), shard(1)], (2, 2, 3), [1, 1], ValueError, "distinct"),
        ([shard(0), "x"], (2, 2, 3), [0, 1], TypeError, "shard 1"),
        ([shard(0), shard(1, (3, 2))], (2, 2, 3), [0, 1], ValueError, "per-shard shape"),
        ([shard(0), shard(1, dtype=torch.int32)], (2, 2, 3), [0, 1], ValueError, "dtype"),
    ],
)
def test_refused_stacks(shards, shape, workers, error, words):
    with pytest.raises(error, match=words):
        StackedDeviceTensor(shards, shape, workers)


def test_indexing_a_stack_gives_whole_shards():
    stack = StackedDeviceTensor([shard(0), shard(1)], (2, 2, 3), [1, 0])
    assert stack.shape == (2, 2, 3) and stack.dtype is torch.float32
    assert stack[1] is stack[1, ...] is stack[1, :, :] is stack.shards[1]
    for index, error, words in (
        (2, IndexError, "out of range"),
        (-1, IndexError, "out of range"),
        (True, TypeError, "leading index"),
        (slice(0, 1), TypeError, "leading index"),
        ((0, ..., ...), IndexError, "at most one Ellipsis"),
        ((0, slice(0, 1)), ValueError, "whole-shard"),
        ((0, 0), ValueError, "whole-shard"),
        ((0, slice(None), slice(None), slice(None)), IndexError, "too many"),
    ):
        with pytest.raises(error, match=words):
            stack[index]

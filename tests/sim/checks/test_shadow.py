"""Codes of memory per block and per byte, against an array of bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from pypto.ir.dtype import BF16, FP16, FP32
from pypto.sim.checks import shadow
from pypto.sim.checks import words as w
from pypto.sim.checks.shadow_memory import ShadowMemory

SIZE = 200


@njit
def set_codes(map_, address, size, code):
    shadow.set_codes(map_, address, size, code)


@njit
def look(map_, address, size):
    return (
        shadow.is_defined(map_, address, size),
        shadow.same_run(map_, address, size),
        shadow.code_of(map_, address, size),
    )


@njit
def is_finite_run(address, count, dtype):
    return shadow.is_finite_run(address, count, dtype)


@given(
    st.integers(0, 31),
    st.lists(
        st.tuples(st.integers(0, SIZE - 1), st.integers(1, SIZE), st.sampled_from((0, 1, 2, 7, 254)), st.booleans()),
        max_size=12,
    ),
    st.integers(0, SIZE - 1),
    st.integers(1, SIZE),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_blocks_say_what_their_bytes_say(skip, writes, at, length):
    address = 1 << 20 | skip
    memory, expected = ShadowMemory(address, SIZE, w.UNWRITTEN), np.full(SIZE, w.UNWRITTEN, np.uint8)
    pair = np.array(memory.map, np.int64)
    for low, size, code, in_python in writes:
        high = min(low + size, SIZE)
        if in_python:
            memory.fill(low, high, code)
        else:
            set_codes(pair.ctypes.data, address + low, high - low, code)
        expected[low:high] = code
    assert memory.read(0, SIZE).tolist() == expected.tolist()
    part = expected[at : at + length]
    defined, run, first = look(pair.ctypes.data, address + at, len(part))
    assert defined == (not part.any()) == memory.is_defined(at, at + len(part))
    assert run == (int(np.argmax(part != part[0])) or len(part))
    assert first == (part[part != 0][0] if part.any() else 0)


@pytest.mark.parametrize(
    ("dtype", "largest", "infinity"),
    [(FP32, 0x7F7FFFFF, 0x7F800000), (FP16, 0x7BFF, 0x7C00), (BF16, 0x7F7F, 0x7F80)],
    ids=["fp32", "fp16", "bf16"],
)
def test_one_infinity_or_nan_is_seen_wherever_it_stands(dtype, largest, infinity):
    storage, sign = (np.uint32, 1 << 31) if dtype == FP32 else (np.uint16, 1 << 15)
    for count in (1, 2, 3, 7, 8, 33):
        run = np.full(count, largest | sign, storage)
        assert is_finite_run(run.ctypes.data, count, dtype.code())
        for place in range(count):
            for wrong in (infinity, infinity | sign, infinity | 1):
                run[place] = wrong
                assert not is_finite_run(run.ctypes.data, count, dtype.code())
            run[place] = 0
            assert is_finite_run(run.ctypes.data, count, dtype.code())

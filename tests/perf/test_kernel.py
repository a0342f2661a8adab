"""Byte kernels: numbers, pools of strings, and when cached code is renewed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto.perf.fields import number, strip
from pypto.perf.intern import StringPool
from pypto.perf.kernel import KERNEL_FILES, kernel_stamp
from pypto.perf.scan import scan

from .properties import examples


@given(st.integers(0, 2**70), st.binary(max_size=3))
@examples()
def test_numbers_are_read_whole_or_refused(value: int, tail: bytes) -> None:
    digits = str(value).encode()
    rest = tail.lstrip(b"0123456789")
    buffer = np.array(list(digits + rest), np.uint8)
    read, end = number(buffer, 0, len(buffer))
    if value < 2**64:
        assert (int(read), end) == (value, len(digits))
    else:
        assert end == -1
    assert number(np.array([120], np.uint8), 0, 1)[1] == 0


@given(st.binary(max_size=12))
@examples()
def test_strip_leaves_no_blank_at_either_end(data: bytes) -> None:
    first, last = strip(np.array(list(data), np.uint8), 0, len(data))
    inner = data[first:last]
    assert all(byte > 32 for byte in (inner[:1] + inner[-1:]))
    assert all(byte <= 32 for byte in data[:first] + data[last:])


@given(st.lists(st.binary(max_size=40), max_size=400))
@examples()
def test_a_pool_gives_equal_strings_one_code(strings: list[bytes]) -> None:
    pool = StringPool(strings=2, arena_bytes=4)
    codes = [pool.add(text) for text in strings]
    assert [pool[code] for code in codes] == strings
    assert len(pool) == len(set(strings))
    with pytest.raises(IndexError, match="out of range"):
        pool[len(pool)]


def test_an_edit_of_any_kernel_file_renews_the_cached_code(tmp_path: Path) -> None:
    for name in KERNEL_FILES:
        (tmp_path / name).write_text("x")
    before = kernel_stamp(tmp_path)
    kernel_stamp.cache_clear()
    os.utime(tmp_path / "fields.py", ns=(1, 1))
    assert kernel_stamp(tmp_path) != before
    kernel_stamp.cache_clear()
    import pypto.perf.kernel as home

    assert scan._cache._cache_file._source_stamp[1] == kernel_stamp(Path(home.__file__).parent)

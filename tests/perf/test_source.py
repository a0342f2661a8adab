"""Logs as they lie on disk: compressed, or written by a shell in UTF-16."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pypto.perf import read_strace

SAMPLE = Path(__file__).parent / "samples" / "l2_vector.log"


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("run.log.gz", gzip.compress),
        ("run.gz.log", lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:])),
        ("run16.log", lambda data: data.decode().encode("utf-16")),
    ],
)
def test_a_compressed_or_utf16_log_reads_like_the_plain_one(tmp_path, name, encode):
    plain = read_strace(SAMPLE)
    (tmp_path / name).write_bytes(encode(SAMPLE.read_bytes()))
    table = read_strace(tmp_path / name)
    assert (table.heads, table.parsed, table.torn) == (plain.heads, plain.parsed, plain.torn)
    assert list(table.names) == list(plain.names)
    assert (table.dur == plain.dur).all() and plain.parsed > 0
